"""Predicted keys against the keys of real launches, set for set: `python -m benchmarks.crosscheck [-o FILE] TARGET…`.

One process counts with stand-ins, as `jitaudit probe` does. Another, on the GPU, really launches the same cases and
takes each launch's key from the real tensors. What `torch.empty` gives is zeroed there, so that every index that a
sweep leaves unset is a legal one. Autotuners call each config once in both, so that the winner is the same.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import msgspec

from benchmarks.conditions import conditions
from jitaudit.errors import JitauditError
from jitaudit.model import Manifest
from jitaudit.sweeping import Narrowing, run
from jitaudit.sweeping.process import ask
from jitaudit.sweeping.running import Answer, Request
from jitaudit.sweeping.targets import read_target


class Compared(msgspec.Struct, frozen=True):
    """One kernel under one group: its keys on both sides, and those that only one side has."""

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


def compare(predicted: Manifest, launched: Manifest) -> list[Compared]:
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
        rows.append(Compared(*key, tuned, len(left), len(right), *extra))
    return rows


def main() -> None:
    """Compare, print a table, and end with 1 where a set differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="+")
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--axis", action="append", default=[], metavar="NAME=VALUES", help="as jitaudit probe has it")
    arguments = parser.parse_args()
    axes = dict(axis.split("=", 1) for axis in arguments.axis)
    rows = []
    for target in arguments.targets:
        try:
            launched = _launch(target, axes)
            predicted = run([target], launched.target, Narrowing(axes=axes))
        except JitauditError as error:
            print(f"{target}: {error}")
            continue
        rows += compare(predicted, launched)
        for sweep in launched.sweeps:
            if sweep.verdict != "pass":
                print(f"{sweep.name}: {sweep.verdict}, {sweep.counted} of {sweep.cases} cases launched")
    for row in rows:
        print(f"{'EQUAL' if row.equal else 'DIFFERS'} {row.kernel} {row.group or ''} {row.predicted} {row.launched}")
    equal = sum(row.equal for row in rows)
    print(f"{equal} of {len(rows)} kernels have equal sets, {sum(row.predicted for row in rows)} keys predicted")
    if arguments.output:
        report = {"conditions": conditions("benchmarks.crosscheck"), "kernels": rows}
        arguments.output.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=1))
    raise SystemExit(equal != len(rows) or not rows)


def _launch(target: str, axes: dict[str, str]) -> Manifest:
    request = Request(target=read_target(target), architecture="", narrowing=Narrowing(axes=axes, gpu=True))
    return ask("benchmarks.launching", request, Answer, target, lambda *_: None).manifest


if __name__ == "__main__":
    main()
