"""The gate's word on each kernel: over its budget, unbounded, drifted, never launched, or fine. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from typing import Literal

import msgspec

from jitaudit.configuration import DEFAULT_BUDGET, Configuration, Ignore, kernel_name, matches
from jitaudit.gating import words
from jitaudit.gating.drift import Drift, Drifted, Name, Scope, explained, renamed
from jitaudit.gating.lock import ordered, shared_lines
from jitaudit.judging.remedies import Remedies
from jitaudit.model import Finding, Kernel, Manifest, SweepRun

Word = Literal["PASS", "OVER", "UNBOUNDED", "NEW", "GONE", "NEVER LAUNCHED", "NOT COUNTED", "NEW SWEEP"]

CODES: dict[str, tuple[str, Word]] = {
    "JA301": ("over-budget", "OVER"),
    "JA304": ("unbounded", "UNBOUNDED"),
    "JA302": ("new-variant", "NEW"),
    "JA303": ("gone-variant", "GONE"),
    "JA006": ("never-launched", "NEVER LAUNCHED"),
    "JA305": ("not-counted", "NOT COUNTED"),
    "JA306": ("new-sweep", "NEW SWEEP"),
}
"""The codes that the gate judges by, with their names and words, the worst first."""

NOTES = {"JA307": "unused-suppression", "JA308": "expired-suppression", "JA309": "loose-budget", "JA310": "moved-sweep"}
"""The codes of what the gate only notes."""


class Breach(msgspec.Struct, frozen=True):
    """One thing that the gate holds against a kernel or a sweep."""

    code: str
    message: str
    cause: str
    remedy: str
    command: str
    """What to run next."""
    fails: bool
    excused: str | None = None
    """Why it does not fail: a suppression, or an update of the lock."""

    @property
    def word(self) -> Word:
        """``OVER``, ``NEW``, …"""
        return CODES[self.code][1]


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The gate's word on one kernel, or on a sweep that tells nothing about its kernels."""

    target: str
    kernel: str | None = None
    group: str | None = None
    sweep: str | None = None
    variants: int = 0
    budget: int | None = None
    breaches: tuple[Breach, ...] = ()
    """The worst first."""
    new: tuple[str, ...] = ()
    """The lines in which each new variant differs from the kernel's others."""
    gone: tuple[str, ...] = ()
    drifted: tuple[Drifted, ...] = ()
    """The first of the new ones, beside what is allowed."""
    file: str | None = None
    line: int | None = None

    @property
    def word(self) -> Word:
        """The worst that is not excused."""
        return next((breach.word for breach in self.breaches if breach.excused is None), "PASS")

    @property
    def fails(self) -> bool:
        """Whether it fails the gate."""
        return any(breach.fails for breach in self.breaches)

    @property
    def name(self) -> str:
        """The kernel as the gate writes it, or the sweep."""
        return kernel_name(self.kernel or self.sweep or "", self.group)


def judge(
    manifest: Manifest,
    drift: Drift | None,
    configuration: Configuration,
    scope: Scope,
    today: date,
    advice: words.Advice,
) -> tuple[Verdict, ...]:
    """A verdict on each kernel and on each sweep that could not be counted, by name.

    `today` decides which suppressions still hold.
    """
    kernels = {(kernel.id, kernel.group): kernel for kernel in manifest.kernels}
    never = {f.kernel: f for f in manifest.findings if f.code == "JA006" and f.kernel is not None}
    lost = sorted(set(drift.gone if drift else ()) - kernels.keys(), key=str)
    verdicts = [
        *(_on_kernel(kernel, manifest, drift, configuration, advice) for kernel in kernels.values()),
        *(_on_lost(name, drift, manifest, configuration, advice) for name in lost if drift and name[0] not in never),
        *(_on_never_launched(id, manifest, advice) for id in never if scope.holds(id, None)),
        *(_on_sweep(run, manifest, advice) for run in manifest.sweeps if run.verdict != "pass"),
    ]
    judged = sorted((_excused(verdict, configuration.ignore, today) for verdict in verdicts), key=lambda v: v.name)
    return tuple(judged)


