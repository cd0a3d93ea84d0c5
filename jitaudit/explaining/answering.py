"""From the command's arguments to an explanation or a difference: manifests are read, targets are probed first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from jitaudit import manifest as manifests
from jitaudit.errors import RequestError, SetupError
from jitaudit.explaining.confirming import Place, confirm, measure, places_of_manifest, places_of_targets
from jitaudit.explaining.differing import Diff, diff
from jitaudit.explaining.explanation import Explanation, explain_manifest
from jitaudit.jit.target import DEFAULT_TARGET
from jitaudit.model import Manifest
from jitaudit.sweeping import Narrowing, Progress, run
from jitaudit.sweeping.targets import split_arguments


class Question(msgspec.Struct, frozen=True):
    """What to explain, and how much of it to put to the test."""

    arguments: tuple[str, ...]
    architecture: str | None = None
    """None: the manifest's, else cuda:90."""
    narrowing: Narrowing = Narrowing()
    compile: bool = False
    gpu: bool = False
    """Launch and time too what `compile` compiles."""
    files: tuple[Path, ...] = ()
    """With manifests: the files that hold sweeps."""


def explain(question: Question, progress: Progress) -> Explanation:
    """Explain manifests (arguments that end in ``.json``, united) or targets, which are probed first.

    Raises RequestError for a mixture, and where a manifest is for another target than the one asked for. A GPU that is
    asked for and not here stands in the explanation.
    """
    manifest, places, notes = _read(question, question.arguments, progress)
    explanation = explain_manifest(manifest)
    if question.compile:
        explanation = confirm(explanation, manifest, places, progress)
        explanation = msgspec.structs.replace(explanation, notes=(*notes, *explanation.notes))
    if question.gpu:
        try:
            explanation = measure(explanation, places, progress)
        except SetupError as error:
            explanation = msgspec.structs.replace(explanation, missing=str(error))
    return explanation


def explain_difference(question: Question, progress: Progress) -> Diff:
    """What the second manifest or target has that the first has not. Raises RequestError unless there are two."""
    if len(question.arguments) != 2:
        raise RequestError(f"--diff: takes two manifests or targets, got {len(question.arguments)}")
    first, second = (_read(question, (argument,), progress)[0] for argument in question.arguments)
    return diff(first, second)


def _read(
    question: Question, arguments: Sequence[str], progress: Progress
) -> tuple[Manifest, tuple[Place, ...], tuple[str, ...]]:
    """The manifest, where its sweeps can be run again, and notes on those that can't."""
    paths, targets = split_arguments(arguments)
    narrowing = question.narrowing
    if not paths:
        manifest = run(targets, question.architecture or DEFAULT_TARGET, narrowing, progress)
        return manifest, places_of_targets(targets, narrowing), ()
    if targets or narrowing.axes:
        raise RequestError(f"{paths[0]}: a manifest is read as it is: no TARGET or --axis beside it")
    manifest = narrowing.of(manifests.read(paths))
    if question.architecture not in (None, manifest.target):
        raise RequestError(
            f"--target {question.architecture}: {paths[0]} is for {manifest.target}; probe again for another target"
        )
    return manifest, *places_of_manifest(manifest, question.files)
