"""Judgement: why a kernel has its variants, how they grow, and what a reader should know. Pure over a manifest."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cached_property

from jitaudit.boxes import Point, expand, points
from jitaudit.classes import Facets, facets
from jitaudit.manifest import sorted_findings
from jitaudit.model import AxisValue, Cause, CauseKind, Count, Finding, Growth, Kernel, Manifest, SweepRun, Variant

LINEAR = 0.9
"""Δvariants ÷ Δpoints from which growth is called linear (design.md, Words)."""

_BOUNDED: tuple[CauseKind, ...] = ("int_class", "alignment", "dtype", "width", "none", "address_range")
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
            cases=sum(len({point for point, _ in reached}) for reached in reach.points.values()),
            launches=reach.kernel.launches,
            variants=len(reach.kernel.variants),
            autotune_variants=sum(variant.via == "autotune" for variant in reach.kernel.variants),
            growth=reach.growth,
            causes=reach.causes,
        )
        for reach in reaches
    )


def judge(manifest: Manifest) -> tuple[Finding, ...]:
    """The manifest's own findings and those that follow from its variants: JA004, JA005, JA008, JA011, JA012."""
    found = list(manifest.findings)
    for kernel in manifest.kernels:
        found += _mixed_scalars(kernel)
        found += _equal_constexprs(kernel)
        found += _linear(Reach(kernel, manifest.sweeps))
        found += _redundant(kernel)
        found += _not_warmable(kernel)
    return sorted_findings(found)


class Reach:
    """One kernel's variants beside the cases that reach them."""

    def __init__(self, kernel: Kernel, sweeps: Sequence[SweepRun]) -> None:
        self.kernel = kernel
        self.axes: dict[str, dict[str, tuple[AxisValue, ...]]] = {
            sweep.name: {name: tuple(expand(values)) for name, values in sweep.axes.items()} for sweep in sweeps
        }

    @cached_property
    def points(self) -> dict[str, list[tuple[Point, int]]]:
        """By sweep: each case with the position of a variant that it reaches."""
        reached: dict[str, list[tuple[Point, int]]] = defaultdict(list)
        for position, variant in enumerate(self.kernel.variants):
            for box in variant.cases:
                name = str(box["sweep"])
                reached[name] += ((point, position) for point in points(box, self.axes[name]))
        return dict(sorted(reached.items()))

    @cached_property
    def facets(self) -> tuple[dict[str, Facets], ...]:
        """By variant: what each argument and option contributes to the key."""
        tuned = _tuned_names(self.kernel)
        options = sorted({name for variant in self.kernel.variants for name in variant.key.options})
        return tuple(
            {name: facets(text, tuned=name in tuned) for name, text in variant.key.arguments.items()}
            | {name: _option(variant, name, "autotune" if name in tuned else "option") for name in options}
            for variant in self.kernel.variants
        )

    @cached_property
    def causes(self) -> tuple[Cause, ...]:
        """The arguments that split the kernel, in the order of its parameters, one cause for each kind."""
        order = [parameter.name for parameter in self.kernel.parameters]
        names = dict.fromkeys(order + [name for variant in self.facets for name in variant])
        return tuple(cause for name in names for cause in self._causes_of(name))

    @cached_property
    def growth(self) -> Growth:
        """The worst growth over the kernel's axes."""
        return max((growth for _, _, growth in self.growths()), key=_GROWTHS.index, default="constant")

    def growths(self) -> Iterator[tuple[str, str, Growth]]:
        """(sweep, axis, growth) for each axis of ints that a sweep moves."""
        for sweep, reached in self.points.items():
            for at, (axis, values) in enumerate(self.axes[sweep].items()):
                numbers = [int(v) for v in values if isinstance(v, str) and re.fullmatch(r"-?\d+", v)]
                if len(numbers) == len(values) > 1:
                    rank = {
                        position: place
                        for place, position in enumerate(sorted(range(len(numbers)), key=numbers.__getitem__))
                    }
                    yield (
                        sweep,
                        axis,
                        self._growth(axis, [(rank[point[at]], variant) for point, variant in reached], len(values)),
                    )

    def moved_by(self, classes: Sequence[object]) -> tuple[str, ...]:
        """The axes along which a class (one a variant) changes while all other axes stand still."""
        moving: dict[str, None] = {}
        for sweep, reached in self.points.items():
            at_point: dict[Point, set[object]] = defaultdict(set)
            for point, variant in reached:
                at_point[point].add(classes[variant])
            for at, axis in enumerate(self.axes[sweep]):
                seen: dict[Point, set[object]] = {}
                if any(seen.setdefault(point[:at] + point[at + 1 :], held) != held for point, held in at_point.items()):
                    moving[axis] = None
        return tuple(moving)

    def without(self, name: str) -> int:
        """The number of variants if `name` no longer split."""
        return len({tuple((n, f) for n, f in variant.items() if n != name) for variant in self.facets})

    def _causes_of(self, name: str) -> Iterator[Cause]:
        held = [variant.get(name) for variant in self.facets]
        if len(set(held)) < 2:
            return
        without = self.without(name)
        for kind in dict.fromkeys(kind for item in held if item for kind, _ in item):
            classes = [dict(item).get(kind) if item else None for item in held]
            texts = tuple(dict.fromkeys(text for text in classes if text is not None))
            if len(texts) > 1:
                yield Cause(
                    argument=name, kind=kind, axis=self.moved_by(classes), classes=_ordered(texts), without=without
                )

    def _growth(self, axis: str, reached: list[tuple[int, int]], length: int) -> Growth:
        first: dict[int, int] = {}
        for place, variant in reached:
            first[variant] = min(place, first.get(variant, place))
        reach = sorted(first.values())

        def within(length: int) -> int:
            return sum(place < length for place in reach)

        if within(1) == len(reach):
            return "constant"
        kinds = {cause.kind for cause in self.causes if axis in cause.axis}
        if kinds and kinds <= set(_BOUNDED):
            return "class"
        k = length // 4
        if k and within(k) == within(4 * k):
            return "class"
        if k < 2:  # too few points for a slope: linear only if each one is new
            return "linear" if k and len(set(reach)) == length else "bucketed"
        return "linear" if (within(4 * k) - within(2 * k)) / (2 * k) >= LINEAR else "bucketed"


