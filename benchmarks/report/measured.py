"""Reads what was measured, and takes the figures from it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

import msgspec

from benchmarks.crosscheck import Crosscheck
from benchmarks.evidence import Evidence
from benchmarks.gpu.tables import Bench, Cost
from benchmarks.variants import Variants
from benchmarks.warm import Warm
from jitaudit.stalling import Pass, Stalls

ROOT = Path(__file__).parents[2]
REPORTS = ROOT / "reports"


class Measured(msgspec.Struct, frozen=True):
    """All of it."""

    stall: Stalls
    library: Stalls
    offline: Stalls
    bench: Bench
    variants: Variants
    shipped: Crosscheck
    libraries: Crosscheck
    evidence: Evidence
    warm: Warm
    """On two cores."""
    warm_there: Warm | None = None
    """On the GPU machine's cores, once it was run there."""


def read(folder: Path = REPORTS) -> Measured:
    """Everything in `folder`."""
    files = {
        "stall": "stall-h200",
        "library": "stall-liger-h200",
        "offline": "stall-offline",
        "bench": "bench-h200",
        "variants": "variants",
        "shipped": "crosscheck-h200",
        "libraries": "crosscheck-libraries-h200",
        "evidence": "evidence-h200",
        "warm": "warm",
        "warm_there": "warm-h200",
    }
    types = {field.name: field.type for field in msgspec.structs.fields(Measured)}
    return Measured(
        **{
            name: msgspec.json.decode((folder / f"{file}.json").read_bytes(), type=types[name])
            for name, file in files.items()
            if name != "warm_there" or (folder / f"{file}.json").is_file()
        }
    )


def named(stalls: Stalls, name: str) -> Pass:
    """The pass of that name."""
    return next(one for one in stalls.passes if one.name == name)


def by_kernel(one: Pass) -> dict[str, float]:
    """Seconds of the first pass (the repeat that is shown) that each kernel stood still for.

    A host build is the next loaded kernel's launcher; Triton's own utilities are `driver`.
    """
    seconds: dict[str, float] = defaultdict(float)
    for step in one.steps:
        built = 0.0
        for wait in step.waits:
            if wait.kind == "host build" and wait.kernel == "__triton_launcher":
                built += wait.seconds
            elif wait.kind == "host build":
                seconds["driver"] += wait.seconds
            elif wait.kind == "module load":
                seconds[wait.kernel] += built + wait.seconds
                built = 0.0
            else:
                seconds[wait.kernel] += wait.seconds
    return dict(seconds)


def moving(baseline: Pass) -> set[str]:
    """The kernels that the batch moves: more than one compile in the first pass."""
    compiled: dict[str, int] = defaultdict(int)
    for step in baseline.steps:
        for wait in step.waits:
            compiled[wait.kernel] += wait.kind == "compile"
    return {kernel for kernel, times in compiled.items() if times > 1}


def costs(bench: Bench) -> dict[tuple[int, str, str], Cost]:
    """(batch size, workload, version) → cost."""
    return {(row.bs, row.workload, row.version): row.cost for row in bench.rows}


def ratios(bench: Bench, workload: str) -> Iterator[tuple[int, float]]:
    """Floored ÷ baseline in GPU µs, at each batch size."""
    found = costs(bench)
    for bs in batches(bench):
        floored, baseline = found[bs, workload, "floored"], found[bs, workload, "baseline"]
        yield bs, floored.gpu_us / baseline.gpu_us


def batches(bench: Bench) -> Sequence[int]:
    """The batch sizes."""
    return tuple(dict.fromkeys(row.bs for row in bench.rows))


def workloads(bench: Bench) -> Sequence[str]:
    """The workloads."""
    return tuple(dict.fromkeys(row.workload for row in bench.rows))


def host_ratio(bench: Bench) -> float:
    """Floored ÷ baseline in host dispatch µs, median over workloads and batch sizes."""
    found = costs(bench)
    return median(
        found[bs, workload, "floored"].host_us / found[bs, workload, "baseline"].host_us
        for bs in batches(bench)
        for workload in workloads(bench)
    )


def warm_ratios(warm: Warm) -> dict[int, float]:
    """Variants → the loop's seconds ÷ warm's, median over the runs of that many."""
    sizes = dict.fromkeys(row.variants for row in warm.rows)
    return {size: median(row.ratio for row in warm.rows if row.variants == size) for size in sizes}
