"""The gate's failures in lines, as every format tells them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jitaudit.gating import Gate
from jitaudit.gating.verdicts import Breach, Verdict

_SHOWN = 3
"""New or gone variants that a failure shows."""


def failures(gate: Gate) -> list[Verdict]:
    """What fails, by how many variants it costs."""
    failing = [verdict for verdict in gate.verdicts if verdict.fails]
    return sorted(failing, key=lambda verdict: (-max(verdict.variants, len(verdict.gone)), verdict.name))


def title(verdict: Verdict, gate: Gate) -> str:
    """The kernel or sweep, and its target where there are several."""
    return verdict.name if len(gate.targets) == 1 else f"{verdict.name} on {verdict.target}"


def failure(verdict: Verdict, gate: Gate) -> list[str]:
    """A failure as lines; the last is a command to run."""
    first, *others = [breach for breach in verdict.breaches if breach.fails]
    return [
        f"{first.word}  {title(verdict, gate)}: {first.message}",
        *([f"  at      {place(verdict)}"] if verdict.file else []),
        *(f"  {line}" for line in changes(verdict)),
        f"  cause   {first.cause}",
        f"  remedy  {first.remedy}",
        *(f"  also    {breach.word}: {breach.message}" for breach in others),
        f"  run     {first.command}",
    ]


def place(verdict: Verdict) -> str:
    """``file:line``, as far as it is known."""
    return f"{verdict.file or ''}{'' if verdict.line is None else f':{verdict.line}'}"


def changes(verdict: Verdict) -> Iterator[str]:
    """Some of the variants that are new, each beside its nearest, or gone."""
    new = ["; ".join(drifted.differs) or drifted.variant or "its one variant" for drifted in verdict.drifted]
    yield from _some("new", list(dict.fromkeys(new)), len(verdict.new))
    if not verdict.new:
        yield from _some("gone", [variant or "its one variant" for variant in verdict.gone], len(verdict.gone))


def excuse(breach: Breach) -> str:
    """Why a breach does not fail."""
    return breach.excused or "the configuration allows drift"


def note_lines(gate: Gate) -> list[str]:
    """The gate's notes, a line each."""
    return [f"{note.code} {note.name} {note.kernel or note.sweep}: {note.message}" for note in gate.notes]


def _some(title: str, texts: Sequence[str], count: int) -> Iterator[str]:
    for text in texts[:_SHOWN]:
        yield f"{title:<8}{text}"
    if count > _SHOWN:
        yield f"{'':<8}and {count - _SHOWN:,} more"
