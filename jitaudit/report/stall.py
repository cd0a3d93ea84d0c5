"""`jitaudit stall` for a person, and as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rich.box import MARKDOWN, SIMPLE_HEAD, Box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from jitaudit.judging.nearest import differences
from jitaudit.model import VariantKey
from jitaudit.report.differences import difference_words
from jitaudit.report.layout import as_markdown
from jitaudit.stalling import KINDS, Pass, Spread, Stalls, waits_in_order
from jitaudit.sweeping.serving import Wait

_LONGEST = 8
"""Cases in the timeline."""
_BAR = 40
"""Cells of the timeline's longest bar."""


def text(stalls: Stalls) -> RenderableType:
    """What was measured, the figures, how the passes compare, and which cases stood still."""
    return Group(
        Text(headline(stalls)), _table(stalls, SIMPLE_HEAD), *map(Text, _comparisons(stalls)), *_timelines(stalls)
    )


def markdown(stalls: Stalls) -> str:
    """The same as Markdown, without the timeline."""
    lines = [
        headline(stalls),
        "",
        as_markdown(_table(stalls, MARKDOWN)),
        *(f"- {line}" for line in _comparisons(stalls)),
    ]
    return "\n".join(lines) + "\n"


def headline(stalls: Stalls) -> str:
    """What was measured, and what not."""
    repeats = f"median (min–max) of {stalls.repeats}" if stalls.repeats > 1 else "one run"
    if stalls.offline:
        return f"No GPU: only the compile part, by real compiles for {stalls.device} in serving order; {repeats}"
    return f"Real launches on {stalls.device}; {repeats}"


def _table(stalls: Stalls, box: Box) -> Table:
    table = Table(box=box, pad_edge=box is MARKDOWN)
    table.add_column("")
    for one in stalls.passes:
        table.add_column(one.name, justify="right")
    for name, cell in _rows(stalls):
        table.add_row(name, *(cell(one) for one in stalls.passes))
    return table


def _rows(stalls: Stalls) -> Iterator[tuple[str, Callable[[Pass], str]]]:
    yield "one-time cost, s", lambda one: _spread(one.one_time)
    for kind in KINDS[:1] if stalls.offline else KINDS:
        yield f"  {kind}, s", lambda one, kind=kind: _spread(one.parts[kind])  # type: ignore[misc]
    yield "longest stall, s", lambda one: _spread(one.longest)
    yield "compiles", lambda one: f"{one.variants:,}"
    if not stalls.offline:
        yield "torch's own first use, s (apart)", lambda one: _spread(one.torch_first_use)
        yield "first pass p50, ms", lambda one: _spread(one.first_p50, 1e3)
        yield "first pass p95, ms", lambda one: _spread(one.first_p95, 1e3)
        yield "first pass p99, ms", lambda one: _spread(one.first_p99, 1e3)
        yield "steps/s, first pass", lambda one: _spread(one.first_rate)
        yield "steps/s, warm pass", lambda one: _spread(one.again_rate)
        yield "device memory, MiB", lambda one: f"{(one.device_bytes or 0) / 2**20:,.0f}"
    yield "host memory, MiB", lambda one: f"{one.host_bytes / 2**20:,.0f}"


def _spread(spread: Spread, scale: float = 1.0) -> str:
    middle, low, high = (f"{value * scale:.3g}" for value in (spread.median, spread.min, spread.max))
    return middle if low == high else f"{middle} ({low}–{high})"


def _comparisons(stalls: Stalls) -> Iterator[str]:
    if stalls.interrupted:
        yield "PARTIAL: interrupted"
    if not stalls.passes:
        return
    base = stalls.passes[0]
    for one in stalls.passes[1:]:
        if base.one_time.median > 0:
            change = one.one_time.median / base.one_time.median - 1
            compiles = f"compiles {base.variants} → {one.variants}"
            yield f"{one.name} against {base.name}: one-time cost {change:+.1%}, {compiles}"
    for one in stalls.passes:
        if one.partial:
            yield f"PARTIAL: {one.name} was interrupted after {len(one.steps)} cases"
        for error in one.errors[:3]:
            yield f"RAISED: {one.name} at {error}"


def cause_words(wait: Wait, nearest: VariantKey | None) -> str:
    """Why a launch waited: in what its variant differs from the nearest one before; else the kind of stall."""
    if wait.key is None or wait.kind == "module load":
        return wait.kind
    if nearest is None:
        return "first variant"
    return difference_words(differences(nearest, wait.key)) or "a variant that was there before"


def _timelines(stalls: Stalls) -> Iterator[Text]:
    """The cases that stood still longest, in serving order."""
    for one in stalls.passes:
        worst = sorted(one.steps, key=lambda step: -step.seconds)[:_LONGEST]
        shown = [step for step in one.steps if step in worst and step.waits]
        longest = max((step.seconds for step in shown), default=0.0)
        nearest = {(wait.kernel, wait.start): key for _, wait, key in waits_in_order(one)}
        if shown:
            yield Text(f"\n{one.name}: the longest stalls, in serving order")
        for step in shown:
            wait = max(step.waits, key=lambda wait: wait.seconds)
            bar = "█" * max(round(step.seconds / longest * _BAR), 1)
            others = f" and {len(step.waits) - 1} more" if len(step.waits) > 1 else ""
            why = f" ({cause_words(wait, nearest[wait.kernel, wait.start])})" if wait.key is not None else ""
            cause = f"{step.seconds * 1e3:,.0f} ms  {wait.kind} {wait.kernel}{why}{others}"
            yield Text(f"{step.start:7.2f} s  {step.case:<12} {bar} {cause}")
