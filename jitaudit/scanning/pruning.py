"""Which entries of a cache directory this toolchain can never hit, and their removal."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from jitaudit.errors import RequestError
from jitaudit.jit.entries import DIGEST, Broken, Entry, Found
from jitaudit.jit.environment import gpus, package
from jitaudit.scanning.caches import entries
from jitaudit.scanning.sightings import NANOSECONDS

YOUNG = 3600
"""Seconds for which an entry is left alone, whatever it looks like: it may be on its way."""


class Toolchain(msgspec.Struct, frozen=True):
    """What will look entries up. None: not known here, so no entry goes for that."""

    triton: str | None
    target: str | None


class Removal(msgspec.Struct, frozen=True):
    """An entry that can't be hit."""

    path: str
    reason: str
    bytes: int
    removed: bool
    """False in a dry run, and where it changed or could not be removed."""


class Pruning(msgspec.Struct, frozen=True):
    """What was removed, or would be."""

    toolchain: Toolchain
    done: bool
    """False for a dry run."""
    removals: tuple[Removal, ...]
    kept: int
    """Entries that can be hit, or that nobody can be sure of."""
    young: int
    """Entries that can't be hit, and were left because they are younger than an hour or being written."""

    @property
    def freed(self) -> int:
        """Bytes."""
        return sum(removal.bytes for removal in self.removals if removal.removed or not self.done)


def prune(paths: Sequence[Path], target: str | None, *, remove: bool) -> Pruning:
    """Find the entries that this machine's Triton can't hit for `target` (else its GPU), and `remove` them.

    Raises RequestError for what is no cache directory, SetupError for one that can't be read.
    """
    toolchain = Toolchain(triton=package("triton").version, target=target or _target_here())
    removals: list[Removal] = []
    kept = young = 0
    for path in paths:
        if not path.is_dir():
            raise RequestError(f"{path}: no directory; --prune takes cache directories only")
        above = f"{path.as_posix()}/" if len(paths) > 1 else ""
        for found in entries(path):
            reason = _reason(found, toolchain)
            if reason is None:
                kept += 1
            elif _is_young(found):
                young += 1
            else:
                gone = remove and _remove(path / found.path)
                removals.append(Removal(above + found.path, reason, found.bytes, gone))
    return Pruning(toolchain, remove, tuple(removals), kept, young)


def _reason(found: Found, toolchain: Toolchain) -> str | None:
    """Why the entry can't be hit; None where it can, or where that is not certain."""
    match found.content:
        case Broken(reason=reason, known=True) if DIGEST.fullmatch(os.path.basename(found.path)):
            return f"broken: {reason}"
        case Entry(triton=triton) if toolchain.triton and triton and triton != toolchain.triton:
            return f"made by Triton {triton}, not {toolchain.triton}"
        case Entry(target=target) if toolchain.target and target != toolchain.target:
            return f"for {target}, not {toolchain.target}"
        case _:
            return None


def _is_young(found: Found) -> bool:
    return found.being_written or time.time_ns() - found.written < YOUNG * NANOSECONDS


def _remove(path: Path) -> bool:
    """Take an entry away, its group file first: from then on it is a miss, never a half. False where it changed."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags)
    except OSError:
        return False
    try:
        names = sorted(os.listdir(descriptor), key=lambda name: (not name.startswith("__grp__"), name))
        if any(_changed_lately(name, descriptor) for name in names):
            return False
        for name in names:
            _unlink(name, descriptor)
        os.rmdir(path)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def _changed_lately(name: str, descriptor: int) -> bool:
    return time.time() - os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mtime < YOUNG


def _unlink(name: str, descriptor: int) -> None:
    if stat.S_ISDIR(os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mode):
        shutil.rmtree(name, dir_fd=descriptor)
    else:
        os.unlink(name, dir_fd=descriptor)


def _target_here() -> str | None:
    """The target of the GPUs here; None without one, with several kinds, or where none tells."""
    architectures = {name.removeprefix("AMD ") for name in gpus() if name.startswith("AMD gfx")}
    found = {f"hip:{architecture}" for architecture in architectures} | set(_nvidia_targets())
    return found.pop() if len(found) == 1 else None


def _nvidia_targets() -> Iterator[str]:
    if (command := shutil.which("nvidia-smi")) is None:
        return
    query = (command, "--query-gpu=compute_cap", "--format=csv,noheader")
    try:
        answer = subprocess.run(query, capture_output=True, text=True, timeout=5, check=True)
    except (OSError, subprocess.SubprocessError):
        return
    for line in answer.stdout.split():
        if line.replace(".", "", 1).isdecimal():
            yield f"cuda:{line.replace('.', '')}"
