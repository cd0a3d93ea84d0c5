"""The options and arguments of the commands, each defined once."""

from __future__ import annotations

import enum
import os
from pathlib import Path
from typing import Annotated

import typer

SEE = "See"
JUDGE = "Judge"
ACT = "Act"
CORES = len(os.sched_getaffinity(0))
WORKERS = CORES + 1 + CORES // 8
"""Some more than cores: while one waits for the disk, another compiles."""


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


def _directory(text: str) -> Path:
    if not text:
        raise typer.BadParameter("it is empty; name a directory, or leave the option out")
    return Path(text)


CacheDirectory = Annotated[
    Path | None,
    typer.Option(
        "--cache-dir",
        parser=_directory,
        metavar="DIR",
        help="Triton's cache directory; else TRITON_CACHE_DIR.",
        show_default=False,
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
Jobs = Annotated[
    int,
    typer.Option("-j", "--jobs", min=1, metavar="N", help="Compiles at once.", show_default="a few more than cores"),
]
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
Tuning = Annotated[
    bool,
    typer.Option("--gpu", help="Then launch on the GPU here: autotuners measure, and what the host builds is built."),
]
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
