"""The command line: read, one verb, emit. The only module that prints or exits."""

from __future__ import annotations

import enum
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from jitaudit import (
    checking,
    configuration,
    explaining,
    gating,
    manifest,
    planning,
    probing,
    ruling,
    scanning,
    stalling,
    warming,
)
from jitaudit import doctor as diagnosing
from jitaudit.errors import JitauditError, RequestError, SetupError
from jitaudit.gating import Question
from jitaudit.report import check as check_report
from jitaudit.report import doctor as doctor_report
from jitaudit.report import explain as explain_report
from jitaudit.report import gate as gate_report
from jitaudit.report import probe as probe_report
from jitaudit.report import scan as scan_report
from jitaudit.report import stall as stall_report
from jitaudit.report import warm as warm_report
from jitaudit.scanning import Comparison, Pruning, Scan
from jitaudit.sweeping import Narrowing
from jitaudit.sweeping import Progress as Report

app = typer.Typer(
    name="jitaudit",
    help="Audit Triton kernels for JIT variants, and warm them ahead of serving.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

SEE = "See"
JUDGE = "Judge"
ACT = "Act"
CORES = len(os.sched_getaffinity(0))


class Format(enum.StrEnum):
    """What a result is printed as."""

    text = "text"
    json = "json"
    markdown = "markdown"


class GateFormat(enum.StrEnum):
    """What a gate's verdict is printed as."""

    text = "text"
    json = "json"
    markdown = "markdown"
    junit = "junit"
    sarif = "sarif"
    github = "github"


class DataFormat(enum.StrEnum):
    """For what has no table."""

    text = "text"
    json = "json"


Targets = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[TARGET]...",
        help="file.py, file.py::sweep, package.module or package.module:sweep. None: \\[tool.jitaudit] sweeps of the "
        "nearest pyproject.toml, else the kernels shipped here. The target is imported.",
        show_default=False,
    ),
]
Architecture = Annotated[
    str, typer.Option("--target", metavar="ARCH", help="The GPU to count for: cuda:90, hip:gfx942, …")
]
Axes = Annotated[
    list[str] | None,
    typer.Option(
        "--axis",
        metavar="NAME=VALUES",
        help="Move an axis over other values: 1..64 (both ends), 1..512:8, 1,2,4 or true.",
        show_default=False,
    ),
]
Groups = Annotated[
    list[str] | None,
    typer.Option("--group", metavar="VALUE", help="Only this value of the compared axis.", show_default=False),
]
Kernels = Annotated[
    list[str] | None,
    typer.Option("--kernel", metavar="GLOB", help="Only kernels whose id matches.", show_default=False),
]
Compiling = Annotated[
    bool, typer.Option("--compile", help="Really compile every variant for the target; needs no GPU.")
]
Gpu = Annotated[bool, typer.Option("--gpu", help="Use the GPU that is here, with real tensors.")]
HostValues = Annotated[
    list[str] | None,
    typer.Option(
        "--host-value",
        metavar="FILE:LINE=VALUE",
        help="What a launcher reads on the host at that line; each value of a range (1..64) is a case.",
        show_default=False,
    ),
]
Orders = Annotated[
    bool, typer.Option("--orders", help="Run the cases ascending, descending and shuffled: does the order matter?")
]
Stubs = Annotated[
    list[str] | None,
    typer.Option(
        "--stub",
        metavar="MODULE",
        help="Stand in for a package that can't be imported here; using it stops the case.",
        show_default=False,
    ),
]
Output = Annotated[
    Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write the manifest there.", show_default=False)
]
Force = Annotated[bool, typer.Option("--force", help="Replace the output file.")]
Printed = Annotated[Format, typer.Option("--format", help="How to print the result.")]
PrintedData = Annotated[DataFormat, typer.Option("--format", help="How to print the result.")]
OneTarget = Annotated[
    str, typer.Argument(metavar="[TARGET]", help="The launchers to serve: a file, module or sweep. It is imported.")
]
Passes = Annotated[
    str | None,
    typer.Option(
        metavar="NAMES",
        help="Only these, comma-separated: the values of the compared axis (else cold), and warmed.",
        show_default=False,
    ),
]
Repeats = Annotated[int, typer.Option("--repeat", min=1, metavar="N", help="Times to measure each pass.")]
ResultFile = Annotated[
    Path | None,
    typer.Option("-o", "--output", metavar="FILE", help="Write the result there as JSON.", show_default=False),
]
TraceFile = Annotated[
    Path | None, typer.Option("--trace", metavar="FILE", help="Write a Chrome/Perfetto trace.", show_default=False)
]
Paths = Annotated[
    list[Path],
    typer.Argument(
        metavar="PATH...",
        help="Triton cache directories (Inductor's too), or logs of vLLM or SGLang, gzipped or not.",
        show_default=False,
    ),
]
Since = Annotated[
    str | None,
    typer.Option(
        metavar="TIME|FILE",
        help="Only what was compiled after 2026-01-31T12:00 (UTC), or after a file, such as a readiness marker, was "
        "written; set against what was there before.",
        show_default=False,
    ),
]
Against = Annotated[
    Path | None,
    typer.Option(metavar="PATH", help="What PATH... compiled and this did not, and the reverse.", show_default=False),
]
AnyArchitecture = Annotated[
    str | None,
    typer.Option("--target", metavar="ARCH", help="Only what is for cuda:90, hip:gfx942, …", show_default=False),
]
Prune = Annotated[
    bool,
    typer.Option(
        "--prune", help="List the entries that the Triton and GPU here (or --target) can't hit, to free them."
    ),
]
Yes = Annotated[bool, typer.Option("--yes", help="With --prune: really remove them.")]
ManifestsOrTargets = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[MANIFEST|TARGET]...",
        help="Manifests (.json, united), or launchers to probe first. None: \\[tool.jitaudit] sweeps, else the kernels "
        "shipped here, floored. The kernels' modules are imported.",
        show_default=False,
    ),
]
CacheDirectory = Annotated[
    Path | None,
    typer.Option(
        "--cache-dir", metavar="DIR", help="Triton's cache directory; else TRITON_CACHE_DIR.", show_default=False
    ),
]
SweepFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--sweeps",
        metavar="FILE",
        help="With a manifest: a file that holds its launchers and kernels; it is imported.",
        show_default=False,
    ),
]
Jobs = Annotated[int, typer.Option("-j", "--jobs", min=1, metavar="N", help="Compiles at once.", show_default="cores")]
Timeout = Annotated[float, typer.Option(metavar="S", min=0.1, help="Seconds for one variant.")]
Seconds = Annotated[
    float | None,
    typer.Option(
        "--budget", metavar="S", min=0, help="Stop after S seconds; most cases per second first.", show_default=False
    ),
]
Generic = Annotated[
    bool, typer.Option("--generic", help="Add the one variant without classes that fits every launch of its types.")
]
Repair = Annotated[bool, typer.Option("--repair", help="Set damaged entries aside and compile them again.")]
Base = Annotated[
    str | None,
    typer.Option(
        metavar="REF",
        help="Compare with a git revision (origin/main), or a release that is installed to be imported "
        "(pypi:liger-kernel==0.8.4), instead of the lock.",
        show_default=False,
    ),
]
Architectures = Annotated[
    str | None,
    typer.Option(
        "--target", metavar="ARCH", help="The GPU to count for.", show_default="[tool.jitaudit] targets, else cuda:90"
    ),
]
Update = Annotated[bool, typer.Option("--update", help="Allow what is reached now: write jitaudit.lock.json.")]
Reason = Annotated[str | None, typer.Option(metavar="TEXT", help="Why; it stands in the lock.", show_default=False)]
Tighten = Annotated[
    bool, typer.Option("--tighten", help="Lower the budgets, and drop from the lock, what nothing reaches.")
]
GatePrinted = Annotated[GateFormat, typer.Option("--format", help="How to print the verdict.")]
Outputs = Annotated[
    list[Path] | None,
    typer.Option(
        "-o",
        "--output",
        metavar="FILE",
        help="Write it there too, as .sarif, .xml (JUnit), .md, .json or .txt says.",
        show_default=False,
    ),
]
Explainable = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[MANIFEST|TARGET]...",
        help="Manifests (.json, united), or launchers to probe first: file.py, package.module:sweep. None: "
        "\\[tool.jitaudit] sweeps, else the kernels shipped here. A manifest is only read.",
        show_default=False,
    ),
]
Confirming = Annotated[
    bool,
    typer.Option(
        "--compile",
        help="Put it to the test with no GPU: apply each remedy, count again, compile before and after.",
    ),
]
Timing = Annotated[
    bool, typer.Option("--gpu", help="--compile, and launch both on the GPU that is here: inputs are zeros.")
]
Differing = Annotated[
    bool, typer.Option("--diff", help="Of two manifests or targets: what the second has that the first has not.")
]
Code = Annotated[
    str | None, typer.Argument(metavar="[CODE]", help="A finding's code: JA008. None: all of them.", show_default=False)
]
Verbose = Annotated[bool, typer.Option("-v", "--verbose", help="More than a screen.")]


