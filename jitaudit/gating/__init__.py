"""gate: hold the variants that are reached against budgets, a lock or a base, and say what to do about each breach."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import msgspec

from jitaudit import manifest as manifests
from jitaudit.configuration import DEFAULT_BUDGET, Configuration, Project, matches
from jitaudit.errors import RequestError
from jitaudit.gating import lock as locks
from jitaudit.gating.accepting import accepted, covering, lower_budgets, tightened, updated
from jitaudit.gating.bases import laid_out
from jitaudit.gating.comparing import Compared, Comparison, with_base, with_lock
from jitaudit.gating.drift import NO_DRIFT, Scope
from jitaudit.gating.lock import LOCK_FILE, Lock
from jitaudit.gating.verdicts import CODES, Verdict, judge, loose, notes
from jitaudit.gating.words import Advice
from jitaudit.model import Finding, Manifest
from jitaudit.sweeping import Narrowing, Progress, run
from jitaudit.sweeping.targets import split_arguments

__all__ = ["Gate", "Question", "gate"]

_ARCHITECTURE = "cuda:90"
_SHIPPED_GROUP = "floored"
"""The group of the shipped kernels that is looked at unless another is asked for."""


class Question(msgspec.Struct, frozen=True):
    """What the user asks of the gate."""

    arguments: tuple[str, ...] = ()
    """Targets, or manifests."""
    architecture: str | None = None
    """None: those that the configuration names."""
    narrowing: Narrowing = Narrowing()
    base: str | None = None
    update: str | None = None
    """Write the lock anew, for this reason."""
    tighten: bool = False


class Gate(msgspec.Struct, frozen=True):
    """What a gate found."""

    reference: str | None
    """What drift was judged against; None: nothing."""
    targets: tuple[str, ...]
    verdicts: tuple[Verdict, ...]
    notes: tuple[Finding, ...]
    done: tuple[str, ...] = ()
    """What was written, and where."""

    @property
    def passed(self) -> bool:
        """Whether nothing fails."""
        return not any(verdict.fails for verdict in self.verdicts)


def gate(project: Project, question: Question, today: date, progress: Progress) -> Gate:
    """Judge what the sweeps reach; on request write the lock anew, or lower what became too loose.

    Raises RequestError for what the request or the configuration gets wrong, SetupError for what this machine lacks.
    """
    _check(project, question)
    lock = None if question.base else locks.read(project.root / LOCK_FILE)
    if not question.arguments and lock is None and project.configuration == Configuration():
        raise RequestError(_HOW_TO_START)
    narrowing = _narrowing(project, question)
    if question.update is not None:
        lock = covering(lock, narrowing.groups)
    manifests = _manifests(project, question, narrowing, progress)
    scope = Scope(
        whole=_is_whole(project, question, manifests),
        groups=narrowing.groups,
        kernels=narrowing.kernels,
        moved=bool(narrowing.axes),
    )
    if question.base is not None:
        with laid_out(question.base) as base:
            targets = question.arguments or project.targets
            comparison = with_base(manifests, targets, base, scope, narrowing, progress)
    elif lock is not None:
        comparison = with_lock(manifests, lock, scope)
    else:
        comparison = Comparison(None, tuple(map(Compared, manifests)))
    judged = _judged(project, question, comparison, scope, lock, today)
    if question.update is not None and lock is not None:
        return _update(judged, project, lock, comparison.compared, question.update)
    return _tighten(judged, project, lock, comparison.compared, scope) if question.tighten else judged


_HOW_TO_START = (
    'nothing says what to gate: write sweeps = ["sweeps.py"] under [tool.jitaudit] in pyproject.toml, or name a '
    "TARGET; then gate --base origin/main, or commit a lock: jitaudit gate sweeps.py --update --reason 'first lock'"
)


def _check(project: Project, question: Question) -> None:
    for ignore in project.configuration.ignore:
        if ignore.code not in CODES:
            known = ", ".join(sorted(CODES))
            raise RequestError(f"{project.file}: ignore {ignore.code} {ignore.kernel!r}: the gate's codes are {known}")
    paths, targets = split_arguments(question.arguments)
    if paths and (targets or question.base or question.narrowing.axes or question.narrowing.gpu):
        raise RequestError(f"{paths[0]}: a manifest is read as it is: no TARGET, --axis, --gpu or --base beside it")
    if question.base and (question.update is not None or question.tighten):
        raise RequestError("--base: nothing is written against a base; leave out --update and --tighten")
    if question.update is not None and not question.update.strip():
        raise RequestError("--update: say why with --reason; it stands in the lock, for the review")
    if question.narrowing.axes and (question.update is not None or question.tighten):
        raise RequestError("--axis: the lock and the budgets hold for the sweeps as they are; leave it out")


def _narrowing(project: Project, question: Question) -> Narrowing:
    shipped = not question.arguments and not project.configuration.sweeps
    groups = question.narrowing.groups or ((_SHIPPED_GROUP,) if shipped else ())
    return msgspec.structs.replace(question.narrowing, groups=groups)


def _manifests(project: Project, question: Question, narrowing: Narrowing, progress: Progress) -> tuple[Manifest, ...]:
    """A manifest for each architecture; those that were given, as one."""
    paths, targets = split_arguments(question.arguments)
    if paths:
        read = narrowing.of(manifests.read(paths))
        if question.architecture not in (None, read.target):
            raise RequestError(f"{paths[0]}: it is for {read.target}, not for --target {question.architecture}")
        return (read,)
    configured = project.configuration.targets or (_ARCHITECTURE,)
    architectures = (question.architecture,) if question.architecture else configured
    return tuple(run(targets or project.targets, name, narrowing, progress) for name in architectures)


def _is_whole(project: Project, question: Question, found: Sequence[Manifest]) -> bool:
    narrowed = question.arguments or question.narrowing.axes or question.narrowing.kernels
    return not narrowed and {manifest.target for manifest in found} >= set(project.configuration.targets)


def _judged(
    project: Project, question: Question, comparison: Comparison, scope: Scope, lock: Lock | None, today: date
) -> Gate:
    configuration = project.configuration
    advice = Advice(shlex.join(question.arguments), locked=lock is not None)
    verdicts = [*comparison.verdicts]
    for one in comparison.compared:
        verdicts += judge(one.manifest, one.drift, configuration, scope, today, advice)
    _require_budgeted(project, verdicts, scope)
    return Gate(
        reference=comparison.reference,
        targets=tuple(one.manifest.target for one in comparison.compared),
        verdicts=tuple(_located(verdict, project.root, lock) for verdict in verdicts),
        notes=(*comparison.notes, *notes(verdicts, configuration, scope, today)),
    )


def _require_budgeted(project: Project, verdicts: Sequence[Verdict], scope: Scope) -> None:
    """Raise RequestError for a budget that binds no kernel."""
    launched = [(v.kernel, v.group) for v in verdicts if v.kernel is not None and v.variants]
    for glob in project.configuration.budget:
        unbound = not any(matches(*name, glob) for name in launched)
        if unbound and glob != DEFAULT_BUDGET and scope.sees_all_of(glob):
            known = ", ".join(sorted({kernel for kernel, _ in launched})) or "none"
            raise RequestError(
                f"{project.file}: budget {glob!r}: no sweep launches such a kernel; launched are {known}"
            )


def _located(verdict: Verdict, root: Path, lock: Lock | None) -> Verdict:
    """The verdict with its file relative to the repository; a kernel that is gone is located in the lock."""
    repository = next((folder for folder in (root, *root.parents) if (folder / ".git").exists()), root)
    file, line = verdict.file, verdict.line
    if file is None and lock is not None and verdict.kernel is not None and verdict.gone:
        file, line = LOCK_FILE, locks.line_of(root / LOCK_FILE, verdict.kernel)
    if file is None:
        return verdict
    path = root / file
    if line is None and verdict.kernel is not None:
        line = _line_of(path, verdict.kernel)
    relative = path.relative_to(repository) if path.is_relative_to(repository) else path
    return msgspec.structs.replace(verdict, file=relative.as_posix(), line=line)


def _line_of(file: Path, kernel: str) -> int | None:
    """The line that defines a kernel which no case launched."""
    definition = re.compile(rf"\s*def {re.escape(re.split('[:.]', kernel)[-1])}\(")
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines() if file.is_file() else []
    return next((number for number, line in enumerate(lines, 1) if definition.match(line)), None)


def _update(judged: Gate, project: Project, lock: Lock, compared: Sequence[Compared], reason: str) -> Gate:
    for one in compared:
        lock = updated(lock, one.manifest, one.drift or NO_DRIFT, reason)
    verdicts = tuple(accepted(verdict, ("JA302", "JA303"), f"accepted: {reason}") for verdict in judged.verdicts)
    return msgspec.structs.replace(judged, verdicts=verdicts, done=(_written(project, lock),))


def _tighten(judged: Gate, project: Project, lock: Lock | None, compared: Sequence[Compared], scope: Scope) -> Gate:
    done: list[str] = []
    if lock is not None:
        for one in compared:
            lock = tightened(lock, one.manifest, one.drift or NO_DRIFT)
        done.append(_written(project, lock))
    lower = loose(judged.verdicts, project.configuration, scope)
    if lower and project.file is not None:
        lower_budgets(project.file, lower)
        done += [f"{project.file.name}: budget {glob!r} is now {most}" for glob, most in lower.items()]
    verdicts = tuple(accepted(verdict, ("JA303",), "no longer allowed") for verdict in judged.verdicts)
    kept = tuple(note for note in judged.notes if note.code != "JA309")
    return msgspec.structs.replace(judged, verdicts=verdicts, notes=kept, done=tuple(done))


def _written(project: Project, lock: Lock) -> str:
    """Write the lock where it changed; what was done, in words."""
    path = project.root / LOCK_FILE
    if path.exists() and path.read_bytes() == locks.encode(lock):
        return f"{LOCK_FILE}: nothing changed"
    locks.write(lock, path)
    kernels = [kernel for entries in lock.targets.values() for kernel in entries]
    return f"{LOCK_FILE}: {sum(len(k.keys) for k in kernels):,} variants of {len(kernels):,} kernels are allowed"
