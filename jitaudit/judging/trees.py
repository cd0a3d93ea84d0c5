"""Why a kernel has its variants, as a tree: each step splits by one argument. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from jitaudit.boxes import compact, expand
from jitaudit.judging.reach import Column, Reach, ordered
from jitaudit.model import AxisValue

_LOOKED_AT = 20_000
"""Variants of a split from which on the cases of its classes are not told: they would make no readable list."""


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

    def split(self, variants: Sequence[int], titles: Sequence[str]) -> Split | None:
        """Split by the argument with the most classes here; the first in the signature where several have as many."""
        if len(variants) < 2:
            return None
        classes = {title: len({self._columns[title][variant] for variant in variants}) for title in titles}
        title = max(titles, key=classes.__getitem__)
        rest = tuple(other for other in titles if other != title and classes[other] > 1)
        groups: dict[int, list[int]] = {}
        for variant in variants:
            groups.setdefault(self._columns[title][variant], []).append(variant)
        told = len(variants) <= _LOOKED_AT
        alike: dict[Any, list[tuple[Held, Branch]]] = {}
        for item, members in groups.items():
            held = Held(_text(self._reach.columns[title], item), self._values(title, members) if told else ())
            branch = Branch((held,), len(members), self.split(members, rest))
            alike.setdefault(_shape(branch), []).append((held, branch))
        branches = [_merged([branch for _, branch in same]) for same in alike.values()]
        return Split(
            self._reach.columns[title].name,
            self._axes[title],
            tuple(sorted(branches, key=lambda branch: _first(branch.classes))),
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


def _text(column: Column, item: int) -> str:
    text = column.texts[item]
    return ("default" if column.option else "none") if text is None else text


def _shape(branch: Branch) -> object:
    """Equal for branches under which the tree goes on alike."""
    if branch.split is None:
        return branch.variants
    below = branch.split.branches
    return (
        branch.variants,
        branch.split.argument,
        *((tuple(held.text for held in b.classes), _shape(b)) for b in below),
    )


def _merged(branches: Sequence[Branch]) -> Branch:
    """One branch of several that go on alike."""
    if len(branches) == 1:
        return branches[0]
    by_text: dict[str, list[Held]] = {}
    for held in (held for branch in branches for held in branch.classes):
        by_text.setdefault(held.text, []).append(held)
    classes = tuple(
        Held(text, compact(dict.fromkeys(expand(value for held in by_text[text] for value in held.values))))
        for text in ordered_keys(tuple(by_text))
    )
    splits = [branch.split for branch in branches if branch.split is not None]
    if not splits:
        return Branch(classes, branches[0].variants, None)
    below = tuple(_merged(same) for same in zip(*(split.branches for split in splits), strict=True))
    return Branch(classes, branches[0].variants, Split(splits[0].argument, splits[0].axis, below))


def ordered_keys(texts: Sequence[str]) -> tuple[str, ...]:
    """Texts of keys from the smallest class on."""
    bare = {text.removeprefix("constexpr ").rpartition(" ")[2] or text: text for text in texts}
    if len(bare) < len(texts):
        return tuple(sorted(texts))
    return tuple(bare[text] for text in ordered(tuple(bare)))


def _first(classes: Sequence[Held]) -> tuple[int, str]:
    texts = ordered_keys([held.text for held in classes])
    number = texts[0].rpartition(" ")[2]
    return (int(number) if number.lstrip("-").isdigit() else 0), texts[0]
