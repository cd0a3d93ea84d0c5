"""reports/README.md, and the headline figures of README.md: text, from what was measured and nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.report.figures import OFFLINE, Figure, figures
from benchmarks.report.measured import Measured, batches, by_kernel, costs, moving, named, ratios, workloads
from jitaudit.report.stall import markdown as stall_markdown

HEADLINES = (
    "variants, all shipped kernels, default axes",
    "one-time cost, the kernels that the batch moves, floored against baseline",
    OFFLINE,
    "one-time cost, floored and warmed in the process, against baseline",
    "longest stall of a warmed first pass",
    "predicted keys = keys of real launches, shipped kernels",
)


def headlines(measured: Measured) -> str:
    """The table at the top of README.md."""
    rows = {figure.what: figure for figure in figures(measured)}
    lines = [
        f"| on one {measured.stall.device} | |",
        "|---|---|",
        *(f"| {rows[what].what} | [{rows[what].here}](reports/{rows[what].file}) |" for what in HEADLINES),
    ]
    return "\n".join(lines) + "\n"


def page(measured: Measured, remarks: str) -> str:
    """The whole of reports/README.md; `remarks` are written by hand: what was missed, and what not measured."""
    return "\n".join(_lines(measured, remarks.rstrip())) + "\n"


def _lines(measured: Measured, remarks: str) -> Iterator[str]:
    conditions = measured.evidence.conditions
    versions = ", ".join(f"{name} {conditions[name]}" for name in ("torch", "triton", "python"))
    yield "# What was measured"
    yield ""
    yield (
        f"On one {conditions['gpu']} with {conditions['cores']} CPU cores, {versions}, {conditions['date']}. Published "
        "figures are of a whole server (GLM, 4×B200, tensor parallel 4, and others); ours are of one decoding round of "
        "the shipped kernels, without its models. So only ratios compare. Every number here is taken from the JSON "
        "beside it by `python -m benchmarks.report`; a test checks that."
    )
    yield from ("", "| figure | published | wanted | here | reached |", "|---|---|---|---|---|")
    for figure in figures(measured):
        yield _row(figure)
    yield from ("", "## First pass", "", "![one-time cost](stall-parts.svg)", "", "![rounds](stall-steps.svg)", "")
    yield stall_markdown(measured.stall).rstrip()
    yield from ("", "Seconds that each kernel stood still for, in the run of the median:", "")
    yield from _kernels(measured)
    yield from ("", "A library, unmodified (Liger-Kernel 0.8.5, modulated_rms_norm, 64 lengths):", "")
    yield stall_markdown(measured.library).rstrip()
    yield from ("", "The compile part alone, on two CPU cores and with no GPU:", "")
    yield stall_markdown(measured.offline).rstrip()
    yield from ("", "## Steady state", "", "Floored ÷ baseline, GPU µs; in brackets the floored kernel's own µs.", "")
    yield from _steady(measured)
    yield from ("", "More in [bench-h200.md](bench-h200.md).", "", "![prefix](prefix.svg)")
    yield from ("", "## Keys", "")
    yield from _keys(measured)
    yield from ("", "## How", "", "| step | command | seconds |", "|---|---|---|")
    for step in measured.evidence.steps:
        yield f"| {step.name} | `{step.command}` | {step.seconds:.0f} |"
    yield f"| crosscheck-libraries | `{measured.libraries.conditions['command']}` | |"
    there = measured.variants.conditions
    yield from ("", f"On {there['cores']} CPU cores with no GPU, torch {there['torch']}, triton {there['triton']}:", "")
    yield f"- variants.json: `{there['command']}`"
    yield "- stall-offline.json: `jitaudit stall --repeat 3 -o reports/stall-offline.json`"
    yield from ("", *OTHERS, "", remarks)


def _row(figure: Figure) -> str:
    return (
        f"| {figure.what} | {figure.published} | {figure.wanted} | [{figure.here}]({figure.file}) | {figure.reached} |"
    )


def _kernels(measured: Measured) -> Iterator[str]:
    before, after = (by_kernel(named(measured.stall, name)) for name in ("baseline", "floored"))
    moved = moving(named(measured.stall, "baseline"))
    yield from ("| kernel | the batch moves it | baseline | floored |", "|---|---|---:|---:|")
    for kernel, seconds in sorted(before.items(), key=lambda item: -item[1]):
        yield f"| {kernel} | {'yes' if kernel in moved else 'no'} | {seconds:.2f} | {after.get(kernel, 0.0):.2f} |"


def _steady(measured: Measured) -> Iterator[str]:
    bench, found = measured.bench, costs(measured.bench)
    sizes = batches(bench)
    yield from (_cells(["workload", *(f"bs {bs}" for bs in sizes)]), _cells(["---"] * (len(sizes) + 1)))
    for name in workloads(bench):
        cells = [f"{ratio:.2f} ({found[bs, name, 'floored'].gpu_us:.1f})" for bs, ratio in ratios(bench, name)]
        yield _cells([name, *cells])


def _cells(cells: Sequence[Any]) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def _keys(measured: Measured) -> Iterator[str]:
    yield (
        "One process counted with stand-ins, another really launched the same cases on the GPU: "
        "[crosscheck-h200.json](crosscheck-h200.json) has the shipped kernels, "
        "[crosscheck-libraries-h200.json](crosscheck-libraries-h200.json) sweeps of Liger-Kernel, fla-core, FlagGems, "
        "gemlite and conch that a seed drew. Autotuners call each config once on both sides."
    )
    yield ""
    for row in measured.libraries.kernels:
        if not row.equal:
            yield f"- {row.target} {row.kernel}: {row.predicted} predicted, {row.launched} launched"
    yield from (f"- {note}" for note in measured.libraries.notes)
    begun = {row.target for row in measured.libraries.kernels} | {
        note.partition(": ")[0] for note in measured.libraries.notes
    }
    yield f"- cut off before they had been launched: {measured.libraries.targets - len(begun)}"


OTHERS = (
    "Without a GPU: [launchers.md](launchers.md) has what every launcher under `tests/launchers` reaches,",
    "[warmups.md](warmups.md) captured keys against Triton's own warm-ups (one to one in 30 of 30 drawn sweeps),",
    "[explain.md](explain.md) the plans for kernels of real libraries, [warm-pools.md](warm-pools.md) ways to compile",
    "in parallel. [stall-h200.trace.json](stall-h200.trace.json) is a trace for Perfetto or chrome://tracing.",
)