@app.callback()
def _jitaudit() -> None:
    """Audit Triton kernels for JIT variants, and warm them ahead of serving."""


@app.command(rich_help_panel=SEE)
def doctor(form: PrintedData = DataFormat.text) -> None:
    """What is here: versions, GPUs, compilers, and where the JIT caches really are."""
    diagnosis = diagnosing.diagnose()
    _emit(diagnosis if form is DataFormat.json else doctor_report.text(diagnosis))


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
        _axes(axes),
        tuple(groups or ()),
        tuple(kernels or ()),
        compile=compile,
        gpu=gpu,
        host_values=tuple(host_values or ()),
        orders=orders,
        stubs=tuple(stubs or ()),
    )
    with _progress() as progress:
        probed = probing.probe(targets or configuration.read(Path.cwd()).targets, architecture, narrowing, progress)
    if output is not None:
        manifest.write(probed.manifest, output, force=force)
    match form:
        case Format.json:
            _emit(probe_report.document(probed))
        case Format.markdown:
            _emit(probe_report.markdown(probed))
        case Format.text:
            _emit(probe_report.text(probed, verbose=verbose))
    _note(probe_report.summary(probed))
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
            _emit(scan_report.document(result))
        case Format.markdown:
            _emit(scan_report.markdown(result))
        case Format.text:
            _emit(scan_report.text(result, verbose=verbose))
    _note(scan_report.summary(result))


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
        narrowing=Narrowing(_axes(axes), tuple(groups or ()), tuple(kernels or ())),
        compile=compile or gpu,
        gpu=gpu,
        files=tuple(sweeps or ()),
    )
    with _progress() as progress:
        found = (explaining.explain_difference if difference else explaining.explain)(question, progress)
    if output is not None:
        manifest.write_whole(_json(found), output, force=force)
    _emit(explain_report.printed(found, form.value, verbose=verbose))
    match found:
        case explaining.Explanation(missing=str() as missing):
            raise SetupError(missing)
        case explaining.Diff(kernels=(_, *_)):
            raise typer.Exit(1)


