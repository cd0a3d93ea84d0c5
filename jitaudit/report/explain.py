"""`jitaudit explain` for a person: for each kernel why it has its variants, what to change, and what that costs."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from rich.console import Group, RenderableType
from rich.text import Text

from jitaudit.explaining.differing import Diff
from jitaudit.explaining.explanation import Explained, Explanation, Offer
from jitaudit.judging.wording import remedy_words
from jitaudit.model import Cause, Finding
from jitaudit.report import diff as diff_report
from jitaudit.report.remedies import price_words, where
from jitaudit.report.splits import listed, tree_lines

SCREEN = 20
"""Lines before the rest is left to ``-v``."""
TREE = 5
"""Of them, lines of one kernel's tree."""


def printed(found: Explanation | Diff, form: str, *, verbose: bool) -> msgspec.Struct | RenderableType:
    """What the command prints: ``json``, ``markdown`` or ``text``."""
    if form == "json":
        return found
    if isinstance(found, Diff):
        return diff_report.markdown(found) if form == "markdown" else diff_report.text(found, verbose=verbose)
    return markdown(found) if form == "markdown" else text(found, verbose=verbose)


def text(explanation: Explanation, *, verbose: bool = False) -> RenderableType:
    """The explanation on one screen, from the most variants on; all of it when `verbose`."""
    blocks = [list(_block(one, verbose)) for one in explanation.kernels if verbose or _says_something(one)]
    lines: list[str] = []
    shown = 0
    for block in blocks:
        if not verbose and shown and len(lines) + len(block) > SCREEN:
            break
        lines += block
        shown += 1
    hidden = len(blocks) - shown
    quiet = len(explanation.kernels) - len(blocks)
    if not explanation.kernels:
        lines.append("no variants: no case launched a kernel")
    if quiet:
        lines.append(f"{_kernels(quiet)} with nothing to mend")
    lines += [f"NOTE {note}" for note in explanation.notes]
    lines += [_finding(finding) for finding in explanation.findings] if verbose else []
    if hidden or (explanation.findings and not verbose):
        rest = [_kernels(hidden)] if hidden else []
        rest += [f"{len(explanation.findings)} findings"] if explanation.findings else []
        lines.append(f"{' and '.join(rest)} more, use -v")
    return Group(*(_styled(line) for line in lines))


def markdown(explanation: Explanation) -> str:
    """The whole explanation as Markdown."""
    lines = [f"Target {explanation.target}", ""]
    for one in explanation.kernels:
        head, *rest = _block(one, verbose=True)
        lines += [f"### {head}", "", "```", *(line[2:] for line in rest), "```", ""]
    lines += [f"- {_finding(finding)}" for finding in explanation.findings]
    lines += [f"- {note}" for note in explanation.notes]
    return "\n".join(lines).rstrip("\n") + "\n"


def _says_something(one: Explained) -> bool:
    return bool(one.plan or one.unmended or one.redundant or (one.tuning and one.tuning.buckets))


def _block(one: Explained, verbose: bool) -> Iterator[str]:
    """The lines of one kernel."""
    group = f" [{one.group}]" if one.group is not None else ""
    yield f"{one.kernel}{group}: {_variants(one.variants)}, {one.intended:,} intended; growth {one.growth}"
    why = list(tree_lines(one.tree))
    shown = why if verbose or len(why) <= TREE else [*why[: TREE - 1], f"… {len(why) - TREE + 1} more lines, use -v"]
    for at, line in enumerate(shown):
        yield f"  {'why ' if not at else '    '} {line}"
    if one.follows:
        verb = "differs" if len(one.follows) == 1 else "differ"
        yield f"       {listed([f'`{name}`' for name in one.follows])} {verb} only where these do"
    if verbose:
        for cause in one.causes:
            yield f"       {_cause(cause)}"
    yield from _plan(one)
    if verbose:
        planned = [step.offer.remedy for step in one.plan]
        for offer in one.offers:
            if offer.remedy not in planned:
                counts = f"{one.variants:,} → {offer.count:,}{_confirmed(offer.count, offer.confirmed)}"
                yield f"  or   {_offer(offer)}: {counts}; {price_words(offer)}"
    for offer in one.offers:
        if offer.failure:
            yield f"  no   {remedy_words(offer.remedy)}: it does not compile: {offer.failure}"
    for cause in one.unmended:
        yield f"  no   remedy here for the {cause.kind} of {cause.argument}: {listed(cause.classes)}"
    yield from _tuning(one)
    if one.redundant:
        found = one.redundant
        yield (
            f"  same {found.variants:,} keys are {found.binaries:,} binaries apart from names: they differ in "
            f"{listed(found.arguments)}, which the binary does not"
        )


def _plan(one: Explained) -> Iterator[str]:
    before = one.variants
    for at, step in enumerate(one.plan):
        counts = f"{before:,} → {step.count:,}{_confirmed(step.count, step.confirmed)}"
        yield f"  {'plan' if not at else '    '} {_offer(step.offer)}: {counts}; {price_words(step.offer)}"
        before = step.count
    for price in one.prices[:1]:
        changes = f": {', '.join(price.changes)}" if price.changes else ""
        yield f"       all of it: {price.verdict}{changes}"


def _offer(offer: Offer) -> str:
    return f"({where(offer.remedy)}) {remedy_words(offer.remedy)}"


def _confirmed(count: int, confirmed: int | None) -> str:
    if confirmed is None:
        return ""
    return ", confirmed" if confirmed == count else f", but really {confirmed:,}"


def _tuning(one: Explained) -> Iterator[str]:
    if one.tuning:
        yield f"  tune {one.tuning.keys:,} tuning keys, {one.tuning.benchmark_runs:,} benchmark runs"
        for bucket in one.tuning.buckets:
            yield (
                f"       (call site) {remedy_words(bucket.remedy)}: {bucket.keys:,} tuning keys"
                f"{_confirmed(bucket.keys, bucket.confirmed)}, {bucket.benchmark_runs:,} benchmark runs"
            )


def _cause(cause: Cause) -> str:
    moved = f"moved by {', '.join(cause.axis)}" if cause.axis else "moved by no axis"
    return (
        f"{cause.argument} {cause.kind} {moved}, growth {cause.growth}; {cause.without:,} without it: "
        f"{listed([text.removeprefix('int ') for text in cause.classes])}"
    )


def _finding(finding: Finding) -> str:
    subject = finding.kernel or finding.sweep or ""
    return f"{finding.code} {finding.name} {subject}: {finding.message}"


def _variants(count: int) -> str:
    return f"{count:,} variant{'' if count == 1 else 's'}"


def _kernels(count: int) -> str:
    return f"{count:,} kernel{'' if count == 1 else 's'}"


def _styled(line: str) -> Text:
    return Text(line, style="bold" if not line.startswith(" ") else "")
