"""probe: run sweeps, count the variants that they reach, and say why there are so many."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from jitaudit import manifest as manifests
from jitaudit.errors import RequestError
from jitaudit.judging import count, judge
from jitaudit.model import Count, Finding, Manifest
from jitaudit.sweeping import Narrowing, Progress, run
from jitaudit.sweeping.targets import split_arguments


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


def probe(arguments: Sequence[str], architecture: str, narrowing: Narrowing, progress: Progress) -> Probe:
    """Count the variants that the sweeps of targets reach on `architecture`, and judge them.

    Manifests (arguments that end in ``.json``) are judged as they are, all united. Raises RequestError for a mixture.
    """
    paths, targets = split_arguments(arguments)
    if paths and (targets or narrowing.compile or narrowing.gpu or narrowing.axes):
        raise RequestError(f"{paths[0]}: a manifest is read as it is: no TARGET, --axis, --compile or --gpu beside it")
    manifest = narrowing.of(manifests.read(paths)) if paths else run(targets, architecture, narrowing, progress)
    manifest = msgspec.structs.replace(manifest, findings=judge(manifest))
    return Probe(manifest=manifest, counts=count(manifest))
