"""Warm a cache directory from a process of its own."""

from __future__ import annotations

from jitaudit.model import Manifest
from jitaudit.planning import NO_THREADS, Cache, Sources
from jitaudit.sweeping.process import Progress, ask
from jitaudit.warming.nouns import Request, Settings, Warming


def warm_cache(manifest: Manifest, sources: Sources, cache: Cache, settings: Settings, progress: Progress) -> Warming:
    """Compile every variant of `manifest` into the cache directory, in parallel; no GPU is needed.

    Raises SetupError where Triton can't compile for the target or the directory can't be used, RequestError where a
    file of `sources` can't be loaded.
    """
    request = Request(manifest, sources, cache, settings)
    return ask("jitaudit.warming.server", request, Warming, "jitaudit warm", progress, NO_THREADS)
