"""stall: how long the first pass over real traffic stands still, for what, and what is left of it after a change.

One-time cost = first pass − the same cases again, in the same process.
"""

from __future__ import annotations

import math
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from jitaudit import manifest as manifests
from jitaudit.boxes import expand, group_of
from jitaudit.errors import Interrupted, RequestError
from jitaudit.judging.nearest import Neighbours
from jitaudit.model import SCHEMA_VERSION, Manifest, VariantKey
from jitaudit.sweeping import Narrowing, Progress, run
from jitaudit.sweeping.serving import Served, Serving, Step, Trace, Wait, serve_cases
from jitaudit.sweeping.targets import read_target

DEFAULT_TARGET = "jitaudit_kernels.round"
"""One decoding round of the shipped kernels."""

WARMED = "warmed"
KINDS = ("compile", "host build", "benchmark", "disk read", "module load", "launch")
"""The parts of the one-time cost; `launch` is what is left: the rest of a first launch."""


class Spread(msgspec.Struct, frozen=True):
    """A figure over the repeats."""

    median: float
    min: float
    max: float


class Pass(msgspec.Struct, frozen=True):
    """One pass; times in seconds."""

    name: str
    group: str | None
    one_time: Spread
    parts: dict[str, Spread]
    longest: Spread
    """The longest stall of one case: what it took longer than in the warm pass."""
    first_p50: Spread
    first_p95: Spread
    first_p99: Spread
    first_rate: Spread
    """Cases a second in the first pass."""
    again_rate: Spread
    variants: int
    """Compiles in the first pass."""
    host_bytes: int
    device_bytes: int | None
    steps: tuple[Step, ...]
    """The first pass of the repeat whose one-time cost is the median."""
    errors: tuple[str, ...]
    partial: bool
    torch_first_use: Spread
    """What torch itself takes at first use, in no other figure: measured before, with the launches left out."""


class Stalls(msgspec.Struct, frozen=True):
    """What the passes measured."""

    schema_version: int
    target: str
    device: str
    """The GPU's name; the architecture where only the compile part was measured."""
    offline: bool
    repeats: int
    passes: tuple[Pass, ...]
    interrupted: bool = False
    """Whether something that was asked for is missing: cases of the last pass, repeats, passes."""

    @property
    def complete(self) -> bool:
        """Whether every case of every pass was served."""
        return bool(self.passes) and not self.interrupted and not any(one.errors for one in self.passes)


def stall(
    target: str,
    architecture: str,
    axes: dict[str, str],
    passes: Sequence[str],
    *,
    gpu: bool,
    repeats: int,
    progress: Progress,
) -> Stalls:
    """Measure each of `passes` (none: all that the target's sweeps have) in processes of its own, `repeats` times.

    Raises RequestError for a pass that does not exist and SetupError where `gpu` is asked and none is here.
    """
    read = read_target(target)
    manifest = run([target], architecture, Narrowing(axes=axes), progress)
    groups = _groups(manifest)
    known = {group: group for group in groups} | {WARMED: groups[-1]} if groups else {"cold": None, WARMED: None}
    for name in passes:
        if name not in known:
            raise RequestError(f"--passes {name}: no such pass; there are {', '.join(known)}")
    base = Serving(
        target=read, architecture=architecture, group=None, axes=axes, gpu=gpu,
        trace=traffic() if target == DEFAULT_TARGET and not axes else None,
    )  # fmt: skip
    measured, device, interrupted = [], architecture, False
    for name in passes or known:
        request = msgspec.structs.replace(base, group=known[name], warm=manifest if name == WARMED else None)
        served: list[Served] = []
        try:
            for one in _repeated(request, repeats, progress):
                interrupted |= one.partial
                if one.first:
                    served.append(one)
        except (KeyboardInterrupt, Interrupted):
            interrupted = True
        if served:
            measured.append(_pass(name, known[name], served))
            device = served[0].device
        if interrupted:
            break
    return Stalls(SCHEMA_VERSION, target, device, not gpu, repeats, tuple(measured), interrupted)


def waits_in_order(one: Pass) -> Iterator[tuple[str, Wait, VariantKey | None]]:
    """The waits of a first pass, each with its case and, for a variant, the nearest of its kernel before it."""
    before: dict[str, list[VariantKey]] = {}
    for step in one.steps:
        for wait in sorted(step.waits, key=lambda wait: wait.start):
            if wait.key is None or wait.kind == "module load":
                yield step.case, wait, None
                continue
            keys = before.setdefault(wait.kernel, [])
            yield step.case, wait, next(iter(Neighbours(keys).nearest(wait.key)), None)
            keys.append(wait.key)


