"""What Triton would find in its cache under a disk hash: a whole entry, a broken one, or none.

Stricter than Triton: 3.6 and 3.7 take an entry with files missing, and none of 3.6 to 3.9 sees that a file is damaged.
"""

from __future__ import annotations

import hashlib
import os
import re
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from jitaudit.errors import SetupError
from jitaudit.jit.marker import entry_name, relative_path
from jitaudit.jit.publishing import CONTENT_LETTERS


class Whole(msgspec.Struct, frozen=True):
    """An entry that Triton takes, and that is undamaged as far as can be told."""

    files: dict[str, str]
    """Path below the cache directory → ``sha256:…``; an absolute path for a file that lies elsewhere."""


class Broken(msgspec.Struct, frozen=True):
    """An entry that is no hit, or would be a wrong one."""

    kind: Literal["partial", "damaged", "moved"]
    file: str
    detail: str


def look_up(directory: Path, digest: str, name: str, listed: Mapping[str, str]) -> Whole | Broken | None:
    """What stands under `digest` for a function of this name; None where there is nothing.

    `listed`: the files that a marker lists, which must be as they were. A cache manager of the user's own is asked
    first, and brings its files to the directory. Raises SetupError where it fails.
    """
    entry = directory / entry_name(digest)
    group = entry / f"__grp__{name}.json"
    try:
        children = _remote_children(digest, name) if _manager_class() is not None else _children(group)
        if children is None:
            return _without_group(entry, group)
        found = _verify(children, entry, digest, name)
        if group.is_file():
            found[str(group)] = group.read_bytes()
    except _Unfit as unfit:
        return unfit.broken
    except IsADirectoryError as error:  # nothing can be published over it
        return Broken("damaged", error.filename or str(entry), "it is a directory")
    except OSError as error:
        return Broken("partial", error.filename or str(entry), error.strerror or str(error))
    files = {
        relative_path(path, directory): f"sha256:{hashlib.sha256(data).hexdigest()}" for path, data in found.items()
    }
    for path, was in listed.items():
        if files.get(path, was) != was:
            return Broken("damaged", path, "it is not what the marker lists")
    return Whole(files)


class _Unfit(Exception):
    def __init__(self, kind: Literal["partial", "damaged", "moved"], file: Path, detail: str) -> None:
        super().__init__(detail)
        self.broken = Broken(kind, str(file), detail)


class _Group(msgspec.Struct):
    child_paths: dict[str, str]


class _Metadata(msgspec.Struct):
    hash: str
    name: str
    shared: int


def _manager_class() -> Any:
    """The user's own class of Triton's cache managers, if there is one."""
    from triton import knobs

    try:
        return knobs.cache.manager_class
    except Exception as error:  # whatever importing it raises
        raise SetupError(f"TRITON_CACHE_MANAGER={os.environ.get('TRITON_CACHE_MANAGER')}: {error}") from None


def _remote_children(digest: str, name: str) -> dict[str, str] | None:
    kind = _manager_class()
    try:
        children: dict[str, str] | None = kind(entry_name(digest)).get_group(f"{name}.json")
    except Exception as error:  # whatever the manager or its server raises
        settings = ("TRITON_CACHE_MANAGER", "TRITON_REMOTE_CACHE_BACKEND")
        given = ", ".join(f"{name}={os.environ[name]}" for name in settings if name in os.environ)
        raise SetupError(f"the cache manager fails ({given}): {type(error).__name__}: {error}") from None
    return children


def _children(group: Path) -> dict[str, str] | None:
    try:
        data = group.read_bytes()
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        if not group.parent.exists():  # the cache directory itself is a file, or lies below one
            return None
        raise _Unfit("damaged", group.parent, "it is no directory") from None
    try:
        return msgspec.json.decode(data, type=_Group).child_paths
    except (ValueError, RecursionError) as error:
        raise _Unfit("damaged", group, f"it can't be read: {error}") from None


def _without_group(entry: Path, group: Path) -> Broken | None:
    try:
        left = [item for item in os.listdir(entry) if not item.startswith("tmp.pid_")]
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not left:
        return None  # every look-up of Triton's makes the directory
    return Broken("partial", str(group), "it is missing: the entry was never completed")


def _verify(children: dict[str, str], entry: Path, digest: str, name: str) -> dict[str, bytes]:
    """The children's content by path. Raises `_Unfit`."""
    binary = next((file for file in children if file in (f"{name}.cubin", f"{name}.hsaco")), None)
    for needed in (binary or f"{name}.cubin", f"{name}.json"):
        if needed not in children:
            raise _Unfit("partial", entry / needed, "its group does not list it")
    content = {}
    for file, path in children.items():
        try:
            content[file] = Path(path).read_bytes()
        except FileNotFoundError:
            if Path(path).parent.parent != entry.parent:
                raise _Unfit("moved", Path(path), f"the entry points there, and it stands in {entry}") from None
            raise _Unfit("partial", Path(path), "it is missing") from None
        _verify_file(Path(path), content[file], is_binary=file == binary)
    _verify_metadata(Path(children[f"{name}.json"]), content[f"{name}.json"], digest)
    return {children[file]: data for file, data in content.items()}


_CONTENT_NAME = re.compile(rf".*\.([0-9a-f]{{{CONTENT_LETTERS}}})\.\w+")


def _verify_file(path: Path, data: bytes, *, is_binary: bool) -> None:
    named = _CONTENT_NAME.fullmatch(path.name)
    if named and not hashlib.sha256(data).hexdigest().startswith(named[1]):
        raise _Unfit("damaged", path, "its content is not what its name says")
    if not data:
        raise _Unfit("damaged", path, "it is empty")
    if is_binary and len(data) < _elf_size(data):
        raise _Unfit("damaged", path, "it is no whole binary")


def _verify_metadata(path: Path, data: bytes, digest: str) -> None:
    try:
        metadata = msgspec.json.decode(data, type=_Metadata)
    except (ValueError, RecursionError) as error:
        raise _Unfit("damaged", path, f"it can't be read: {error}") from None
    if metadata.hash != digest:
        raise _Unfit("damaged", path, "it belongs to another entry")


def _elf_size(data: bytes) -> int:
    """The bytes that an ELF file's tables need; more than it has where it is none."""
    if len(data) < 64 or data[:6] != b"\x7fELF\x02\x01":
        return len(data) + 1
    programs, sections = struct.unpack_from("<QQ", data, 32)
    program_size, program_count, section_size, section_count = struct.unpack_from("<HHHH", data, 54)
    return int(max(programs + program_size * program_count, sections + section_size * section_count))
