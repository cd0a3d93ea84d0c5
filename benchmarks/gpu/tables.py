"""What benchmarks.gpu measured, as Markdown; it reads back without torch."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

import msgspec


class Cost(msgspec.Struct, frozen=True):
    """A call's cost; medians."""

    gpu_us: float
    host_us: float
    launches: float
    lead_us: float
    """µs from the call's return to the end of the work that the GPU had before it; negative where the GPU waits."""


class Row(msgspec.Struct, frozen=True):
    """One version of one workload at one batch size."""

    bs: int
    workload: str
    version: str
    cost: Cost


class Rate(msgspec.Struct, frozen=True):
    """Rounds a second, median over the blocks; `model`: with a spin of about 2 ms a round in the models' place."""

    bs: int
    tail: str
    readback: str
    model: bool
    rounds_per_s: float


class Prefix(msgspec.Struct, frozen=True):
    """`build_tree` with the whole mask, for `rows` rows at one context length."""

    rows: int
    context: int
    bytes: int
    """Of the prefix, written only where it is filled."""
    filled: Cost
    left: Cost


class Bench(msgspec.Struct, frozen=True):
    """All of it, and under what it was measured."""

    conditions: dict[str, str | int]
    rows: tuple[Row, ...] = ()
    rates: tuple[Rate, ...] = ()
    prefixes: tuple[Prefix, ...] = ()


HEAD = (
    "Medians. GPU µs: CUDA events around back-to-back calls behind a spin; host µs: dispatch of a call; launches: "
    "kernels, fills and copies a call; lead: µs from the call's return to the end of a spin of about 10 ms before it "
    "(negative: the GPU stood idle before the last launch came). Floored ÷ baseline is of GPU µs."
)


def markdown(bench: Bench) -> str:
    """The report."""
    return "\n".join(_lines(bench)) + "\n"


def _lines(bench: Bench) -> Iterator[str]:
    yield from ("# The kernels on a GPU", "", ", ".join(f"{name} {value}" for name, value in bench.conditions.items()))
    yield from ("", HEAD)
    for bs, rows in groupby(bench.rows, lambda row: row.bs):
        yield from ("", f"## bs {bs}", "")
        yield "| workload | version | GPU µs | host µs | launches | lead µs | floored ÷ baseline |"
        yield "|---|---|---|---|---|---|---|"
        for name, versions in groupby(rows, lambda row: row.workload):
            yield from _workload(name, list(versions))
    yield from ("", "## Rounds a second", "")
    yield "With a model: a spin of about 2 ms a round in the place of draft and target."
    yield from (
        "",
        "| bs | readback | model | eager tail | captured tail | captured ÷ eager |",
        "|---|---|---|---|---|---|",
    )
    rates = {(r.bs, r.readback, r.model, r.tail): r.rounds_per_s for r in bench.rates}
    for bs, readback, model in dict.fromkeys(key[:3] for key in rates):
        eager, captured = rates[bs, readback, model, "eager"], rates[bs, readback, model, "captured"]
        shown = "yes" if model else "no"
        yield f"| {bs} | {readback} | {shown} | {eager:.0f} | {captured:.0f} | {captured / eager:.2f} |"
    yield from ("", "## The prefix of the tree's mask", "")
    yield from ("| rows | context | bytes | filled, GPU µs | left, GPU µs |", "|---|---|---|---|---|")
    for p in bench.prefixes:
        yield f"| {p.rows} | {p.context} | {p.bytes:,} | {p.filled.gpu_us:.1f} | {p.left.gpu_us:.1f} |"


def _workload(name: str, rows: list[Row]) -> Iterator[str]:
    times = {row.version: row.cost.gpu_us for row in rows}
    for number, row in enumerate(rows):
        ratio = f"{times['floored'] / times['baseline']:.2f}" if row.version == "floored" else ""
        c = row.cost
        yield (
            f"| {'' if number else name} | {row.version} | {c.gpu_us:.1f} | {c.host_us:.1f} | {c.launches:.0f} "
            f"| {c.lead_us:.0f} | {ratio} |"
        )
