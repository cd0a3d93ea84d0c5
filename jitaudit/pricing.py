"""What a change costs, from the binaries before and after it. Pure: no GPU, no Triton."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from jitaudit.model import Code, Timing

Verdict = Literal["free", "costs", "gains"]


class Price(msgspec.Struct, frozen=True):
    """A change's price for one launch: the variant that served it, and the one that serves it afterwards."""

    verdict: Verdict
    changes: tuple[str, ...]
    """In words; empty where nothing changes that a binary shows."""
    key: str
    """The variant before."""
    before: Code
    after: Code
    timing: tuple[Timing, Timing] | None = None
    """Before and after, where a GPU measured them."""


SMALL = 0.1
"""Share of instructions or registers from which more of them is a cost, fewer a gain; below, ptxas wavers."""

FREE_REGISTERS = 32
"""Registers a thread up to which nothing is gained by fewer: 64 warps of an SM have so many each."""


def price(key: str, before: Code, after: Code) -> Price:
    """Compare two binaries of one kernel for one launch."""
    if before.digest == after.digest:
        return Price("free", (), key, before, after)
    worse = [
        _narrower(before.loads, after.loads) or _narrower(before.stores, after.stores),
        after.spills > before.spills,
        after.instructions > before.instructions * (1 + SMALL),
        after.registers > max(before.registers * (1 + SMALL), FREE_REGISTERS),
    ]
    better = [
        _narrower(after.loads, before.loads) or _narrower(after.stores, before.stores),
        after.spills < before.spills,
        before.instructions > after.instructions * (1 + SMALL),
        before.registers > max(after.registers * (1 + SMALL), FREE_REGISTERS),
    ]
    verdict: Verdict = "costs" if any(worse) else "gains" if any(better) else "free"
    return Price(verdict, tuple(_changes(before, after)), key, before, after)


def _narrower(before: Mapping[int, int], after: Mapping[int, int]) -> bool:
    """Whether an access moves fewer bits on average than before."""
    return bool(before) and bool(after) and _mean(after) < _mean(before)


def _mean(accesses: Mapping[int, int]) -> float:
    return sum(bits * count for bits, count in accesses.items()) / sum(accesses.values())


def _changes(before: Code, after: Code) -> list[str]:
    changes = [
        _accesses("load", before.loads, after.loads),
        _accesses("store", before.stores, after.stores),
        _number("instructions", before.instructions, after.instructions),
        _number("registers", before.registers, after.registers),
        _number("bytes of spills", before.spills, after.spills),
        _number("bytes of shared memory", before.shared, after.shared),
    ]
    return [change for change in changes if change]


def _accesses(word: str, before: Mapping[int, int], after: Mapping[int, int]) -> str:
    gone = {bits: count - after.get(bits, 0) for bits, count in before.items() if count > after.get(bits, 0)}
    new = {bits: count - before.get(bits, 0) for bits, count in after.items() if count > before.get(bits, 0)}
    if gone and new:
        return f"{_widths(gone)} {word}s become {_widths(new)}"
    if gone:
        return f"{_widths(gone)} {word}s fewer"
    return f"{_widths(new)} {word}s more" if new else ""


def _widths(accesses: Mapping[int, int]) -> str:
    return " + ".join(f"{accesses[bits]}×{bits}-bit" for bits in sorted(accesses, reverse=True))


def _number(word: str, before: int, after: int) -> str:
    return f"{before:,} → {after:,} {word}" if before != after else ""
