"""What `jitaudit check` says: one screen for a person, the commonest misses first; JSON has the rest."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Iterator, Sequence

from jitaudit.checking import NEXT, Checked, Miss
from jitaudit.configuration import kernel_name

_SHOWN = 5
"""Kinds of miss before ``-v``, and variants of each."""
_PARTS = 4
"""Differing parts of a miss before ``-v``."""


def text(checked: Checked, arguments: Sequence[str] = (), *, verbose: bool = False) -> str:
    """The verdict, the misses by reason and kernel, and one next command. `arguments`: those of the check."""
    return "".join(f"{line}\n" for line in _lines(checked, arguments, verbose=verbose))


def _lines(checked: Checked, arguments: Sequence[str], *, verbose: bool) -> Iterator[str]:
    where = f"{checked.target} in {checked.cache.path} ({checked.cache.decided_by})"
    total = checked.hits + checked.missed
    verdict = "HIT" if checked.passes else "MISS" if checked.misses else "UNTUNED" if checked.untuned else "PARTIAL"
    yield f"{verdict}  {where}: {checked.hits} of {total} variants are there"
    kinds: dict[tuple[str, str, str | None], list[Miss]] = defaultdict(list)
    for miss in checked.misses:
        kinds[miss.code, miss.kernel, miss.group].append(miss)
    ranked = sorted(kinds.values(), key=lambda misses: -sum(miss.variants for miss in misses))
    for misses in ranked if verbose else ranked[:_SHOWN]:
        yield from _kind(misses, verbose=verbose)
    if not verbose and len(ranked) > _SHOWN:
        rest = sum(miss.variants for misses in ranked[_SHOWN:] for miss in misses)
        yield f"{rest} more variants in {len(ranked) - _SHOWN} more kernels or reasons, use -v"
    for untuned in checked.untuned:
        kernel = kernel_name(untuned.kernel, untuned.group)
        yield f"JA212 untuned  {kernel}: {len(untuned.keys)} tuning keys have no winner; their first launch benchmarks"
    for line in checked.uncounted:
        yield f"PARTIAL  {line}: jitaudit probe tells why"
    for warning in checked.warnings:
        yield f"{f'{warning.code} ' if warning.code else ''}note: {warning.message}"
    if next_step := _next(checked, arguments):
        yield f"next: {next_step}"


def _kind(misses: list[Miss], *, verbose: bool) -> Iterator[str]:
    first, count = misses[0], sum(miss.variants for miss in misses)
    kernel = kernel_name(first.kernel, first.group)
    yield f"{first.code} {first.name}  {kernel}: {count} {'variant' if count == 1 else 'variants'}: {first.message}"
    for miss in misses if verbose else misses[:1]:
        shown = miss.differences if verbose else miss.differences[:_PARTS]
        there = "in the nearest key that is there" if miss.code == "JA210" else "when it was warmed"
        for one in shown:
            yield f"    {one.part}: {_value(one.was)} {there}, {_value(one.now)} here"
        if len(shown) < len(miss.differences):
            yield f"    {len(miss.differences) - len(shown)} more parts, use -v"
        if verbose and miss.brief:
            yield f"    of {miss.brief}"


def _value(value: str | None) -> str:
    return "not set" if value is None else value


def _next(checked: Checked, arguments: Sequence[str]) -> str | None:
    """The one command that mends the most."""
    counts: dict[str, int] = defaultdict(int)
    for miss in checked.misses:
        counts[miss.next] += miss.variants
    for untuned in checked.untuned if not checked.misses else ():
        counts[NEXT["JA212"]] += len(untuned.keys)
    if not counts:
        return None
    step = max(counts, key=lambda step: counts[step])
    return shlex.join([*step.split(), *(arguments if step.startswith("jitaudit warm") else ())])
