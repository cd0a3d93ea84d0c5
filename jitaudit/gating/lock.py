"""The lock: the variants that a project allows, as a file that reads well in a diff.

A variant is a set of lines, ``bs: i32 any`` for an argument and ``num_warps = 8`` for an option. What all variants of a
kernel share stands once. Source, environment and launch counts are left out: only a new class changes a lock.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import msgspec

from jitaudit.configuration import kernel_name
from jitaudit.errors import RequestError
from jitaudit.manifest import write_whole
from jitaudit.model import Kernel, Noun, VariantKey

LOCK_FILE = "jitaudit.lock.json"
LOCK_VERSION = 1

Key = tuple[str, ...]
"""A variant as its lines, sorted: equal for equal keys."""


class LockedKernel(Noun, frozen=True):
    """The variants of one kernel that a lock allows."""

    id: str
    group: str | None
    reason: str
    """Why its last change was accepted."""
    sweeps: tuple[str, ...]
    """The sweeps that reach it."""
    common: tuple[str, ...]
    """The lines that all its variants share."""
    variants: tuple[str, ...]
    """The other lines of each, joined by commas; empty for a single variant."""

    @property
    def keys(self) -> frozenset[Key]:
        """The variants."""
        return frozenset(_sorted((*self.common, *_lines(variant))) for variant in self.variants or ("",))


class Lock(Noun, frozen=True):
    """The variants that a project allows, by target."""

    schema_version: int
    groups: tuple[str, ...] | None
    """The values of the compared axis that it covers; None: all of them."""
    targets: dict[str, tuple[LockedKernel, ...]]


def key_lines(key: VariantKey) -> Key:
    """A variant's key as its lines."""
    options = (f"{name} = {msgspec.json.encode(value).decode()}" for name, value in key.options.items())
    return _sorted((*(f"{name}: {text}" for name, text in key.arguments.items()), *options))


def kernel_sweeps(kernel: Kernel) -> tuple[str, ...]:
    """The sweeps that reach a kernel."""
    return tuple(sorted({str(case["sweep"]) for variant in kernel.variants for case in variant.cases}))


def shared_lines(keys: Iterable[Key]) -> frozenset[str]:
    """The lines that stand in every one of `keys`."""
    sets = [frozenset(key) for key in keys]
    return frozenset.intersection(*sets) if sets else frozenset()


def split_line(line: str) -> tuple[tuple[str, bool], str]:
    """A line's argument or option (and whether it is an option), and its class or value."""
    head, is_option, value = line.partition(" = ")
    if is_option and ": " not in head:
        return (head, True), value
    name, _, text = line.partition(": ")
    return (name, False), text


def locked(kernel: str, group: str | None, keys: Iterable[Key], sweeps: tuple[str, ...], reason: str) -> LockedKernel:
    """A kernel's entry in a lock."""
    variants = list(keys)
    common = shared_lines(variants)
    rest = [", ".join(line for line in variant if line not in common) for variant in variants]
    return LockedKernel(
        id=kernel,
        group=group,
        reason=reason,
        sweeps=sweeps,
        common=_sorted(common),
        variants=tuple(sorted(rest, key=_natural)) if len(rest) > 1 else (),
    )


def ordered(keys: Iterable[Key]) -> list[Key]:
    """Variants in an order in which 64 comes before 128."""
    return sorted(keys, key=lambda key: [_natural(line) for line in key])


def encode(lock: Lock) -> bytes:
    """The file's bytes: kernels sorted, a variant a line."""
    return msgspec.json.format(msgspec.json.encode(lock, order="deterministic"), indent=1) + b"\n"


def decode(data: bytes, name: str) -> Lock:
    """Read a lock strictly; `name` stands in the error. Raises RequestError for anything that no update wrote."""
    try:
        version = msgspec.json.decode(data, type=_Version).schema_version
        if version > LOCK_VERSION:
            raise RequestError(
                f"{name}: schema version {version}, this jitaudit reads {LOCK_VERSION}; "
                "a newer jitaudit wrote it; upgrade jitaudit"
            )
        lock = msgspec.json.decode(data, type=Lock)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RequestError(f"{name}: not a lock: {error}; {_AGAIN}") from None
    for target, kernels in lock.targets.items():
        names = [kernel_name(kernel.id, kernel.group) for kernel in kernels]
        for kernel, title in zip(kernels, names, strict=True):
            if wrong := _nonsense(kernel) or ("stands there twice" if names.count(title) > 1 else None):
                raise RequestError(f"{name}: {target}: {title}: {wrong}; {_AGAIN}")
    return lock


def read(path: Path) -> Lock | None:
    """The lock at `path`; None where there is none. Raises RequestError where it can't be read."""
    try:
        return decode(path.read_bytes(), path.name)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RequestError(f"{path}: can't be read: {error.strerror}") from None


def write(lock: Lock, path: Path) -> None:
    """Replace the lock at `path`, whole or not at all. Raises RequestError where it can't be written."""
    write_whole(encode(lock), path, force=True)


def line_of(path: Path, kernel: str) -> int | None:
    """The line of a lock's file on which a kernel's entry begins."""
    lines = path.read_text(encoding="utf-8").splitlines()
    entry = f'"id": {msgspec.json.encode(kernel).decode()}'
    return next((number for number, line in enumerate(lines, 1) if entry in line), None)


_AGAIN = 'write it again with jitaudit gate --update --reason "…"'
_LINE = re.compile(r"[^\s:=]+(: \S.*| = \S.*)", re.DOTALL)
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|, |.', re.DOTALL)


class _Version(msgspec.Struct):
    schema_version: int


def _nonsense(kernel: LockedKernel) -> str | None:
    """What an entry gets wrong, in words."""
    variants = [(*kernel.common, *_lines(variant)) for variant in kernel.variants or ("",)]
    for line in (line for variant in variants for line in variant):
        if not _LINE.fullmatch(line):
            return f"{line!r} is neither 'argument: class' nor 'option = value'"
    for variant in variants:
        names = [split_line(line)[0] for line in variant]
        if twice := next((name for name, _ in names if [n for n, _ in names].count(name) > 1), None):
            return f"{twice} has two classes in one variant"
    arguments = {frozenset(name for (name, option), _ in map(split_line, v) if not option) for v in variants}
    if len(arguments) > 1:
        return "its variants have different arguments"
    return "one variant stands there twice" if len(kernel.keys) < len(variants) else None


def _lines(variant: str) -> list[str]:
    """The reverse of joining by commas; commas in brackets and in strings join nothing."""
    lines, depth = [""], 0
    for token in _TOKEN.findall(variant):
        depth += (token in "([{") - (token in ")]}")
        if token == ", " and depth == 0:
            lines.append("")
        else:
            lines[-1] += token
    return [line for line in lines if line]


def _sorted(lines: Iterable[str]) -> Key:
    return tuple(sorted(lines, key=_natural))


def _natural(text: str) -> list[tuple[int, str]]:
    """An order in which 64 comes before 128."""
    parts = re.split("([0-9]+)", text)
    return [(int(part), "") if place % 2 else (-1, part) for place, part in enumerate(parts)]
