"""Files that appear whole or not at all, and are still there after the power failed."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


def write_durably(path: Path, data: bytes, staging: Path) -> None:
    """Write `data` in `staging`, sync it, and move it to `path` in one step. Raises OSError."""
    write_all_durably({path: data}, staging)


def write_all_durably(files: Mapping[Path, bytes], staging: Path) -> None:
    """Write each file in `staging`, sync all of them, then move each to its path. Raises OSError.

    Synced together: the file system's journal takes them in one commit, some milliseconds instead of as many a file.
    """
    staging.mkdir(parents=True, exist_ok=True)
    staged = {path: staging / f"{os.getpid()}-{uuid.uuid4().hex}" for path in files}
    try:
        with ThreadPoolExecutor(max_workers=len(files)) as pool:
            list(pool.map(_write, staged.values(), files.values()))
        for path, temporary in staged.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            os.replace(temporary, path)
    except BaseException:
        for temporary in staged.values():
            temporary.unlink(missing_ok=True)
        raise
    for folder in {path.parent for path in files}:
        sync_directory(folder)


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    with open(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(descriptor)
