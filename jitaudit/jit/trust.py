"""Who else could have put something into a cache directory: what lies there runs in the server that reads it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path


def distrust(directory: Path) -> Iterator[str]:
    """Why what lies in a cache directory may be another's, a line each."""
    for way in others_with_access(directory):
        yield f"{way}: who can change the cache runs code in the server"


def others_with_access(directory: Path) -> Iterator[str]:
    """Each way in which another user than root and this one can change what is found at `directory`, in words.

    Its own mode, owner and group, those of every folder above, and of every symbolic link on the way.
    """
    trusted = {0, os.geteuid()}
    for path, status in _steps(Path(os.path.abspath(directory)), set()):
        is_link = stat.S_ISLNK(status.st_mode)
        if status.st_uid not in trusted:
            yield f"{path} {'is a symbolic link of' if is_link else 'belongs to'} uid {status.st_uid}"
        if is_link:
            continue
        is_cache = path == directory or os.path.realpath(directory) == str(path)
        if status.st_mode & stat.S_IWOTH and (is_cache or not status.st_mode & stat.S_ISVTX):
            yield f"anyone can write in {path}"
        elif status.st_mode & stat.S_IWGRP and status.st_gid != 0 and status.st_gid != os.getegid():
            yield f"group {status.st_gid} can write in {path}"


def _steps(path: Path, seen: set[Path]) -> Iterator[tuple[Path, os.stat_result]]:
    """Each folder and link that leads to a path, from the root on, as far as it exists; a link's own target too."""
    for step in (*reversed(path.parents), path):
        if step in seen:
            continue
        seen.add(step)
        try:
            status = step.lstat()
        except OSError:
            return
        yield step, status
        if stat.S_ISLNK(status.st_mode):
            yield from _steps(Path(os.path.normpath(step.parent / os.readlink(step))), seen)
