"""Try remedies for real: run the sweeps again, bind every launch anew under each set of remedies, and compile."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from jitaudit.errors import SetupError
from jitaudit.jit import identity
from jitaudit.jit.capture import Capture, SeenVariant, capturing, capturing_on_gpu, require_triton
from jitaudit.jit.compiling import CompileFailed, compile_variant
from jitaudit.jit.measuring import Run, measured, real_run
from jitaudit.jit.remedying import BucketedCache, Pair, Treated, Trial, Trials
from jitaudit.jit.settling import zeroed
from jitaudit.jit.timing import require_gpu
from jitaudit.model import AxisValue, Code, Remedy, Timing
from jitaudit.sweeping.axes import Sweep
from jitaudit.sweeping.forking import KeptFolder, in_fork
from jitaudit.sweeping.hosts import read_host_values
from jitaudit.sweeping.one_sweep import Part, SweepRunner
from jitaudit.sweeping.process import Progress, ask, serve
from jitaudit.sweeping.running import Narrowing
from jitaudit.sweeping.stubs import install_stubs
from jitaudit.sweeping.targets import Loaded, Target, load


class Stage(msgspec.Struct, frozen=True):
    """A set of remedies, and how many of the variants that are left to compile."""

    remedies: tuple[Remedy, ...]
    compiles: int


class Attempt(msgspec.Struct, frozen=True):
    """What to try on one kernel and group: several sets of remedies, each from scratch."""

    kernel: str
    group: str | None
    stages: tuple[Stage, ...]
    buckets: tuple[str, ...] = ()
    """Arguments of the autotuner's key to round up, each alone; the keys of the outcome are tuning keys."""


class Compared(msgspec.Struct, frozen=True):
    """The binaries of one launch before and after."""

    key: str
    """Before."""
    before: Code
    after: Code
    timing: tuple[Timing, Timing] | None = None
    """Before and after, where a GPU launched both."""


class Outcome(msgspec.Struct, frozen=True):
    """What a set of remedies came to in one part of a sweep."""

    kernel: str
    group: str | None
    remedies: tuple[Remedy, ...]
    keys: frozenset[str]
    """Of the variants that were reached."""
    failure: str | None
    """What the compiler said; None where everything that was tried compiles."""
    compared: tuple[Compared, ...]


class Tried(msgspec.Struct, frozen=True):
    """All outcomes of one target."""

    outcomes: tuple[Outcome, ...]


class Trying(msgspec.Struct, frozen=True):
    """What the child process is asked."""

    target: Target
    architecture: str
    narrowing: Narrowing
    attempts: tuple[Attempt, ...]
    sweeps: dict[str, dict[str, tuple[AxisValue, ...]]] | None = None
    """Only these sweeps, over these axes; None: all, as narrowed."""
    gpu: bool = False
    """Launch what is compiled on the GPU that is here, and time it."""


def try_remedies(request: Trying, progress: Progress) -> tuple[Outcome, ...]:
    """Try them in a process of the target's own. Raises RequestError and SetupError as `run` does."""
    return ask("jitaudit.sweeping.trying", request, Tried, request.target.text, progress).outcomes


