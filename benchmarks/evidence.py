"""Everything that wants a GPU, in one run: `python -m benchmarks.evidence [--into DIR] [--seconds S] [--only NAME…]`.

Each step is a command with a limit; its output is kept beside its result, also where it fails or is cut off. With no
GPU the steps that need none run all the same, stall as its compile part. What is worth keeping is moved to reports/.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec

from benchmarks.conditions import conditions, gpu_name, write_json


class Step(msgspec.Struct, frozen=True):
    """One command; `{into}` stands for the folder of the reports, `{gpu}` for `--gpu` where there is one."""

    name: str
    command: tuple[str, ...]
    seconds: float
    """At most; then it is interrupted, and keeps what it has where it can."""
    needs_gpu: bool = True


class Outcome(msgspec.Struct, frozen=True):
    """What became of a step."""

    name: str
    command: str
    code: int | None
    """None: cut off, or not run."""
    seconds: float
    note: str = ""


class Evidence(msgspec.Struct, frozen=True):
    """What was run, and where."""

    conditions: dict[str, str | int]
    steps: tuple[Outcome, ...]


JITAUDIT = ("-c", "from jitaudit.cli import main; main()")
STALL = (*JITAUDIT, "stall", "{gpu}", "--format", "markdown", "--force")
CROSSCHECK = ("-m", "benchmarks.crosscheck")
MODULATED = "tests/launchers/liger.py::modulated_rms_norm"
POINTS = ("--axis=bs=1,2,3,15,16,17,64", "--axis=valid=1,3,16", "--axis=total=16,17,64", "--axis=offset=0,1,2,4")

STEPS = (
    Step(
        "stall",
        (*STALL, "--repeat={repeats}", "--output={into}/stall-h200.json", "--trace={into}/stall-h200.trace.json"),
        seconds=580,
        needs_gpu=False,
    ),
    Step(
        "stall-liger",
        (*STALL, MODULATED, "--repeat={repeats}", "--axis=tokens=1..64", "--output={into}/stall-liger-h200.json"),
        seconds=200,
        needs_gpu=False,
    ),
    Step("bench", ("-m", "benchmarks.gpu", "--output={into}/bench-h200.json"), seconds=300),
    Step("crosscheck", (*CROSSCHECK, "--output={into}/crosscheck-h200.json", "jitaudit_kernels", *POINTS), seconds=200),
    Step(
        "crosscheck-libraries",
        (*CROSSCHECK, "--output={into}/crosscheck-libraries-h200.json", "--drawn=30", "--jobs=8"),
        seconds=400,
    ),
    Step(
        "warm",
        ("-m", "benchmarks.warm", "--sizes=72,72,72,1000", "--output={into}/warm-h200.json"),
        seconds=500,
        needs_gpu=False,
    ),
    Step("warm-pools", ("-m", "benchmarks.pools", "--output={into}/warm-pools-h200.md"), seconds=150, needs_gpu=False),
    Step("gpu-tests", ("-m", "pytest", "tests/gpu", "-q", "-n", "16", "-p", "no:cacheprovider"), seconds=580),
)


def main() -> None:
    """Run the steps, and write what became of them after each, so that a cut-off run keeps what it has."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, default=Path("evidence"))
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--repeats", type=int, default=5, help="of stall")
    parser.add_argument("--only", nargs="*", choices=[step.name for step in STEPS])
    arguments = parser.parse_args()
    arguments.into.mkdir(exist_ok=True)
    ends, outcomes = time.monotonic() + arguments.seconds, []
    for step in STEPS:
        if not arguments.only or step.name in arguments.only:
            limit = min(step.seconds, ends - time.monotonic())
            outcomes.append(_run(step, arguments.into, arguments.repeats, limit))
            print(f"{outcomes[-1].name}: {outcomes[-1].code} after {outcomes[-1].seconds:.0f} s {outcomes[-1].note}")
            report = Evidence(conditions("benchmarks.evidence"), tuple(outcomes))
            write_json(arguments.into / "evidence-h200.json", report)


def _run(step: Step, into: Path, repeats: int, limit: float) -> Outcome:
    gpu = gpu_name() != "none"
    filled = (part.format(into=into, gpu="--gpu", repeats=repeats) for part in step.command if gpu or part != "{gpu}")
    command = list(filled)
    shown = " ".join(("python", *command))
    if step.needs_gpu and not gpu:
        return Outcome(step.name, shown, None, 0.0, "not run: no GPU here")
    if limit < 5:
        return Outcome(step.name, shown, None, 0.0, "not run: no time left")
    begun, note = time.monotonic(), ""
    with (into / f"{step.name}.txt").open("w") as output:
        process = subprocess.Popen([sys.executable, *command], stdout=output, stderr=subprocess.STDOUT)
        try:
            process.wait(timeout=limit)
        except subprocess.TimeoutExpired:
            note = f"cut off at {limit:.0f} s"
            process.send_signal(signal.SIGINT)
            try:
                process.wait(timeout=15)
            except subprocess.TimeoutExpired:
                process.kill()
    return Outcome(step.name, shown, process.poll(), round(time.monotonic() - begun, 1), note)


if __name__ == "__main__":
    main()
