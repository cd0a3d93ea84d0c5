"""What drift is judged against: a lock, a base, or nothing."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from jitaudit.gating.bases import Base
from jitaudit.gating.drift import Drift, Scope, against_base, against_lock
from jitaudit.gating.lock import LOCK_FILE, Lock
from jitaudit.gating.verdicts import NOTES, Breach, Verdict
from jitaudit.model import Finding, Manifest
from jitaudit.sweeping import Narrowing, Progress


class Compared(msgspec.Struct, frozen=True):
    """A manifest, and its drift; None where there is nothing to compare with."""

    manifest: Manifest
    drift: Drift | None = None


class Comparison(msgspec.Struct, frozen=True):
    """All manifests of a gate, compared."""

    reference: str | None
    compared: tuple[Compared, ...]
    verdicts: tuple[Verdict, ...] = ()
    """On the sweeps that the base can't run."""
    notes: tuple[Finding, ...] = ()


def with_lock(manifests: Sequence[Manifest], lock: Lock, scope: Scope) -> Comparison:
    """The manifests against the lock's entries for their targets."""
    return Comparison(LOCK_FILE, tuple(Compared(m, against_lock(m, lock, scope)) for m in manifests))


def with_base(
    manifests: Sequence[Manifest],
    targets: Sequence[str],
    base: Base,
    scope: Scope,
    narrowing: Narrowing,
    progress: Progress,
) -> Comparison:
    """The manifests against what the same targets reach on a base, as far as their sweeps run there."""
    compared, verdicts, notes = [], [], {}
    for manifest in manifests:
        there = base.manifest(targets, manifest, narrowing, progress)
        ran = {sweep.name: sweep for sweep in there.sweeps} if there else {}
        comparable = {s.name for s in manifest.sweeps if s.name in ran and ran[s.name].counted >= s.counted}
        compared.append(Compared(manifest, against_base(manifest, there or manifest, comparable, scope)))
        for sweep in manifest.sweeps:
            if sweep.name not in comparable:
                verdicts.append(_new_sweep(manifest.target, sweep.name, base.name))
            elif ran[sweep.name].axes != sweep.axes:
                notes[sweep.name] = _moved_sweep(sweep.name, base.name)
    return Comparison(base.name, tuple(compared), tuple(verdicts), tuple(notes.values()))


def _new_sweep(target: str, sweep: str, base: str) -> Verdict:
    message = f"it does not run on {base}: nothing to compare with"
    return Verdict(target=target, sweep=sweep, breaches=(Breach("JA306", message, "", "", "", fails=False),))


def _moved_sweep(sweep: str, base: str) -> Finding:
    """A sweep that lives beside kernels comes from the base, so its axes may be others there."""
    message = f"its axes are others on {base}, so what it gained or lost may be theirs"
    return Finding(code="JA310", name=NOTES["JA310"], message=message, sweep=sweep)
