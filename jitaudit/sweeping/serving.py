"""Take a sweep's cases in serving order, in a fresh process, and time each: what stood still, for what, for how long.

With a GPU the launches are real; before them every case runs twice with its Triton launches left out, so that the first
use of torch itself (its lazily loaded kernels, its allocator) is timed apart. Without one they are captured, and each
new variant is really compiled at the case that reaches it: a case's seconds are then those of its compiles alone. What
a process pays once whatever it compiles, hashing the Triton installation, is paid before.
"""

from __future__ import annotations

import importlib
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import msgspec

from jitaudit.errors import RequestError
from jitaudit.jit.capture import SeenVariant, capturing
from jitaudit.jit.compiling import CompileFailed, compile_variant
from jitaudit.jit.rebuild import Rebuilder
from jitaudit.jit.settling import without_launches, zeroed
from jitaudit.jit.timing import (
    Kind,
    Missed,
    Stall,
    Stopwatch,
    forget_peak,
    hash_installation,
    peak_device_bytes,
    require_gpu,
    synchronize,
    timing_triton,
)
from jitaudit.model import Manifest, VariantKey
from jitaudit.sweeping.axes import axis_text, group_name
from jitaudit.sweeping.process import Progress, ask, serve
from jitaudit.sweeping.targets import Loaded, Target, load


class Trace(msgspec.Struct, frozen=True):
    """The order in which traffic moves one axis."""

    axis: str
    values: tuple[int, ...]


class Serving(msgspec.Struct, frozen=True):
    """One pass: which cases, in which order, on what."""

    target: Target
    architecture: str
    group: str | None
    axes: dict[str, str] = {}
    trace: Trace | None = None
    """None: the sweep's own order."""
    gpu: bool = False
    warm: Manifest | None = None
    """Warm these variants in the process before the first case."""
    cache_directory: str | None = None
    """Triton's cache directory for the pass; None: an empty one."""


class Wait(msgspec.Struct, frozen=True):
    """One stall: its seconds without what it contains, since the start of the pass."""

    kind: Kind
    kernel: str
    start: float
    seconds: float
    stages: dict[str, float] = {}
    key: VariantKey | None = None
    """Of a compile, a disk read and a module load: the variant that the launch waited for."""


class Step(msgspec.Struct, frozen=True):
    """One case as it was served."""

    case: str
    start: float
    seconds: float
    waits: tuple[Wait, ...]
    error: str | None = None


class Served(msgspec.Struct, frozen=True):
    """A pass: its cases for the first time, and the same cases again."""

    first: tuple[Step, ...]
    again: tuple[Step, ...]
    device: str
    variants: int
    host_bytes: int
    device_bytes: int | None
    partial: bool
    """Whether it was interrupted."""
    torch_seconds: float = 0.0
    """What torch itself took at first use, before the first pass."""


def serve_cases(request: Serving, progress: Progress) -> Served:
    """Run one pass in a process of its own. Raises RequestError and SetupError as `run` does."""
    environment = {"TRITON_CACHE_DIR": request.cache_directory} if request.cache_directory else {}
    return ask("jitaudit.sweeping.serving", request, Served, request.target.text, progress, environment)


def main(progress: int, private: str) -> None:
    """Answer the request that stands on standard input."""
    serve(_serve, Serving, progress, private)


def _serve(request: Serving, progress: Progress) -> Served:
    watch = Stopwatch()
    with (_really if request.gpu else _offline)(request, watch) as finish:
        loaded = load(request.target)
        cases = list(_cases(loaded, request))
        if not cases:
            raise RequestError(f"{request.target.text}: no case has group {request.group}")
        torch_seconds = _use_torch(cases) if request.gpu else 0.0
        if request.warm is not None and request.gpu:
            _warm_this_process(request.warm)
        watch.take()
        passes: list[list[_Timed]] = [[], []]
        partial = False
        try:
            for steps in passes:
                begun = time.perf_counter()
                for number, (text, call) in enumerate(cases):
                    steps.append(_step(text, call, finish, watch, begun, request.gpu))
                    progress(request.group or request.target.text, number + 1, len(cases))
        except KeyboardInterrupt:
            partial = True
        first, again = (tuple(_steps(timed)) for timed in passes)
    return Served(
        first=first,
        again=again,
        device=require_gpu() if request.gpu else request.architecture,
        variants=len({(w.kernel, w.start) for step in first for w in step.waits if w.kind == "compile"}),
        host_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        device_bytes=peak_device_bytes() if request.gpu else None,
        partial=partial,
        torch_seconds=torch_seconds,
    )


