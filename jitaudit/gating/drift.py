"""Drift: the variants that are new, or gone, against a lock or a base. Identities are compared, never counts. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import msgspec

from jitaudit.configuration import matches
from jitaudit.gating.lock import Key, Lock, kernel_sweeps, key_lines, ordered, shared_lines, split_line
from jitaudit.model import Kernel, Manifest

Name = tuple[str, str | None]
"""A kernel's id and group."""

EXPLAINED = 20
"""New variants of a kernel that are set beside their nearest."""


class Scope(msgspec.Struct, frozen=True):
    """What of a project a gate looks at: what it leaves out is not gone."""

    whole: bool
    """All that the configuration names was looked at: every target, axis and kernel."""
    groups: tuple[str, ...] = ()
    """The only groups; empty: all."""
    kernels: tuple[str, ...] = ()
    """The only kernels, as globs; empty: all."""
    moved: bool = False
    """The axes were moved over other values."""

    def holds(self, kernel: str, group: str | None) -> bool:
        """Whether this kernel was looked at."""
        return (not self.groups or group is None or group in self.groups) and (
            not self.kernels or any(matches(kernel, group, glob) for glob in self.kernels)
        )

    def sees_all_of(self, glob: str) -> bool:
        """Whether every kernel that a glob means was looked at."""
        group = glob.partition("@")[2]
        return self.whole and (not self.groups or group in self.groups)


class Drift(msgspec.Struct, frozen=True):
    """One target's variants against those that are allowed."""

    known: dict[Name, frozenset[Key]]
    new: dict[Name, frozenset[Key]]
    gone: dict[Name, frozenset[Key]]


NO_DRIFT = Drift({}, {}, {})


class Drifted(msgspec.Struct, frozen=True):
    """A new variant beside the nearest one that is allowed."""

    variant: str
    """The lines in which the kernel's variants differ."""
    differs: tuple[str, ...]
    """``bs: i32 any → constexpr int 4``, for each argument and option."""
    ties: int
    """Other allowed variants that are as near."""


def against_lock(manifest: Manifest, lock: Lock, scope: Scope) -> Drift:
    """Drift against the lock's entry for the manifest's target, within what both cover."""
    entries = {(entry.id, entry.group): entry for entry in lock.targets.get(manifest.target, ())}
    known = {name: entry.keys for name, entry in entries.items()}
    ran = {run.name for run in manifest.sweeps}

    def judged(name: Name) -> bool:
        whole = scope.whole or ran.issuperset(entries[name].sweeps)
        return whole and not scope.moved and scope.holds(*name)

    reached = {name: keys for name, keys in _reached(manifest).items() if not lock.groups or name[1] in lock.groups}
    return _drift(known, reached, {name for name in known if judged(name)})


def against_base(manifest: Manifest, base: Manifest, comparable: Collection[str], scope: Scope) -> Drift:
    """Drift against another manifest, as far as the sweeps that ran in both tell."""
    known = {name: keys for name, keys in _reached(base, comparable).items() if scope.holds(*name)}
    reached = _reached(manifest, comparable)
    elsewhere = _reached(manifest)
    drift = _drift(known, reached, known.keys())
    gone = {name: keys - elsewhere.get(name, frozenset()) for name, keys in drift.gone.items()}
    return Drift(known, drift.new, {name: keys for name, keys in gone.items() if keys})


def explained(new: Iterable[Key], known: Iterable[Key]) -> tuple[Drifted, ...]:
    """The first of the new variants of one kernel, each beside its nearest."""
    allowed = ordered(known)
    fresh = ordered(new)
    shared = shared_lines([*allowed, *fresh])
    return tuple(_nearest(key, allowed, shared) for key in fresh[:EXPLAINED])


def renamed(name: Name, drift: Drift, manifest: Manifest) -> str | None:
    """The kernel that left as this one came, with the very same variants; None where none or several did."""
    reached = _reached(manifest)
    keys = drift.new.get(name)
    alike = [
        gone
        for gone, lost in drift.gone.items()
        if gone not in reached and name not in drift.known and gone[1] == name[1] and lost == keys
    ]
    return alike[0][0] if len(alike) == 1 else None


def _drift(known: dict[Name, frozenset[Key]], reached: dict[Name, frozenset[Key]], judged: Collection[Name]) -> Drift:
    new = {name: keys - known.get(name, frozenset()) for name, keys in reached.items()}
    gone = {name: known[name] - reached.get(name, frozenset()) for name in judged}
    return Drift(
        known,
        {name: keys for name, keys in new.items() if keys},
        {name: keys for name, keys in gone.items() if keys},
    )


def _reached(manifest: Manifest, sweeps: Collection[str] | None = None) -> dict[Name, frozenset[Key]]:
    """By kernel: the variants that some of `sweeps` (None: any) reach."""

    def keys(kernel: Kernel) -> frozenset[Key]:
        return frozenset(
            key_lines(variant.key)
            for variant in kernel.variants
            if sweeps is None or any(case["sweep"] in sweeps for case in variant.cases)
        )

    reached = {
        (kernel.id, kernel.group): keys(kernel)
        for kernel in manifest.kernels
        if sweeps is None or set(kernel_sweeps(kernel)) & set(sweeps)
    }
    return {name: found for name, found in reached.items() if found}


def _nearest(key: Key, allowed: Sequence[Key], shared: frozenset[str]) -> Drifted:
    variant = ", ".join(line for line in key if line not in shared)
    if not allowed:
        return Drifted(variant, (), 0)
    lines = frozenset(key)
    distances = [len(lines.symmetric_difference(other)) for other in allowed]
    least = min(distances)
    nearest = allowed[distances.index(least)]
    return Drifted(variant, tuple(_differences(nearest, key)), distances.count(least) - 1)


def _differences(was: Key, now: Key) -> list[str]:
    before, after = dict(map(split_line, was)), dict(map(split_line, now))
    names = [name for name in (before | after) if before.get(name) != after.get(name)]
    absent = {name: "default" if is_option else "absent" for name, is_option in (*before, *after)}
    return [f"{name[0]}: {before.get(name, absent[name[0]])} → {after.get(name, absent[name[0]])}" for name in names]
