"""What a scan reads, whatever it reads it from: compiles that were seen, and what could not be read."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal

import msgspec

from jitaudit.model import Parameter, VariantKey

NANOSECONDS = 1_000_000_000

UNKNOWN = "unknown"
"""The target and the Triton of what does not name them."""


class Sighting(msgspec.Struct, frozen=True):
    """One compile that was seen: an entry of a cache, or a line of a log."""

    kernel: str
    """``module:qualname`` as far as it can be told; a log names only the function."""
    key: VariantKey
    identity: str
    """Equal for the same variant in two caches or logs: Triton's disk hash, or in a log the key."""
    place: str
    """The directory below the scanned one, or the process or rank that wrote the line."""
    written: int | None
    """ns since the epoch; None for a line without a time."""
    target: str = UNKNOWN
    triton: str = UNKNOWN
    file: str = ""
    line: int = 0
    parameters: tuple[Parameter, ...] = ()
    """Empty where the source is not here."""
    variables: dict[str, str] = {}
    bytes: int = 0
    binary: str | None = None
    seconds: float | None = None
    moved: bool = False


class Skipped(msgspec.Struct, frozen=True):
    """An entry or a line that was left out, and why."""

    path: str
    reason: str


class Reading(msgspec.Struct, frozen=True):
    """All that was read from the paths of one call."""

    origin: Literal["cache", "log"]
    sightings: tuple[Sighting, ...]
    skipped: tuple[Skipped, ...]
    notes: tuple[str, ...]
    """What a reader must know of the source: what it leaves out, what it calls by another name."""


def time_text(written: int) -> str:
    """UTC, to the second."""
    return datetime.fromtimestamp(written // NANOSECONDS, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
