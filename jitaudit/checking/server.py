"""The process that checks."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from jitaudit.checking.nouns import Checked, Difference, Miss, Notice, Request
from jitaudit.checking.reasons import Recorded, miss
from jitaudit.checking.rules import NEXT, RULES
from jitaudit.jit.capture import require_triton
from jitaudit.jit.entries import Entry, read_cache
from jitaudit.jit.environment import c_compiler
from jitaudit.jit.hostbuilds import host_builds
from jitaudit.jit.lookup import Whole
from jitaudit.jit.marker import Markers, read_markers
from jitaudit.jit.rebuild import Rebuilt, always_compiles, compiling_for
from jitaudit.jit.target import require_target
from jitaudit.planning import (
    Plan,
    Planned,
    Unplanned,
    brief,
    find_kernels,
    forget_working_directory,
    plan,
    survey,
    uncounted,
    untuned,
    use_cache,
)
from jitaudit.sweeping.process import Progress, serve


def main(progress: int, private: str) -> None:
    """Answer the request that stands on standard input."""
    serve(check_directory, Request, progress, private)


def check_directory(request: Request, progress: Progress) -> Checked:
    began = time.monotonic()
    require_triton()
    require_target(request.manifest.target)
    forget_working_directory(request.sources)
    use_cache(request.cache)
    directory = Path(request.cache.path)
    with compiling_for(request.manifest.target):
        functions = find_kernels(request.manifest, request.sources)
        moved = use_cache(request.cache)
        started = time.monotonic()
        planned, rebuilt = plan(request.manifest, functions)
        markers = read_markers(directory)
        misses = tuple(_misses(planned, directory, markers))
        not_tuned = tuple(untuned(request.manifest, functions, markers))
        warnings = (*_moved(moved), *_unreadable(markers), *_builds(rebuilt, planned.target, directory))
    missed = sum(miss.variants for miss in misses)
    return Checked(
        target=planned.target,
        cache=request.cache,
        hits=sum(len(kernel.variants) for kernel in request.manifest.kernels) - missed,
        misses=misses,
        untuned=not_tuned,
        warnings=warnings,
        start_seconds=started - began,
        check_seconds=time.monotonic() - started,
        uncounted=uncounted(request.manifest),
    )


def _misses(planned: Plan, directory: Path, markers: Markers) -> Iterator[Miss]:
    yield from map(_not_warmable, planned.unplanned)
    if always_compiles():
        yield from map(_never_looked_up, planned.planned)
        return
    found = survey(planned, directory, markers.files())
    missed = [variant for variant in planned.planned if not isinstance(found[variant.hash], Whole)]
    names = brief(planned) if missed else {}
    marked = {variant.kernel for marker in markers.readable.values() for variant in marker.variants}
    entries = _entries(directory) if any(variant.kernel not in marked for variant in missed) else ()
    recorded = Recorded(markers.readable, entries)
    for variant in missed:
        state = found[variant.hash]
        assert not isinstance(state, Whole)
        yield recorded.explain(variant, planned.target, planned.parts, state, names[variant.hash])


def _not_warmable(one: Unplanned) -> Miss:
    return Miss("JA012", RULES["JA012"], one.kernel, one.group, one.key, "", one.variants, one.reason, NEXT["JA012"])


def _never_looked_up(variant: Planned) -> Miss:
    return miss(
        "JA206",
        variant,
        "",
        "Triton compiles it again in every process, whatever is there; unset TRITON_ALWAYS_COMPILE",
        [Difference("TRITON_ALWAYS_COMPILE", None, "1")],
    )


def _entries(directory: Path) -> Iterable[Entry]:
    if not directory.is_dir():
        return ()
    return [found.content for found in read_cache(str(directory)) if isinstance(found.content, Entry)]


def _moved(directory: str | None) -> Iterator[Notice]:
    if directory is not None:
        message = (
            f"importing the kernels sets TRITON_CACHE_DIR={directory}, in the server too: call jitaudit.warm there"
        )
        yield Notice(None, message)


def _unreadable(markers: Markers) -> Iterator[Notice]:
    for path in markers.unreadable:
        yield Notice(None, f"the marker {path} can't be read and is ignored")


def _builds(rebuilt: Mapping[str, Rebuilt], target: str, directory: Path) -> Iterator[Notice]:
    """The host builds that the first launches wait for."""
    missing = [build for build in host_builds(rebuilt.values(), target, directory) if not build.is_there]
    launchers = sum(build.kind == "launcher" for build in missing)
    if launchers:
        yield Notice("JA213", f"{launchers} C launchers are not built: each is, at a first launch (about 0.2 s)")
    if launchers < len(missing):
        yield Notice("JA214", "Triton's driver utilities are not built: they are, at the first launch (about 0.2 s)")
    if missing and (compiler := c_compiler()).path is None:
        what = f"CC={compiler.command} can't be run" if compiler.command else "there is no gcc or clang"
        yield Notice("JA215", f"{what}: here the first launch on a GPU fails; install gcc, or set CC")
