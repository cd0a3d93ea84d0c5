"""Measure every kernel against its eager chain, its baseline policy and its rivals; whole rounds; the mask's prefix.

`python -m benchmarks.gpu [-o reports/bench.json] [--batch 1,8,64,256]`; the tables go to a .md beside it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import torch

from benchmarks.conditions import conditions, write_json
from benchmarks.gpu.measure import cost
from benchmarks.gpu.rounds import prefixes, rates
from benchmarks.gpu.tables import Bench, Row, markdown
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
    bench = Bench(conditions("benchmarks.gpu"))
    for bs in map(int, arguments.batch.split(",")):
        for workload in workloads(bs):
            bench = msgspec.structs.replace(bench, rows=(*bench.rows, *_rows(bs, workload)))
        _write(bench, arguments.output)
    bench = msgspec.structs.replace(bench, rates=tuple(rates()), prefixes=tuple(prefixes()))
    _write(bench, arguments.output)
    sys.stdout.write(markdown(bench))


def _write(bench: Bench, output: Path | None) -> None:
    """Also in between, so that a cut-off run keeps what it has."""
    if output is not None:
        output.parent.mkdir(exist_ok=True)
        write_json(output, bench)
        output.with_suffix(".md").write_text(markdown(bench))


def _rows(bs: int, workload: Workload) -> Iterator[Row]:
    yield Row(bs, workload.name, "floored", cost(lambda: workload.launch(policy="floored")))
    yield Row(bs, workload.name, "baseline", cost(lambda: workload.launch(policy="baseline")))
    if workload.eager is not None:
        yield Row(bs, workload.name, "eager", cost(workload.eager))
    for name, rival in workload.rivals.items():
        yield Row(bs, workload.name, name, cost(rival))


if __name__ == "__main__":
    main()