@app.command(rich_help_panel=SEE)
def rule(code: Code = None) -> None:
    """Show the page of a finding's code: what it is, an example, the fix, and what the fix costs."""
    _emit(ruling.page(code) if code else ruling.contents())


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
    narrowing = Narrowing(_axes(axes), tuple(groups or ()), tuple(kernels or ()), gpu=gpu)
    question = Question(tuple(arguments or ()), architecture, narrowing, base, reason, tighten)
    with _progress() as progress:
        gated = gating.gate(configuration.read(Path.cwd()), question, date.today(), progress)
    for path, written in files.items():
        manifest.write_whole(gate_report.printed(gated, written, verbose=verbose).encode(), path, force=force)
    _emit(gate_report.printed(gated, form.value, verbose=verbose))
    _note(gate_report.summary(gated))
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
    narrowing = Narrowing(_axes(axes), tuple(groups or ()), tuple(kernels or ()))
    with _progress() as progress:
        asked = planning.wanted(arguments or (), architecture, narrowing, sweeps or (), progress)
        checked = checking.check_cache(*asked, cache, progress)
    _emit(checked if form is DataFormat.json else check_report.text(checked, verbose=verbose))
    if not checked.passes:
        raise typer.Exit(1)


@app.command(rich_help_panel=ACT)
def warm(
    arguments: ManifestsOrTargets = None,
    architecture: Architecture = "cuda:90",
    cache_directory: CacheDirectory = None,
    sweeps: SweepFiles = None,
    axes: Axes = None,
    groups: Groups = None,
    kernels: Kernels = None,
    jobs: Jobs = CORES,
    timeout: Timeout = 600.0,
    budget: Seconds = None,
    generic: Generic = False,
    repair: Repair = False,
    form: PrintedData = DataFormat.text,
    verbose: Verbose = False,
) -> None:
    """Compile every variant into Triton's cache directory, in parallel; no GPU needed."""
    cache = planning.cache_here(cache_directory)
    narrowing = Narrowing(_axes(axes), tuple(groups or ()), tuple(kernels or ()))
    settings = warming.Settings(jobs, timeout, budget, generic, repair)
    with _progress() as progress:
        asked = planning.wanted(arguments or (), architecture, narrowing, sweeps or (), progress)
        warmed = warming.warm_cache(*asked, cache, settings, progress)
    _emit(warmed if form is DataFormat.json else warm_report.text(warmed, verbose=verbose))
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
    for path in filter(None, (output, trace)):
        manifest.require_writable(path, force=force)
    names = tuple(filter(None, (passes or "").split(",")))
    with _progress() as progress:
        stalls = stalling.stall(target, architecture, _axes(axes), names, gpu=gpu, repeats=repeats, progress=progress)
    if output is not None:
        output.write_bytes(_json(stalls))
    if trace is not None:
        trace.write_bytes(stall_report.trace(stalls))
    match form:
        case Format.json:
            _emit(stalls)
        case Format.markdown:
            _emit(stall_report.markdown(stalls))
        case Format.text:
            _emit(stall_report.text(stalls))
    if not stalls.complete:
        raise typer.Exit(1)


