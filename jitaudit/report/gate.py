"""`jitaudit gate` for a person and for a program: what fails, why, and what to run next."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from jitaudit.gating import Gate
from jitaudit.gating.verdicts import Verdict
from jitaudit.gating.words import variants
from jitaudit.model import SCHEMA_VERSION, Finding
from jitaudit.report.failures import excuse, failure, failures, note_lines, title
from jitaudit.report.github import github
from jitaudit.report.junit import junit
from jitaudit.report.markdown import markdown
from jitaudit.report.sarif import sarif

SCREEN = 20
"""Lines before the rest is left to ``-v``."""

SUFFIXES = {".sarif": "sarif", ".xml": "junit", ".md": "markdown", ".json": "json", ".txt": "text"}
"""The format of an output file, where its name tells."""


class Document(msgspec.Struct, frozen=True):
    """``--format json``."""

    schema_version: int
    passed: bool
    reference: str | None
    targets: tuple[str, ...]
    verdicts: tuple[Row, ...]
    notes: tuple[Finding, ...]
    done: tuple[str, ...]


class Row(msgspec.Struct, frozen=True):
    """A verdict, with its word said."""

    word: str
    fails: bool
    verdict: Verdict


def printed(gate: Gate, form: str, *, verbose: bool = False) -> str:
    """The gate in one of its formats."""
    match form:
        case "json":
            return msgspec.json.format(msgspec.json.encode(document(gate)), indent=2).decode() + "\n"
        case "markdown":
            return markdown(gate)
        case "junit":
            return junit(gate)
        case "sarif":
            return sarif(gate)
        case "github":
            return github(gate)
        case _:
            return text(gate, verbose=verbose)


def document(gate: Gate) -> Document:
    """The gate as a program reads it."""
    rows = tuple(Row(verdict.word, verdict.fails, verdict) for verdict in gate.verdicts)
    return Document(SCHEMA_VERSION, gate.passed, gate.reference, gate.targets, rows, gate.notes, gate.done)


def format_of(path: Path, default: str) -> str:
    """The format to write `path` in: that of its suffix, else `default`."""
    return SUFFIXES.get(path.suffix, default)


def text(gate: Gate, *, verbose: bool = False) -> str:
    """The gate on one screen, the worst first; all of it when `verbose`."""
    blocks = [failure(verdict, gate) for verdict in failures(gate)]
    told = [*_told(gate), *note_lines(gate)]
    rest = [*_passes(gate, verbose), *gate.done]
    room = SCREEN - len(rest) - 1
    shown: list[str] = []
    hidden = 0
    for block in blocks:
        if verbose or not shown or len(shown) + len(block) <= room:
            shown += block
        else:
            hidden += 1
    lines = told if verbose else told[: max(room - len(shown), 0)]
    hidden += len(told) - len(lines)
    more = [f"{hidden} more, use -v"] if hidden else []
    return "\n".join([*lines, *rest, *more, *shown]) + "\n"


def summary(gate: Gate) -> str:
    """One line: how it ended."""
    kernels = [verdict for verdict in gate.verdicts if verdict.kernel is not None]
    against = f"against {gate.reference}" if gate.reference else "no lock and no --base, so drift is not judged"
    count = sum(verdict.fails for verdict in gate.verdicts)
    ending = f"{count} of {len(gate.verdicts)} fail" if count else "all pass"
    return f"gate: {ending}; kernels: {len(kernels)}, target: {', '.join(gate.targets)}, {against}"


def _told(gate: Gate) -> Iterator[str]:
    """What does not fail and is not plain PASS either."""
    for verdict in gate.verdicts:
        for breach in verdict.breaches:
            if not breach.fails and breach.code == "JA306":
                yield f"{breach.word}  {title(verdict, gate)}: {breach.message}"
            elif not breach.fails:
                yield f"{breach.word}  {title(verdict, gate)}: {breach.message} ({excuse(breach)})"


def _passes(gate: Gate, verbose: bool) -> Iterator[str]:
    passing = [verdict for verdict in gate.verdicts if verdict.word == "PASS" and verdict.kernel is not None]
    if verbose:
        for verdict in passing:
            budget = "" if verdict.budget is None else f", budget {verdict.budget:,}"
            yield f"PASS  {title(verdict, gate)}: {variants(verdict.variants)}{budget}"
    elif passing:
        kernels = f"{len(passing)} kernel{'' if len(passing) == 1 else 's'}"
        yield f"PASS  {kernels}, {variants(sum(verdict.variants for verdict in passing))}"