def _use_torch(cases: Sequence[tuple[str, Callable[[], object]]]) -> float:
    """Run the cases twice without Triton; return the seconds that the first time took longer."""
    seconds = []
    for _ in range(2):
        begun = time.perf_counter()
        with without_launches():
            for _, call in cases:
                with suppress(Exception):  # what a launch would have made is missing; the pass itself tells of errors
                    call()
        with suppress(RuntimeError):
            synchronize()
        seconds.append(time.perf_counter() - begun)
    forget_peak()
    return max(seconds[0] - seconds[1], 0.0)


def _warm_this_process(manifest: Manifest) -> None:
    """What a server calls, by its public name: this process stands for one."""
    importlib.import_module("jitaudit").warm(manifest)


def _cases(loaded: Loaded, request: Serving) -> Iterator[tuple[str, Callable[[], object]]]:
    """Each case of the pass in order: its text, and the call that serves it."""
    for sweep in loaded.sweeps.values():
        narrowed = sweep.with_axes(request.axes)
        cases = [
            case
            for _, case in narrowed.cases()
            if request.group is None or not sweep.compare or group_name(case[sweep.compare]) == request.group
        ]
        if request.trace is not None and request.trace.axis in sweep.axes:
            axis = request.trace.axis
            cases = [case for value in request.trace.values for case in cases if case[axis] == value]
        for case in cases:
            text = ", ".join(f"{name}={axis_text(value)}" for name, value in case.items() if name != sweep.compare)
            yield text, lambda sweep=narrowed, case=case: sweep(**case)  # type: ignore[misc]


def _step(
    text: str, call: Callable[[], object], finish: Callable[[], None], watch: Stopwatch, begun: float, gpu: bool
) -> _Timed:
    start, error = time.perf_counter(), None
    try:
        call()
        finish()
    except Exception as raised:
        error = f"{type(raised).__name__}: {str(raised).strip().partition(chr(10))[0]}"
    seconds = time.perf_counter() - start
    stalls = watch.take()
    for stall in stalls:
        stall.start -= begun
    if not gpu:
        stalls = [stall for stall in stalls if stall.kind == "compile"]
        seconds = sum(stall.seconds for stall in stalls)
    return _Timed(text, start - begun, seconds, stalls, error)


class _Timed(NamedTuple):
    """A case as it was timed: what its stalls were for is told when all is over."""

    case: str
    start: float
    seconds: float
    stalls: list[Stall]
    error: str | None


def _steps(timed: list[_Timed]) -> Iterator[Step]:
    rebuilders: dict[Any, Rebuilder] = {}

    def key(missed: Missed | None) -> VariantKey | None:
        if missed is None:
            return None
        rebuilder = rebuilders.get(missed.function) or rebuilders.setdefault(
            missed.function, Rebuilder(missed.function)
        )
        return rebuilder.key_of(missed.specialization, missed.options)

    for one in timed:
        waits = tuple(Wait(s.kind, s.kernel, s.start, s.seconds, s.stages, key(s.missed)) for s in one.stalls)
        yield Step(one.case, one.start, one.seconds, waits, one.error)


@contextmanager
def _really(request: Serving, watch: Stopwatch) -> Iterator[Callable[[], None]]:
    require_gpu()
    with timing_triton(watch), zeroed():
        yield synchronize


@contextmanager
def _offline(request: Serving, watch: Stopwatch) -> Iterator[Callable[[], None]]:
    """Capture, and compile each variant that a case is the first to reach."""
    with capturing(request.architecture) as capture, timing_triton(watch):
        hash_installation()
        done: set[int] = set()

        def finish() -> None:
            capture.end()
            capture.begin(0)
            for function, kernel in list(capture.seen.items()):
                for variant in kernel.variants.values():
                    if id(variant) not in done:
                        done.add(id(variant))
                        _compile(function, variant, request.architecture)

        yield finish


def _compile(function: Any, variant: SeenVariant, architecture: str) -> None:
    result = compile_variant(function, variant, architecture)
    if isinstance(result, CompileFailed):
        raise RuntimeError(result.message)
