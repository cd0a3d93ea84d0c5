"""The two questions a scan answers: what is there, and what is here and not there."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec

from jitaudit.errors import RequestError
from jitaudit.model import Finding, Manifest
from jitaudit.scanning.caches import read_caches
from jitaudit.scanning.logs import read_logs
from jitaudit.scanning.manifests import findings, to_manifest
from jitaudit.scanning.sightings import NANOSECONDS, Reading, Sighting, Skipped, time_text
from jitaudit.scanning.tallying import Life, Row, grouped, life, tally


class Build(msgspec.Struct, frozen=True):
    """What one Triton built for one target."""

    target: str
    triton: str
    kernels: int
    entries: int
    bytes: int


class Scan(msgspec.Struct, frozen=True):
    """What a scan found."""

    origin: str
    """``cache`` or ``log``."""
    since: str | None
    rows: tuple[Row, ...]
    """The costliest first."""
    builds: tuple[Build, ...]
    """The largest first: entries of another build or target can't be hit where the first one is hit."""
    findings: tuple[Finding, ...]
    skipped: tuple[Skipped, ...]
    notes: tuple[str, ...]
    manifest: Manifest


class Difference(msgspec.Struct, frozen=True):
    """One kernel on two sides."""

    kernel: str
    here: int
    there: int
    shared: int
    only_here: Row | None
    only_there: Row | None


class Side(msgspec.Struct, frozen=True):
    """One side of a comparison."""

    path: str
    entries: int
    kernels: int


class Comparison(msgspec.Struct, frozen=True):
    """What one side compiled and the other did not, by Triton's hash or, for logs, by key."""

    here: Side
    there: Side
    differences: tuple[Difference, ...]
    """Kernels that differ, those with most entries of their own first."""
    skipped: tuple[Skipped, ...]
    notes: tuple[str, ...]
    manifest: Manifest
    """Of this side."""


def scan(
    paths: Sequence[Path], *, since: str | None = None, target: str | None = None, kernels: Sequence[str] = ()
) -> Scan:
    """Read cache directories, or logs, into rows and a manifest.

    `since`: only what was written after it, set against what was there before. `target` and `kernels` (globs) narrow.
    Raises RequestError for what is neither cache nor log, SetupError for a directory that can't be read.
    """
    moment = None if since is None else read_time(since)
    (reading,) = _narrowed([_read(paths)], target, kernels)
    late = reading.sightings if moment is None else tuple(s for s in reading.sightings if (s.written or 0) > moment)
    early = None if moment is None else grouped(s for s in reading.sightings if (s.written or 0) <= moment)
    lives = _lives(reading.sightings)
    rows = [
        tally(key, sightings, None if early is None else early.get(key, []), lives[key[1:]])
        for key, sightings in grouped(late).items()
    ]
    rows.sort(key=_cost)
    return Scan(
        origin=reading.origin,
        since=None if moment is None else time_text(moment),
        rows=tuple(rows),
        builds=_builds(late),
        findings=findings(rows),
        skipped=reading.skipped,
        notes=(*reading.notes, *_undated(reading, moment)),
        manifest=to_manifest(msgspec.structs.replace(reading, sightings=late), rows),
    )


def compare(here: Sequence[Path], there: Path, *, target: str | None = None, kernels: Sequence[str] = ()) -> Comparison:
    """What `here` has and `there` has not, and the other way round. Raises as `scan` does."""
    ours, theirs = _narrowed([_read(here), _read([there])], target, kernels)
    if ours.origin != theirs.origin:
        raise RequestError(f"{there}: a cache and a log can't be compared")
    sides = [_by_kernel(reading.sightings) for reading in (ours, theirs)]
    differences = [_difference(name, *(side.get(name, []) for side in sides)) for name in {**sides[0], **sides[1]}]
    rows = [tally(key, sightings, None, None) for key, sightings in grouped(ours.sightings).items()]
    return Comparison(
        here=_side(", ".join(path.as_posix() for path in here), ours),
        there=_side(there.as_posix(), theirs),
        differences=tuple(sorted((d for d in differences if d.only_here or d.only_there), key=_distance)),
        skipped=(*ours.skipped, *theirs.skipped),
        notes=tuple(dict.fromkeys((*ours.notes, *theirs.notes, *_incomparable(ours, theirs)))),
        manifest=to_manifest(ours, rows),
    )


