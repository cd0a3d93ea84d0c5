"""Captured keys against Triton's own: `python -m benchmarks.warmups [-o reports/warmups.md]`.

Sweeps drawn by a seed are captured, and at each launch Triton's own `JITFunction.run(warmup=True)` gets the same
arguments: it compiles for the target, offline, what its own binder makes of them. Then keys and binaries must be one to
one: launches with one captured key share a binary, launches with two keys do not, and every key compiles.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.conditions import conditions
from benchmarks.launchers import ROOT, SWEEPS
from jitaudit.sweeping import Narrowing, child
from jitaudit.sweeping.process import Progress, ask, serve
from jitaudit.sweeping.running import Request
from jitaudit.sweeping.targets import read_target

SEED = 3
DRAWN = 30
POINTS = 3


class Check(msgspec.Struct, frozen=True):
    """One kernel of one sweep: its captured keys, the binaries that Triton made, and what disagrees."""

    kernel: str
    keys: int
    binaries: int
    disagreements: tuple[str, ...]


class Checked(msgspec.Struct, frozen=True):
    """One sweep."""

    verdict: str
    kernels: tuple[Check, ...]


def main(progress: int | None = None, private: str = "") -> None:
    """Draw, check and report; with `progress`, the process that checks one sweep."""
    if progress is not None:
        serve(_check, Request, progress, private)
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--sweeps", type=int, default=DRAWN, metavar="N")
    arguments = parser.parse_args()
    text = "\n".join(_report(arguments.seed, arguments.sweeps)) + "\n"
    if arguments.output is None:
        sys.stdout.write(text)
    else:
        arguments.output.write_text(text)


def draw(seed: int, count: int) -> Iterator[tuple[str, dict[str, str]]]:
    """Targets of `count` sweeps that pass, each with a few points of its axis: 1, 16 and others drawn."""
    drawn = random.Random(seed)
    for file, sweep, axis, first, last in drawn.sample(_passing(), count):
        chosen = {value for value in (1, 16) if first <= value <= last}
        chosen |= set(drawn.sample(range(first, last + 1), POINTS - len(chosen)))
        yield f"{SWEEPS / file}::{sweep}", {axis: ",".join(map(str, sorted(chosen)))}


def _passing() -> list[tuple[str, str, str, int, int]]:
    """File, sweep, axis, its first and last value: of the sweeps that pass, as reports/launchers.md has them."""
    found, file = [], ""
    for line in (ROOT / "reports/launchers.md").read_text().splitlines():
        if line.startswith("## "):
            file = line.removeprefix("## ")
        elif line.startswith("Not passing"):
            file = ""
        elif file and (row := re.match(r"\| (\w+) \| (\w+) (\d+)\.\.(\d+) \| [\d/]+ \| pass \|", line)):
            found.append((file, row[1], row[2], int(row[3]), int(row[4])))
    return found


def check(target: str, axes: dict[str, str]) -> Checked:
    """Capture a sweep and warm each launch, in a process of its own."""
    request = Request(target=read_target(target), architecture="cuda:90", narrowing=Narrowing(axes=axes))
    return ask("benchmarks.warmups", request, Checked, target, lambda sweep, done, cases: None)


def _check(request: Request, progress: Progress) -> Checked:
    made: dict[str, dict[str, set[str]]] = {}
    capturing = child.capturing

    @contextmanager
    def warming(architecture: str) -> Iterator[Any]:
        from triton.runtime.jit import JITFunction

        from jitaudit.jit.patching import patched

        warm = JITFunction.run
        with capturing(architecture) as capture:
            see = JITFunction.run

            def see_and_warm(function: Any, *args: Any, **kwargs: Any) -> Any:
                launched = see(function, *args, **kwargs)
                key = launched.variant.key.text
                try:
                    binary = warm(function, *args, **{**kwargs, "warmup": True}).hash
                except Exception as error:
                    binary = f"{type(error).__name__}: {error}".partition("\n")[0]
                name = f"{function.fn.__module__}:{function.fn.__qualname__}"
                made.setdefault(name, {}).setdefault(key, set()).add(binary)
                return launched

            with patched([(JITFunction, "run", see_and_warm)]):
                yield capture

    child.capturing, child.in_fork = warming, lambda work, answer_type, name: work()
    manifest = child._run(request, progress).manifest
    return Checked(
        verdict=manifest.sweeps[0].verdict,
        kernels=tuple(_compare(name, keys) for name, keys in sorted(made.items())),
    )


def _compare(kernel: str, keys: dict[str, set[str]]) -> Check:
    """Keys and binaries, each the other's one."""
    wrong = [f"{len(made)} binaries for one key: {key}" for key, made in keys.items() if len(made) > 1]
    wrong += [f"{next(iter(made))} for {key}" for key, made in keys.items() if any(":" in binary for binary in made)]
    owners: dict[str, list[str]] = {}
    for key, made in keys.items():
        for binary in made:
            owners.setdefault(binary, []).append(key)
    wrong += [f"one binary for {len(shared)} keys: {shared[0]}" for shared in owners.values() if len(shared) > 1]
    return Check(kernel, len(keys), len(owners), tuple(wrong))


def _report(seed: int, count: int) -> Iterator[str]:
    rows: list[str] = []
    wrong: list[str] = []
    keys = agreed = 0
    for target, axes in draw(seed, count):
        checked = check(target, axes)
        name = Path(target).name
        keys += sum(kernel.keys for kernel in checked.kernels)
        disagreements = [text for kernel in checked.kernels for text in kernel.disagreements]
        agreed += not disagreements
        wrong += [f"- {name}: {text}" for text in disagreements]
        points = "; ".join(f"{axis} {values}" for axis, values in axes.items())
        kernels = ", ".join(f"{k.kernel.rpartition(':')[2]} {k.keys} = {k.binaries}" for k in checked.kernels)
        rows.append(f"| {name} | {points} | {checked.verdict} | {kernels} |")
    yield "# Captured keys against Triton's own warm-up"
    yield ""
    yield ", ".join(f"{name} {value}" for name, value in conditions("benchmarks.warmups").items()) + "."
    yield ""
    yield (
        f"{count} sweeps drawn with seed {seed}, {POINTS} points of each int axis. Triton warms each captured launch "
        f"with the same arguments. {keys} keys; in {agreed} of {count} sweeps each compiled, and keys and binaries "
        "were one to one."
    )
    yield ""
    yield "| sweep | points | verdict | kernels: keys = binaries |"
    yield "|---|---|---|---|"
    yield from rows
    if wrong:
        yield from ("", "Where they were not:", "", *wrong)


if __name__ == "__main__":
    main()
