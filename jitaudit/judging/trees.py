"""Why a kernel has its variants, as a tree: each step splits by one argument. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import compress

import msgspec

from jitaudit.boxes import compact, expand
from jitaudit.judging.reach import Column, Reach
from jitaudit.model import AxisValue

_TOLD = 16
"""Classes of one branch that are told each; of more numbers only their ranges are."""


class Held(msgspec.Struct, frozen=True):
    """A class of an argument, in the words of a key."""

    text: str
    values: tuple[AxisValue, ...]
    """The values of the split's axis that lead to it here; empty where they are not told."""


class Branch(msgspec.Struct, frozen=True):
    """Classes of an argument under which the tree goes on alike."""

    classes: tuple[Held, ...]
    variants: int
    """How many under each of the classes."""
    split: Split | None


class Split(msgspec.Struct, frozen=True):
    """Variants that one argument tells apart."""

    argument: str
    axis: str | None
    """The axis that moves the argument; None where several do, or none."""
    branches: tuple[Branch, ...]


def tree(reach: Reach) -> Split | None:
    """The split of all variants; None where there is one, or none."""
    return _Growing(reach).split(range(len(reach.kernel.variants)), tuple(reach.columns))


def named(split: Split | None) -> Iterator[str]:
    """The arguments that a tree splits by."""
    if split is not None:
        yield split.argument
        for branch in split.branches:
            yield from named(branch.split)


class _Growing:
    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self._columns = {title: column.ids for title, column in reach.columns.items()}
        self._axes: dict[str, str | None] = {}
        for title, causes in reach.causes_by_title.items():
            axes = {axis for cause in causes for axis in cause.axis}
            self._axes[title] = axes.pop() if len(axes) == 1 else None

    def split(self, variants: Sequence[int], titles: Iterable[str], times: int = 1) -> Split | None:
        """Split by the argument with the most classes here; the first in the signature where several have as many.

        `times`: of how many branches that go on alike these are the variants.
        """
        classes = {title: len({*map(self._columns[title].__getitem__, variants)}) for title in titles}
        title = max(classes, key=classes.__getitem__, default=None)
        if title is None or classes[title] == 1:
            return None
        items = [self._columns[title][variant] for variant in variants]
        rest = [other for other in classes if other != title and classes[other] > 1]
        # What the split's own classes decide goes on alike under each of them.
        free = [other for other in rest if len({*zip(items, self._of(other, variants), strict=True)}) > classes[title]]
        below: dict[int, set[tuple[int, ...]]] = {item: set() for item in items}
        for item, *others in zip(items, *(self._of(other, variants) for other in free), strict=True):
            below[item].add(tuple(others))
        shapes = {item: _shape(keys) for item, keys in below.items()}
        alike: dict[_Shape, list[int]] = {}
        for variant, item in zip(variants, items, strict=True):
            alike.setdefault(shapes[item], []).append(variant)
        branches = [self._branch(title, same, compress(free, varies), times) for (varies, _), same in alike.items()]
        column = self._reach.columns[title]
        return Split(column.name, self._axes[title], tuple(sorted(branches, key=lambda b: _order(b.classes[0].text))))

    def _branch(self, title: str, variants: Sequence[int], titles: Iterable[str], times: int) -> Branch:
        classes = set(self._of(title, variants))
        return Branch(
            classes=self._held(title, classes, variants),
            variants=len(variants) // len(classes) // times,
            split=self.split(variants, titles, times * len(classes)),
        )

    def _of(self, title: str, variants: Iterable[int]) -> Iterable[int]:
        return map(self._columns[title].__getitem__, variants)

    def _held(self, title: str, items: set[int], variants: Sequence[int]) -> tuple[Held, ...]:
        """The classes that `variants` have, and the cases that lead to each."""
        column = self._reach.columns[title]
        texts = {item: _text(column, item) for item in items}
        if len(items) > _TOLD:
            numbers = [text.removeprefix(_INT) for text in texts.values() if text.startswith(_INT)]
            if len(numbers) == len(items):
                return tuple(Held(f"{_INT}{text}", ()) for text in compact(numbers))
        members: dict[int, list[int]] = {}
        for variant in variants:
            members.setdefault(column.ids[variant], []).append(variant)
        return tuple(
            Held(texts[i], self._values(title, members[i])) for i in sorted(items, key=lambda i: _order(texts[i]))
        )

    def _values(self, title: str, variants: Iterable[int]) -> tuple[AxisValue, ...]:
        axis = self._axes[title]
        if axis is None:
            return ()
        texts: dict[AxisValue, None] = {}
        for variant in variants:
            for box in self._reach.kernel.variants[variant].cases:
                values = box.get(axis, ())
                assert not isinstance(values, str)
                texts.update(dict.fromkeys(values))
        return compact(dict.fromkeys(expand(texts)))


_Shape = tuple[tuple[bool, ...], frozenset[tuple[int, ...]]]


def _shape(keys: set[tuple[int, ...]]) -> _Shape:
    """Equal for sets of keys that differ in the same things: which columns vary, and what the keys are in those."""
    if len(keys) == 1:
        return (), frozenset()
    varies = tuple(len(set(column)) > 1 for column in zip(*keys, strict=True))
    return varies, frozenset(tuple(compress(key, varies)) for key in keys)


_INT = "constexpr int "


def _text(column: Column, item: int) -> str:
    text = column.texts[item]
    return ("default" if column.option else "none") if text is None else text


def _order(text: str) -> tuple[int, int, str]:
    """Numbers by value, then classes as they are told: 1, divisible by 16, neither."""
    number = text.removeprefix(_INT).partition("..")[0]
    if number.removeprefix("-").isdigit():
        return 0, int(number), text
    return 1, next((at for at, word in enumerate(("=1", "%16", "any", " aligned")) if text.endswith(word)), 9), text
