"""The commands that compile and measure: warm, stall."""

from __future__ import annotations

import typer

from jitaudit import (
    manifest,
    planning,
    stalling,
    warming,
)
from jitaudit.cli.application import app
from jitaudit.cli.options import (
    ACT,
    WORKERS,
    Architecture,
    Axes,
    CacheDirectory,
    DataFormat,
    Force,
    Format,
    Generic,
    Gpu,
    Groups,
    Jobs,
    Kernels,
    ManifestsOrTargets,
    OneTarget,
    Passes,
    Printed,
    PrintedData,
    Repair,
    Repeats,
    ResultFile,
    Seconds,
    SweepFiles,
    Timeout,
    TraceFile,
    Tuning,
    Verbose,
)
from jitaudit.cli.output import as_json, axis_texts, emit, progress_bar, write_result
from jitaudit.errors import Interrupted, RequestError, SetupError
from jitaudit.report import stall as stall_report
from jitaudit.report import trace as trace_report
from jitaudit.report import warm as warm_report
from jitaudit.sweeping import Narrowing


@app.command(rich_help_panel=ACT)
def warm(
    arguments: ManifestsOrTargets = None,
    architecture: Architecture = "cuda:90",
    cache_directory: CacheDirectory = None,
    sweeps: SweepFiles = None,
    axes: Axes = None,
    groups: Groups = None,
    kernels: Kernels = None,
    jobs: Jobs = WORKERS,
    timeout: Timeout = 600.0,
    budget: Seconds = None,
    generic: Generic = False,
    repair: Repair = False,
    gpu: Tuning = False,
    form: PrintedData = DataFormat.text,
    verbose: Verbose = False,
) -> None:
    """Compile every variant into Triton's cache directory, in parallel; only --gpu needs one."""
    cache = planning.cache_here(cache_directory)
    narrowing = Narrowing(axis_texts(axes), tuple(groups or ()), tuple(kernels or ()))
    settings = warming.Settings(jobs, timeout, budget, generic, repair, gpu)
    with progress_bar() as progress:
        asked = planning.wanted(arguments or (), architecture, narrowing, sweeps or (), progress)
        warmed = warming.warm_cache(*asked, cache, settings, progress)
    emit(warmed if form is DataFormat.json else warm_report.text(warmed, verbose=verbose))
    if warmed.stopped == "interrupted":
        raise Interrupted("interrupted: what was compiled is there, and the next run goes on from it")
    if warmed.stopped:
        raise SetupError(f"{cache.path} ({cache.decided_by}): {warmed.stopped}")
    if not warmed.complete:
        raise typer.Exit(1)


@app.command(rich_help_panel=ACT)
def stall(
    target: OneTarget = stalling.DEFAULT_TARGET,
    architecture: Architecture = "cuda:90",
    axes: Axes = None,
    passes: Passes = None,
    repeats: Repeats = 5,
    gpu: Gpu = False,
    form: Printed = Format.text,
    output: ResultFile = None,
    trace: TraceFile = None,
    force: Force = False,
) -> None:
    """Measure how long the first pass stands still; without --gpu its compile part."""
    if output is not None and output == trace:
        raise RequestError(f"--output and --trace are both {output}: give each a file of its own")
    for path in filter(None, (output, trace)):
        manifest.require_writable(path, force=force)
    names = tuple(filter(None, (passes or "").split(",")))
    with progress_bar() as progress:
        stalls = stalling.stall(
            target, architecture, axis_texts(axes), names, gpu=gpu, repeats=repeats, progress=progress
        )
    if output is not None:
        write_result(output, as_json(stalls))
    if trace is not None:
        write_result(trace, trace_report.trace(stalls))
    match form:
        case Format.json:
            emit(stalls)
        case Format.markdown:
            emit(stall_report.markdown(stalls))
        case Format.text:
            emit(stall_report.text(stalls))
    if not stalls.complete:
        raise typer.Exit(1)
