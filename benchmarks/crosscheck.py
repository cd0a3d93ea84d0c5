"""Predicted keys against the keys of real launches, set for set.

`python -m benchmarks.crosscheck [-o FILE] [--jobs N] (TARGET… | --drawn N)`; `--drawn` takes the sweeps of real
libraries that `benchmarks.warmups` draws.

One process counts with stand-ins, as `jitaudit probe` does. Another, on the GPU, really launches the same cases and
takes each launch's key from the real tensors. What `torch.empty` gives is zeroed there, so that every index that a
sweep leaves unset is a legal one. Autotuners call each config once in both, so that the winner is the same.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import msgspec

from benchmarks.conditions import conditions, write_json
from benchmarks.warmups import SEED, draw
from jitaudit.errors import JitauditError
from jitaudit.model import Manifest
from jitaudit.sweeping import Narrowing, run
from jitaudit.sweeping.process import ask
from jitaudit.sweeping.running import Answer, Request
from jitaudit.sweeping.targets import read_target


class Compared(msgspec.Struct, frozen=True):
    """One kernel of a target under one group: its keys on both sides, and those that only one side has."""

    target: str
    kernel: str
    group: str | None
    autotuned: bool
    predicted: int
    launched: int
    only_predicted: tuple[str, ...]
    only_launched: tuple[str, ...]

    @property
    def equal(self) -> bool:
        return not self.only_predicted and not self.only_launched


class Crosscheck(msgspec.Struct, frozen=True):
    """A run: how many targets were asked for, what was not launched, and each kernel of the others."""

    conditions: dict[str, str | int]
    targets: int
    notes: tuple[str, ...]
    kernels: tuple[Compared, ...]


class Outcome(msgspec.Struct, frozen=True):
    """A target: its kernels, and why less was launched than was asked for."""

    kernels: tuple[Compared, ...]
    notes: tuple[str, ...] = ()


def compare(target: str, predicted: Manifest, launched: Manifest) -> tuple[Compared, ...]:
    """Each kernel that either side reached."""
    sides = [
        {(k.id, k.group): (k, {variant.key.text for variant in k.variants}) for k in manifest.kernels}
        for manifest in (predicted, launched)
    ]
    rows = []
    for key in sorted({*sides[0], *sides[1]}, key=lambda key: (key[0], key[1] or "")):
        (one, left), (other, right) = (side.get(key, (None, set())) for side in sides)
        kernel = one or other
        tuned = kernel is not None and kernel.autotuner is not None
        extra = tuple(sorted(left - right)), tuple(sorted(right - left))
        rows.append(Compared(target, *key, tuned, len(left), len(right), *extra))
    return tuple(rows)


def main() -> None:
    """Compare, print a table, and end with 1 where a set differs or a target was not launched whole."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*")
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--axis", action="append", default=[], metavar="NAME=VALUES", help="as jitaudit probe has it")
    parser.add_argument("--drawn", type=int, default=0, metavar="N")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="targets at a time")
    arguments = parser.parse_args()
    axes = dict(axis.split("=", 1) for axis in arguments.axis)
    targets = [(target, axes) for target in arguments.targets] + list(draw(SEED, arguments.drawn))
    rows: list[Compared] = []
    notes: list[str] = []
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for done in as_completed(pool.submit(_crosscheck, *target) for target in targets):
            rows += done.result().kernels
            notes += done.result().notes
            for row in done.result().kernels:
                verdict = "EQUAL" if row.equal else "DIFFERS"
                print(
                    f"{verdict} {row.target} {row.kernel} {row.group or ''} {row.predicted} {row.launched}", flush=True
                )
            for note in done.result().notes:
                print(note, flush=True)
            _write(arguments.output, len(targets), rows, notes)
    equal = sum(row.equal for row in rows)
    print(f"{equal} of {len(rows)} kernels have equal sets, {sum(row.predicted for row in rows)} keys predicted")
    raise SystemExit(equal != len(rows) or not rows or bool(notes))


def _write(output: Path | None, targets: int, rows: list[Compared], notes: list[str]) -> None:
    """After each target, so that a cut-off run keeps what it has."""
    if output is not None:
        ordered = sorted(rows, key=lambda row: (row.target, row.kernel, row.group or ""))
        report = Crosscheck(conditions("benchmarks.crosscheck"), targets, tuple(sorted(notes)), tuple(ordered))
        write_json(output, report)


def _crosscheck(target: str, axes: Mapping[str, str]) -> Outcome:
    name = target.rpartition("/")[2]
    try:
        launched = _launch(target, dict(axes))
        predicted = run([target], launched.target, Narrowing(axes=dict(axes)))
    except JitauditError as error:
        return Outcome((), (f"{name}: {error}",))
    notes = tuple(
        f"{name}: {sweep.verdict}, {sweep.counted} of {sweep.cases} cases launched{_reason(launched)}"
        for sweep in launched.sweeps
        if sweep.verdict != "pass"
    )
    return Outcome(compare(name, predicted, launched), notes)


def _reason(launched: Manifest) -> str:
    """What the first finding about a case says."""
    return next((f": {finding.message}" for finding in launched.findings if finding.case is not None), "")


def _launch(target: str, axes: dict[str, str]) -> Manifest:
    request = Request(target=read_target(target), architecture="", narrowing=Narrowing(axes=axes, gpu=True))
    return ask("benchmarks.launching", request, Answer, target, lambda *_: None).manifest


if __name__ == "__main__":
    main()