def notes(verdicts: Sequence[Verdict], configuration: Configuration, scope: Scope, today: date) -> tuple[Finding, ...]:
    """Suppressions that nothing needs or that are over, and budgets that became too loose."""
    found = []
    for ignore in configuration.ignore:
        used = any(_covers(ignore, verdict, breach) for verdict in verdicts for breach in verdict.breaches)
        if not used and scope.sees_all_of(ignore.kernel):
            message = f"nothing needs the suppression ({ignore.reason}); delete it"
            found.append(_note("JA307", ignore.kernel, f"{ignore.code}: {message}"))
        elif used and ignore.until is not None and ignore.until < today:
            found.append(_note("JA308", ignore.kernel, f"{ignore.code}: held until {ignore.until}; fix it or renew it"))
    for glob, most in loose(verdicts, configuration, scope).items():
        message = f"the budget is {configuration.budget[glob]}, {most} are reached; jitaudit gate --tighten lowers it"
        found.append(_note("JA309", glob, message))
    return tuple(found)


def loose(verdicts: Sequence[Verdict], configuration: Configuration, scope: Scope) -> dict[str, int]:
    """The budgets that are larger than what their kernels reach, with what they reach. The default is left alone."""
    reached: dict[str, int] = {}
    for verdict in verdicts:
        decides = configuration.budget_of(verdict.kernel, verdict.group) if verdict.kernel else None
        if decides is not None:
            reached[decides[0]] = max(verdict.variants, reached.get(decides[0], 0))
    return {
        glob: reached[glob]
        for glob, most in configuration.budget.items()
        if reached.get(glob, most) < most and glob != DEFAULT_BUDGET and scope.sees_all_of(glob)
    }


def _on_kernel(
    kernel: Kernel, manifest: Manifest, drift: Drift | None, configuration: Configuration, advice: words.Advice
) -> Verdict:
    remedies = Remedies(kernel, manifest.sweeps, manifest.target)
    budget = configuration.budget_of(kernel.id, kernel.group)
    command = advice.explain(kernel.id, manifest.target)
    verdict = Verdict(
        target=manifest.target,
        kernel=kernel.id,
        group=kernel.group,
        variants=len(kernel.variants),
        budget=budget[1] if budget else None,
        breaches=tuple(_beyond_budget(remedies, budget, command)),
        file=kernel.file,
        line=kernel.line,
    )
    return verdict if drift is None else _with_drift(verdict, drift, remedies, manifest, configuration, advice)


def _beyond_budget(remedies: Remedies, budget: tuple[str, int] | None, command: str) -> Iterator[Breach]:
    reach = remedies.reach
    count = len(reach.kernel.variants)
    if budget is not None and count > budget[1]:
        message = f"{words.variants(count)}, budget {budget[1]:,} ({budget[0]!r})"
        yield Breach("JA301", message, words.cause(reach), words.remedy(remedies), command, fails=True)
    elif budget is None and reach.growth == "linear":
        message = f"{words.variants(count)} here, no budget, and more with every step of the axis"
        yield Breach("JA304", message, words.cause(reach), words.remedy(remedies), command, fails=True)


def _with_drift(
    verdict: Verdict,
    drift: Drift,
    remedies: Remedies,
    manifest: Manifest,
    configuration: Configuration,
    advice: words.Advice,
) -> Verdict:
    name = (verdict.kernel or "", verdict.group)
    known, new, gone = (keys.get(name, frozenset()) for keys in (drift.known, drift.new, drift.gone))
    if not (new or gone):
        return verdict
    drifted = explained(new, known)
    command = advice.explain(name[0], verdict.target)
    if new and known:
        cause = words.drift_cause(drifted, remedies.reach)
        remedy = words.drift_remedy(drifted, remedies, advice)
    else:
        cause = words.arrival(renamed(name, drift, manifest)) if new else words.LOST
        remedy = advice.accept("the kernel" if new else "the loss")
    if new:
        message = f"{words.variants(len(new))} of {verdict.variants:,} not allowed yet"
        message += f", {len(gone):,} gone" if gone else ""
        breach = Breach("JA302", message, cause, remedy, command, fails=configuration.drift != "allow")
    else:
        message = f"{words.variants(len(gone))} of {len(known):,} gone"
        breach = Breach("JA303", message, cause, remedy, command, fails=configuration.drift == "fail")
    shared = shared_lines([*new, *gone, *known])
    return msgspec.structs.replace(
        verdict,
        breaches=(*verdict.breaches, breach),
        new=tuple(_varying(key, shared) for key in ordered(new)),
        gone=tuple(_varying(key, shared) for key in ordered(gone)),
        drifted=drifted,
    )


