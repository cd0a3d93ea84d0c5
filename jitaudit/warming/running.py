"""Warm a cache directory from a process of its own, and one more that launches where a GPU is to measure."""

from __future__ import annotations

from pathlib import Path

import msgspec

from jitaudit.errors import RequestError, SetupError
from jitaudit.jit.environment import gpus
from jitaudit.jit.marker import add_tuning
from jitaudit.jit.trust import distrust
from jitaudit.model import Manifest
from jitaudit.planning import NO_THREADS, Cache, Sources
from jitaudit.sweeping.process import Progress, ask
from jitaudit.warming.nouns import Request, Settings, Tuned, Warming


def warm_cache(manifest: Manifest, sources: Sources, cache: Cache, settings: Settings, progress: Progress) -> Warming:
    """Compile every variant of `manifest` into the cache directory, in parallel; only `gpu` needs one.

    Raises SetupError where Triton can't compile for the target, the directory can't be used or there is no such GPU,
    RequestError where a file of `sources` can't be loaded or nothing says what to launch.
    """
    if settings.gpu and not sources.targets:
        raise RequestError("--gpu launches the sweeps: give a TARGET, or with a manifest their file as --sweeps")
    if settings.gpu and not gpus():
        raise SetupError("--gpu: there is no GPU here; leave it out to compile, which needs none")
    request = Request(manifest, sources, cache, settings)
    warmed = ask("jitaudit.warming.server", request, Warming, "jitaudit warm", progress, NO_THREADS)
    warmed = msgspec.structs.replace(warmed, notes=(*warmed.notes, *distrust(Path(cache.path))))
    return _tuned(request, warmed, progress) if settings.gpu and warmed.marker and not warmed.stopped else warmed


def _tuned(request: Request, warmed: Warming, progress: Progress) -> Warming:
    """With what launching adds: the winners go into the marker."""
    assert warmed.marker is not None
    tuned = ask("jitaudit.warming.tuning", request, Tuned, "jitaudit warm --gpu", progress)
    add_tuning(Path(warmed.marker), tuned.winners, tuned.launched)
    unknown = warmed.unknown_winners - len({(winner.kernel, winner.group, winner.key) for winner in tuned.winners})
    return msgspec.structs.replace(warmed, tuned=tuned, unknown_winners=max(0, unknown), host_builds=tuned.host_builds)
