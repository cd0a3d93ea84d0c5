"""Where a launch's time goes: each kind of stall timed apart, in seconds of wall clock.

Compiles, disk reads, host builds, module loads and benchmark runs are timed around Triton's own functions, exclusively:
a host build inside a module load counts as the build alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from jitaudit.errors import SetupError
from jitaudit.jit.patching import patched

Kind = Literal["compile", "host build", "benchmark", "disk read", "module load"]

_OF_A_VARIANT = ("compile", "disk read", "module load")


@dataclass(frozen=True, slots=True)
class Missed:
    """A launch whose variant was not in the process: what Triton's binder and the backend said of it."""

    function: Any
    specialization: list[tuple[Any, Any]]
    options: Any


@dataclass(slots=True)
class Stall:
    """One wait: what for, for which kernel, since when, and for how long without what it contains."""

    kind: Kind
    kernel: str
    start: float
    seconds: float = 0.0
    stages: dict[str, float] = field(default_factory=dict)
    """Of a compile: its seconds by stage."""
    missed: Missed | None = None
    """Of a compile, a disk read and a module load: the launch that waited."""


class Stopwatch:
    """Collects the stalls of the case that is running."""

    def __init__(self) -> None:
        self.stalls: list[Stall] = []
        self.missed: Missed | None = None
        """The last launch whose variant was not in the process."""
        self._running: list[tuple[Stall, list[float]]] = []

    @contextmanager
    def timing(self, kind: Kind, kernel: str) -> Iterator[Stall]:
        """Time a block as one stall; what it contains of other stalls is theirs."""
        missed = self.missed
        named = kind in _OF_A_VARIANT and missed is not None and missed.function.__name__ == kernel
        stall, inner = Stall(kind, kernel, time.perf_counter(), missed=missed if named else None), [0.0]
        self._running.append((stall, inner))
        try:
            yield stall
        finally:
            self._running.pop()
            elapsed = time.perf_counter() - stall.start
            stall.seconds = elapsed - inner[0]
            if self._running:
                self._running[-1][1][0] += elapsed
            self.stalls.append(stall)

    def take(self) -> list[Stall]:
        """The stalls since the last call."""
        taken, self.stalls = self.stalls, []
        return taken


def require_gpu() -> str:
    """The name of the GPU that is here. Raises SetupError where torch sees none."""
    import torch

    if not torch.cuda.is_available():
        raise SetupError("--gpu: torch sees no GPU here; leave it out to do what needs none")
    return torch.cuda.get_device_name()


def hash_installation() -> None:
    """Have Triton hash its own installation, as the first compile or look-up of a process does."""
    from triton.runtime.cache import triton_key

    triton_key()


def synchronize() -> None:
    """Wait for the GPU."""
    import torch

    torch.cuda.synchronize()


def peak_device_bytes() -> int:
    """The most device memory that torch has held since `forget_peak`, in bytes."""
    import torch

    return torch.cuda.max_memory_allocated()


def forget_peak() -> None:
    """Count peak device memory from here."""
    import torch

    torch.cuda.reset_peak_memory_stats()


@contextmanager
def timing_triton(watch: Stopwatch) -> Iterator[None]:
    """Time every stall of the real launches inside the block. Triton's hooks stay free for others."""
    import triton
    from triton import knobs
    from triton.compiler.compiler import CompiledKernel
    from triton.runtime import build
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.jit import JITFunction

    compile, load, build_host, bench, pack = (
        triton.compiler.compile, CompiledKernel._init_handles, build._build, Autotuner._bench, JITFunction._pack_args,
    )  # fmt: skip

    def noted_pack(
        function: Any, backend: Any, kwargs: Any, bound: Any, specialization: Any, *args: Any, **more: Any
    ) -> Any:
        """Triton calls it for a launch whose kernel it does not find in the process, and for no other."""
        packed = pack(function, backend, kwargs, bound, specialization, *args, **more)
        watch.missed = Missed(function, list(specialization), packed[0])
        return packed

    def timed_compile(source: Any, *args: Any, **kwargs: Any) -> Any:
        with watch.timing("compile", source.name) as stall:
            listener = _classify(stall, knobs.compilation.listener)
            with patched([(knobs.compilation, "listener", listener)]):
                return compile(source, *args, **kwargs)

    def timed_load(kernel: Any) -> Any:
        if kernel.module is not None:
            return load(kernel)
        with watch.timing("module load", kernel.name):
            return load(kernel)

    def timed_build(name: str, *args: Any, **kwargs: Any) -> Any:
        with watch.timing("host build", name):
            return build_host(name, *args, **kwargs)

    def timed_bench(tuner: Any, *args: Any, **kwargs: Any) -> Any:
        with watch.timing("benchmark", tuner.base_fn.__name__):
            return bench(tuner, *args, **kwargs)

    with patched(
        [
            (triton, "compile", timed_compile),
            (triton.compiler, "compile", timed_compile),
            (CompiledKernel, "_init_handles", timed_load),
            (build, "_build", timed_build),
            (Autotuner, "_bench", timed_bench),
            (JITFunction, "_pack_args", noted_pack),
        ]
    ):
        yield


def _classify(stall: Stall, previous: Callable[..., Any] | None) -> Callable[..., None]:
    """A compilation listener that tells a disk hit from a compile, after the listener that was there."""

    def listen(**event: Any) -> None:
        if previous is not None:
            previous(**event)
        if event["cache_hit"]:
            stall.kind = "disk read"
            return
        stall.stages.update(stage_seconds(event["times"]))

    return listen


def stage_seconds(times: Any) -> dict[str, float]:
    """Triton's `CompileTimes` as seconds by stage."""
    stages = (("ir", times.ir_initialization), *times.lowering_stages, ("store", times.store_results))
    return {stage: microseconds / 1e6 for stage, microseconds in stages}
