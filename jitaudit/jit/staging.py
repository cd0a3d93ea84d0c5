"""A writer's own folder in the cache directory, and what dead writers left there.

A lock of the kernel's own (flock) tells the living from the dead: it ends with its holder, whatever killed it, and no
process id that is used again can hold it.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jitaudit.jit.marker import FOLDER

ASIDE = "aside"
"""Where damaged entries are set aside, under jitaudit's own folder."""


@contextmanager
def staging_in(directory: Path) -> Iterator[Path]:
    """A folder for files on their way into the cache directory, on its file system. Raises OSError."""
    folder = directory / FOLDER / "staging" / uuid.uuid4().hex
    folder.parent.mkdir(parents=True, exist_ok=True)
    lock = _locked(folder.with_suffix(".lock"))
    try:
        folder.mkdir(exist_ok=True)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        folder.with_suffix(".lock").unlink(missing_ok=True)
        os.close(lock)


def clear_leftovers(directory: Path) -> int:
    """Remove the staging folders of writers that died; how many there were."""
    cleared = 0
    for lock in (directory / FOLDER / "staging").glob("*.lock"):
        try:
            descriptor = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(lock.with_suffix(""), ignore_errors=True)
            lock.unlink(missing_ok=True)
            cleared += 1
        except OSError:  # its holder lives, or the directory is not ours to change
            pass
        finally:
            os.close(descriptor)
    return cleared


def set_aside(directory: Path, entry: str) -> Path:
    """Move an entry's directory out of Triton's sight; where it is now. Raises OSError."""
    aside = directory / FOLDER / ASIDE / f"{entry}-{uuid.uuid4().hex[:8]}"
    aside.parent.mkdir(parents=True, exist_ok=True)
    os.rename(directory / entry, aside)
    return aside


def _locked(path: Path) -> int:
    """A descriptor that holds the lock of this file, made again where another cleared it meanwhile."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        try:
            if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                return descriptor
        except FileNotFoundError:
            pass
        os.close(descriptor)
