"""Accept what a gate found: write the lock anew, lower budgets that became too loose."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path

import msgspec

from jitaudit.errors import RequestError
from jitaudit.gating import lock as locks
from jitaudit.gating.drift import Drift
from jitaudit.gating.lock import Lock, LockedKernel, kernel_sweeps
from jitaudit.gating.verdicts import Breach, Verdict
from jitaudit.manifest import write_whole
from jitaudit.model import Manifest


def covering(lock: Lock | None, groups: tuple[str, ...]) -> Lock:
    """The lock covering these values of the compared axis too; a new one covers them alone, or all if none is given."""
    if lock is None:
        return Lock(schema_version=locks.LOCK_VERSION, groups=groups or None, targets={})
    if lock.groups is None:
        return lock
    return msgspec.structs.replace(lock, groups=tuple(sorted({*lock.groups, *groups})))


def updated(lock: Lock, manifest: Manifest, drift: Drift, reason: str) -> Lock:
    """The lock that allows what the manifest reaches, in the groups that it covers."""
    kernels = {(k.id, k.group): k for k in manifest.kernels if lock.groups is None or k.group in lock.groups}
    entries = {(entry.id, entry.group): entry for entry in lock.targets.get(manifest.target, ())}
    found = []
    for name in sorted(entries.keys() | kernels.keys(), key=str):
        new, gone = drift.new.get(name, frozenset()), drift.gone.get(name, frozenset())
        if keys := (drift.known.get(name, frozenset()) - gone) | new:
            sweeps = kernel_sweeps(kernels[name]) if name in kernels else entries[name].sweeps
            found.append(locks.locked(*name, keys, sweeps, reason if new or gone else entries[name].reason))
    return _with(lock, manifest.target, found)


def tightened(lock: Lock, manifest: Manifest, drift: Drift) -> Lock:
    """The lock without the variants that nothing reaches. What is new stays out."""
    entries = []
    for old in lock.targets.get(manifest.target, ()):
        gone = drift.gone.get((old.id, old.group), frozenset())
        if not gone:
            entries.append(old)
        elif kept := old.keys - gone:
            entries.append(locks.locked(old.id, old.group, kept, old.sweeps, old.reason))
    return _with(lock, manifest.target, entries)


def accepted(verdict: Verdict, codes: tuple[str, ...], why: str) -> Verdict:
    """The verdict with its breaches of some codes excused."""

    def excuse(breach: Breach) -> Breach:
        applies = breach.code in codes and breach.excused is None
        return msgspec.structs.replace(breach, fails=False, excused=why) if applies else breach

    return msgspec.structs.replace(verdict, breaches=tuple(map(excuse, verdict.breaches)))


def lower_budgets(file: Path, budgets: dict[str, int]) -> None:
    """Write smaller budgets into a configuration file, leaving all else as it is.

    Raises RequestError where the file writes them in another form than a line each.
    """
    text = file.read_text(encoding="utf-8")
    lowered = _LINE.sub(lambda match: _lowered(match, budgets), text)
    wanted = tomllib.loads(text)
    table = wanted if file.name != "pyproject.toml" else wanted["tool"]["jitaudit"]
    table["budget"] |= budgets
    if tomllib.loads(lowered) != wanted:
        lines = ", ".join(f'"{glob}" = {most}' for glob, most in budgets.items())
        raise RequestError(f"{file}: write the budgets by hand, a line each: {lines}")
    write_whole(lowered.encode(), file, force=True)


_LINE = re.compile(r"""^(\s*(?:"([^"\n]*)"|'([^'\n]*)')\s*=\s*)\d[\d_]*""", re.MULTILINE)


def _lowered(match: re.Match[str], budgets: dict[str, int]) -> str:
    glob = match[2] or match[3]
    return f"{match[1]}{budgets[glob]}" if glob in budgets else match[0]


def _with(lock: Lock, target: str, entries: Sequence[LockedKernel]) -> Lock:
    return msgspec.structs.replace(lock, targets=lock.targets | {target: tuple(entries)})
