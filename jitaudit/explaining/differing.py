"""What one manifest has that another has not: the variants that a warm-up missed, and what they differ in. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from jitaudit.classes import facets
from jitaudit.errors import RequestError
from jitaudit.judging.nearest import Difference, Neighbours, differences
from jitaudit.judging.reach import option_text
from jitaudit.model import SCHEMA_VERSION, CauseKind, Kernel, Manifest, VariantKey

MOST_SEARCHED = 2_000_000
"""Pairs of keys that are compared at most, about a second of work; the nearest of what is left is not told."""


class Unseen(msgspec.Struct, frozen=True):
    """A class of an argument that the first manifest has in no variant of the kernel."""

    argument: str
    kind: CauseKind
    text: str
    variants: int
    """The new variants that have it."""


class New(msgspec.Struct, frozen=True):
    """A variant that only the second manifest has."""

    key: VariantKey
    launches: int
    nearest: tuple[VariantKey, ...]
    """The first manifest's keys that differ from it in the fewest parts, all that tie; empty: there are none, or the
    manifests are too large to search."""
    parts: tuple[Difference, ...]
    """What it differs in from the first of them."""


class KernelDifference(msgspec.Struct, frozen=True):
    """One kernel under one group."""

    kernel: str
    group: str | None
    known: int
    """The first manifest's variants; 0: it never launched the kernel."""
    new: tuple[New, ...]
    unseen: tuple[Unseen, ...]


class Diff(msgspec.Struct, frozen=True):
    """``--diff --format json``."""

    schema_version: int
    target: str
    kernels: tuple[KernelDifference, ...]
    """Those with new variants, the most first."""


def diff(first: Manifest, second: Manifest) -> Diff:
    """What `second` has that `first` has not. Raises RequestError where their targets differ."""
    if first.target != second.target:
        raise RequestError(
            f"--diff: the first is for {first.target}, the second for {second.target}: no key is the same"
        )
    known = {(kernel.id, kernel.group): kernel for kernel in first.kernels}
    compared = (_compare(known.get((kernel.id, kernel.group)), kernel) for kernel in second.kernels)
    changed = [one for one in compared if one.new]
    return Diff(
        SCHEMA_VERSION,
        second.target,
        tuple(sorted(changed, key=lambda one: (-len(one.new), one.kernel, one.group or ""))),
    )


def _compare(known: Kernel | None, kernel: Kernel) -> KernelDifference:
    old = [variant.key for variant in known.variants] if known else []
    texts = {key.text for key in old}
    new = [variant for variant in kernel.variants if variant.key.text not in texts]
    neighbours = Neighbours(old)
    searched = MOST_SEARCHED // max(len(old), 1)
    found = []
    for at, variant in enumerate(new):
        nearest = neighbours.nearest(variant.key) if at < searched else ()
        parts = differences(nearest[0], variant.key) if nearest else ()
        found.append(New(variant.key, variant.launches, nearest, parts))
    return KernelDifference(
        kernel.id, kernel.group, len(old), tuple(found), tuple(_unseen(old, [variant.key for variant in new]))
    )


def _unseen(old: Sequence[VariantKey], new: Sequence[VariantKey]) -> Iterator[Unseen]:
    if not old:
        return
    options = sorted({name for key in (*old, *new) for name in key.options})
    seen = {item for key in old for item in _classes(key, options)}
    counts: dict[tuple[str, CauseKind, str], int] = {}
    for key in new:
        for item in _classes(key, options):
            if item not in seen:
                counts[item] = counts.get(item, 0) + 1
    for (argument, kind, text), count in sorted(counts.items()):
        yield Unseen(argument, kind, text, count)


def _classes(key: VariantKey, options: Sequence[str]) -> Iterator[tuple[str, CauseKind, str]]:
    for name, text in key.arguments.items():
        for kind, held in facets(text):
            yield name, kind, held
    for name in options:
        yield name, "option", option_text(key, name) or "default"
