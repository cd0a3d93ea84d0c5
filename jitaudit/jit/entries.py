"""The entries of a Triton cache directory, read with no Triton. Nothing found there is trusted, run or changed.

An entry is a directory named after the base32 of Triton's disk hash. Triton 3.6 to 3.9 put into it ``NAME.source`` and
``NAME.ttir`` … (unless ``TRITON_STORE_BINARY_ONLY``), ``NAME.cubin`` or ``NAME.hsaco``, ``NAME.json`` (the metadata:
target, options, key variables, the hash) and, last, ``__grp__NAME.json``, which lists the others with absolute paths:
without it the entry is never a hit. ``jitaudit warm`` puts a digest of the content into the others' names. Host builds
and autotuners' results live in directories of the same kind.
"""

from __future__ import annotations

import base64
import errno
import hashlib
import os
import re
import stat
import struct
from collections.abc import Iterator
from typing import Literal, TypeVar

import msgspec

from jitaudit.jit.launch_options import changed_options
from jitaudit.jit.ttir import Signature, printable, read_signature
from jitaudit.model import Scalar

JSON_LIMIT = 1 << 20
TEXT_LIMIT = 1 << 25
BINARY_LIMIT = 1 << 28
"""Bytes from which a file is named and left unread. Real ones have kilobytes, in the largest kernels some megabytes."""
FILES_LIMIT = 64
"""Files of one entry. Real ones have nine."""
DEPTH_LIMIT = 16
"""Directories below the scanned one. Inductor nests three."""


class Entry(msgspec.Struct, frozen=True):
    """One compiled variant."""

    kernel: str
    """The function's name, the first 150 letters of it."""
    digest: str
    """Triton's disk hash in base32, which names the directory."""
    target: str
    triton: str
    """The version that wrote it; empty where it did not say."""
    options: dict[str, Scalar]
    """The launch options, without those that have the target's default."""
    variables: dict[str, str]
    """The environment variables in the hash that were set."""
    signature: Signature | None
    """None where only the binary was stored."""
    binary: str
    """``sha256:…`` of the cubin or hsaco."""
    moved: bool
    """Whether its group file points to another directory, where Triton would look for its files."""


class Broken(msgspec.Struct, frozen=True):
    """An entry that is no hit, or can't be read."""

    reason: str
    known: bool = True
    """False where it may well be good, only not to this reader: too large, unreadable, of an unknown backend."""


class Companion(msgspec.Struct, frozen=True):
    """What Triton keeps beside kernels."""

    kind: Literal["host build", "autotune results"]


class Found(msgspec.Struct, frozen=True):
    """A directory of the cache, as it was when it was looked at."""

    path: str
    """Below the scanned directory, with ``/``; printable."""
    content: Entry | Broken | Companion
    bytes: int
    written: int
    """When the last of its files was written, in ns since the epoch; 0 where that can't be told."""
    being_written: bool
    """Whether a writer's temporary directory stands in it."""


def read_cache(root: str) -> Iterator[Found]:
    """Every entry below `root`, by path. Raises OSError where `root` itself can't be listed.

    Symbolic links are not followed. What vanishes meanwhile, or can't be read, is a `Broken`.
    """
    pending = [("", root, 0)]
    while pending:
        relative, path, depth = pending.pop()
        try:
            names = sorted(os.listdir(path))
        except OSError as error:
            if not relative:
                raise
            yield _unread(relative, _words(error))
            continue
        if _is_entry(os.path.basename(path), names):
            yield read_entry(path, relative or ".")
            continue
        below = []
        for name in names:
            item, inner = os.path.join(path, name), f"{relative}/{name}" if relative else name
            kind = _kind(item)
            if kind == "directory" and depth == DEPTH_LIMIT:
                yield _unread(inner, f"more than {DEPTH_LIMIT} directories deep, not entered")
            elif kind == "directory":
                below.append((inner, item, depth + 1))
            elif kind == "link" and os.path.isdir(item):
                yield _unread(inner, "a symbolic link, not followed")
        pending += reversed(below)


def read_entry(path: str, relative: str) -> Found:
    """Read one entry's directory."""
    try:
        folder = _Folder(path)
    except OSError as error:
        return _unread(relative, _words(error))
    with folder:
        try:
            content = _content(folder, os.path.basename(path))
        except _Unusable as error:
            content = Broken(str(error), known=error.known)
        except OSError as error:
            content = Broken(_words(error), known=error.errno == errno.ENOENT)
        return Found(printable(relative), content, folder.bytes, folder.written, folder.being_written)


