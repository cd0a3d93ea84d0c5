"""Sets of cases as disjoint boxes over a sweep's axes, and axis values as text. Pure.

Ints are written as ranges, both ends included: ``"7"``, ``"1..64"``, ``"16..512:16"``. A string that could be read as
one is quoted once more.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence

from jitaudit.model import AxisValue, Box

_RANGE = re.compile(r"(-?\d+)(?:\.\.(-?\d+)(?::(\d+))?)?")

Point = tuple[int, ...]
"""One case: for each axis, the position of its value among the axis's values."""


def boxes(points: Iterable[Point]) -> list[tuple[tuple[int, ...], ...]]:
    """Disjoint products of positions whose union is exactly `points`, few where the points are regular."""
    distinct = set(points)
    forward = list(_split(distinct))
    if len(forward) <= 1:
        return forward
    backward = [box[::-1] for box in _split({point[::-1] for point in distinct})]
    return min(forward, sorted(backward), key=len)


def _split(points: set[Point]) -> Iterator[tuple[tuple[int, ...], ...]]:
    if points == {()}:
        yield ()
        return
    rests: dict[int, set[Point]] = {}
    for first, *rest in points:
        rests.setdefault(first, set()).add(tuple(rest))
    alike: dict[frozenset[Point], list[int]] = {}
    for first in sorted(rests):
        alike.setdefault(frozenset(rests[first]), []).append(first)
    for rest_points, firsts in alike.items():
        for box in _split(set(rest_points)):
            yield (tuple(firsts), *box)


class Grid:
    """A sweep's cases as numbers: the positions on its axes as the digits of one int, the last axis the fastest."""

    def __init__(self, axes: dict[str, tuple[AxisValue, ...]]) -> None:
        self.axes = {name: tuple(expand(values)) for name, values in axes.items()}
        self._places = {name: {_hashable(v): at for at, v in enumerate(values)} for name, values in self.axes.items()}
        self._chosen: dict[tuple[object, ...], list[int]] = {}
        self.strides: dict[str, int] = {}
        stride = 1
        for name, values in reversed(self.axes.items()):
            self.strides[name] = stride
            stride *= len(values)

    def numbers(self, box: Box) -> list[int]:
        """The cases of a manifest's box."""
        numbers = [0]
        for name in self.axes:
            digits = self._digits(name, box[name])
            numbers = [number + digit for number in numbers for digit in digits]
        return numbers

    def boxes(self, sweep: str, numbers: Iterable[int]) -> tuple[Box, ...]:
        """Disjoint boxes of the sweep called `sweep` whose union is exactly these cases."""
        values = list(self.axes.values())
        strides = list(self.strides.values())[::-1]
        points = [tuple(n // s % len(v) for s, v in zip(strides, values, strict=True)) for n in numbers]
        return tuple(
            {"sweep": sweep}
            | {name: compact(at[p] for p in places) for (name, at), places in zip(self.axes.items(), box, strict=True)}
            for box in boxes(points)
        )

    def _digits(self, axis: str, chosen: str | tuple[AxisValue, ...]) -> list[int]:
        assert not isinstance(chosen, str)
        # True == 1.0 as keys of a dict: only texts are safe as they are.
        simple = len(chosen) == 1 and chosen[0].__class__ is str
        key = (axis, chosen[0]) if simple else (axis, *map(_hashable, chosen))
        digits = self._chosen.get(key)
        if digits is None:
            places, stride = self._places[axis], self.strides[axis]
            digits = self._chosen[key] = [places[_hashable(value)] * stride for value in expand(chosen)]
        return digits


def expand(texts: Iterable[AxisValue]) -> list[AxisValue]:
    """Values with each range written out: ``("1..3", True)`` gives ``["1", "2", "3", True]``."""
    values: list[AxisValue] = []
    for text in texts:
        numbers = read_range(text) if isinstance(text, str) else None
        values += [text] if numbers is None else [str(number) for number in numbers]
    return values


def compact(values: Iterable[AxisValue]) -> tuple[AxisValue, ...]:
    """The reverse of `expand`: single ints joined to ranges, everything else after them in its order."""
    numbers, others = [], []
    for value in values:
        if isinstance(value, str) and _RANGE.fullmatch(value):
            numbers.append(int(value))
        else:
            others.append(value)
    return (*_ranges(sorted(numbers)), *others)


def read_range(text: str) -> range | None:
    """The ints that a range stands for; None if `text` is no range."""
    match = _RANGE.fullmatch(text)
    if match is None:
        return None
    first = int(match[1])
    last = first if match[2] is None else int(match[2])
    return range(first, last + 1, int(match[3] or 1)) if match[3] != "0" else range(0)


def quoted(text: str) -> str:
    """A string axis value as the manifest writes it."""
    return json.dumps(text) if _RANGE.fullmatch(text) or text.startswith('"') else text


def group_of(text: AxisValue) -> str:
    """The group that a compared axis's value, as the manifest has it, gives its kernels."""
    return str(text).lower() if text is None or isinstance(text, bool) else str(text)


def _ranges(numbers: Sequence[int]) -> Iterator[str]:
    start = 0
    while start < len(numbers):
        end = start + 1
        step = numbers[end] - numbers[start] if end < len(numbers) else 1
        while end < len(numbers) and numbers[end] - numbers[end - 1] == step:
            end += 1
        if step != 1 and end - start < 3:  # two far numbers are no progression
            end = start + 1
        first, last = numbers[start], numbers[end - 1]
        yield f"{first}" if first == last else f"{first}..{last}" if step == 1 else f"{first}..{last}:{step}"
        start = end


def _hashable(value: AxisValue) -> tuple[str, AxisValue]:
    return type(value).__name__, value