def read_time(text: str) -> int:
    """ns since the epoch: a file's modification time, or a time in ISO form, UTC unless it says otherwise.

    Raises RequestError where it is neither.
    """
    if text:  # an empty path would be the working directory
        with suppress(OSError, ValueError):
            return Path(text).stat().st_mtime_ns
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise RequestError(
            f"--since {text}: no such file, and no time; write 2026-01-31T12:00 (UTC), or name a file whose time counts"
        ) from None
    zoned = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return round(zoned.timestamp() * 1_000_000) * (NANOSECONDS // 1_000_000)


def _read(paths: Sequence[Path]) -> Reading:
    for path in paths:
        if not path.exists():
            raise RequestError(f"{path}: no such file or directory; jitaudit doctor says where the caches are")
    directories = [path for path in paths if path.is_dir()]
    if directories and len(directories) < len(paths):
        raise RequestError(f"{directories[0]}: a directory among logs; scan caches and logs apart")
    return read_caches(paths) if directories else read_logs(paths)


def _narrowed(readings: Sequence[Reading], target: str | None, kernels: Sequence[str]) -> list[Reading]:
    """The readings with only what is wanted. Raises RequestError where nothing in any of them is."""
    aimed = [_aimed(reading, target) for reading in readings]
    if target and _some(readings) and not _some(aimed):
        there = ", ".join(sorted({s.target for reading in readings for s in reading.sightings}))
        raise RequestError(f"--target {target}: no entry is for it; there are {there}")
    wanted = [
        msgspec.structs.replace(
            reading,
            sightings=tuple(
                s for s in reading.sightings if not kernels or any(_matches(s.kernel, glob) for glob in kernels)
            ),
        )
        for reading in aimed
    ]
    if _some(aimed) and not _some(wanted):
        raise RequestError(f"--kernel {' '.join(kernels)}: no kernel matches; scan without it lists them")
    return wanted


def _aimed(reading: Reading, target: str | None) -> Reading:
    """What is for the target. A log names none: there the caller knows better."""
    if target is None:
        return reading
    if reading.origin == "log":
        sightings = tuple(msgspec.structs.replace(s, target=target) for s in reading.sightings)
    else:
        sightings = tuple(s for s in reading.sightings if s.target == target)
    return msgspec.structs.replace(reading, sightings=sightings)


def _some(readings: Sequence[Reading]) -> bool:
    return any(reading.sightings for reading in readings)


def _matches(kernel: str, glob: str) -> bool:
    return fnmatchcase(kernel, glob) or fnmatchcase(kernel.rpartition(":")[2], glob)


def _cost(row: Row) -> tuple[float, int, int, str, str, str]:
    return -row.seconds, -row.entries, -row.bytes, row.kernel, row.target, row.triton


def _lives(sightings: Sequence[Sighting]) -> dict[tuple[str, str], Life]:
    """How long each build has been writing: what an older one left behind stretches no other's life."""
    return {build: life(group) for build, group in _by_build(sightings).items()}


def _by_build(sightings: Sequence[Sighting]) -> dict[tuple[str, str], list[Sighting]]:
    groups: dict[tuple[str, str], list[Sighting]] = {}
    for sighting in sightings:
        groups.setdefault((sighting.target, sighting.triton), []).append(sighting)
    return groups


def _builds(sightings: Sequence[Sighting]) -> tuple[Build, ...]:
    builds = [
        Build(target, triton, len({s.kernel for s in group}), len(group), sum(s.bytes for s in group))
        for (target, triton), group in _by_build(sightings).items()
    ]
    return tuple(sorted(builds, key=lambda build: (-build.entries, build.target, build.triton)))


def _undated(reading: Reading, moment: int | None) -> list[str]:
    undated = sum(sighting.written is None for sighting in reading.sightings)
    return [f"{undated:,} lines without a time count as early"] if undated and moment is not None else []


def _by_kernel(sightings: Sequence[Sighting]) -> dict[str, list[Sighting]]:
    groups: dict[str, list[Sighting]] = {}
    for sighting in sightings:
        groups.setdefault(sighting.kernel, []).append(sighting)
    return groups


def _difference(kernel: str, here: Sequence[Sighting], there: Sequence[Sighting]) -> Difference:
    ours, theirs = ({sighting.identity: sighting for sighting in side} for side in (here, there))
    return Difference(
        kernel=kernel,
        here=len(ours),
        there=len(theirs),
        shared=len(ours.keys() & theirs.keys()),
        only_here=_alone(kernel, ours, theirs),
        only_there=_alone(kernel, theirs, ours),
    )


def _alone(kernel: str, side: dict[str, Sighting], other: dict[str, Sighting]) -> Row | None:
    own = [sighting for identity, sighting in sorted(side.items()) if identity not in other]
    if not own:
        return None
    joined = [", ".join(sorted({getattr(sighting, name) for sighting in own})) for name in ("target", "triton")]
    return tally((kernel, joined[0], joined[1]), own, list(other.values()), None)


def _distance(difference: Difference) -> tuple[int, str]:
    alone = (row.entries for row in (difference.only_here, difference.only_there) if row)
    return -sum(alone), difference.kernel


def _side(path: str, reading: Reading) -> Side:
    return Side(path, len(reading.sightings), len({sighting.kernel for sighting in reading.sightings}))


def _incomparable(ours: Reading, theirs: Reading) -> list[str]:
    builds = [{(s.target, s.triton) for s in reading.sightings} for reading in (ours, theirs)]
    if ours.origin == "log" or builds[0] & builds[1] or not (builds[0] and builds[1]):
        return []
    return ["the two sides share no target and Triton build, so no entry of one can be one of the other"]
