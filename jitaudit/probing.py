"""probe: run sweeps, count the variants that they reach, and say why there are so many."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from jitaudit.judging import count, judge
from jitaudit.model import Count, Finding, Manifest
from jitaudit.sweeping import Narrowing, Progress, run


class Probe(msgspec.Struct, frozen=True):
    """What a probe found: the manifest, and the table over it."""

    manifest: Manifest
    counts: tuple[Count, ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The manifest's findings."""
        return self.manifest.findings

    @property
    def complete(self) -> bool:
        """Whether every case of every sweep was counted, and every sweep launched something."""
        return all(sweep.verdict == "pass" for sweep in self.manifest.sweeps)


def probe(targets: Sequence[str], architecture: str, narrowing: Narrowing, progress: Progress) -> Probe:
    """Count the variants that the sweeps of `targets` reach on `architecture`, and judge them."""
    manifest = run(targets, architecture, narrowing, progress)
    manifest = msgspec.structs.replace(manifest, findings=judge(manifest))
    return Probe(manifest=manifest, counts=count(manifest))
