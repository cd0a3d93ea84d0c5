"""Compile a variant into Triton's cache directory so that its entry appears whole or not at all.

Triton writes an entry file by file, under names that a second writer of the same key replaces: a reader may get one
writer's binary with the other's metadata. Here each file's name holds the digest of its content
(``kernel.0123456789abcdef.cubin``), everything is written and synced before the group file, and the group file, which
alone makes an entry, lists exactly its own writer's files. So no mix can be read, whoever else writes meanwhile.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jitaudit.jit.durable import write_all_durably, write_durably
from jitaudit.jit.marker import entry_name, relative_path
from jitaudit.jit.rebuild import Rebuilt
from jitaudit.jit.target import gpu_target

CONTENT_LETTERS = 16
"""Letters of its sha256 that a published file's name holds."""


def compile_into_cache(rebuilt: Rebuilt, target: str, staging: Path) -> dict[str, str]:
    """Compile a variant into the cache directory that Triton uses now; its files, as a marker has them.

    A cache manager of the user's own (``TRITON_CACHE_MANAGER``) is used as it is. Raises what the compiler raises, and
    OSError where the directory can't be written.
    """
    import triton
    from triton import knobs

    directory = Path(knobs.cache.dir)
    own = knobs.cache.manager_class is None
    if own:
        knobs.cache.manager_class = publishing_to(staging)
    try:
        kernel = triton.compile(rebuilt.source, target=gpu_target(target), options=rebuilt.options)
    finally:
        if own:
            del knobs.cache.manager_class
    paths = [*kernel.metadata_group.values(), str(group_path(directory, rebuilt))]
    return {relative_path(path, directory): digest_of(path) for path in paths if os.path.exists(path)}


def group_path(directory: Path, rebuilt: Rebuilt) -> Path:
    """The group file of the variant's entry."""
    return directory / entry_name(rebuilt.hash) / f"__grp__{rebuilt.name}.json"


def digest_of(path: str) -> str:
    """``sha256:…`` of a file."""
    with open(path, "rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"


def publishing_to(staging: Path) -> Callable[..., Any]:
    """What stands for the cache manager's class. Dumps and overrides are Triton's own business."""

    def manager(key: str, override: bool = False, dump: bool = False) -> Any:
        if override or dump:
            from triton.runtime.cache import FileCacheManager

            return FileCacheManager(key, override=override, dump=dump)
        return _Publisher(key, staging)

    return manager


class _Publisher:
    """A Triton cache manager that keeps one compile's files in memory until their group is complete."""

    def __init__(self, key: str, staging: Path) -> None:
        from triton import knobs

        self._entry = Path(os.path.abspath(knobs.cache.dir)) / key
        self._staging = staging
        self._pending: dict[Path, bytes] = {}
        self._names: dict[str, Path] = {}

    def put(self, data: bytes | object, filename: str, binary: bool = True) -> str:
        content = data if isinstance(data, bytes) else str(data).encode()
        stem, _, kind = filename.rpartition(".")
        path = self._entry / f"{stem}.{hashlib.sha256(content).hexdigest()[:CONTENT_LETTERS]}.{kind}"
        self._pending[path] = content
        self._names[filename] = path
        return str(path)

    def get_file(self, filename: str) -> str | None:
        """A file that was put: Triton reads some intermediate code back (``USE_IR_LOC``)."""
        if (path := self._names.get(filename)) is None:
            return None
        self._flush()
        return str(path)

    def get_group(self, filename: str) -> None:
        """Nothing: what is here already was not asked to be compiled."""

    def put_group(self, filename: str, group: dict[str, str]) -> None:
        import json

        self._flush()
        content = json.dumps({"child_paths": group}).encode()
        write_durably(self._entry / f"__grp__{filename}", content, self._staging)

    def _flush(self) -> None:
        if self._pending:
            write_all_durably(self._pending, self._staging)
            self._pending = {}