def main() -> None:
    """Run the command line. An error is one line on stderr and its exit code."""
    try:
        app()
    except JitauditError as error:
        _note(f"jitaudit: {error}")
        sys.exit(error.exit_code)
    except BrokenPipeError:  # the reader of our output has left
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)


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


def _axes(texts: list[str] | None) -> dict[str, str]:
    axes = {}
    for text in texts or ():
        name, equals, values = text.partition("=")
        if not (name and equals):
            raise RequestError(f"--axis {text}: write NAME=VALUES, such as bs=1..64")
        axes[name] = values
    return axes


def _emit(result: msgspec.Struct | RenderableType) -> None:
    """Data on stdout: a noun as JSON, a string as it is, anything else as rich renders it."""
    if isinstance(result, msgspec.Struct):
        sys.stdout.write(_json(result).decode())
    elif isinstance(result, str):
        sys.stdout.write(result)
    else:
        piped = not sys.stdout.isatty()
        Console(file=sys.stdout, width=160 if piped and "COLUMNS" not in os.environ else None).print(result)


def _json(noun: msgspec.Struct) -> bytes:
    return msgspec.json.format(msgspec.json.encode(noun), indent=2) + b"\n"


def _note(line: str) -> None:
    print(line, file=sys.stderr)


@contextmanager
def _progress() -> Iterator[Report]:
    """A progress bar on stderr for sweeps that take over a second; nothing where stderr is no terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        tasks: dict[str, TaskID] = {}

        def show(sweep: str, done: int, cases: int) -> None:
            if sweep not in tasks:
                tasks[sweep] = bar.add_task(sweep, total=cases)
            bar.update(tasks[sweep], completed=done)

        yield show
