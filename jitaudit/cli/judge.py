"""The commands that end with 1 where something is wrong: gate, check."""

from __future__ import annotations

import sys
from datetime import date
from pathlib import Path

import typer

from jitaudit import (
    checking,
    configuration,
    gating,
    manifest,
    planning,
)
from jitaudit.cli.application import app
from jitaudit.cli.options import (
    JUDGE,
    Architecture,
    Architectures,
    Axes,
    Base,
    CacheDirectory,
    DataFormat,
    Force,
    GateFormat,
    GatePrinted,
    Gpu,
    Groups,
    Kernels,
    ManifestsOrTargets,
    Outputs,
    PrintedData,
    Reason,
    SweepFiles,
    Targets,
    Tighten,
    Update,
    Verbose,
)
from jitaudit.cli.output import axis_texts, emit, note, progress_bar
from jitaudit.errors import RequestError
from jitaudit.gating import Question
from jitaudit.report import check as check_report
from jitaudit.report import gate as gate_report
from jitaudit.sweeping import Narrowing


@app.command(rich_help_panel=JUDGE)
def gate(
    arguments: Targets = None,
    base: Base = None,
    architecture: Architectures = None,
    axes: Axes = None,
    groups: Groups = None,
    kernels: Kernels = None,
    gpu: Gpu = False,
    update: Update = False,
    reason: Reason = None,
    tighten: Tighten = False,
    form: GatePrinted = GateFormat.text,
    outputs: Outputs = None,
    force: Force = False,
    verbose: Verbose = False,
) -> None:
    """Fail when a kernel exceeds its budget, grows without bound, or has variants that lock or base do not have."""
    files = {path: gate_report.format_of(path, form.value) for path in outputs or ()}
    for path in files:
        manifest.require_writable(path, force=force)
    if (reason is None) == update:
        raise RequestError('--update and --reason go together: jitaudit gate --update --reason "why"')
    narrowing = Narrowing(axis_texts(axes), tuple(groups or ()), tuple(kernels or ()), gpu=gpu)
    question = Question(tuple(arguments or ()), architecture, narrowing, base, reason, tighten)
    with progress_bar() as progress:
        gated = gating.gate(configuration.read(Path.cwd()), question, date.today(), progress)
    for path, written in files.items():
        manifest.write_whole(gate_report.printed(gated, written, verbose=verbose).encode(), path, force=force)
    emit(gate_report.printed(gated, form.value, verbose=verbose))
    note(gate_report.summary(gated))
    if not gated.passed:
        raise typer.Exit(1)


@app.command(rich_help_panel=JUDGE)
def check(
    arguments: ManifestsOrTargets = None,
    architecture: Architecture = "cuda:90",
    cache_directory: CacheDirectory = None,
    sweeps: SweepFiles = None,
    axes: Axes = None,
    groups: Groups = None,
    kernels: Kernels = None,
    form: PrintedData = DataFormat.text,
    verbose: Verbose = False,
) -> None:
    """Say whether a server started here finds every variant, and why not; compiles nothing, no GPU needed."""
    cache = planning.cache_here(cache_directory)
    narrowing = Narrowing(axis_texts(axes), tuple(groups or ()), tuple(kernels or ()))
    with progress_bar() as progress:
        asked = planning.wanted(arguments or (), architecture, narrowing, sweeps or (), progress)
        checked = checking.check_cache(*asked, cache, progress)
    emit(checked if form is DataFormat.json else check_report.text(checked, sys.argv[2:], verbose=verbose))
    if not checked.passes:
        raise typer.Exit(1)
