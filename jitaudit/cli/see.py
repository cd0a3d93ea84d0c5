"""The commands that show what is: doctor, probe, scan, explain, rule."""

from __future__ import annotations

from pathlib import Path

import typer

from jitaudit import (
    configuration,
    explaining,
    manifest,
    probing,
    ruling,
    scanning,
)
from jitaudit import doctor as diagnosing
from jitaudit.cli.application import app
from jitaudit.cli.options import (
    SEE,
    Against,
    AnyArchitecture,
    Architecture,
    Architectures,
    Axes,
    Code,
    Compiling,
    Confirming,
    DataFormat,
    Differing,
    Explainable,
    Force,
    Format,
    Gpu,
    Groups,
    HostValues,
    Kernels,
    Orders,
    Output,
    Paths,
    Printed,
    PrintedData,
    Prune,
    ResultFile,
    Since,
    Stubs,
    SweepFiles,
    Targets,
    Timing,
    Verbose,
    Yes,
)
from jitaudit.cli.output import as_json, axis_texts, emit, note, progress_bar
from jitaudit.errors import RequestError, SetupError
from jitaudit.report import doctor as doctor_report
from jitaudit.report import explain as explain_report
from jitaudit.report import probe as probe_report
from jitaudit.report import scan as scan_report
from jitaudit.scanning import Comparison, Pruning, Scan
from jitaudit.sweeping import Narrowing


@app.command(rich_help_panel=SEE)
def doctor(form: PrintedData = DataFormat.text) -> None:
    """What is here: versions, GPUs, compilers, and where the JIT caches really are."""
    diagnosis = diagnosing.diagnose()
    emit(diagnosis if form is DataFormat.json else doctor_report.text(diagnosis))


@app.command(rich_help_panel=SEE)
def probe(
    targets: Targets = None,
    architecture: Architecture = "cuda:90",
    axes: Axes = None,
    groups: Groups = None,
    kernels: Kernels = None,
    compile: Compiling = False,
    gpu: Gpu = False,
    host_values: HostValues = None,
    orders: Orders = False,
    stubs: Stubs = None,
    form: Printed = Format.text,
    output: Output = None,
    force: Force = False,
    verbose: Verbose = False,
) -> None:
    """Count the variants that launchers reach over their sweeps, and say why; no GPU needed."""
    if output is not None:
        manifest.require_writable(output, force=force)
    narrowing = Narrowing(
        axis_texts(axes),
        tuple(groups or ()),
        tuple(kernels or ()),
        compile=compile,
        gpu=gpu,
        host_values=tuple(host_values or ()),
        orders=orders,
        stubs=tuple(stubs or ()),
    )
    with progress_bar() as progress:
        probed = probing.probe(targets or configuration.read(Path.cwd()).targets, architecture, narrowing, progress)
    if output is not None:
        manifest.write(probed.manifest, output, force=force)
    match form:
        case Format.json:
            emit(probe_report.document(probed))
        case Format.markdown:
            emit(probe_report.markdown(probed))
        case Format.text:
            emit(probe_report.text(probed, verbose=verbose))
    note(probe_report.summary(probed))
    if not probed.complete:
        raise typer.Exit(1)


@app.command(rich_help_panel=SEE)
def scan(
    paths: Paths,
    since: Since = None,
    against: Against = None,
    target: AnyArchitecture = None,
    kernels: Kernels = None,
    form: Printed = Format.text,
    output: Output = None,
    force: Force = False,
    prune: Prune = False,
    yes: Yes = False,
    verbose: Verbose = False,
) -> None:
    """Read the cache directory or the log that a server already has; loads no Triton, imports no kernel."""
    if output is not None:
        manifest.require_writable(output, force=force)
    result = _scanned(
        paths, since, against, target, tuple(kernels or ()), prune=prune, yes=yes, writes=output is not None
    )
    if output is not None and not isinstance(result, Pruning):
        manifest.write(result.manifest, output, force=force)
    match form:
        case Format.json:
            emit(scan_report.document(result))
        case Format.markdown:
            emit(scan_report.markdown(result))
        case Format.text:
            emit(scan_report.text(result, verbose=verbose))
    note(scan_report.summary(result))


@app.command(rich_help_panel=SEE)
def explain(
    arguments: Explainable = None,
    architecture: Architectures = None,
    axes: Axes = None,
    groups: Groups = None,
    kernels: Kernels = None,
    compile: Confirming = False,
    gpu: Timing = False,
    difference: Differing = False,
    sweeps: SweepFiles = None,
    form: Printed = Format.text,
    output: ResultFile = None,
    force: Force = False,
    verbose: Verbose = False,
) -> None:
    """Say which argument makes each variant, what to change, what that leads to, and what it costs."""
    if output is not None:
        manifest.require_writable(output, force=force)
    question = explaining.Question(
        arguments=tuple(arguments or configuration.read(Path.cwd()).targets),
        architecture=architecture,
        narrowing=Narrowing(axis_texts(axes), tuple(groups or ()), tuple(kernels or ())),
        compile=compile or gpu,
        gpu=gpu,
        files=tuple(sweeps or ()),
    )
    with progress_bar() as progress:
        found = (explaining.explain_difference if difference else explaining.explain)(question, progress)
    if output is not None:
        manifest.write_whole(as_json(found), output, force=force)
    emit(explain_report.printed(found, form.value, verbose=verbose))
    match found:
        case explaining.Explanation(missing=str() as missing):
            raise SetupError(missing)
        case explaining.Diff(kernels=(_, *_)):
            raise typer.Exit(1)


@app.command(rich_help_panel=SEE)
def rule(code: Code = None) -> None:
    """Show the page of a finding's code: what it is, an example, the fix, and what the fix costs."""
    emit(ruling.page(code) if code else ruling.contents())


def _scanned(
    paths: list[Path],
    since: str | None,
    against: Path | None,
    target: str | None,
    kernels: tuple[str, ...],
    *,
    prune: bool,
    yes: bool,
    writes: bool,
) -> Scan | Comparison | Pruning:
    given = {"--prune": prune, "--since": since is not None, "--against": against is not None}
    chosen = [name for name, chosen in given.items() if chosen]
    if len(chosen) > 1:
        raise RequestError(f"{' and '.join(chosen)}: one at a time")
    if yes and not prune:
        raise RequestError("--yes: only --prune removes anything")
    if prune and kernels:
        raise RequestError("--kernel: --prune looks at every entry; leave it out")
    if prune and writes:
        raise RequestError("-o: --prune makes no manifest; leave it out")
    if prune:
        return scanning.prune(paths, target, remove=yes)
    if against is not None:
        return scanning.compare(paths, against, target=target, kernels=kernels)
    return scanning.scan(paths, since=since, target=target, kernels=kernels)