def traffic(first: int = 1, last: int = 64, steps: int = 96, seed: int = 0) -> Trace:
    """Batch sizes that rise and fall as traffic does: three waves between `first` and `last`, with seeded noise."""
    chance = random.Random(seed)
    middle, height = (first + last) / 2, (last - first) / 2
    sizes = [
        round(middle - height * math.cos(6 * math.pi * s / steps) + chance.gauss(0, height / 8)) for s in range(steps)
    ]
    return Trace("bs", tuple(min(max(size, first), last) for size in sizes))


def _groups(manifest: Manifest) -> list[str]:
    """The values that the sweeps compare, in the order of their axes."""
    compared = [sweep.axes[sweep.compare] for sweep in manifest.sweeps if sweep.compare]
    return list(dict.fromkeys(group_of(value) for values in compared for value in expand(values)))


def _repeated(request: Serving, repeats: int, progress: Progress) -> Iterator[Served]:
    for _ in range(repeats):
        with tempfile.TemporaryDirectory(prefix="jitaudit-cache-") as directory:
            ready = _warm_directory(request, Path(directory)) if request.warm else request
            served = serve_cases(ready, progress)
            yield served
            if served.partial:
                return


def _warm_directory(request: Serving, directory: Path) -> Serving:
    """Compile the pass's variants ahead, as a user would: with `jitaudit warm`, in a process of its own."""
    assert request.warm is not None
    groups = (request.group,) if request.group is not None else ()
    wanted = Narrowing(groups=groups).of(request.warm)
    manifest, cache = directory / "manifest.json", directory / "triton"
    manifests.write(wanted, manifest)
    command: list[str | Path] = [
        sys.executable,
        "-c",
        "from jitaudit.cli import main; main()",
        "warm",
        manifest,
        "--cache-dir",
        cache,
    ]
    if request.target.file is not None:
        command += ["--sweeps", request.target.file]
    warmed = subprocess.run(command, capture_output=True, text=True)
    if warmed.returncode not in (0, 1):
        raise RequestError(f"jitaudit warm failed: {warmed.stderr.strip().rpartition(chr(10))[2]}")
    return msgspec.structs.replace(request, warm=wanted, cache_directory=str(cache))


def _pass(name: str, group: str | None, served: Sequence[Served]) -> Pass:
    costs = [_one_time(s) for s in served]
    middle = served[costs.index(statistics.median_low(costs))]
    parts = [_parts(s) for s in served]
    return Pass(
        name=name,
        group=group,
        one_time=_spread(costs),
        parts={kind: _spread([part[kind] for part in parts]) for kind in KINDS},
        longest=_spread([_longest(s) for s in served]),
        first_p50=_spread([_quantile(s.first, 0.50) for s in served]),
        first_p95=_spread([_quantile(s.first, 0.95) for s in served]),
        first_p99=_spread([_quantile(s.first, 0.99) for s in served]),
        first_rate=_spread([_rate(s.first) for s in served]),
        again_rate=_spread([_rate(s.again) for s in served]),
        variants=middle.variants,
        host_bytes=max(s.host_bytes for s in served),
        device_bytes=max((s.device_bytes for s in served if s.device_bytes is not None), default=None),
        steps=middle.first,
        errors=tuple(f"{step.case}: {step.error}" for step in middle.first if step.error),
        partial=any(s.partial for s in served),
        torch_first_use=_spread([s.torch_seconds for s in served]),
    )


def _one_time(served: Served) -> float:
    if served.partial:  # there is no second pass to compare with: what is known to have been waited for
        return sum(wait.seconds for step in served.first for wait in step.waits)
    return sum(step.seconds for step in served.first) - sum(step.seconds for step in served.again)


def _longest(served: Served) -> float:
    if served.partial:
        return max((sum(wait.seconds for wait in step.waits) for step in served.first), default=0.0)
    return max(first.seconds - again.seconds for first, again in zip(served.first, served.again, strict=True))


def _parts(served: Served) -> dict[str, float]:
    parts = dict.fromkeys(KINDS, 0.0)
    for step in served.first:
        for wait in step.waits:
            parts[wait.kind] += wait.seconds
    parts["launch"] = _one_time(served) - sum(parts.values())
    return parts


def _quantile(steps: Sequence[Step], share: float) -> float:
    seconds = sorted(step.seconds for step in steps)
    return seconds[min(math.ceil(share * len(seconds)), len(seconds)) - 1]


def _rate(steps: Sequence[Step]) -> float:
    total = sum(step.seconds for step in steps)
    return len(steps) / total if total else 0.0


def _spread(values: Sequence[float]) -> Spread:
    return Spread(statistics.median(values), min(values), max(values))
