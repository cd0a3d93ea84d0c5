"""The process that warms: it imports the kernels, hashes everything once, and forks the workers that compile."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path

import msgspec

from jitaudit.errors import SetupError
from jitaudit.jit.capture import require_triton
from jitaudit.jit.environment import c_compiler
from jitaudit.jit.hostbuilds import host_builds
from jitaudit.jit.lookup import Broken, Whole
from jitaudit.jit.marker import (
    MARKER_VERSION,
    Marker,
    Warmed,
    entry_name,
    marker_path,
    read_markers,
    write_marker,
)
from jitaudit.jit.rebuild import Rebuilt, compiling_for
from jitaudit.jit.staging import clear_leftovers, set_aside, staging_in
from jitaudit.jit.target import require_target
from jitaudit.planning import (
    Plan,
    Planned,
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
from jitaudit.warming.compiling import Compiled, compile_all
from jitaudit.warming.nouns import Damage, Failed, Request, Timed, Warming

_SLOWEST = 5


def main(progress: int, private: str) -> None:
    """Answer the request that stands on standard input."""
    tempfile.tempdir = private  # what a killed worker's assembler leaves goes with it
    serve(warm_directory, Request, progress, private)


def warm_directory(request: Request, progress: Progress) -> Warming:
    """Plan the variants, look at what is there, compile what is missing, and leave a marker.

    Raises SetupError where Triton can't compile for the target or the directory can't be used.
    """
    clock = [time.monotonic()]
    require_triton()
    require_target(request.manifest.target)
    forget_working_directory(request.sources)
    use_cache(request.cache)
    with compiling_for(request.manifest.target):
        functions = find_kernels(request.manifest, request.sources)
        use_cache(request.cache)
        clock.append(time.monotonic())
        planned, rebuilt = plan(request.manifest, functions, generic=request.settings.generic)
        cache = _Cache(request, planned)
        clock.append(time.monotonic())
        done = cache.complete(rebuilt, progress)
        builds = host_builds(rebuilt.values(), planned.target, Path(request.cache.path))
        unknown_winners = sum(len(one.keys) for one in untuned(request.manifest, functions, cache.markers))
        clock.append(time.monotonic())
        marker = cache.mark(done)
    start, look, compiling = (after - before for before, after in pairwise(clock))
    return Warming(
        target=planned.target,
        cache=request.cache,
        variants=len(planned.planned) + sum(one.variants for one in planned.unplanned),
        compiled=len(done.files),
        present=len(cache.present),
        failed=_named(planned, done.failures),
        left=_named(planned, done.left),
        unplanned=planned.unplanned,
        damaged=tuple(cache.damage.values()),
        slowest=_slowest(planned, done.seconds),
        start_seconds=start,
        look_seconds=look,
        compile_seconds=compiling,
        cpu_seconds=done.cpu_seconds,
        marker=marker,
        stopped=done.stopped,
        unknown_winners=unknown_winners,
        host_builds=sum(not build.is_there for build in builds),
        compiler=c_compiler().path,
        notes=tuple(cache.notes),
        uncounted=uncounted(request.manifest),
    )


class _Cache:
    """The cache directory as the run found it, and as it leaves it."""

    def __init__(self, request: Request, plan: Plan) -> None:
        self._request = request
        self._plan = plan
        self._directory = Path(request.cache.path)
        self.markers = read_markers(self._directory)
        self._listed = self.markers.files()
        self._broken: dict[str, Broken] = {}
        self.present: dict[str, dict[str, str]] = {}
        """Disk hash → files, of what was there."""
        for digest, found in survey(plan, self._directory, self._listed).items():
            if isinstance(found, Whole):
                self.present[digest] = found.files
            elif found is not None and found.kind == "damaged":
                self._broken[digest] = found
        names = plan.distinct
        self.damage = {
            digest: Damage(names[digest].kernel, found.file, found.detail) for digest, found in self._broken.items()
        }
        self.notes = [f"{path} can't be read and is ignored" for path in self.markers.unreadable]

    def complete(self, rebuilt: Mapping[str, Rebuilt], progress: Progress) -> Compiled:
        """Compile what is missing; what is damaged too, once it is set aside, where that is asked for."""
        request = self._request
        kept = {} if request.settings.repair else self._broken
        wanted = [v for digest, v in self._plan.distinct.items() if digest not in self.present and digest not in kept]
        if not wanted:
            return Compiled()
        try:
            if cleared := clear_leftovers(self._directory):
                self.notes.append(f"cleared what killed runs left behind ({cleared})")
            with staging_in(self._directory) as staging:
                if request.settings.repair:
                    self._set_aside()
                done = compile_all(
                    wanted, rebuilt, self._plan.target, self._directory, staging, request.settings, progress
                )
        except OSError as error:
            raise SetupError(
                f"cache directory {self._directory} (from {request.cache.decided_by}) can't be used: "
                f"{error.strerror or error}; set TRITON_CACHE_DIR or --cache-dir to one that this user can write"
            ) from None
        for digest in self.damage.keys() & done.files.keys():
            same = done.files[digest].items() >= self._listed.get(digest, {"": ""}).items()
            self.damage[digest] = msgspec.structs.replace(self.damage[digest], restored=True, identical=same)
        return done

    def _set_aside(self) -> None:
        for digest, damage in self.damage.items():
            aside = str(set_aside(self._directory, entry_name(digest)))
            self.damage[digest] = msgspec.structs.replace(damage, aside=aside)

    def mark(self, done: Compiled) -> str | None:
        """Write the marker, where it does not say the same already; where it stands."""
        unrepaired = {digest: self._listed[digest] for digest in self._broken if digest in self._listed}
        files = unrepaired | self.present | done.files
        asked = {(variant.kernel, variant.group, variant.key.text): variant.key for variant in self._plan.planned}
        keys = [(kernel, group, key) for (kernel, group, _), key in asked.items()]
        path = marker_path(self._directory, keys, self._plan.target)
        variants = tuple(_warmed(self._plan.planned, files, done.failures))
        before = self.markers.readable.get(path.name)
        if not variants or (before is not None and before.variants == variants and before.parts == self._plan.parts):
            return str(path) if before is not None else None
        marker = Marker(MARKER_VERSION, self._plan.target, str(self._directory), self._plan.parts, variants)
        if before is not None:
            marker = msgspec.structs.replace(marker, winners=before.winners, launched=before.launched)
        try:
            with staging_in(self._directory) as staging:
                write_marker(path, marker, staging)
        except OSError as error:
            self.notes.append(f"the marker {path} can't be written: {error.strerror or error}")
            return None
        return str(path)


def _warmed(
    planned: Iterable[Planned], files: Mapping[str, dict[str, str]], failures: Mapping[str, str]
) -> Iterable[Warmed]:
    for variant in planned:
        if variant.hash in files or variant.hash in failures:
            yield Warmed(
                kernel=variant.kernel,
                group=variant.group,
                key=variant.key,
                hash=variant.hash,
                code=variant.code,
                source=variant.source,
                line=variant.line,
                files=files.get(variant.hash, {}),
                failure=failures.get(variant.hash),
            )


def _named(plan: Plan, reasons: Mapping[str, str]) -> tuple[Failed, ...]:
    names = brief(plan)
    return tuple(
        Failed(v.kernel, v.group, v.key, names[v.hash], reasons[v.hash]) for v in plan.planned if v.hash in reasons
    )


def _slowest(plan: Plan, seconds: Mapping[str, float]) -> tuple[Timed, ...]:
    variants, names = plan.distinct, brief(plan)
    longest = sorted(seconds, key=lambda digest: -seconds[digest])[:_SLOWEST]
    return tuple(
        Timed(variants[digest].kernel, variants[digest].group, variants[digest].key, names[digest], seconds[digest])
        for digest in longest
    )
