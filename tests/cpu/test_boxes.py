"""Sets of cases as boxes, and axis values as text: what was written reads back as the same."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitaudit.boxes import Grid, boxes, compact, expand, quoted, read_range

POINTS = st.integers(1, 3).flatmap(
    lambda axes: st.sets(st.tuples(*[st.integers(0, 4)] * axes), min_size=0, max_size=40)
)
INTS = st.lists(st.integers(-40, 40), unique=True)
OTHERS = st.lists(st.booleans() | st.none() | st.floats(allow_nan=False) | st.text().map(quoted), max_size=3)


@given(POINTS)
def test_boxes_are_disjoint_and_their_union_is_exact(cases: set[tuple[int, ...]]):
    found = [point for box in boxes(cases) for point in product(*box)]
    assert len(found) == len(set(found))
    assert set(found) == cases


@given(st.lists(st.sets(st.integers(0, 20), min_size=1), min_size=1, max_size=3))
def test_a_product_is_one_box(axes: list[set[int]]):
    assert boxes(product(*axes)) == [tuple(tuple(sorted(axis)) for axis in axes)]


@given(POINTS)
def test_the_order_of_the_cases_does_not_matter(cases: set[tuple[int, ...]]):
    assert boxes(sorted(cases)) == boxes(sorted(cases, reverse=True))


def test_whichever_axis_is_split_first_the_fewer_boxes_win():
    """Split by its first axis this set takes four boxes, by its second three."""
    cases = {(0, 0), (0, 1), (1, 0), (1, 1), (1, 2), (2, 0), (3, 0), (3, 2)}
    assert len(boxes(cases)) == len(boxes((y, x) for x, y in cases)) == 3


@given(INTS, OTHERS)
def test_ranges_expand_to_the_values_they_were_made_of(numbers: list[int], others: list[object]):
    texts = compact([*map(str, numbers), *others])
    assert expand(texts) == [*map(str, sorted(numbers)), *others]


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([1], ("1",)),
        ([1, 2], ("1..2",)),
        ([1, 3], ("1", "3")),
        ([16, 32, 48], ("16..48:16",)),
        ([1, 2, 3, 16, 32, 48, 49], ("1..3", "16..48:16", "49")),
        ([3, -1, 0, 1], ("-1..1", "3")),
        ([], ()),
    ],
)
def test_ints_are_written_as_ranges(values: list[int], texts: tuple[str, ...]):
    assert compact(map(str, values)) == texts


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("7", [7]),
        ("-2..1", [-2, -1, 0, 1]),
        ("1..10:4", [1, 5, 9]),
        ("4..1", []),
        ("1..8:0", []),
        ("1..", None),
        ("x", None),
        ("1.5", None),
        ("", None),
    ],
)
def test_read_range(text: str, numbers: list[int] | None):
    read = read_range(text)
    assert (None if read is None else list(read)) == numbers


@given(st.text(alphabet='"\\17.:-x', max_size=8), st.text(alphabet='"\\17.:-x', max_size=8))
def test_a_quoted_string_is_no_range_and_no_other_string(one: str, other: str):
    assert read_range(quoted(one)) is None
    assert (quoted(one) == quoted(other)) == (one == other)


def test_quoting_what_is_quoted_already():
    """Each is the quoted form of the one before."""
    texts = ["7", '"7"', '"\\"7\\""']
    assert len({quoted(text) for text in texts}) == 3


@given(POINTS)
def test_a_grid_numbers_the_cases_of_boxes(cases: set[tuple[int, ...]]):
    """Five values an axis: the number's digits in base five are the case's positions."""
    width = len(next(iter(cases), (0,)))
    values = [*map(str, range(4)), True]
    grid = Grid({f"axis{at}": ("0..3", True) for at in range(width)})
    written = [
        {"sweep": "s"} | {f"axis{at}": compact([values[place] for place in places]) for at, places in enumerate(box)}
        for box in boxes(cases)
    ]
    numbers = [number for box in written for number in grid.numbers(box)]
    assert sorted(numbers) == sorted(sum(place * 5 ** (width - 1 - at) for at, place in enumerate(p)) for p in cases)
