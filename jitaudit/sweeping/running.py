"""Run targets, each in a process of its own with private cache directories, into one manifest."""

from __future__ import annotations

from collections.abc import Sequence, Set
from fnmatch import fnmatchcase

import msgspec

from jitaudit import manifest as manifests
from jitaudit.errors import RequestError
from jitaudit.model import Manifest
from jitaudit.sweeping.hosts import read_host_values
from jitaudit.sweeping.process import HERE, Place, Progress, ask
from jitaudit.sweeping.relocating import Relocation
from jitaudit.sweeping.targets import Target, read_target


class Narrowing(msgspec.Struct, frozen=True):
    """What of the targets' sweeps to run, and how."""

    axes: dict[str, str] = {}
    """Axis name → its values as text."""
    groups: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()
    """Globs over kernel ids."""
    compile: bool = False
    gpu: bool = False
    host_values: tuple[str, ...] = ()
    """``FILE:LINE=VALUE`` each: what launchers read on the host."""
    orders: bool = False
    """Run the cases in three orders, and say which kernels' variants depend on it."""
    stubs: tuple[str, ...] = ()
    """Modules that can't be imported here, to be stood in for."""

    def of(self, manifest: Manifest) -> Manifest:
        """The manifest with only the groups and kernels that are wanted. Raises RequestError where one is unknown."""
        groups = {kernel.group for kernel in manifest.kernels if kernel.group is not None}
        _require_known("--group", self.groups, groups, "no kernel has it")
        kernels = [kernel for kernel in manifest.kernels if not self.groups or kernel.group in self.groups]
        for glob in self.kernels:
            if not any(_matches(kernel.id, glob) for kernel in kernels):
                known = ", ".join(sorted({kernel.id for kernel in kernels}))
                raise RequestError(f"--kernel {glob}: no kernel matches; there are {known or 'none'}")
        chosen = tuple(k for k in kernels if not self.kernels or any(_matches(k.id, glob) for glob in self.kernels))
        ids = {kernel.id for kernel in chosen}
        findings = tuple(f for f in manifest.findings if not self.kernels or f.kernel is None or f.kernel in ids)
        return msgspec.structs.replace(manifest, kernels=chosen, findings=findings)


class Request(msgspec.Struct, frozen=True):
    """What the child process is asked."""

    target: Target
    architecture: str
    narrowing: Narrowing
    relocation: Relocation | None = None


class Answer(msgspec.Struct, frozen=True):
    """What the child process found; the axes and groups that its sweeps have, and the lines that read values."""

    manifest: Manifest
    axes: tuple[str, ...]
    groups: tuple[str, ...]
    host_lines: tuple[str, ...]
    """As the user named them, with the values that are given."""
    unanswered: tuple[str, ...]


def run(
    targets: Sequence[str],
    architecture: str,
    narrowing: Narrowing,
    progress: Progress = lambda sweep, done, cases: None,
) -> Manifest:
    """Run the sweeps of `targets` for `architecture` (`cuda:90`) and return what they reach.

    Raises RequestError for what the request gets wrong and SetupError for what this machine lacks.
    """
    read = [read_target(text) for text in targets]
    answers = [_run_target(target, architecture, narrowing, progress, HERE) for target in read]
    _require_known(
        "--axis", narrowing.axes, {axis for answer in answers for axis in answer.axes}, "no sweep has this axis"
    )
    _require_known(
        "--group", narrowing.groups, {g for answer in answers for g in answer.groups}, "no sweep compares it"
    )
    lines = {line for answer in answers for line in answer.host_lines}
    given = tuple(read_host_values(narrowing.host_values))
    unanswered = {line for answer in answers for line in answer.unanswered}
    _require_known("--host-value", given, lines, "no case read an unknown value there", unanswered)
    united = manifests.union([answer.manifest for answer in answers])
    return msgspec.structs.replace(narrowing, groups=()).of(united)


def run_at(place: Place, target: str, architecture: str, narrowing: Narrowing, progress: Progress) -> Manifest:
    """Run the sweeps of one target somewhere else; axes, groups and kernels that are not there are no error.

    Raises RequestError and SetupError as `run` does.
    """
    return _run_target(read_target(target), architecture, narrowing, progress, place).manifest


def _run_target(target: Target, architecture: str, narrowing: Narrowing, progress: Progress, place: Place) -> Answer:
    request = Request(target=target, architecture=architecture, narrowing=narrowing, relocation=place.relocation)
    return ask("jitaudit.sweeping.child", request, Answer, target.text, progress, place=place)


def _require_known(
    option: str,
    given: Sequence[str] | dict[str, str],
    known: set[str],
    wrong: str,
    others: Set[str] = frozenset(),
) -> None:
    for name in given:
        if name not in known:
            there = f"there are {', '.join(sorted(known | others))}" if known | others else "there are none"
            raise RequestError(f"{option} {name}: {wrong}; {there}")


def _matches(kernel: str, glob: str) -> bool:
    return fnmatchcase(kernel, glob) or fnmatchcase(kernel.rpartition(":")[2], glob)
