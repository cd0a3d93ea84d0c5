"""Launch kernels for real on the GPU that is here, over and over, and take medians."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

from jitaudit.jit.capture import run_options
from jitaudit.jit.remedying import Launch
from jitaudit.jit.timing import synchronize
from jitaudit.model import Timing

HOST_LAUNCHES = 200
"""Launches whose time on the host is taken, in batches that a GPU's queue holds."""
_BATCH = 50

Run = Callable[..., Any]
"""Triton's own `JITFunction.run`."""


def real_run() -> Run:
    """Triton's own `JITFunction.run`; ask before a capture stands in for it."""
    from triton.runtime.jit import JITFunction

    run: Run = JITFunction.run
    return run


def measured(run: Run, function: Any, arguments: dict[str, Any], launch: Launch) -> Timing:
    """Median µs of one launch, on the GPU (its L2 cache flushed) and on the host until the call returns."""
    from triton.testing import do_bench

    ours = run_options()
    options = {name: value for name, value in launch.options.items() if name not in ours}

    def call() -> None:
        run(function, grid=launch.grid, warmup=False, **arguments, **options)

    call()
    synchronize()
    gpu = do_bench(call, return_mode="median") * 1e3
    return Timing(gpu=gpu, host=statistics.median(_host_times(call)))


def _host_times(call: Callable[[], None]) -> Iterator[float]:
    for at in range(HOST_LAUNCHES):
        if at % _BATCH == 0:
            synchronize()
        start = time.perf_counter_ns()
        call()
        yield (time.perf_counter_ns() - start) / 1e3
    synchronize()
