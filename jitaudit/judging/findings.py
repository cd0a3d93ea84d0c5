"""What a reader should know of a manifest's kernels: the findings that follow from their variants. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from jitaudit.classes import facets
from jitaudit.judging.reach import BOUNDED, Reach
from jitaudit.manifest import sorted_findings
from jitaudit.model import Finding, Kernel, Manifest


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
            blamed = [cause for cause in reach.causes if axis in cause.axis and cause.kind not in BOUNDED]
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
