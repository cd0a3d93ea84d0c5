"""The warm marker: what a warm run put into a cache directory, under which hashes, made of what. Read with no Triton.

It stands at ``<cache directory>/jitaudit/<digest>.json``. The digest names what was asked for, so that the same request
finds its marker again: sha256 over the sorted (id, group, key, target). It detects damage; whoever can write the
directory can write the marker too.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from jitaudit.jit.durable import write_durably
from jitaudit.model import Noun, VariantKey

MARKER_VERSION = 1

FOLDER = "jitaudit"
"""What jitaudit keeps of its own in a cache directory: markers, ``staging`` and ``aside``."""

_SIZE_LIMIT = 1 << 28
"""Bytes from which a marker is left unread; a thousand variants have one of a megabyte."""


class Parts(Noun, frozen=True):
    """What enters every disk hash besides a variant's own key and source."""

    triton: str
    """The version."""
    build: str
    """``sha256:…`` over the files of the installation, as Triton itself hashes them."""
    backend: str
    """What the backend says of itself: the assembler's version and the architecture, the target on AMD."""
    options: dict[str, str]
    """The options of a launch that sets none, as text; a library among them by its digest."""
    variables: dict[str, str | None]
    """The environment variables in the hash; None where unset."""


class Warmed(Noun, frozen=True):
    """One variant that a run made, found, or could not make."""

    kernel: str
    group: str | None
    key: VariantKey
    hash: str
    """Triton's disk hash, 64 hexadecimal digits."""
    code: str
    """Triton's digest of the function, the line it starts on, and all that it calls and reads."""
    source: str
    """``sha256:…`` of the function's own text."""
    line: int
    files: dict[str, str]
    """Path below the cache directory → ``sha256:…``; empty where it could not be made."""
    failure: str | None = None


class Winner(Noun, frozen=True):
    """The config that an autotuner measured to be the fastest at one tuning key."""

    kernel: str
    group: str | None
    key: tuple[str, ...]
    """The tuning key's values, as the manifest has them."""
    config: str
    """As Triton prints it."""
    device: str
    """The name of the GPU that it was measured on."""


class Launched(Noun, frozen=True):
    """A variant that tuning was seen to launch and that the manifest, which can't know the winner, does not have."""

    kernel: str
    group: str | None
    key: VariantKey


class Marker(Noun, frozen=True):
    """What one warm run left behind."""

    schema_version: int
    target: str
    directory: str
    """Where the cache directory was."""
    parts: Parts
    variants: tuple[Warmed, ...]
    winners: tuple[Winner, ...] = ()
    launched: tuple[Launched, ...] = ()


class Markers(msgspec.Struct, frozen=True):
    """All markers of a cache directory, by the name of their file, and those that can't be read."""

    readable: dict[str, Marker]
    unreadable: tuple[str, ...]

    def files(self) -> dict[str, dict[str, str]]:
        """Disk hash → path → digest, of everything that is listed; the latest written marker tells."""
        return {
            variant.hash: variant.files
            for marker in self.readable.values()
            for variant in marker.variants
            if variant.files
        }


def marker_path(directory: Path, variants: Iterable[tuple[str, str | None, VariantKey]], target: str) -> Path:
    """Where the marker of these (id, group, key) stands."""
    wanted = sorted((kernel, group or "", key.text, target) for kernel, group, key in variants)
    return directory / FOLDER / f"{hashlib.sha256(msgspec.json.encode(wanted)).hexdigest()}.json"


def read_markers(directory: Path) -> Markers:
    """The markers of a cache directory, the latest written last."""
    readable: dict[str, tuple[float, Marker]] = {}
    unreadable = []
    for path in sorted((directory / FOLDER).glob("*.json")):
        try:
            if path.stat().st_size > _SIZE_LIMIT:
                raise ValueError("too large")
            marker = msgspec.json.decode(path.read_bytes(), type=Marker)
            if marker.schema_version != MARKER_VERSION:
                raise ValueError(f"schema version {marker.schema_version}")
            readable[path.name] = (path.stat().st_mtime, marker)
        except (OSError, ValueError, RecursionError):  # msgspec's errors are ValueErrors
            unreadable.append(str(path))
    ordered = sorted(readable.items(), key=lambda item: (item[1][0], item[0]))
    return Markers({name: marker for name, (_, marker) in ordered}, tuple(unreadable))


def write_marker(path: Path, marker: Marker, staging: Path) -> None:
    """Write a marker whole or not at all. Raises OSError."""
    write_durably(path, msgspec.json.encode(marker, order="deterministic"), staging)


def add_tuning(path: Path, measured: Iterable[Winner], launched: Iterable[Launched]) -> None:
    """Add what tuning found to a marker, winners in the place of those that were measured before. Raises OSError."""
    marker = msgspec.json.decode(path.read_bytes(), type=Marker)
    winners = {(winner.kernel, winner.group, winner.key): winner for winner in (*marker.winners, *measured)}
    seen = {(one.kernel, one.group, one.key.text): one for one in (*marker.launched, *launched)}
    tuned = msgspec.structs.replace(
        marker,
        winners=tuple(sorted(winners.values(), key=lambda winner: (winner.kernel, winner.group or "", winner.key))),
        launched=tuple(sorted(seen.values(), key=lambda one: (one.kernel, one.group or "", one.key.text))),
    )
    write_marker(path, tuned, path.parent / "staging")


def entry_name(digest: str) -> str:
    """The name of the directory that Triton files a disk hash under."""
    return base64.b32encode(bytes.fromhex(digest)).decode().rstrip("=")


def relative_path(path: str, directory: Path) -> str:
    """A file's path below the cache directory, as a marker has it; its absolute path where it lies outside."""
    below = os.path.relpath(path, directory)
    return path if below.startswith(os.pardir) else below.replace(os.sep, "/")
