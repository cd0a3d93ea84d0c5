"""How long explain takes over large manifests, such as recorded servers grow, and how much memory.

Usage: python -m benchmarks.explain [VARIANTS]. Prints seconds and peak MiB of `jitaudit explain` for each shape,
start-up included. The bar: 100,000 variants within 5 s and 1 GiB.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from jitaudit.manifest import encode
from jitaudit.model import (
    SCHEMA_VERSION,
    Environment,
    Kernel,
    Manifest,
    Parameter,
    Profile,
    SweepRun,
    Variant,
    VariantKey,
)

POINTERS = ("x_ptr", "y_ptr", "table_ptr")
PARAMETERS = (
    *(Parameter(name, "specialized", "vector") for name in POINTERS),
    Parameter("n", "specialized", "vector"),
    Parameter("stride", "specialized", "vector"),
    Parameter("LENGTH", "constexpr", "scalar"),
    Parameter("FLAG", "constexpr", "scalar"),
    Parameter("BLOCK", "constexpr", "block"),
)


def one_kernel(variants: int) -> Manifest:
    """A constexpr that follows a length without end, under a flag."""
    lengths = range(1, variants // 2 + 1)
    sweep = _sweep("linear", {"length": (f"1..{len(lengths)}",), "flag": (False, True)})
    reached = (_variant(length, flag, sweep.name) for length in lengths for flag in (False, True))
    return _manifest((sweep,), (_kernel("linear_kernel", reached),))


def many_kernels(variants: int) -> Manifest:
    """A thousand variants a kernel."""
    sweeps, kernels = [], []
    for number in range(variants // 1000):
        sweep = _sweep(f"sweep_{number}", {"length": ("1..500",), "flag": (False, True)})
        reached = (_variant(length, flag, sweep.name) for length in range(1, 501) for flag in (False, True))
        sweeps.append(sweep)
        kernels.append(_kernel(f"kernel_{number}", reached))
    return _manifest(tuple(sweeps), tuple(kernels))


def without_cases(variants: int) -> Manifest:
    """As a scan or a recorder leaves them: keys, and no sweep."""
    reached = (_variant(length, bool(length % 2), None) for length in range(1, variants + 1))
    return _manifest((), (_kernel("recorded_kernel", reached),))


SHAPES: tuple[Callable[[int], Manifest], ...] = (one_kernel, many_kernels, without_cases)


def measure(manifest: Manifest, folder: Path) -> tuple[float, float, float]:
    """Seconds, seconds of the core (which other work on the machine does not stretch) and peak MiB of one run."""
    path = folder / "manifest.json"
    path.write_bytes(encode(manifest))
    start = time.perf_counter()
    command = [sys.executable, "-c", "from jitaudit.cli import main; main()", "explain", str(path)]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    return time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def _sweep(name: str, axes: dict[str, tuple[str | bool, ...]]) -> SweepRun:
    return SweepRun(name=f"bench.py:{name}", axes=axes, compare=None, cases=0, counted=0, verdict="pass")


def _variant(length: int, flag: bool, sweep: str | None) -> Variant:
    classes = "=1" if length == 1 else "%16" if length % 16 == 0 else "any"
    arguments = dict.fromkeys(POINTERS, "*fp16 aligned") | {
        "n": f"i32 {classes}",
        "stride": "i32 %16",
        "LENGTH": f"constexpr int {length}",
        "FLAG": f"constexpr bool {flag}",
        "BLOCK": f"constexpr int {1 << (length - 1).bit_length()}",
    }
    cases = ({"sweep": sweep, "length": (str(length),), "flag": (flag,)},) if sweep else ()
    return Variant(VariantKey(arguments, {}), via="jit", origin="probe", launches=1, cases=cases)


def _kernel(name: str, variants: Iterator[Variant]) -> Kernel:
    reached = tuple(sorted(variants, key=lambda variant: variant.key.text))
    return Kernel(
        id=f"bench.py:{name}",
        group=None,
        object=name,
        file="bench.py",
        line=1,
        source="sha256:0",
        parameters=PARAMETERS,
        autotuner=None,
        launches=len(reached),
        variants=reached,
    )


def _manifest(sweeps: tuple[SweepRun, ...], kernels: tuple[Kernel, ...]) -> Manifest:
    environment = Environment(triton="3.7.1", torch="2.13.0", python="3.11.7", variables={})
    return Manifest(
        schema_version=SCHEMA_VERSION,
        target="cuda:90",
        configuration="",
        environment=environment,
        profile=Profile(asked=()),
        sweeps=sweeps,
        kernels=kernels,
        findings=(),
    )


def main() -> None:
    """Measure every shape."""
    variants = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with tempfile.TemporaryDirectory() as folder:
        for shape in SHAPES:
            seconds, core, mebibytes = measure(shape(variants), Path(folder))
            spent = f"{seconds:.1f} s ({core:.1f} s of the core), {mebibytes:.0f} MiB"
            print(f"{shape.__name__}: {variants:,} variants, {spent}")


if __name__ == "__main__":
    main()