class _Unusable(Exception):
    """Why an entry can't be used; `known`: whether Triton could not use it either."""

    def __init__(self, reason: str, *, known: bool = True) -> None:
        super().__init__(reason)
        self.known = known


class _Folder:
    """An open entry directory: its files by name, read without following a link or waiting for a pipe."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        self.names: dict[str, os.stat_result] = {}
        self._files: dict[str, str] = {}
        self.being_written = False
        self.many = False
        try:
            self._list()
        except OSError:
            os.close(self._descriptor)
            raise

    def __enter__(self) -> _Folder:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)

    def _list(self) -> None:
        for name in sorted(os.listdir(self._descriptor)):
            try:
                status = os.stat(name, dir_fd=self._descriptor, follow_symlinks=False)
            except FileNotFoundError:
                continue
            if stat.S_ISDIR(status.st_mode):
                self.being_written |= name.startswith("tmp.pid_")
                continue
            if len(self.names) == FILES_LIMIT:
                self.many = True
                break
            self.names[name] = status
        own = os.fstat(self._descriptor).st_mtime_ns
        self.written = max((status.st_mtime_ns for status in self.names.values()), default=own)
        self.bytes = sum(status.st_size for status in self.names.values() if stat.S_ISREG(status.st_mode))

    def follow(self, group: dict[str, str]) -> None:
        """Know each file that a group lists by the group's name for it; ``jitaudit warm`` names files by content."""
        listed = {name: os.path.basename(path) for name, path in group.items()}
        found = {name: self.names[file] for name, file in listed.items() if file in self.names}
        self.names = {name: status for name, status in self.names.items() if name not in listed} | found
        self._files = listed

    def open(self, name: str, limit: int) -> int:
        """A descriptor of a regular file of at most `limit` bytes."""
        if name not in self.names:
            raise _Unusable(f"{printable(name)} is missing")
        if stat.S_ISLNK(self.names[name].st_mode):
            raise _Unusable(f"{printable(name)} is a symbolic link, not followed", known=False)
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(self._files.get(name, name), flags, dir_fd=self._descriptor)
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            os.close(descriptor)
            raise _Unusable(f"{printable(name)} is no regular file", known=False)
        if status.st_size == 0 or status.st_size > limit:
            os.close(descriptor)
            if status.st_size == 0:
                raise _Unusable(f"{printable(name)} is empty")
            raise _Unusable(f"{printable(name)} claims {status.st_size:,} bytes, over {limit:,}", known=False)
        return descriptor

    def read(self, name: str, limit: int) -> bytes:
        with os.fdopen(self.open(name, limit), "rb") as file:
            return file.read(limit)


def _is_entry(name: str, files: list[str]) -> bool:
    return bool(DIGEST.fullmatch(name)) or any(file.startswith("__grp__") for file in files)


DIGEST = re.compile(r"[A-Z2-7]{52}")


def _content(folder: _Folder, directory: str) -> Entry | Broken | Companion:
    if folder.many:
        return Broken(f"more than {FILES_LIMIT} files", known=False)
    groups = [name for name in folder.names if name.startswith("__grp__")]
    if not groups:
        return _without_group(folder)
    if len(groups) > 1:
        return Broken("more than one group file", known=False)
    metadata_name = groups[0].removeprefix("__grp__")
    group = _decode(folder, groups[0], _Group).child_paths
    if isinstance(group, dict):
        folder.follow(group)
    missing = sorted(name for name in group if name not in folder.names)
    if missing or metadata_name not in group:
        return Broken(f"{printable(missing[0] if missing else metadata_name)} is missing from its group")
    fields = _decode(folder, metadata_name, dict[str, object])
    metadata = _metadata(fields, metadata_name)
    digest = _base32(metadata.hash)
    if DIGEST.fullmatch(directory) and digest != directory:
        return Broken("its metadata belongs to another entry")
    backend = metadata.target.backend
    if backend not in _BINARIES:
        return Broken(f"its backend {printable(backend)} is not known here", known=False)
    kernel = metadata_name.removesuffix(".json")
    return Entry(
        kernel=printable(kernel),
        digest=digest,
        target=f"{backend}:{printable(str(metadata.target.arch))}",
        triton=printable(metadata.triton_version),
        options=dict(changed_options(backend, fields)),
        variables={
            name: str(value) for name, value in sorted(fields.items()) if re.fullmatch(r"[A-Z][A-Z0-9_]*", name)
        },
        signature=_signature(folder, kernel),
        binary=_binary_digest(folder, f"{kernel}.{_BINARIES[backend]}"),
        moved=isinstance(group, dict) and _elsewhere(os.path.dirname(group[metadata_name]), folder.path),
    )


