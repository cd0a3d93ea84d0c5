"""Plans each variant: its disk hash, and what Triton would find there."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from jitaudit.boxes import expand
from jitaudit.jit import identity
from jitaudit.jit.lookup import Broken, Whole, look_up
from jitaudit.jit.rebuild import NotWarmable, Rebuilder, Rebuilt, hashed_parts
from jitaudit.model import Box, Kernel, Manifest, Variant, VariantKey
from jitaudit.planning.nouns import Plan, Planned, Unplanned


def plan(manifest: Manifest, functions: Sequence[Any], *, generic: bool = False) -> tuple[Plan, dict[str, Rebuilt]]:
    """Plan each variant for the target that Triton compiles for now; and what to compile, by disk hash.

    `functions`: what `find_kernels` found.
    """
    planned: list[Planned] = []
    unplanned: list[Unplanned] = []
    rebuilt: dict[str, Rebuilt] = {}
    for kernel, function in zip(manifest.kernels, functions, strict=True):
        try:
            if isinstance(function, NotWarmable):
                raise function
            rebuilder = Rebuilder(function)
        except NotWarmable as why:
            unplanned.append(Unplanned(kernel.id, kernel.group, None, len(kernel.variants), str(why)))
            continue
        for variant in (*kernel.variants, *(generic_variants(kernel) if generic else ())):
            try:
                made = rebuilder.rebuild(variant.key)
            except NotWarmable as why:
                unplanned.append(Unplanned(kernel.id, kernel.group, variant.key, 1, str(why)))
                continue
            rebuilt.setdefault(made.hash, made)
            planned.append(_planned(kernel, variant, function, made))
    return Plan(manifest.target, hashed_parts(), tuple(planned), tuple(unplanned)), rebuilt


def survey(plan: Plan, directory: Path, listed: Mapping[str, Mapping[str, str]]) -> dict[str, Whole | Broken | None]:
    """What Triton would find in `directory` under each disk hash of the plan.

    `listed`: by hash, the files that a marker lists. Raises SetupError where a cache manager of the user's own fails.
    """
    return {
        digest: look_up(directory, digest, variant.name, listed.get(digest, {}))
        for digest, variant in plan.distinct.items()
    }


def brief(plan: Plan) -> dict[str, str]:
    """For each disk hash, what sets its variant apart from the kernel's others."""
    keys: dict[tuple[str, str | None], list[VariantKey]] = {}
    for variant in plan.planned:
        keys.setdefault((variant.kernel, variant.group), []).append(variant.key)
    moving = {kernel: _moving(of_kernel) for kernel, of_kernel in keys.items()}
    return {v.hash: _only(v.key, moving[v.kernel, v.group]) or "its only variant" for v in plan.planned}


def generic_variants(kernel: Kernel) -> Iterator[Variant]:
    """For each set of dtypes, widths and constexprs, the variant without any class, where the kernel has it not yet.

    Its binary is valid for every variant of the same set.
    """
    known = {variant.key.text for variant in kernel.variants}
    for variant in kernel.variants:
        arguments = {name: _generic(text) for name, text in variant.key.arguments.items()}
        key = VariantKey(arguments=arguments, options=variant.key.options)
        if key.text not in known:
            known.add(key.text)
            yield Variant(key=key, via=variant.via, origin=variant.origin, launches=0, cases=())


def _only(key: VariantKey, names: set[str]) -> str:
    arguments = [f"{name}: {text}" for name, text in key.arguments.items() if name in names]
    return ", ".join([*arguments, *(f"{name}={value}" for name, value in key.options.items() if name in names)])


def _moving(keys: Sequence[VariantKey]) -> set[str]:
    """The arguments and options that differ among keys."""
    first = {**keys[0].arguments, **keys[0].options}
    every = [{**key.arguments, **key.options} for key in keys]
    return {name for one in every for name in first.keys() | one.keys() if one.get(name) != first.get(name)}


def _planned(kernel: Kernel, variant: Variant, function: Any, made: Rebuilt) -> Planned:
    return Planned(
        kernel=kernel.id,
        group=kernel.group,
        key=variant.key,
        name=made.name,
        hash=made.hash,
        code=function.cache_key,
        source=identity.source_digest(function),
        line=function.starting_line_number,
        cases=sum(_size(box) for box in variant.cases),
        seconds=sum(variant.compile.seconds.values()) if variant.compile else None,
    )


def _size(box: Box) -> int:
    return math.prod(len(expand(values)) for axis, values in box.items() if axis != "sweep")


_CLASSES = re.compile(r"\b([iu]\d+) (?:=1|%16)|(\*\w+) (?:aligned|unaligned)(?: <2GB)?")


def _generic(text: str) -> str:
    """An argument's text without its class; a constexpr's has none."""
    if text.startswith("constexpr "):
        return text
    return _CLASSES.sub(lambda match: f"{match[1]} any" if match[1] else f"{match[2]} unaligned", text)
