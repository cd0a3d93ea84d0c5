"""Measure every kernel against its eager chain, its baseline policy and its rivals.

`python -m benchmarks.gpu [-o reports/kernels.md] [--batch 1,8,64,256]`
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import torch

from benchmarks.conditions import conditions
from benchmarks.gpu.measure import Cost, cost
from benchmarks.gpu.workloads import Workload, workloads


def main() -> None:
    """Write the report; exits 3 where there is no GPU."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--batch", default="1,8,64,256")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        sys.stderr.write("benchmarks.gpu: torch sees no GPU here\n")
        sys.exit(3)
    text = "\n".join(_report([int(bs) for bs in arguments.batch.split(",")])) + "\n"
    sys.stdout.write(text)
    if arguments.output is not None:
        arguments.output.parent.mkdir(exist_ok=True)
        arguments.output.write_text(text)


def _report(batches: list[int]) -> Iterator[str]:
    yield "# The kernels on a GPU"
    yield ""
    yield ", ".join(f"{name} {value}" for name, value in conditions("benchmarks.gpu").items()) + "."
    yield ""
    yield (
        "Medians. GPU µs: CUDA events around back-to-back calls behind a spin; host µs: dispatch of a call; launches: "
        "kernels, fills and copies a call; lead: µs that the host is back before the GPU is done, behind a spin of "
        "about 10 ms (near 0 where the call waits). Floored ÷ baseline is of GPU µs."
    )
    for bs in batches:
        yield ""
        yield f"## bs {bs}"
        yield ""
        yield "| workload | version | GPU µs | host µs | launches | lead µs | floored ÷ baseline |"
        yield "|---|---|---|---|---|---|---|"
        for workload in workloads(bs):
            yield from _rows(workload)


def _rows(workload: Workload) -> Iterator[str]:
    floored = cost(lambda: workload.launch(policy="floored"))
    baseline = cost(lambda: workload.launch(policy="baseline"))
    yield _row(workload.name, "floored", floored, f"{floored.gpu_us / baseline.gpu_us:.2f}")
    yield _row("", "baseline", baseline)
    if workload.eager is not None:
        yield _row("", "eager", cost(workload.eager))
    for name, rival in workload.rivals.items():
        yield _row("", name, cost(rival))


def _row(workload: str, version: str, cost: Cost, ratio: str = "") -> str:
    return (
        f"| {workload} | {version} | {cost.gpu_us:.1f} | {cost.host_us:.1f} | {cost.launches:.0f} | {cost.lead_us:.0f} "
        f"| {ratio} |"
    )


if __name__ == "__main__":
    main()
