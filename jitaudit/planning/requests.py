"""What a command's arguments and environment mean: a manifest, whose code may be loaded, and a cache directory."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from jitaudit import configuration
from jitaudit import manifest as manifests
from jitaudit.errors import RequestError, SetupError
from jitaudit.jit.environment import cache_setting
from jitaudit.jit.target import DEFAULT_TARGET
from jitaudit.model import Manifest
from jitaudit.planning.nouns import Cache, Sources
from jitaudit.sweeping import Narrowing, Progress, run
from jitaudit.sweeping.targets import read_target, split_arguments


def wanted(
    arguments: Sequence[str], architecture: str, narrowing: Narrowing, sweeps: Sequence[Path], progress: Progress
) -> tuple[Manifest, Sources]:
    """The manifest that a command's arguments mean, and whose code it may load.

    Manifests (``.json``) are read and united; targets are run. With neither, the project's sweeps are run, or else the
    shipped kernels', of which those with a policy are wanted as floored. Raises RequestError for a mixture.
    """
    paths, targets = split_arguments(arguments)
    given = tuple(map(str, sweeps))
    if paths:
        if targets or narrowing.axes:
            raise RequestError(f"{paths[0]}: a manifest is taken as it is: no TARGET and no --axis beside it")
        read_manifest = manifests.read(paths)
        if architecture not in (read_manifest.target, DEFAULT_TARGET):  # the default was not asked for
            raise RequestError(f"{paths[0]} is for {read_manifest.target}: no --target {architecture} beside it")
        return narrowing.of(read_manifest), Sources(given, targets=given)
    if not targets:
        project = configuration.read(Path.cwd())
        targets = list(project.targets)
        if targets == [configuration.SHIPPED] and not narrowing.groups:
            narrowing = msgspec.structs.replace(narrowing, groups=("floored",))
    read = [read_target(text) for text in targets]
    manifest = run(targets, architecture, narrowing, progress)
    files = tuple(target.file for target in read if target.file is not None)
    return manifest, Sources((*given, *files), any(target.file is None for target in read), (*given, *targets))


def cache_here(given: Path | None) -> Cache:
    """The directory that the user gives, else the one that a Triton process started here would use.

    Raises SetupError where the environment names none.
    """
    if given is not None:
        if given.exists() and not given.is_dir():
            raise SetupError(f"--cache-dir {given} is no directory")
        return Cache(os.path.abspath(given), "--cache-dir")
    setting = cache_setting()
    if not setting.path:
        raise SetupError("TRITON_CACHE_DIR is empty, and Triton refuses to compile; set it to a directory, or unset it")
    return Cache(os.path.abspath(setting.path), setting.decided_by)


def uncounted(manifest: Manifest) -> tuple[str, ...]:
    """The sweeps that reach more than the manifest has: a line each."""
    return tuple(
        f"{sweep.name}: {sweep.counted} of {sweep.cases} cases were counted, and what the others reach is unknown"
        if sweep.verdict == "partial"
        else f"{sweep.name} launched nothing"
        for sweep in manifest.sweeps
        if sweep.verdict != "pass"
    )


NO_THREADS = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""Variables of a process that forks: no threads beside which it would."""