def main(progress: int, private: str) -> None:
    """Answer the request that stands on standard input."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # a fork has no other thread: torch must not wait for one
    serve(_try, Trying, progress, private)


class _TriedPart(msgspec.Struct, frozen=True):
    part: Part
    outcomes: tuple[Outcome, ...]


def _try(request: Trying, progress: Progress) -> Tried:
    narrowing = request.narrowing
    install_stubs(narrowing.stubs)
    outcomes: list[Outcome] = []
    if request.gpu:
        require_triton()
        require_gpu()
    run = real_run() if request.gpu else None
    with _world(request) as capture:
        loaded = load(request.target)
        home = KeptFolder(Path.home())

        def tried(work: Callable[[], Part]) -> Part:
            if run is not None:  # CUDA does not survive a fork
                answer = _part(work, request, loaded, capture, run)
            else:
                answer = in_fork(lambda: _part(work, request, loaded, capture), _TriedPart, request.target.text)
            home.put_back()
            outcomes.extend(answer.outcomes)
            for bucket in sorted({bucket for attempt in request.attempts for bucket in attempt.buckets}):
                bucketed = in_fork(lambda: _bucketed(work, bucket, request, capture), Tried, request.target.text)  # noqa: B023
                home.put_back()
                outcomes.extend(bucketed.outcomes)
            return answer.part

        for name, sweep in _sweeps(loaded, request):
            SweepRunner(
                name,
                sweep,
                loaded,
                capture,
                read_host_values(narrowing.host_values),
                compiles=False,
                isolated=tried,
                progress=progress,
            ).run(orders=False)
    return Tried(tuple(outcomes))


@contextmanager
def _world(request: Trying) -> Iterator[Capture]:
    if not request.gpu:
        with capturing(request.architecture) as capture:
            yield capture
        return
    with capturing_on_gpu() as capture, zeroed():
        if capture.target != request.architecture:
            raise SetupError(
                f"--gpu: the GPU here is {capture.target}, what is explained is for {request.architecture}"
            )
        yield capture


def _sweeps(loaded: Loaded, request: Trying) -> Iterator[tuple[str, Sweep]]:
    for name, sweep in loaded.sweeps.items():
        if request.sweeps is None:
            yield name, sweep.with_axes(request.narrowing.axes, request.narrowing.groups)
        elif name in request.sweeps:
            yield name, sweep.as_recorded(request.sweeps[name])


def _part(
    work: Callable[[], Part], request: Trying, loaded: Loaded, capture: Capture, run: Run | None = None
) -> _TriedPart:
    attempts: dict[str, list[Attempt]] = {}
    for attempt in request.attempts:
        attempts.setdefault(attempt.kernel, []).append(attempt)

    def named(function: Any) -> str:
        return identity.kernel_id(function, loaded.root, loaded.files)

    def stages_of(function: Any) -> Sequence[tuple[Remedy, ...]]:
        """Which group a launch belongs to shows only afterwards: what any of them tries."""
        of_any = (stage for attempt in attempts.get(named(function), ()) for stage in attempt.stages)
        return tuple(dict.fromkeys(stage.remedies for stage in of_any))

    trials = Trials(capture, stages_of)
    with trials.following():
        part = work()
    groups = {kernel.id: kernel.group for kernel in part.kernels}
    outcomes = [
        outcome
        for function, trial in trials.kernels.items()
        for attempt in attempts[named(function)]
        if named(function) in groups and attempt.group == groups[named(function)]
        for outcome in _outcomes(attempt, trial, _Compiler(request.architecture, run))
    ]
    return _TriedPart(part, tuple(outcomes))


def _bucketed(work: Callable[[], Part], bucket: str, request: Trying, capture: Capture) -> Tried:
    """The tuning keys of every kernel whose attempt rounds up this argument."""
    capture.tuners.new_cache = lambda tuner: BucketedCache(
        at for at, name in enumerate(tuner.keys) if str(name) == bucket
    )
    wanted = {(attempt.kernel, attempt.group) for attempt in request.attempts if bucket in attempt.buckets}
    return Tried(
        tuple(
            Outcome(
                kernel.id,
                kernel.group,
                (Remedy("bucket", bucket),),
                frozenset(", ".join(key.key) for key in kernel.autotuner.tuning_keys),
                None,
                (),
            )
            for kernel in work().kernels
            if (kernel.id, kernel.group) in wanted and kernel.autotuner
        )
    )


def _outcomes(attempt: Attempt, trial: Trial, compiler: _Compiler) -> Iterator[Outcome]:
    compiles = {stage.remedies: stage.compiles for stage in attempt.stages}
    for stage, pairs in zip(trial.stages, trial.pairs, strict=True):
        if stage.remedies not in compiles or not (stage.variants or stage.failure):
            continue
        telling = _telling(stage.remedies, pairs.values())[: compiles[stage.remedies]]
        failure, compared = compiler.compare(trial.untreated, stage, telling)
        failure = stage.failure or failure
        yield Outcome(
            attempt.kernel, attempt.group, stage.remedies, frozenset(stage.variants), failure, tuple(compared)
        )


def _telling(remedies: Sequence[Remedy], pairs: Iterable[Pair]) -> list[Pair]:
    """For each variant after, the launch that has most to lose: the most specialised one, with the largest numbers.

    Where a block gets a floor that is the launch with the smallest block.
    """
    floored = [remedy.argument for remedy in remedies if remedy.kind == "floor"]
    chosen: dict[str, Pair] = {}
    for pair in sorted(pairs, key=lambda pair: _telltale(pair.before, floored), reverse=True):
        chosen.setdefault(pair.after.key.text, pair)
    return list(chosen.values())


def _telltale(variant: SeenVariant, floored: Sequence[str]) -> tuple[int, int, int, str]:
    arguments, _, _ = variant.launch
    texts = variant.key.arguments.values()
    blocks = sum(value for name in floored if type(value := arguments.get(name)) is int)
    specialised = sum(text.endswith(("%16", " aligned", " aligned <2GB")) for text in texts)
    return (
        -blocks,
        specialised,
        sum(v for v in arguments.values() if type(v) is int),
        variant.key.text,
    )


class _Compiler:
    """Compiles variants of one kernel, each once; with `run` it launches and times them too."""

    def __init__(self, architecture: str, run: Run | None) -> None:
        self._architecture, self._run = architecture, run
        self._compiled: dict[int, Code | CompileFailed] = {}

    def compare(self, before: Treated, after: Treated, pairs: Iterable[Pair]) -> tuple[str | None, list[Compared]]:
        """The first failure among the variants after, and the binaries of those pairs that compile."""
        failure, compared = None, []
        for pair in pairs:
            new = self._code(after.function, pair.after)
            if isinstance(new, CompileFailed):
                failure = failure or new.message
                continue
            old = self._code(before.function, pair.before)
            if isinstance(old, Code):
                compared.append(Compared(pair.before.key.text, old, new, self._timing(before, after, pair)))
        return failure, compared

    def _timing(self, before: Treated, after: Treated, pair: Pair) -> tuple[Timing, Timing] | None:
        if self._run is None:
            return None
        return (
            measured(self._run, before.function, pair.before.launch[0], pair.launch),
            measured(self._run, after.function, pair.after.launch[0], pair.launch),
        )

    def _code(self, function: Any, variant: SeenVariant) -> Code | CompileFailed:
        if id(variant) not in self._compiled:
            result = compile_variant(function, variant, self._architecture)
            if not isinstance(result, CompileFailed):
                assert result.code is not None
                self._compiled[id(variant)] = result.code
            else:
                self._compiled[id(variant)] = result
        return self._compiled[id(variant)]
