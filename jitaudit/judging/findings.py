"""What a reader should know of a manifest's kernels: the findings that follow from their variants. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from jitaudit.classes import facets
from jitaudit.judging.reach import BOUNDED, Reach
from jitaudit.judging.rewriting import number_of
from jitaudit.manifest import sorted_findings
from jitaudit.model import Finding, Kernel, Manifest


def judge(manifest: Manifest) -> tuple[Finding, ...]:
    """The manifest's own findings and those that follow from its variants: JA004, JA005, JA008, JA011, JA012."""
    reaches = (Reach(kernel, manifest.sweeps) for kernel in manifest.kernels)
    return judged(manifest, (finding for reach in reaches for finding in judge_kernel(reach)))


def judged(manifest: Manifest, found: Iterable[Finding]) -> tuple[Finding, ...]:
    """The manifest's own findings with those of its kernels, each thing told once."""
    told = {(finding.code, finding.kernel, finding.argument) for finding in manifest.findings}
    new = [finding for finding in found if (finding.code, finding.kernel, finding.argument) not in told]
    return sorted_findings([*manifest.findings, *new])


def judge_kernel(reach: Reach) -> Iterator[Finding]:
    """The findings that follow from one kernel's variants."""
    yield from _mixed_scalars(reach)
    yield from _equal_constexprs(reach)
    yield from _linear(reach)
    yield from _redundant(reach.kernel)
    yield from _not_warmable(reach)


def _mixed_scalars(reach: Reach) -> Iterator[Finding]:
    for name, texts in _arguments(reach):
        scalars = {dict(facets(text)).get("dtype", "") for text in texts} & {"int", "bool", "float"}
        if len(scalars) > 1:
            kinds = " and as ".join(sorted(scalars))
            message = f"{name} arrives as {kinds}: each is a variant of its own; pass one type"
            yield _finding("JA004", "mixed-scalar-types", message, reach.kernel, name)


def _equal_constexprs(reach: Reach) -> Iterator[Finding]:
    for name, texts in _arguments(reach):
        equal: dict[float, set[str]] = defaultdict(set)
        for text in texts:
            number = number_of(text)
            if number is not None:
                equal[number].add(text.rpartition(" ")[2])
        for spellings in equal.values():
            if len(spellings) > 1:
                message = (
                    f"{name} is passed as {', '.join(sorted(spellings))}: different binaries, but in one process "
                    "Triton takes them for one key, so the first one launched serves all; pass one type"
                )
                yield _finding("JA005", "equal-constexprs", message, reach.kernel, name)


def _linear(reach: Reach) -> Iterator[Finding]:
    for _, axis, growth in reach.growths():
        if growth == "linear":
            blamed = [cause for cause in reach.causes if axis in cause.axis and cause.kind not in BOUNDED]
            names = ", ".join(cause.argument for cause in blamed) or "no single argument"
            message = (
                f"a variant for every {axis} ({len(reach.kernel.variants)} here), split by {names}: "
                "new ones keep coming under traffic"
            )
            argument = blamed[0].argument if len(blamed) == 1 else None
            yield _finding("JA008", "linear-growth", message, reach.kernel, argument)


def _redundant(kernel: Kernel) -> Iterator[Finding]:
    compiles = [variant.compile for variant in kernel.variants if variant.compile]
    binaries = [compile.code.digest if compile.code else compile.binary for compile in compiles]
    if len(set(binaries)) < len(binaries):
        message = f"{len(binaries)} variants compile to {len(set(binaries))} binaries: some classes change nothing"
        yield _finding("JA011", "redundant-variant", message, kernel, None)


def _not_warmable(reach: Reach) -> Iterator[Finding]:
    if reach.kernel.object is None:
        message = "its module holds no such kernel (a closure or generated code): counted, but warm can't find it again"
        yield _finding("JA012", "not-warmable", message, reach.kernel, None)
    for name, texts in _arguments(reach):
        if any("opaque " in text for text in texts):
            message = f"{name} holds a value without a stable text: counted, but warm can't make it again"
            yield _finding("JA012", "not-warmable", message, reach.kernel, name)


def _arguments(reach: Reach) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each parameter's texts."""
    for parameter in reach.kernel.parameters:
        column = reach.every.get(parameter.name)
        if column is not None and column.option is None:
            yield parameter.name, tuple(text for text in column.texts if text is not None)


def _finding(code: str, name: str, message: str, kernel: Kernel, argument: str | None) -> Finding:
    under = "" if kernel.group is None else f"{kernel.group}: "
    return Finding(code=code, name=name, message=under + message, kernel=kernel.id, argument=argument)