def _without_group(folder: _Folder) -> Broken | Companion:
    names = folder.names
    if any(name.endswith((".so", ".pyd")) for name in names):
        return Companion("host build")
    if any(name.endswith(".autotune.json") for name in names):
        return Companion("autotune results")
    return Broken("no group file: it was never published" if names else "empty")


_BINARIES = {"cuda": "cubin", "hip": "hsaco"}


class _Group(msgspec.Struct):
    child_paths: dict[str, str] | list[str]
    """Triton's remote cache lists names only."""


class _Target(msgspec.Struct):
    backend: str
    arch: int | str


class _Metadata(msgspec.Struct):
    hash: str
    target: _Target
    triton_version: str = ""


_T = TypeVar("_T")


def _decode(folder: _Folder, name: str, kind: type[_T]) -> _T:
    try:
        return msgspec.json.decode(folder.read(name, JSON_LIMIT), type=kind)
    except (ValueError, RecursionError) as error:  # msgspec's and Unicode's errors are ValueErrors
        raise _Unusable(f"{printable(name)} can't be read: {printable(str(error))}") from None


def _metadata(fields: dict[str, object], name: str) -> _Metadata:
    try:
        return msgspec.convert(fields, _Metadata)
    except msgspec.ValidationError as error:
        raise _Unusable(f"{printable(name)} can't be read: {printable(str(error))}") from None


def _elsewhere(claimed: str, path: str) -> bool:
    return claimed != path and claimed != os.path.realpath(path)


def _base32(digest: str) -> str:
    try:
        return base64.b32encode(bytes.fromhex(digest)).decode().rstrip("=")
    except ValueError:
        raise _Unusable("its hash is no hexadecimal number") from None


def _signature(folder: _Folder, kernel: str) -> Signature | None:
    """From the TTIR or, where only that was kept, from the IR as the front end made it."""
    name = next((name for name in (f"{kernel}.ttir", f"{kernel}.source") if name in folder.names), None)
    if name is None:
        return None
    try:
        return read_signature(folder.read(name, TEXT_LIMIT).decode())
    except ValueError as error:
        raise _Unusable(f"{printable(name)} is torn: {error}") from None


def _binary_digest(folder: _Folder, name: str) -> str:
    """Hash an ELF file whose tables lie inside it. Raises `_Unusable` for anything else."""
    descriptor = folder.open(name, BINARY_LIMIT)
    with os.fdopen(descriptor, "rb") as file:
        head = file.read(64)
        if head[:6] != b"\x7fELF\x02\x01" or len(head) < 64:
            raise _Unusable(f"{printable(name)} is no binary")
        programs, sections = struct.unpack_from("<QQ", head, 32)
        program_size, program_count, section_size, section_count = struct.unpack_from("<HHHH", head, 54)
        end = max(programs + program_size * program_count, sections + section_size * section_count)
        if os.fstat(descriptor).st_size < end:
            raise _Unusable(f"{printable(name)} is cut short")
        digest = hashlib.sha256(head)
        while block := file.read(1 << 20):
            digest.update(block)
    return f"sha256:{digest.hexdigest()}"


def _kind(path: str) -> Literal["directory", "link", "other"]:
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return "other"
    return "directory" if stat.S_ISDIR(mode) else "link" if stat.S_ISLNK(mode) else "other"


def _unread(relative: str, reason: str) -> Found:
    return Found(printable(relative), Broken(reason, known=False), 0, 0, being_written=False)


def _words(error: OSError) -> str:
    match error.errno:
        case errno.ENOENT:
            return "vanished while it was read"
        case errno.ENOTDIR | errno.ELOOP:
            return "a symbolic link, not followed"
        case _:
            return f"can't be read: {error.strerror}"
