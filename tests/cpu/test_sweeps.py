"""Sweeps, their axes as text, and the targets that hold them."""

from __future__ import annotations

import enum
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import jitaudit
from jitaudit.boxes import compact
from jitaudit.errors import RequestError
from jitaudit.sweeping.axes import axis_text, group_name, read_axis
from jitaudit.sweeping.targets import read_target


class Mode(enum.Enum):
    FAST = 1
    SAFE = 2


class Nameless:
    """Its repr holds an address."""


def test_ints_has_both_ends():
    assert list(jitaudit.ints(1, 4)) == [1, 2, 3, 4]
    assert list(jitaudit.ints(8, 32, 8)) == [8, 16, 24, 32]


@pytest.mark.parametrize("arguments", [(2, 1), (1, 4, 0), (1, 4, -1)])
def test_an_empty_range_of_ints_is_refused(arguments: tuple[int, ...]):
    with pytest.raises(ValueError, match="an empty range"):
        jitaudit.ints(*arguments)


def test_cases_are_the_product_of_the_axes_the_last_the_fastest():
    @jitaudit.sweep(bs=[1, 2], flag=[True, False])
    def sweep(bs, flag, page_size=64): ...

    assert [case for _, case in sweep.cases()] == [
        {"bs": 1, "flag": True},
        {"bs": 1, "flag": False},
        {"bs": 2, "flag": True},
        {"bs": 2, "flag": False},
    ]


def test_where_drops_cases_by_the_axes_that_it_names():
    @jitaudit.sweep(valid=jitaudit.ints(1, 3), total=jitaudit.ints(1, 3), where=lambda valid, total: valid <= total)
    def sweep(valid, total): ...

    assert [point for point, _ in sweep.cases()] == [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]


def test_a_where_that_raises_is_named_with_its_line():
    @jitaudit.sweep(bs=[0], where=lambda bs: 1 // bs > 0)
    def sweep(bs): ...

    with pytest.raises(RequestError, match=r"sweep.*: its where raised at .*test_sweeps\.py:\d+: ZeroDivisionError: "):
        list(sweep.cases())


def test_a_sweep_is_still_its_function():
    @jitaudit.sweep(bs=[1])
    def sweep(bs, scale=2):
        """Doubles."""
        return bs * scale

    assert (sweep(3), sweep(bs=3, scale=3), sweep.__doc__) == (6, 9, "Doubles.")


WRONG = [
    ({"bs": [1], "other": [1]}, "axis other is no parameter"),
    ({"bs": []}, "axis bs has no values"),
    ({}, "parameter bs is no axis and has no default"),
    ({"bs": [1], "compare": "policy"}, "compare='policy' is no axis"),
    ({"bs": [1], "where": lambda size: True}, "where names size, which is no axis"),
    ({"bs": [Nameless()]}, "has no stable text"),
]


@pytest.mark.parametrize(("arguments", "words"), WRONG, ids=[words for _, words in WRONG])
def test_a_sweep_that_does_not_fit_its_function_is_refused_where_it_is_made(arguments: dict, words: str):
    with pytest.raises(ValueError, match=words):

        @jitaudit.sweep(**arguments)
        def sweep(bs): ...


TEXTS = [
    (1, "1"),
    (True, True),
    (1.0, 1.0),
    (None, None),
    ("x", "x"),
    ("1..4", '"1..4"'),
    (torch.float32, "torch.float32"),
    (Mode.FAST, f"{__name__}.Mode.FAST"),
    ((1, True), "(1, True)"),
    (test_ints_has_both_ends, f"{__name__}.test_ints_has_both_ends"),
    (Nameless, f"{__name__}.Nameless"),
]


@pytest.mark.parametrize(("value", "text"), TEXTS, ids=[str(text) for _, text in TEXTS])
def test_axis_text(value: object, text: object):
    assert axis_text(value) == text
    assert type(axis_text(value)) is type(text)


@pytest.mark.parametrize(("value", "name"), [(True, "true"), (None, "none"), ("floored", "floored"), (64, "64")])
def test_a_group_is_called_as_the_command_line_calls_it(value: object, name: str):
    assert group_name(value) == name


DECLARED = ("both", torch.int32, torch.int64, Mode.SAFE, 7)

READ = [
    ("1..4", (1, 2, 3, 4)),
    ("1..9:4,9,2", (1, 5, 9, 2)),
    (" 1 , 2 ", (1, 2)),
    ("-2..0", (-2, -1, 0)),
    ("true,FALSE,none", (True, False, None)),
    ("1,true,1", (1, True)),
    ("0.5", (0.5,)),
    ("1_000", (1000,)),
    ("torch.int64,int32", (torch.int64, torch.int32)),
    ("both", ("both",)),
    ("SAFE", (Mode.SAFE,)),
]


@pytest.mark.parametrize(("text", "values"), READ, ids=[text for text, _ in READ])
def test_read_axis(text: str, values: tuple[object, ...]):
    read = read_axis("bs", text, DECLARED)
    assert read == values
    assert list(map(type, read)) == list(map(type, values))


def test_any_word_is_a_value_where_the_sweep_has_words():
    assert read_axis("mode", "other", ("one", "two")) == ("other",)


@pytest.mark.parametrize("text", ["", ",", "4..1", "1..8:0", "  ", "9..8,5..1"])
def test_an_empty_axis_is_refused(text: str):
    with pytest.raises(RequestError, match=r"an empty range; write bs=1\.\.64"):
        read_axis("bs", text, DECLARED)


@pytest.mark.parametrize("text", ["1.5", "1e3", "nan"])
def test_a_float_on_an_axis_of_ints_is_refused(text: str):
    with pytest.raises(RequestError, match=f"--axis bs={text}: the sweep has ints there"):
        read_axis("bs", text, (None, 1, 2))


def test_a_word_that_the_sweep_does_not_declare_is_refused():
    with pytest.raises(RequestError, match=r"--axis dtype=int8: neither a number .* \(both, torch.int32, torch.int64"):
        read_axis("dtype", "int8", DECLARED)


@given(st.lists(st.integers(-300, 300), min_size=1, unique=True))
def test_an_axis_reads_back_from_the_manifest(numbers: list[int]):
    assert read_axis("bs", ",".join(map(str, compact(map(str, numbers)))), ()) == tuple(sorted(numbers))


TARGETS = [
    ("sweeps.py", "sweeps.py", None, None),
    ("sweeps.py::decode", "sweeps.py", None, "decode"),
    ("package.module", None, "package.module", None),
    ("package.module:decode", None, "package.module", "decode"),
]


@pytest.mark.parametrize(("text", "file", "module", "sweep"), TARGETS)
def test_read_target(
    text: str, file: str | None, module: str | None, sweep: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "sweeps.py").touch()
    monkeypatch.chdir(tmp_path)
    target = read_target(text)
    assert target.file == (str(tmp_path / file) if file else None)
    assert (target.text, target.module, target.sweep) == (text, module, sweep)


@pytest.mark.parametrize("text", ["gone.py", "gone.py::decode", "folder/gone"])
def test_a_missing_file_is_named(text: str):
    with pytest.raises(RequestError, match=r"^(folder/)?gone(\.py)?: no such file"):
        read_target(text)