def _option(variant: Variant, name: str, kind: CauseKind) -> Facets:
    value = variant.key.options.get(name)
    return ((kind, "default" if name not in variant.key.options else str(value)),)


def _tuned_names(kernel: Kernel) -> set[str]:
    if kernel.autotuner is None:
        return set()
    return {name for config in kernel.autotuner.configs for name in re.findall(r"(?:^|, )(\w+): ", config)}


def _ordered(texts: tuple[str, ...]) -> tuple[str, ...]:
    def order(text: str) -> tuple[int, float, str]:
        if text in _CLASS_ORDER:
            return 0, _CLASS_ORDER.index(text), text
        number = re.fullmatch(r"(?:int |float )?(-?\d+(?:\.\d+)?)", text)
        return (0, float(number[1]), text) if number else (1, 0.0, text)

    return tuple(sorted(texts, key=order))


def _mixed_scalars(kernel: Kernel) -> Iterator[Finding]:
    for parameter in kernel.parameters:
        texts = {variant.key.arguments.get(parameter.name, "none") for variant in kernel.variants}
        scalars = {dict(facets(text)).get("dtype", "") for text in texts} & {"int", "bool", "float"}
        if len(scalars) > 1:
            kinds = " and as ".join(sorted(scalars))
            message = f"{parameter.name} arrives as {kinds}: each is a variant of its own; pass one type"
            yield _finding("JA004", "mixed-scalar-types", message, kernel, parameter.name)


def _equal_constexprs(kernel: Kernel) -> Iterator[Finding]:
    for parameter in kernel.parameters:
        equal: dict[float, set[str]] = defaultdict(set)
        for variant in kernel.variants:
            match = re.fullmatch(r"constexpr (bool|int|float) (\S+)", variant.key.arguments.get(parameter.name, ""))
            if match:
                value = float(match[2] == "True") if match[1] == "bool" else float(match[2])
                equal[value].add(match[2])
        for texts in equal.values():
            if len(texts) > 1:
                spelled = ", ".join(sorted(texts))
                message = (
                    f"{parameter.name} is passed as {spelled}: different binaries, but in one process Triton takes "
                    "them for one key, so the first one launched serves all; pass one type"
                )
                yield _finding("JA005", "equal-constexprs", message, kernel, parameter.name)


def _linear(reach: Reach) -> Iterator[Finding]:
    for _, axis, growth in reach.growths():
        if growth == "linear":
            blamed = [cause for cause in reach.causes if axis in cause.axis and cause.kind not in _BOUNDED]
            names = ", ".join(cause.argument for cause in blamed) or "no single argument"
            message = (
                f"a variant for every {axis} ({len(reach.kernel.variants)} here), split by {names}: "
                "new ones keep coming under traffic"
            )
            argument = blamed[0].argument if len(blamed) == 1 else None
            yield _finding("JA008", "linear-growth", message, reach.kernel, argument)


def _redundant(kernel: Kernel) -> Iterator[Finding]:
    binaries = [variant.compile.binary for variant in kernel.variants if variant.compile]
    if len(set(binaries)) < len(binaries):
        message = f"{len(binaries)} variants compile to {len(set(binaries))} binaries: some classes change nothing"
        yield _finding("JA011", "redundant-variant", message, kernel, None)


def _not_warmable(kernel: Kernel) -> Iterator[Finding]:
    if kernel.object is None:
        message = "its module holds no such kernel (a closure or generated code): counted, but warm can't find it again"
        yield _finding("JA012", "not-warmable", message, kernel, None)
    for parameter in kernel.parameters:
        if any("opaque " in variant.key.arguments.get(parameter.name, "") for variant in kernel.variants):
            message = f"{parameter.name} holds a value without a stable text: counted, but warm can't make it again"
            yield _finding("JA012", "not-warmable", message, kernel, parameter.name)


def _finding(code: str, name: str, message: str, kernel: Kernel, argument: str | None) -> Finding:
    under = "" if kernel.group is None else f"{kernel.group}: "
    return Finding(code=code, name=name, message=under + message, kernel=kernel.id, argument=argument)
