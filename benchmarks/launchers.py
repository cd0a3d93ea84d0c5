"""Launchers of real libraries, counted with no GPU: `python -m benchmarks.launchers [-o reports/launchers.md]`."""

from __future__ import annotations

import argparse
import re
import resource
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from benchmarks.conditions import conditions
from jitaudit.model import Kernel, Manifest, Variant
from jitaudit.sweeping import Narrowing, run

ROOT = Path(__file__).parent.parent
SWEEPS = ROOT / "tests/launchers"


@dataclass(frozen=True)
class Library:
    """A file of sweeps over one library."""

    file: str
    distribution: str
    host_values: tuple[str, ...] = ()
    """Answers for the lines that read, on the host, what a kernel computed."""


LIBRARIES = (
    Library("liger.py", "liger-kernel"),
    Library("liger_losses.py", "liger-kernel", ("ops/fused_moe.py:96=1..2",)),
    Library("fla_delta_rules.py", "fla-core"),
    Library("fla_ops.py", "fla-core"),
    Library("fla_modules.py", "fla-core"),
    Library("flag_gems_ops.py", "flag-gems"),
    Library("gemlite_layers.py", "gemlite"),
    Library("conch_ops.py", "conch-triton-kernels", ("vision/nms.py:269=true",)),
)


DIFFERENCES = """\
An independent prototype counted many of these launchers (tests/cpu/test_launchers.py has its numbers). Where it seems
to differ:

- softmax and sparsemax over columns, group_norm over hidden: its 14, 14 and 16 are those of 1..256, as here; 1..128 has
  12, 12 and 14.
- attn_decoding: its 6 are those from T = 2. T = 1 is a class of its own: 7 over 1..128, and Triton's own warm-up of
  these 128 launches makes exactly the keys that are counted here (`benchmarks.warmups.check`).
- The RotaryEmbedding module (`--orders`): 256 ascending and 2 descending in both. How many a shuffle has depends on
  the shuffle: 9 there, 14 here.
"""


@dataclass(frozen=True)
class KernelCount:
    """What one sweep reached of one kernel."""

    name: str
    variants: int
    one_config: int
    """The variants if its autotuner had one config; the variants where it has none."""


@dataclass(frozen=True)
class Row:
    """One sweep: its verdict, and its kernels' counts."""

    sweep: str
    axes: str
    counted: int
    cases: int
    verdict: str
    kernels: tuple[KernelCount, ...]
    reasons: tuple[str, ...]

    @property
    def line(self) -> str:
        """Its line of the report's table."""
        kernels = ", ".join(
            f"{kernel.name} {kernel.variants}"
            + (f" ({kernel.one_config})" if kernel.one_config != kernel.variants else "")
            for kernel in self.kernels
        )
        return f"| {self.sweep} | {self.axes} | {self.counted}/{self.cases} | {self.verdict} | {kernels or '–'} |"


def manifest_of(library: Library) -> Manifest:
    """All of the library's sweeps."""
    return run([str(SWEEPS / library.file)], "cuda:90", Narrowing())


def answered(library: Library, sweeps: Sequence[str]) -> Manifest:
    """Some of the library's sweeps, with its host values."""
    targets = [f"{SWEEPS / library.file}::{sweep}" for sweep in sweeps]
    return run(targets, "cuda:90", Narrowing(host_values=library.host_values))


def rows(manifest: Manifest) -> tuple[Row, ...]:
    """A row for each sweep."""
    return tuple(_rows(manifest))


def _rows(manifest: Manifest) -> Iterator[Row]:
    for sweep in manifest.sweeps:
        reached = [
            (
                kernel,
                [variant for variant in kernel.variants if any(box["sweep"] == sweep.name for box in variant.cases)],
            )
            for kernel in manifest.kernels
        ]
        yield Row(
            sweep=sweep.name.rpartition(":")[2],
            axes=", ".join(f"{name} {', '.join(map(str, values))}" for name, values in sweep.axes.items()),
            counted=sweep.counted,
            cases=sweep.cases,
            verdict=sweep.verdict,
            kernels=tuple(
                KernelCount(kernel.id.rpartition(":")[2], len(variants), _one_config(kernel, variants))
                for kernel, variants in reached
                if variants
            ),
            reasons=tuple(
                f"{finding.code}: {_short(finding.message)}"
                for finding in manifest.findings
                if finding.sweep == sweep.name and finding.code in ("JA007", "JA009", "JA013", "JA014")
            ),
        )


def _one_config(kernel: Kernel, variants: Sequence[Variant]) -> int:
    """The distinct keys once what the configs set is left out."""
    configs = kernel.autotuner.configs if kernel.autotuner else ()
    tuned = {part.partition(":")[0].strip() for config in configs for part in config.split(", ")}
    return len(
        {
            tuple(
                sorted(
                    (name, str(value))
                    for name, value in (variant.key.arguments | variant.key.options).items()
                    if name not in tuned
                )
            )
            for variant in variants
        }
    )


