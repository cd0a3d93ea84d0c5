"""`jitaudit probe` for a person and for a program: the table of variants, why, and the findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec
from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from jitaudit.boxes import compact
from jitaudit.model import SCHEMA_VERSION, Autotuner, Cause, Compile, Count, Finding, Kernel
from jitaudit.probing import Probe
from jitaudit.report.layout import as_markdown

SCREEN = 20
"""Lines of table and of findings before the rest is left to ``-v``."""


class Document(msgspec.Struct, frozen=True):
    """``--format json``."""

    schema_version: int
    target: str
    kernels: tuple[Count, ...]
    findings: tuple[Finding, ...]


def document(probe: Probe) -> Document:
    """The probe as a program reads it."""
    return Document(SCHEMA_VERSION, probe.manifest.target, probe.counts, probe.findings)


def text(probe: Probe, *, verbose: bool = False) -> RenderableType:
    """The probe on one screen, ranked by variants; all of it when `verbose`."""
    tables = _tables(probe, verbose)
    parts: list[RenderableType] = [table for table in tables if table.row_count]
    parts += _compile_lines(probe.manifest.kernels)
    parts += [Text(line) for line in _sweep_lines(probe)]
    findings = _finding_lines(probe.findings)
    parts += findings if verbose else findings[:SCREEN]
    hidden = sum(_hidden(rows) for rows in _by_comparison(probe).values()) + max(len(findings) - SCREEN, 0)
    if hidden and not verbose:
        parts.append(Text(f"{hidden} more, use -v"))
    return Group(*parts)


def markdown(probe: Probe) -> str:
    """The whole probe as Markdown."""
    tables = [as_markdown(table) for table in _tables(probe, verbose=True)]
    lines = [f"- {line}" for line in _sweep_lines(probe)] + [
        f"- {line.plain}" for line in _finding_lines(probe.findings)
    ]
    return "\n".join([f"Target {probe.manifest.target}", "", *tables, *lines]) + "\n"


def summary(probe: Probe) -> str:
    """One line: what was looked at."""
    kernels, sweeps = probe.manifest.kernels, probe.manifest.sweeps
    launches, variants = sum(k.launches for k in kernels), sum(len(k.variants) for k in kernels)
    counted, cases = sum(sweep.counted for sweep in sweeps), sum(sweep.cases for sweep in sweeps)
    return (
        f"kernels: {len({k.id for k in kernels})}, variants: {variants:,}, launches: {launches:,}, "
        f"cases counted: {counted:,} of {cases:,}, target: {probe.manifest.target}"
    )


Rows = dict[str, list[tuple[Count, Kernel]]]
"""By kernel id: its count and kernel under each compared value."""


def _by_comparison(probe: Probe) -> dict[tuple[str | None, ...], Rows]:
    """Kernels by the groups that they have: those alike share a table."""
    rows: Rows = {}
    for count, kernel in zip(probe.counts, probe.manifest.kernels, strict=True):
        rows.setdefault(kernel.id, []).append((count, kernel))
    tables: dict[tuple[str | None, ...], Rows] = {}
    for name in sorted(rows, key=lambda name: (-max(count.variants for count, _ in rows[name]), name)):
        tables.setdefault(tuple(count.group for count, _ in rows[name]), {})[name] = rows[name]
    return tables


def _tables(probe: Probe, verbose: bool) -> Iterator[Table]:
    for groups, rows in _by_comparison(probe).items():
        shown = rows if verbose else dict(list(rows.items())[:SCREEN])
        tuners = [kernel.autotuner for row in shown.values() for _, kernel in row if kernel.autotuner]
        compiled = any(variant.compile for row in shown.values() for _, k in row for variant in k.variants)
        table = Table(box=SIMPLE_HEAD, pad_edge=False)
        table.add_column("kernel", overflow="fold")
        table.add_column("launches", justify="right")
        for group in groups:
            table.add_column("variants" if group is None else group, justify="right")
        for title in ("tuning keys", "configs", "bench runs") if tuners else ():
            table.add_column(title, justify="right")
        if compiled:
            table.add_column("binaries", justify="right")
        table.add_column("why", overflow="fold", min_width=24)
        for name, row in shown.items():
            cells = [name, f"{sum(count.launches for count, _ in row):,}", *(f"{count.variants:,}" for count, _ in row)]
            cells += _tuner_cells([kernel.autotuner for _, kernel in row]) if tuners else []
            cells += [" ".join(_binaries(kernel) for _, kernel in row)] if compiled else []
            table.add_row(*cells, _why([count for count, _ in row]))
        yield table


def _hidden(rows: Rows) -> int:
    return max(len(rows) - SCREEN, 0)


def _tuner_cells(tuners: Sequence[Autotuner | None]) -> list[str]:
    known = [tuner for tuner in tuners if tuner]
    if not known:
        return ["", "", ""]
    return [
        f"{sum(len(tuner.tuning_keys) for tuner in known):,}",
        f"{max(len(tuner.configs) for tuner in known):,}",
        f"{sum(tuner.benchmark_runs for tuner in known):,}",
    ]


def _binaries(kernel: Kernel) -> str:
    return f"{len({variant.compile.binary for variant in kernel.variants if variant.compile}):,}"


def _why(counts: Sequence[Count]) -> str:
    """The splitting arguments under each compared value; values that split alike are told once."""
    told: dict[str, list[str]] = {}
    for count in counts:
        words = "; ".join(_cause(cause) for cause in count.causes) or "one variant"
        told.setdefault(words, []).append(count.group or "")
    if len(told) == 1:
        return next(iter(told))
    return "\n".join(f"{'/'.join(groups)}: {words}" for words, groups in told.items())


def _cause(cause: Cause) -> str:
    moved = f"by {', '.join(cause.axis)}" if cause.axis else "within a case"
    return f"{cause.argument} {cause.kind} {_classes(cause.classes)} {moved}"


def _classes(classes: Sequence[str]) -> str:
    values = [text.removeprefix("int ") for text in classes]
    if all(text.lstrip("-").isdigit() for text in values):
        values = [str(value) for value in compact(values)]
    if len(values) > 6:
        return f"{len(classes)} values, {values[0]} … {values[-1]}"
    return "/".join(values)


def _compile_lines(kernels: Sequence[Kernel]) -> Iterator[Text]:
    compiles: list[Compile] = [v.compile for kernel in kernels for v in kernel.variants if v.compile]
    if compiles:
        stages: Counter[str] = Counter()
        for compiled in compiles:
            stages.update(compiled.seconds)
        parts = ", ".join(f"{stage} {seconds:.1f}" for stage, seconds in stages.items())
        yield Text(f"{len(compiles)} compiles took {sum(stages.values()):.1f} s of one core: {parts}")


def _sweep_lines(probe: Probe) -> Iterator[str]:
    for sweep in probe.manifest.sweeps:
        if sweep.verdict != "pass":
            yield f"{sweep.verdict.upper()}: sweep {sweep.name} counted {sweep.counted:,} of {sweep.cases:,} cases"
    if stubs := probe.manifest.profile.stubs:
        yield f"stubs stood in for {', '.join(stubs)}"
    tuners = [kernel.autotuner for kernel in probe.manifest.kernels if kernel.autotuner is not None]
    if unknown := sum(len(tuner.tuning_keys) for tuner in tuners):
        yield f"{unknown:,} tuning keys: which config wins is unknown offline; each key's first stands for it"


def _finding_lines(findings: Sequence[Finding]) -> list[Text]:
    lines = []
    for finding in findings:
        subject = finding.kernel or finding.sweep or ""
        if finding.case:
            subject += f" at {finding.case}"
        lines.append(Text.assemble((finding.code, "bold"), f" {finding.name} {subject}: {finding.message}"))
    return lines
