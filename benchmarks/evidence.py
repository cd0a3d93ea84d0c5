"""Everything that wants a GPU, in one run: `python -m benchmarks.evidence [--into DIR] [--seconds S] [--only NAME…]`.

Each step is a command with a share of the time; its output is kept beside its result, also where it fails or is cut
off. With no GPU the steps that need none run all the same, stall as its compile part.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

import msgspec

from benchmarks.conditions import conditions, gpu_name


class Step(msgspec.Struct, frozen=True):
    """One command; `{into}` stands for the folder of the reports, `{gpu}` for `--gpu` where there is one."""

    name: str
    command: tuple[str, ...]
    share: float
    """Of the whole time, at most."""
    needs_gpu: bool = True


class Outcome(msgspec.Struct, frozen=True):
    """What became of a step."""

    name: str
    command: str
    code: int | None
    """None: cut off, or not run."""
    seconds: float
    note: str = ""


JITAUDIT = ("-c", "from jitaudit.cli import main; main()")
STALL = (*JITAUDIT, "stall", "{gpu}", "--format", "markdown", "--force")
CROSSCHECK = ("-m", "benchmarks.crosscheck")
MODULATED = "tests/launchers/liger.py::modulated_rms_norm"
LIGER = tuple(
    f"tests/launchers/liger.py::{name}"
    for name in (
        "rms_norm",
        "swiglu_forward",
        "rope_backward",
        "cross_entropy",
        "layer_norm",
        "geglu",
        "softmax_columns",
    )
)
POINTS = ("--axis=bs=1,2,3,15,16,17,64", "--axis=valid=1,3,16", "--axis=total=16,17,64", "--axis=offset=0,1,2,4")

STEPS = (
    Step(
        "stall-round",
        (*STALL, "--repeat=2", "--output={into}/stall-round.json", "--trace={into}/stall-round.trace.json"),
        share=0.4,
        needs_gpu=False,
    ),
    Step("crosscheck", (*CROSSCHECK, "--output={into}/crosscheck.json", "jitaudit_kernels", *POINTS), share=0.2),
    Step("crosscheck-liger", (*CROSSCHECK, "--output={into}/crosscheck-liger.json", *LIGER), share=0.2),
    Step("kernels", ("-m", "benchmarks.gpu", "--output={into}/kernels.md"), share=0.3),
    Step(
        "stall-liger",
        (*STALL, MODULATED, "--repeat=1", "--axis=tokens=1..64", "--output={into}/stall-liger.json"),
        share=0.15,
        needs_gpu=False,
    ),
    Step("warm", ("-m", "benchmarks.warm", "--output={into}/warm.json"), share=0.5, needs_gpu=False),
    Step("gpu-tests", ("-m", "pytest", "tests/gpu", "-q", "-n", "16", "-p", "no:cacheprovider"), share=0.8),
)


def main() -> None:
    """Run the steps, and write `evidence.json` after each, so that a cut-off run keeps what it has."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, default=Path("reports"))
    parser.add_argument("--seconds", type=float, default=1500.0)
    parser.add_argument("--only", nargs="*", choices=[step.name for step in STEPS])
    arguments = parser.parse_args()
    arguments.into.mkdir(exist_ok=True)
    ends, outcomes = time.monotonic() + arguments.seconds, []
    for step in STEPS:
        if not arguments.only or step.name in arguments.only:
            limit = min(step.share * arguments.seconds, ends - time.monotonic())
            outcomes.append(_run(step, arguments.into, limit))
            print(f"{outcomes[-1].name}: {outcomes[-1].code} after {outcomes[-1].seconds:.0f} s {outcomes[-1].note}")
            report = {"conditions": conditions("benchmarks.evidence"), "steps": outcomes}
            path = arguments.into / "evidence.json"
            path.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=1) + b"\n")


def _run(step: Step, into: Path, limit: float) -> Outcome:
    gpu = gpu_name() != "none"
    command = [part.format(into=into, gpu="--gpu") for part in step.command if gpu or part != "{gpu}"]
    shown = " ".join(("python", *command))
    if step.needs_gpu and not gpu:
        return Outcome(step.name, shown, None, 0.0, "not run: no GPU here")
    if limit < 5:
        return Outcome(step.name, shown, None, 0.0, "not run: no time left")
    begun, code, note = time.monotonic(), None, ""
    with (into / f"{step.name}.txt").open("w") as output:
        try:
            code = subprocess.run(
                [sys.executable, *command], stdout=output, stderr=subprocess.STDOUT, timeout=limit
            ).returncode
        except subprocess.TimeoutExpired:
            note = f"cut off at {limit:.0f} s"
    return Outcome(step.name, shown, code, round(time.monotonic() - begun, 1), note)


if __name__ == "__main__":
    main()
