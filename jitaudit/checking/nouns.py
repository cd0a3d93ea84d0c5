"""What is asked of a check, and what it answers."""

from __future__ import annotations

import msgspec

from jitaudit.checking.rules import Code
from jitaudit.model import Manifest, VariantKey
from jitaudit.planning import Cache, Sources, Untuned


class Request(msgspec.Struct, frozen=True):
    """What the process that checks is asked."""

    manifest: Manifest
    sources: Sources
    cache: Cache


class Difference(msgspec.Struct, frozen=True):
    """One part of a hash, as it was when something was warmed and as it is here; None where it is not set."""

    part: str
    was: str | None
    now: str | None


class Miss(msgspec.Struct, frozen=True):
    """A variant that would not be a disk hit, or a whole kernel whose variants can't be looked up (key None)."""

    code: Code
    name: str
    kernel: str
    group: str | None
    key: VariantKey | None
    brief: str
    """What sets its key apart from the kernel's others."""
    variants: int
    message: str
    next: str
    """The command that mends it (``warm`` with the arguments of the check), or tells what will."""
    differences: tuple[Difference, ...] = ()
    """Every part in which the nearest recorded hash differs from the one here."""
    nearest: tuple[VariantKey, ...] = ()
    """The recorded keys of the kernel that are closest, ties and all; the key itself where it was warmed otherwise."""


class Notice(msgspec.Struct, frozen=True):
    """Something that the first launch will meet, or that will move the cache."""

    code: Code | None
    message: str


class Checked(msgspec.Struct, frozen=True):
    """What a check found."""

    target: str
    cache: Cache
    hits: int
    """Variants that Triton would find."""
    misses: tuple[Miss, ...]
    untuned: tuple[Untuned, ...]
    warnings: tuple[Notice, ...]
    start_seconds: float
    check_seconds: float
    uncounted: tuple[str, ...] = ()
    """Sweeps that reach more than was checked, a line each."""

    @property
    def missed(self) -> int:
        """Variants that Triton would compile."""
        return sum(miss.variants for miss in self.misses)

    @property
    def passes(self) -> bool:
        """Whether everything that the sweeps reach was checked, nothing is missed and nothing is untuned."""
        return not (self.misses or self.untuned or self.uncounted)
