"""The first passes of `jitaudit stall` as Chrome/Perfetto trace events."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from jitaudit.report.stall import cause_words
from jitaudit.stalling import KINDS, Pass, Stalls, waits_in_order

_TRACKS = ("case", *KINDS[:-1])


def trace(stalls: Stalls) -> bytes:
    """JSON: a process a pass, a track a kind of stall; a wait's arguments are its kernel, variant and cause."""
    events = [event for number, one in enumerate(stalls.passes, 1) for event in _events(number, one)]
    return msgspec.json.encode({"traceEvents": events, "displayTimeUnit": "ms"})


def _events(process: int, one: Pass) -> Iterator[dict[str, object]]:
    yield {"ph": "M", "name": "process_name", "pid": process, "args": {"name": one.name}}
    for track, kind in enumerate(_TRACKS):
        yield _event("M", process, track, {"name": "thread_name", "args": {"name": kind}})
        yield _event("M", process, track, {"name": "thread_sort_index", "args": {"sort_index": track}})
    for step in one.steps:
        yield _event("X", process, 0, {"name": step.case, "args": {}} | _times(step.start, step.seconds))
    for case, wait, nearest in waits_in_order(one):
        arguments: dict[str, object] = {"kernel": wait.kernel, "case": case, "cause": cause_words(wait, nearest)}
        if wait.key is not None:
            arguments["variant"] = wait.key.text
        told = {"name": wait.kernel, "args": arguments | wait.stages} | _times(wait.start, wait.seconds)
        yield _event("X", process, _TRACKS.index(wait.kind), told)


def _event(phase: str, process: int, track: int, more: dict[str, object]) -> dict[str, object]:
    """Perfetto takes a thread by its number whatever its process, 0 and the process's own for special ones."""
    return {"ph": phase, "cat": "stall", "pid": process, "tid": process * 100 + track, **more}


def _times(start: float, seconds: float) -> dict[str, object]:
    return {"ts": round(start * 1e6, 1), "dur": round(seconds * 1e6, 1)}
