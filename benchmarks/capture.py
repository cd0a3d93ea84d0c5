"""What a capture costs: `python -m benchmarks.capture` (`make bench`), with no GPU.

Four figures, each a median, with the goal beside it:

- a captured launch of a kernel whose tensors are there, against Triton's own binder and `compute_cache_key` on the same
  arguments, the two timed in turn in one run;
- a launch of the shipped kernels all in: their launchers' checks, allocations and launches, over the default axes;
- `jitaudit probe` with its defaults: seconds by the clock and of CPU, and the peak memory of its largest process;
- `jitaudit --help`.

The first two are CPU time, so that they hold on a machine with other work.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
from triton.runtime.jit import compute_cache_key

from benchmarks.conditions import conditions
from jitaudit.jit.capture import Capture, capturing
from jitaudit.sweeping import Sweep
from jitaudit.sweeping.targets import load, read_target

ROUNDS = 15
LAUNCHES = 400
"""In each round, of each of the two that are compared."""

COMMAND = Path(sys.executable).with_name("jitaudit")


class Figure(NamedTuple):
    """One row: what was measured, beside what it is compared with."""

    what: str
    measured: float
    unit: str
    beside: float | None
    """Triton's own, in the same unit."""
    goal: float
    """The most that is meant to be measured; where there is something beside it, the highest ratio."""


def main() -> None:
    """Measure and print the table."""
    for name, value in conditions("benchmarks.capture").items():
        print(f"{name}: {value}")
    figures = [*commands(), *launches(), *sweeps()]
    print(f"\n{'':52}{'median':>10}{'':4}{'Triton':>10}{'ratio':>8}{'goal':>9}")
    for figure in figures:
        print(row(figure))


def row(figure: Figure) -> str:
    """One line of the table."""
    result = figure.measured if figure.beside is None else figure.measured / figure.beside
    beside = "" if figure.beside is None else f"{figure.beside:.2f}"
    ratio, goal = ("", f"{figure.goal:g}") if figure.beside is None else (f"{result:.2f}×", f"{figure.goal:g}×")
    verdict = "met" if result <= figure.goal else "missed"
    return f"{figure.what:52}{figure.measured:>10.3f}{figure.unit:>4}{beside:>10}{ratio:>8}{'≤ ' + goal:>9} {verdict}"


def launches() -> Iterator[Figure]:
    """Kernels of few and of many arguments, on stand-ins that are there already."""
    from jitaudit_kernels.draft_seqlens import draft_seqlens_kernel
    from jitaudit_kernels.dsa_metadata.decode_step import decode_kernel
    from jitaudit_kernels.dsa_metadata.tables import COLUMNS, sweep_tensors

    with capturing("cuda:90") as capture:
        tensors = sweep_tensors(16, 16, 8192, 64, "both", torch.int32)
        rows = [torch.empty(4, 512, dtype=torch.int32, device="cuda") for _ in range(2)]
        yield against_triton(
            "launch: draft_seqlens, 8 arguments",
            capture,
            draft_seqlens_kernel["floored"],
            *(tensors[0], *rows, rows[0].stride(0), rows[1].stride(0), 16, 1),
            BLOCK=64,
        )
        yield against_triton(
            "launch: decode, 19 arguments",
            capture,
            decode_kernel["floored"],
            *(*tensors, 16, 8192, 8192, 8192, 128),
            **{"TOPK": 2048, "K_POOL": 4, "PAGE_SIZE": 64, "BLOCK_BS": 64, "COLUMNS": COLUMNS},
        )


def against_triton(what: str, capture: Capture, kernel: Any, *args: Any, **kwargs: Any) -> Figure:
    """Microseconds of a captured launch, and of Triton's own path to the key of the same launch."""
    _, key_cache, _, _, binder = kernel.device_caches[0]
    options = {"debug": False, "instrumentation_mode": ""}

    def captured() -> None:
        capture.begin(0)
        for _ in range(LAUNCHES):
            kernel[(1,)](*args, **kwargs)
        capture.end()

    def triton() -> None:
        for _ in range(LAUNCHES):
            _, specialization, parsed = binder(*args, **kwargs, **options)
            compute_cache_key(key_cache, specialization, parsed)

    ours, theirs = alternating(captured, triton)
    kernel.device_caches.clear()
    return Figure(what, 1e6 * ours / LAUNCHES, "µs", 1e6 * theirs / LAUNCHES, goal=2.0)


def alternating(one: Callable[[], None], other: Callable[[], None]) -> tuple[float, float]:
    """Median seconds of each, in turn, so that what else the machine does meets both."""
    one(), other()
    pairs = [(seconds(one), seconds(other)) for _ in range(ROUNDS)]
    return statistics.median(a for a, _ in pairs), statistics.median(b for _, b in pairs)


def sweeps() -> Iterator[Figure]:
    """Every shipped sweep over its default axes: milliseconds a launch, and of all of them together."""
    with capturing("cuda:90") as capture:
        swept = load(read_target("jitaudit_kernels")).sweeps
        passes = [{name: one_pass(capture, sweep) for name, sweep in swept.items()} for _ in range(3)]
    for name in swept:
        each = [1e3 * taken / launched for taken, launched in (measured[name] for measured in passes)]
        yield Figure(f"all in: {name.rpartition(':')[2]}", statistics.median(each), "ms", None, goal=0.3)
    totals = [tuple(map(sum, zip(*measured.values(), strict=True))) for measured in passes]
    yield Figure(
        "all in: every sweep", statistics.median(1e3 * taken / launched for taken, launched in totals), "ms", None, 0.3
    )


def one_pass(capture: Capture, sweep: Sweep) -> tuple[float, int]:
    """Seconds for all cases of a sweep, and its launches."""

    def work() -> None:
        for case, (_, values) in enumerate(sweep.cases()):
            capture.begin(case)
            sweep(**values)
            capture.end()

    taken = seconds(work)
    kernels = capture.take().values()
    return taken, sum(variant.launches for kernel in kernels for variant in kernel.variants.values())


def commands() -> Iterator[Figure]:
    """The commands as a user meets them, from an empty folder."""
    probes = [command("probe") for _ in range(3)]
    yield Figure("jitaudit probe", statistics.median(run.seconds for run in probes), "s", None, goal=10.0)
    yield Figure("jitaudit probe: CPU", statistics.median(run.cpu_seconds for run in probes), "s", None, goal=10.0)
    yield Figure("jitaudit probe: largest process", max(run.peak_mib for run in probes), "MiB", None, goal=1024.0)
    helps = [command("--help") for _ in range(9)]
    yield Figure("jitaudit --help", statistics.median(run.seconds for run in helps), "s", None, goal=0.3)
    yield Figure("jitaudit --help: CPU", statistics.median(run.cpu_seconds for run in helps), "s", None, goal=0.3)


class Run(NamedTuple):
    """A command and all that it waited for."""

    seconds: float
    cpu_seconds: float
    """User and system: on a machine with other work, what it would take alone at most."""
    peak_mib: float
    """Of the largest process."""


def command(*arguments: str) -> Run:
    """Run jitaudit in an empty folder. Raises SystemExit where it fails."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        process = subprocess.Popen(
            [COMMAND, *arguments], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        _, status, usage = os.wait4(process.pid, 0)
        taken = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"jitaudit {' '.join(arguments)} ended with {process.returncode}")
    return Run(taken, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def seconds(work: Callable[[], None]) -> float:
    """CPU time: what else the machine does is not in it."""
    start = time.process_time()
    work()
    return time.process_time() - start


if __name__ == "__main__":
    main()
