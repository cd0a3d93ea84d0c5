"""Compile what is missing, in parallel, each variant by one writer."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from jitaudit.jit.compiling import last_word
from jitaudit.jit.publishing import compile_into_cache, group_path
from jitaudit.jit.rebuild import Rebuilt
from jitaudit.planning import Planned
from jitaudit.sweeping.process import Progress
from jitaudit.warming.nouns import Settings
from jitaudit.warming.pool import Outcome, outcomes
from jitaudit.warming.queue import Queue

_HOPELESS = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM}
"""What the file system says when the next variant would fail like this one."""
_DIAGNOSTICS_LIMIT = 16 << 10
"""Bytes of a compiler's diagnostics that are read."""


@dataclass
class Compiled:
    """What became of the variants, by disk hash."""

    files: dict[str, dict[str, str]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    left: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    cpu_seconds: float = 0.0
    stopped: str | None = None
    """Why the cache directory can't be used any longer."""


def compile_all(
    variants: Sequence[Planned],
    rebuilt: Mapping[str, Rebuilt],
    target: str,
    directory: Path,
    staging: Path,
    settings: Settings,
    progress: Progress,
) -> Compiled:
    """Compile each variant into `directory`. What vanishes from there meanwhile is compiled once more."""
    done = Compiled()
    began = time.monotonic()
    try:
        _compile_once(variants, rebuilt, target, directory, staging, settings, progress, done)
    except KeyboardInterrupt:
        done.stopped = "interrupted"
    vanished = [v for v in variants if v.hash in done.files and not group_path(directory, rebuilt[v.hash]).exists()]
    if vanished and not done.stopped:
        for variant in vanished:
            del done.files[variant.hash]
        rest = None if settings.budget is None else settings.budget - (time.monotonic() - began)
        settings_left = msgspec.structs.replace(settings, budget=rest)
        _compile_once(vanished, rebuilt, target, directory, staging, settings_left, progress, done)
    why = done.stopped or f"the budget of {settings.budget or 0:g} s was spent"
    for variant in variants:
        if variant.hash not in done.files and variant.hash not in done.failures:
            done.left[variant.hash] = why
    return done


def _compile_once(
    variants: Sequence[Planned],
    rebuilt: Mapping[str, Rebuilt],
    target: str,
    directory: Path,
    staging: Path,
    settings: Settings,
    progress: Progress,
    done: Compiled,
) -> None:
    queue = Queue(variants, settings.budget)
    compiler = _Compiler([rebuilt[variant.hash] for variant in variants], target, directory, staging)
    retried: set[int] = set()
    ended = 0
    for outcome in outcomes(compiler, queue.next, settings.jobs, settings.timeout):
        variant = variants[outcome.task]
        queue.took(outcome.task, outcome.seconds)
        if outcome.errno is not None and outcome.task not in retried:
            retried.add(outcome.task)
            queue.retry(outcome.task)
            continue
        done.seconds[variant.hash] = outcome.seconds
        done.cpu_seconds += outcome.cpu_seconds
        if outcome.failure is None:
            done.files[variant.hash] = outcome.files
        elif outcome.errno in _HOPELESS:
            done.stopped = outcome.failure
            queue.close()
        else:
            done.failures[variant.hash] = outcome.failure
        ended += 1
        progress("compiling", ended, len(variants))


class _Compiler:
    """The work of one worker: compile a variant, by its number."""

    def __init__(self, variants: Sequence[Rebuilt], target: str, directory: Path, staging: Path) -> None:
        self._variants = variants
        self._target = target
        self._directory = directory
        self._staging = staging
        self._diagnostics: int | None = None

    def __call__(self, number: int) -> Outcome:
        if self._diagnostics is None:
            self._diagnostics = _silence()
        os.ftruncate(self._diagnostics, 0)
        began, cpu_before = time.monotonic(), _cpu_seconds()
        files, failure, code = {}, None, None
        try:
            files = compile_into_cache(self._variants[number], self._target, self._staging)
        except OSError as error:
            where = f": {error.filename}" if error.filename else ""
            failure = f"{type(error).__name__}: {error.strerror or error}{where}"
            if error.filename is None or Path(error.filename).is_relative_to(self._directory):  # no missing assembler
                code = error.errno
        except Exception as error:  # a compiler may raise anything; its message is what is reported
            failure = last_word(error, os.pread(self._diagnostics, _DIAGNOSTICS_LIMIT, 0).decode(errors="replace"))
        return Outcome(number, time.monotonic() - began, _cpu_seconds() - cpu_before, files, failure, code)


def _cpu_seconds() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _silence() -> int:
    """Send what this process prints nowhere; its diagnostics to a file in memory, which is returned."""
    diagnostics = os.memfd_create("diagnostics", os.MFD_CLOEXEC)
    null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    os.dup2(null, 1)
    os.dup2(os.open(f"/proc/self/fd/{diagnostics}", os.O_WRONLY | os.O_APPEND), 2)
    os.close(null)
    return diagnostics
