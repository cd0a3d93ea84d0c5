"""What a kernel's variants differ by, and which axes of the sweeps move that. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

from jitaudit.boxes import Grid
from jitaudit.classes import Facets, facets
from jitaudit.model import Cause, CauseKind, Count, Growth, Kernel, Manifest, SweepRun, VariantKey

LINEAR = 0.9
"""Δvariants ÷ Δpoints from which growth is called linear (design.md, Words)."""

BOUNDED: tuple[CauseKind, ...] = ("int_class", "alignment", "dtype", "width", "none", "address_range")
"""Kinds of which there are only so many, however long the axis."""

_CLASS_ORDER = ("=1", "any", "%16", "unaligned", "aligned", "none", "given", "default")

_GROWTHS: tuple[Growth, ...] = ("constant", "class", "bucketed", "linear")


def count(manifest: Manifest) -> tuple[Count, ...]:
    """A row for each kernel and group, as the manifest orders them."""
    reaches = (Reach(kernel, manifest.sweeps) for kernel in manifest.kernels)
    return tuple(
        Count(
            kernel=reach.kernel.id,
            sweep=", ".join(reach.points),
            group=reach.kernel.group,
            cases=sum(len(set(numbers)) for numbers, _ in reach.points.values()),
            launches=reach.kernel.launches,
            variants=len(reach.kernel.variants),
            autotune_variants=sum(variant.via == "autotune" for variant in reach.kernel.variants),
            growth=reach.growth,
            causes=reach.causes,
        )
        for reach in reaches
    )


class Column:
    """One argument or option over the variants: its distinct texts, and which one each variant has.

    An argument that a variant does not have, and an option at its default, are None.
    """

    def __init__(self, name: str, texts: Sequence[str | None], option: CauseKind | None) -> None:
        ids: dict[str | None, int] = {}
        self.name = name
        self.option = option
        """The kind of cause that an option is; None for an argument."""
        self.ids = [ids.setdefault(text, len(ids)) for text in texts]
        """By variant: the position of its text."""
        self.texts = tuple(ids)

    def classes(self, facets_of: Callable[[str | None], Facets]) -> dict[CauseKind, list[str | None]]:
        """By kind of cause: the class of each distinct text, None where it has none of that kind."""
        taken = [dict(facets_of(text)) for text in self.texts]
        return {kind: [item.get(kind) for item in taken] for kind in dict.fromkeys(k for item in taken for k in item)}


class Reach:
    """One kernel's variants beside the cases that reach them."""

    def __init__(self, kernel: Kernel, sweeps: Sequence[SweepRun]) -> None:
        self.kernel = kernel
        self._axes = {sweep.name: sweep.axes for sweep in sweeps}

    @cached_property
    def columns(self) -> dict[str, Column]:
        """Those of `every` that differ between variants."""
        return {title: column for title, column in self.every.items() if len(column.texts) > 1}

    @cached_property
    def every(self) -> dict[str, Column]:
        """The arguments, in the order of the parameters, and the options."""
        keys = [variant.key for variant in self.kernel.variants]
        order = [parameter.name for parameter in self.kernel.parameters]
        arguments = dict.fromkeys(order + [name for key in keys for name in key.arguments])
        options = sorted({name for key in keys for name in key.options})
        columns = [Column(name, [key.arguments.get(name) for key in keys], None) for name in arguments]
        columns += [
            Column(name, [option_text(key, name) for key in keys], "autotune" if name in self._tuned else "option")
            for name in options
        ]
        return {_title(column): column for column in columns}

    @cached_property
    def grids(self) -> dict[str, Grid]:
        """The cases of each sweep that reaches the kernel."""
        names = {str(box["sweep"]) for variant in self.kernel.variants for box in variant.cases}
        return {name: Grid(self._axes[name]) for name in sorted(names)}

    @cached_property
    def points(self) -> dict[str, tuple[list[int], list[int]]]:
        """By sweep: the number of each case, and beside it the position of a variant that it reaches."""
        points: dict[str, tuple[list[int], list[int]]] = {name: ([], []) for name in self.grids}
        for position, variant in enumerate(self.kernel.variants):
            for box in variant.cases:
                name = str(box["sweep"])
                numbers, positions = points[name]
                new = self.grids[name].numbers(box)
                numbers += new
                positions += [position] * len(new)
        return points

    @cached_property
    def causes(self) -> tuple[Cause, ...]:
        """The arguments that split the kernel, in the order of its parameters, one cause for each kind."""
        return tuple(cause for causes in self.causes_by_title.values() for cause in causes)

    @cached_property
    def causes_by_title(self) -> dict[str, tuple[Cause, ...]]:
        """The same, by the name of the column."""
        return {title: tuple(self._causes_of(title)) for title in self.columns}

    @cached_property
    def growth(self) -> Growth:
        """The worst growth over the kernel's axes."""
        return max((growth for _, _, growth in self.growths()), key=_GROWTHS.index, default="constant")

    def growths(self) -> Iterator[tuple[str, str, Growth]]:
        """(sweep, axis, growth) for each axis of ints that a sweep moves."""
        every = range(len(self.kernel.variants))
        for sweep, axis in self.int_axes:
            kinds = {cause.kind for cause in self.causes if axis in cause.axis}
            bounded = bool(kinds) and kinds <= set(BOUNDED)
            yield sweep, axis, self._growth(sweep, axis, every, bounded)

    def moved_by(self, classes: Sequence[object]) -> tuple[str, ...]:
        """The axes along which a class (one a variant) changes while all other axes stand still."""
        moving: dict[str, None] = {}
        for sweep, (numbers, positions) in self.points.items():
            held = _held(numbers, [classes[position] for position in positions])
            grid = self.grids[sweep]
            for axis, values in grid.axes.items():
                if len(values) > 1 and axis not in moving and _moves(held, grid.strides[axis], len(values)):
                    moving[axis] = None
        return tuple(moving)

    def count(self, columns: Sequence[Sequence[object]]) -> int:
        """The number of variants whose keys differ in these columns, one item a variant each."""
        return len(set(zip(*columns, strict=True))) if columns else min(len(self.kernel.variants), 1)

    def without(self, title: str) -> int:
        """The number of variants if one argument no longer split."""
        return self.count([column.ids for name, column in self.columns.items() if name != title])

    def facets(self, column: Column) -> Callable[[str | None], Facets]:
        """How to take a column's texts apart."""
        if column.option is not None:
            kind = column.option
            return lambda text: ((kind, "default" if text is None else text),)
        tuned = column.name in self._tuned
        return lambda text: () if text is None else facets(text, tuned=tuned)

    @cached_property
    def _tuned(self) -> set[str]:
        if self.kernel.autotuner is None:
            return set()
        return {name for config in self.kernel.autotuner.configs for name in re.findall(r"(?:^|, )(\w+): ", config)}

    def _causes_of(self, title: str) -> Iterator[Cause]:
        column = self.columns[title]
        without = self.without(title)
        for kind, classes in column.classes(self.facets(column)).items():
            texts = tuple(dict.fromkeys(text for text in classes if text is not None))
            if len(texts) > 1:
                each = [classes[item] for item in column.ids]
                axes = self.moved_by(each)
                yield Cause(
                    argument=column.name,
                    kind=kind,
                    axis=axes,
                    classes=ordered(texts),
                    growth=self._growth_of(kind, each, axes),
                    without=without,
                )

    def _growth_of(self, kind: CauseKind, classes: Sequence[object], axes: Sequence[str]) -> Growth:
        growths = (self._growth(sweep, axis, classes, kind in BOUNDED) for sweep, axis in self.int_axes if axis in axes)
        return max(growths, key=_GROWTHS.index, default="constant")

    @cached_property
    def int_axes(self) -> tuple[tuple[str, str], ...]:
        """(sweep, axis) for each axis of several ints."""
        return tuple(
            (sweep, axis)
            for sweep, grid in self.grids.items()
            for axis, values in grid.axes.items()
            if len(values) > 1 and _all_ints(values)
        )

    def _growth(self, sweep: str, axis: str, classes: Sequence[object], bounded: bool) -> Growth:
        """How the number of classes grows with the sorted axis, judged at a quarter, a half and all of it."""
        grid = self.grids[sweep]
        values, stride = [int(str(value)) for value in grid.axes[axis]], grid.strides[axis]
        ranks = {place: rank for rank, place in enumerate(sorted(range(len(values)), key=values.__getitem__))}
        length = len(values)
        first: dict[object, int] = {}
        for number, position in zip(*self.points[sweep], strict=True):
            rank, held = ranks[number // stride % length], classes[position]
            if rank < first.get(held, length):
                first[held] = rank

        def within(points: int) -> int:
            return sum(rank < points for rank in first.values())

        if within(1) == len(first):
            return "constant"
        k = length // 4
        if bounded or (k and within(k) == within(4 * k)):
            return "class"
        if k < 2:  # too few points for a slope: linear only if each one is new
            return "linear" if k and len(set(first.values())) == length else "bucketed"
        return "linear" if (within(4 * k) - within(2 * k)) / (2 * k) >= LINEAR else "bucketed"


def option_text(key: VariantKey, name: str) -> str | None:
    """An option's value as text; None for the default."""
    return str(key.options[name]) if name in key.options else None


def ordered(texts: Sequence[str]) -> tuple[str, ...]:
    """Classes from the smallest on, numbers by value."""

    def order(text: str) -> tuple[int, float, str]:
        if text in _CLASS_ORDER:
            return 0, _CLASS_ORDER.index(text), text
        try:
            return 0, float(text.removeprefix("int ").removeprefix("float ")), text
        except ValueError:
            return 1, 0.0, text

    return tuple(sorted(texts, key=order))


def _all_ints(values: Sequence[object]) -> bool:
    return all(isinstance(value, str) and value.removeprefix("-").isdigit() for value in values)


def _title(column: Column) -> str:
    """Options may bear the name of an argument."""
    return column.name if column.option is None else f"{column.name}="


def _held(numbers: Sequence[int], classes: Sequence[object]) -> dict[int, object]:
    """By case: its class, or the set of them."""
    held: dict[int, object] = dict(zip(numbers, classes, strict=True))
    if len(held) == len(numbers):
        return held
    several: dict[int, set[object]] = {}
    for number, item in zip(numbers, classes, strict=True):
        several.setdefault(number, set()).add(item)
    return {number: frozenset(items) for number, items in several.items()}


def _moves(held: dict[int, object], stride: int, length: int) -> bool:
    """Whether cases that differ on one axis alone hold different classes."""
    seen: dict[int, object] = {}
    return any(
        seen.setdefault(number - number // stride % length * stride, item) != item for number, item in held.items()
    )