def _short(text: str) -> str:
    """A message without the folders that a library is installed in."""
    return re.sub(r"\S*/site-packages/", "", text)


def main() -> None:
    """Count them all and write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path)
    output = parser.parse_args().output
    text = "\n".join(_report()) + "\n"
    if output is None:
        sys.stdout.write(text)
    else:
        output.write_text(text)


def _report() -> Iterator[str]:
    tables: list[str] = []
    totals: list[str] = []
    passed = swept = launches = 0
    seconds = starting = 0.0
    for library in LIBRARIES:
        started = _child_seconds()
        _start(library)
        starting += _child_seconds() - started
        started = _child_seconds()
        manifest = manifest_of(library)
        seconds_here = _child_seconds() - started
        here = rows(manifest)
        launched = sum(kernel.launches + _benchmark_runs(kernel) for kernel in manifest.kernels)
        good = sum(row.verdict == "pass" for row in here)
        passed, swept, launches, seconds = passed + good, swept + len(here), launches + launched, seconds + seconds_here
        totals.append(
            f"| {library.file} | {library.distribution} {version(library.distribution)} | {good}/{len(here)} "
            f"| {len(manifest.kernels)} | {sum(len(kernel.variants) for kernel in manifest.kernels)} | {launched} "
            f"| {seconds_here:.0f} |"
        )
        tables += [f"## {library.file}", "", *_table(here), *_stopped(library, here), *_tuned(manifest)]
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    yield "# Real launchers, counted with no GPU"
    yield ""
    yield ", ".join(f"{name} {value}" for name, value in conditions("benchmarks.launchers").items()) + "."
    yield ""
    yield (
        f"{passed} of {swept} sweeps pass ({passed / swept:.1%}). {launches} launches, benchmark runs included, in "
        f"{seconds:.0f} s of one core, the launchers included; {starting:.0f} s of them go by before the first case. "
        f"{1000 * (seconds - starting) / launches:.2f} ms a launch. The largest process held {memory:.0f} MiB."
    )
    yield ""
    yield "| sweeps | library | pass | kernels | variants | launches | core seconds |"
    yield "|---|---|---|---|---|---|---|"
    yield from totals
    yield ""
    yield (
        "A kernel's number is its JIT variants over the sweep's cases; in brackets, where it is autotuned, the number "
        "if its autotuner had one config. Which config wins is unknown offline: at a tuning key that is known already, "
        "the first that survives stands for the winner."
    )
    yield ""
    yield DIFFERENCES
    yield from tables


def _start(library: Library) -> None:
    """What a process does before its first case."""
    code = (
        "import sys\n"
        "from jitaudit.jit.capture import capturing\n"
        "from jitaudit.jit.standin import preload\n"
        "from jitaudit.sweeping.targets import load, read_target\n"
        "with capturing('cuda:90'):\n"
        "    load(read_target(sys.argv[1]))\n"
        "    preload()\n"
    )
    subprocess.run([sys.executable, "-c", code, str(SWEEPS / library.file)], check=True, capture_output=True)


def _child_seconds() -> float:
    """The processor time of the processes that ran so far; wall clock would measure what else the machine does."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _benchmark_runs(kernel: Kernel) -> int:
    return kernel.autotuner.benchmark_runs if kernel.autotuner else 0


def _table(here: Sequence[Row]) -> Iterator[str]:
    yield "| sweep | axes | counted | verdict | variants |"
    yield "|---|---|---|---|---|"
    yield from (row.line for row in here)
    yield ""


def _stopped(library: Library, here: Sequence[Row]) -> Iterator[str]:
    stopped = [row for row in here if row.verdict != "pass"]
    if not stopped:
        return
    yield "Not passing, and why:"
    yield ""
    for row in stopped:
        yield f"- **{row.sweep}**: {'; '.join(row.reasons)}"
    yield ""
    if library.host_values:
        yield f"With `{' '.join(f'--host-value {value}' for value in library.host_values)}`:"
        yield ""
        yield from _table(rows(answered(library, [row.sweep for row in stopped])))


def _tuned(manifest: Manifest) -> Iterator[str]:
    """Autotuned kernels: JIT variants, tuning keys, configs and benchmark runs are different numbers."""
    tuned = [(kernel, kernel.autotuner) for kernel in manifest.kernels if kernel.autotuner]
    if not tuned:
        return
    yield "| autotuned kernel | variants | tuning keys | configs | benchmark runs |"
    yield "|---|---|---|---|---|"
    for kernel, tuner in tuned:
        name = kernel.id.rpartition(":")[2]
        yield (
            f"| {name} | {len(kernel.variants)} | {len(tuner.tuning_keys)} | {len(tuner.configs)} "
            f"| {tuner.benchmark_runs} |"
        )
    yield ""


if __name__ == "__main__":
    main()
