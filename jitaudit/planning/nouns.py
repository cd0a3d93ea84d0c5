"""What is planned, and for which directory."""

from __future__ import annotations

import msgspec

from jitaudit.jit.marker import Parts
from jitaudit.model import VariantKey


class Sources(msgspec.Struct, frozen=True):
    """Whose code may be loaded, besides installed modules."""

    files: tuple[str, ...] = ()
    """Files that the user gave, which hold launchers and kernels."""
    here: bool = False
    """Modules of the working directory: the user named one as a target."""
    targets: tuple[str, ...] = ()
    """What holds the launchers, for a command that launches them."""


class Cache(msgspec.Struct, frozen=True):
    """The Triton cache directory in question."""

    path: str
    """Absolute."""
    decided_by: str
    """The option or the variable, or ``default``."""


class Planned(msgspec.Struct, frozen=True):
    """A variant, and what Triton files it under here."""

    kernel: str
    group: str | None
    key: VariantKey
    name: str
    """What the entry's files are named after."""
    hash: str
    code: str
    """Triton's digest of the function and what it uses."""
    source: str
    line: int
    cases: int
    """How many cases reach it; 0 for one that `--generic` added."""
    seconds: float | None
    """What its compile took where the manifest was made."""


class Unplanned(msgspec.Struct, frozen=True):
    """A variant that can't be made from the manifest, or a whole kernel (key None)."""

    kernel: str
    group: str | None
    key: VariantKey | None
    variants: int
    reason: str


class Plan(msgspec.Struct, frozen=True):
    """What a manifest asks for, here and now."""

    target: str
    parts: Parts
    planned: tuple[Planned, ...]
    unplanned: tuple[Unplanned, ...]

    @property
    def distinct(self) -> dict[str, Planned]:
        """One variant for each disk hash."""
        return {variant.hash: variant for variant in reversed(self.planned)}


class Untuned(msgspec.Struct, frozen=True):
    """Tuning keys of a kernel whose first launch benchmarks, for no winner is stored."""

    kernel: str
    group: str | None
    keys: tuple[tuple[str, ...], ...]