def _on_lost(
    name: Name, drift: Drift, manifest: Manifest, configuration: Configuration, advice: words.Advice
) -> Verdict:
    """The verdict on a kernel that is allowed and that nothing launches any more."""
    heirs = [heir for heir in drift.new if renamed(heir, drift, manifest) == name[0] and heir[1] == name[1]]
    cause = words.departure(heirs[0][0] if heirs else None)
    message = f"the kernel is gone, and its {words.variants(len(drift.gone[name]))}"
    command = advice.probe(manifest.target)
    breach = Breach("JA303", message, cause, advice.accept("the loss"), command, configuration.drift == "fail")
    shared = shared_lines(drift.gone[name])
    gone = tuple(_varying(key, shared) for key in ordered(drift.gone[name]))
    return Verdict(target=manifest.target, kernel=name[0], group=name[1], gone=gone, breaches=(breach,))


def _on_never_launched(id: str, manifest: Manifest, advice: words.Advice) -> Verdict:
    remedy = "add a sweep that launches it, or delete the kernel"
    breach = Breach("JA006", words.NEVER, words.NEVER_CAUSE, remedy, advice.probe(manifest.target), True)
    return Verdict(target=manifest.target, kernel=id, breaches=(breach,), file=_file_of(id, manifest))


def _on_sweep(run: SweepRun, manifest: Manifest, advice: words.Advice) -> Verdict:
    reasons = [f"{f.code} {f.message}" for f in manifest.findings if f.sweep == run.name]
    message = f"counted {run.counted:,} of {run.cases:,} cases: {run.verdict}"
    cause = reasons[0] if reasons else "its cases launched no kernel"
    remedy = "make every case of the sweep run; what is not counted is not judged"
    breach = Breach("JA305", message, cause, remedy, advice.probe(manifest.target), True)
    return Verdict(target=manifest.target, sweep=run.name, breaches=(breach,))


def _excused(verdict: Verdict, ignores: tuple[Ignore, ...], today: date) -> Verdict:
    def excuse(breach: Breach) -> Breach:
        for ignore in ignores:
            if _covers(ignore, verdict, breach) and (ignore.until is None or today <= ignore.until):
                until = "" if ignore.until is None else f" until {ignore.until}"
                return msgspec.structs.replace(breach, fails=False, excused=f"suppressed{until}: {ignore.reason}")
        return breach

    return msgspec.structs.replace(verdict, breaches=tuple(map(excuse, verdict.breaches)))


def _covers(ignore: Ignore, verdict: Verdict, breach: Breach) -> bool:
    return ignore.code == breach.code and matches(verdict.kernel or verdict.sweep or "", verdict.group, ignore.kernel)


def _varying(key: tuple[str, ...], shared: frozenset[str]) -> str:
    return ", ".join(line for line in key if line not in shared)


def _file_of(kernel: str, manifest: Manifest) -> str | None:
    """The file of a kernel's module, where another kernel of it was launched."""
    module = kernel.rpartition(":")[0]
    files: Iterator[str] = (k.file for k in manifest.kernels if k.id.rpartition(":")[0] == module)
    return next(files, module if module.endswith(".py") else None)


def _note(code: str, kernel: str, message: str) -> Finding:
    return Finding(code=code, name=NOTES[code], message=message, kernel=kernel)
