"""The command line: read, one verb, emit. The only module that prints or exits."""

from __future__ import annotations

import enum
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from jitaudit import configuration, manifest, probing, stalling
from jitaudit import doctor as diagnosing
from jitaudit.errors import JitauditError, RequestError
from jitaudit.report import doctor as doctor_report
from jitaudit.report import probe as probe_report
from jitaudit.report import stall as stall_report
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
ACT = "Act"


class Format(enum.StrEnum):
    """What a result is printed as."""

    text = "text"
    json = "json"
    markdown = "markdown"


class DataFormat(enum.StrEnum):
    """For what has no table."""

    text = "text"
    json = "json"


Targets = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[TARGET]...",
        help="file.py, file.py::sweep, package.module or package.module:sweep. None: [tool.jitaudit] sweeps of the "
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
    form: Printed = Format.text,
    output: Output = None,
    force: Force = False,
    verbose: Verbose = False,
) -> None:
    """Count the variants that launchers reach over their sweeps, and say why; no GPU needed."""
    if output is not None:
        manifest.require_writable(output, force=force)
    narrowing = Narrowing(_axes(axes), tuple(groups or ()), tuple(kernels or ()), compile, gpu)
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
