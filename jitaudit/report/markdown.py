"""`jitaudit gate` as a pull-request comment. It begins with a marker, so that the comment can be found and edited."""

from __future__ import annotations

from collections.abc import Iterator

from jitaudit.gating import Gate
from jitaudit.gating.verdicts import Verdict
from jitaudit.gating.words import variants
from jitaudit.report.failures import changes, excuse, failures, note_lines, title

MARKER = "<!-- jitaudit gate -->"

_ROWS = 50
"""Rows of the table; GitHub cuts a comment at 65,536 characters."""


def markdown(gate: Gate) -> str:
    """The verdicts that say something, as a table, and what to do about each failure."""
    failing = failures(gate)
    ending = f"{len(failing)} failing" if failing else "all pass"
    lines = [MARKER, f"### jitaudit gate: {ending}", "", f"{_against(gate)}.", ""]
    shown = [*failing, *(verdict for verdict in gate.verdicts if verdict.breaches and not verdict.fails)]
    if shown:
        lines += ["| verdict | kernel | variants | what |", "|---|---|---:|---|"]
        lines += [_row(verdict, gate) for verdict in shown[:_ROWS]]
        lines += [f"\n{len(shown) - _ROWS} more."] if len(shown) > _ROWS else []
        lines.append("")
    for verdict in failing[:_ROWS]:
        lines += _details(verdict, gate)
    lines += [f"- {line}" for line in (*note_lines(gate), *gate.done)]
    return "\n".join(lines).rstrip("\n") + "\n"


def _against(gate: Gate) -> str:
    kernels = [verdict for verdict in gate.verdicts if verdict.kernel is not None]
    reached = f"{len(kernels)} kernels, {variants(sum(verdict.variants for verdict in kernels))}"
    return f"{reached} on {', '.join(gate.targets)}, against {gate.reference or 'budgets alone'}"


def _row(verdict: Verdict, gate: Gate) -> str:
    breach = next((breach for breach in verdict.breaches if breach.fails), verdict.breaches[0])
    what = breach.message if breach.fails or not breach.remedy else f"{breach.message} ({excuse(breach)})"
    return f"| {breach.word} | `{title(verdict, gate)}` | {verdict.variants:,} | {what.replace('|', chr(92) + '|')} |"


def _details(verdict: Verdict, gate: Gate) -> Iterator[str]:
    breach = next(breach for breach in verdict.breaches if breach.fails)
    yield f"<details><summary>{breach.word} <code>{title(verdict, gate)}</code></summary>"
    yield ""
    yield "```"
    yield from changes(verdict)
    yield f"cause   {breach.cause}"
    yield f"remedy  {breach.remedy}"
    yield f"run     {breach.command}"
    yield "```"
    yield "</details>"
    yield ""
