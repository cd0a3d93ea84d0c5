"""Check a cache directory from a process of its own: it imports the kernels, and compiles nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import msgspec

from jitaudit.checking.nouns import Checked, Notice, Request
from jitaudit.jit.environment import cache_setting, inductor_directory, package
from jitaudit.jit.trust import distrust
from jitaudit.model import Manifest
from jitaudit.planning import NO_THREADS, Cache, Sources
from jitaudit.sweeping.process import Progress, ask


def check_cache(manifest: Manifest, sources: Sources, cache: Cache, progress: Progress) -> Checked:
    """Say of every variant of `manifest` whether a process started here would find it; no GPU is needed.

    Raises SetupError where Triton can't compile for the target, RequestError where a file of `sources` can't be loaded.
    """
    request = Request(manifest, sources, cache)
    checked = ask("jitaudit.checking.server", request, Checked, "jitaudit check", progress, NO_THREADS)
    return msgspec.structs.replace(
        checked, warnings=(*moves(cache), *(Notice(None, why) for why in distrust(Path(cache.path))), *checked.warnings)
    )


def moves(cache: Cache) -> Iterator[Notice]:
    """What makes a process that is started here look elsewhere, at once or in its middle."""
    setting = cache_setting()
    if os.path.abspath(setting.path) != cache.path:
        yield Notice(
            None,
            f"a process started here looks in {setting.path or 'no directory'} ({setting.decided_by}): set "
            f"TRITON_CACHE_DIR={cache.path} for the server",
        )
    elif setting.decided_by != "TRITON_CACHE_DIR" and package("torch").version is not None:
        yield Notice(
            None,
            f"Inductor's first graph moves Triton's cache to {inductor_directory()}/triton/<device>, and from then on "
            "nothing here is found: set TRITON_CACHE_DIR for the server, or call jitaudit.warm in it",
        )
    if find_spec("vllm") is not None:
        yield Notice(
            None, "vLLM sets TRITON_CACHE_DIR itself where it compiles graphs: call jitaudit.warm in its process"
        )
