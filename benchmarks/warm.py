"""`jitaudit warm` beside the loop that a user would write: `python -m benchmarks.warm [--sizes 72,1000] [-o FILE]`.

Variants of the shipped kernels' baseline policy, drawn by a seed, into an empty cache each: once by `jitaudit warm`,
once by one process that calls `kernel.warmup` for each. What starting costs (interpreter, imports, hashing Triton's
installation) stands apart on both sides. Then warm again, and check, on the full directory.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.conditions import conditions, write_json
from jitaudit import manifest as manifests
from jitaudit.model import Manifest
from jitaudit.sweeping import Narrowing, run

SEED = 72
JITAUDIT = (sys.executable, "-c", "from jitaudit.cli import main; main()")


class Row(msgspec.Struct, frozen=True):
    """One size; seconds of wall clock."""

    variants: int
    loop_start: float
    loop: float
    warm_start: float
    warm: float
    """Looking and compiling."""
    compile_cpu: float
    """What warm's compiles took, added up."""
    again: float
    """A second warm, whole."""
    check: float
    """The whole check."""

    @property
    def ratio(self) -> float:
        return self.loop / self.warm


class Warm(msgspec.Struct, frozen=True):
    """Each size as often as it was asked for."""

    conditions: dict[str, str | int]
    rows: tuple[Row, ...]


def main() -> None:
    """Measure each size, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="72,1000")
    parser.add_argument("--loop", type=Path, help="be the loop over this manifest")
    parser.add_argument("-o", "--output", type=Path)
    arguments = parser.parse_args()
    if arguments.loop:
        _loop(manifests.read([arguments.loop]))
        return
    whole = run(["jitaudit_kernels"], "cuda:90", Narrowing(groups=("baseline",)))
    rows: list[Row] = []
    print("variants  loop s (start)  warm s (start)  ratio  CPU s ÷ cores  again s  check s", flush=True)
    for size in arguments.sizes.split(","):
        rows.append(row := _measure(drawn(whole, int(size))))
        ideal = row.compile_cpu / len(os.sched_getaffinity(0))
        print(
            f"{row.variants:8}  {row.loop:6.1f} ({row.loop_start:.1f})  {row.warm:6.1f} ({row.warm_start:.1f})"
            f"  {row.ratio:5.1f}  {ideal:13.1f}  {row.again:7.1f}  {row.check:7.1f}",
            flush=True,
        )
        if arguments.output:  # after each, so that a cut-off run keeps what it has
            write_json(arguments.output, Warm(conditions("benchmarks.warm"), tuple(rows)))


def drawn(manifest: Manifest, size: int) -> Manifest:
    """`size` of the variants, or all where there are fewer."""
    every = [(k, v) for k, kernel in enumerate(manifest.kernels) for v in range(len(kernel.variants))]
    chosen = set(random.Random(SEED).sample(every, min(size, len(every))))
    kernels = []
    for k, kernel in enumerate(manifest.kernels):
        variants = tuple(variant for v, variant in enumerate(kernel.variants) if (k, v) in chosen)
        if variants:
            kernels.append(msgspec.structs.replace(kernel, variants=variants))
    return msgspec.structs.replace(manifest, kernels=tuple(kernels))


def _measure(manifest: Manifest) -> Row:
    with tempfile.TemporaryDirectory() as folder:
        path, cache = Path(folder, "m.json"), Path(folder, "warm")
        manifests.write(manifest, path)
        loop = _json([sys.executable, "-m", "benchmarks.warm", "--loop", path], TRITON_CACHE_DIR=f"{folder}/loop")
        warm = _json([*JITAUDIT, "warm", path, "--cache-dir", cache, "--format", "json"])
        begun = time.perf_counter()
        subprocess.run([*JITAUDIT, "warm", path, "--cache-dir", cache], check=True, capture_output=True)
        again = time.perf_counter() - begun
        begun = time.perf_counter()
        subprocess.run([*JITAUDIT, "check", path, "--cache-dir", cache], capture_output=True)
        return Row(
            variants=sum(len(kernel.variants) for kernel in manifest.kernels),
            loop_start=loop["start"],
            loop=loop["loop"],
            warm_start=warm["start_seconds"],
            warm=warm["look_seconds"] + warm["compile_seconds"],
            compile_cpu=warm["cpu_seconds"],
            again=again,
            check=time.perf_counter() - begun,
        )


def _json(command: list[Any], **environment: str) -> dict[str, Any]:
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, env=os.environ | environment)
    return json.loads(done.stdout)


def _loop(manifest: Manifest) -> None:
    """What a user would write, with the arguments taken from the manifest."""
    begun = time.perf_counter()
    from jitaudit.jit import decoding
    from jitaudit.jit.rebuild import compiling_for
    from jitaudit.jit.timing import hash_installation

    functions = [found(kernel.id, kernel.object or "") for kernel in manifest.kernels]
    hash_installation()
    start = time.perf_counter() - begun
    begun = time.perf_counter()
    with compiling_for(manifest.target):
        for function, kernel in zip(functions, manifest.kernels, strict=True):
            for variant in kernel.variants:
                arguments = {name: decoding.argument(text) for name, text in variant.key.arguments.items()}
                function.warmup(grid=(1,), **arguments, **variant.key.options)
    print(json.dumps({"start": start, "loop": time.perf_counter() - begun}))


def found(kernel: str, path: str) -> Any:
    value: Any = importlib.import_module(kernel.partition(":")[0])
    for name in path.split("."):
        value = getattr(value, name)
    return value


if __name__ == "__main__":
    main()
