"""The gate in words: causes, remedies, and the command to run next. A line each."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Sequence

import msgspec

from jitaudit.boxes import compact
from jitaudit.gating.drift import Drifted
from jitaudit.judging import Reach
from jitaudit.judging.plans import plan
from jitaudit.judging.remedies import Remedies
from jitaudit.judging.wording import remedy_words
from jitaudit.model import Cause

LOST = "no case reaches them any more"

NEVER = "no case of the sweeps launches it"
NEVER_CAUSE = "its variants are not counted, so nothing guards them"


class Advice(msgspec.Struct, frozen=True):
    """How the user called the gate, so that the commands in its words fit."""

    arguments: str = ""
    """The targets and manifests of the command line, quoted."""
    locked: bool = False
    """Whether drift is judged against a lock, which an update can change."""

    def explain(self, kernel: str, target: str) -> str:
        """The command that tells more about a kernel."""
        return self._command("jitaudit explain", target, f"--kernel {shlex.quote(kernel)}")

    def probe(self, target: str) -> str:
        """The command that shows what the sweeps reach."""
        return self._command("jitaudit probe -v", target)

    def accept(self, what: str) -> str:
        """How to accept drift."""
        if self.locked:
            return f'accept {what}: jitaudit gate --update --reason "why"'
        return f"accept {what}: [[tool.jitaudit.ignore]] with a reason and a date"

    def _command(self, command: str, target: str, *rest: str) -> str:
        architecture = "" if target == "cuda:90" else f"--target {target}"
        return " ".join(filter(None, (command, self.arguments, architecture, *rest)))


def variants(count: int) -> str:
    """``1 variant``, ``8 variants``."""
    return f"{count:,} variant{'' if count == 1 else 's'}"


def cause(reach: Reach) -> str:
    """The arguments that split a kernel most, with what moves them."""
    causes = sorted(reach.causes, key=lambda cause: cause.without)
    told = [
        f"{c.argument} {c.kind} {_classes(c.classes)} {_moved(c) if reach.grids else ''}".rstrip() for c in causes[:3]
    ]
    return "; ".join([*told, *([f"{len(causes) - 3} more"] if len(causes) > 3 else [])])


def remedy(remedies: Remedies) -> str:
    """The changes that lead to the fewest variants."""
    steps = plan(remedies)
    if not steps:
        return "what splits it is meant to differ: raise the budget, or sweep less"
    return f"{'; then '.join(remedy_words(step.remedy) for step in steps[:3])}: {variants(steps[-1].count)}"


def drift_cause(drifted: Sequence[Drifted], reach: Reach) -> str:
    """The argument in which most new variants differ from what is allowed."""
    argument, changes = _main_change(drifted)
    was = _some(dict.fromkeys(change.partition(" → ")[0] for change in changes))
    now = _some(dict.fromkeys(change.partition(" → ")[2] for change in changes))
    moved = next((_moved(cause) for cause in reach.causes if cause.argument == argument and cause.axis), "")
    return f"{argument} was {was}, is {now} {moved}".rstrip()


def drift_remedy(drifted: Sequence[Drifted], remedies: Remedies, advice: Advice) -> str:
    """What to do about the argument in which most new variants differ."""
    argument, differences = _main_change(drifted)
    changes = [remedy_words(step.remedy) for step in plan(remedies) if step.remedy.argument == argument]
    if not changes and differences[0].startswith("absent"):
        return advice.accept(f"{argument}, which is new")
    undo = changes[0] if changes else f"give {argument} back the class that it had"
    return f"{undo}; or {advice.accept('it')}"


def arrival(former: str | None) -> str:
    """Why all of a kernel's variants are new."""
    return "the kernel is new" if former is None else f"the kernel looks renamed: {former} had the same variants"


def departure(heir: str | None) -> str:
    """Why all of a kernel's variants are gone."""
    return "no case launches it any more" if heir is None else f"the kernel looks renamed to {heir}"


def _moved(cause: Cause) -> str:
    return f"by {', '.join(cause.axis)}" if cause.axis else "within a case"


def _main_change(drifted: Sequence[Drifted]) -> tuple[str, list[str]]:
    """The argument that differs most often, and its ``was → now``."""
    changes: dict[str, list[str]] = {}
    for variant in drifted:
        for difference in variant.differs:
            argument, _, change = difference.partition(": ")
            changes.setdefault(argument, []).append(change)
    often = Counter({argument: len(changed) for argument, changed in changes.items()})
    argument = often.most_common(1)[0][0]
    return argument, changes[argument]


def _classes(classes: Sequence[str]) -> str:
    values = [text.removeprefix("int ") for text in classes]
    if all(re.fullmatch(r"-?\d+", text) for text in values):
        values = [str(value) for value in compact(values)]
    return _some(values, "/")


def _some(values: Sequence[str] | dict[str, None], separator: str = ", ") -> str:
    texts = list(values)
    if len(texts) <= 4:
        return separator.join(texts)
    return f"{separator.join(texts[:3])}{separator}… ({len(texts)} values)"
