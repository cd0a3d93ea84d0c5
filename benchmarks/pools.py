"""Ways to compile in parallel, each once on the same variants: `python -m benchmarks.pools [--size 72] [-o FILE]`.

Threads under Triton's `AsyncCompileMode`, spawned processes, `multiprocessing`'s fork server with torch, Triton and
`triton_key()` preloaded, and `jitaudit warm`, which forks from the process that planned; beside one process alone.
Start-up that is paid once, before the first compile, stands apart; what a pool's own workers pay for theirs does not.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from benchmarks.conditions import conditions
from benchmarks.warm import JITAUDIT, drawn, found
from jitaudit import manifest as manifests
from jitaudit.sweeping import Narrowing, run

POOLS = ("one process", "threads", "spawned processes", "fork server")


def main() -> None:
    """Measure each pool in a process and an empty cache directory of its own, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=72)
    parser.add_argument("--pool", choices=POOLS, help="be this pool, over --manifest")
    parser.add_argument("--manifest", type=Path)
    parser.add_argument("-o", "--output", type=Path)
    arguments = parser.parse_args()
    if arguments.pool:
        print(json.dumps(_compile_all(arguments.pool, arguments.manifest)))
        return
    text = "\n".join(_report(arguments.size)) + "\n"
    arguments.output.write_text(text) if arguments.output else sys.stdout.write(text)


def _report(size: int) -> list[str]:
    cores = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "m.json")
        manifests.write(drawn(run(["jitaudit_kernels"], "cuda:90", Narrowing(groups=("baseline",))), size), path)
        rows = []
        for pool in POOLS:
            command = [sys.executable, "-m", "benchmarks.pools", "--pool", pool, "--manifest", path]
            told = _asked(command, TRITON_CACHE_DIR=f"{folder}/{pool}")
            rows.append((pool, told["start"], told["compile"]))
        told = _asked([*JITAUDIT, "warm", path, "--cache-dir", f"{folder}/warm", "--format", "json"])
        rows.append(("jitaudit warm", told["start_seconds"] + told["look_seconds"], told["compile_seconds"]))
        ideal = told["cpu_seconds"] / cores
    lines = [f"# {size} variants on {cores} cores", "", "| pool | start, s | compile, s |", "|---|---|---|"]
    lines += [f"| {pool} | {start:.1f} | {compile:.1f} |" for pool, start, compile in rows]
    away = rows[-1][2] / ideal - 1
    lines += ["", f"CPU of the compiles ÷ cores: {ideal:.1f} s; `jitaudit warm` is {away:.0%} above it.", ""]
    return [*lines, *(f"{name}: {value}  " for name, value in conditions("benchmarks.pools").items())]


def _asked(command: list[Any], **environ: str) -> dict[str, Any]:
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, env=os.environ | environ)
    return json.loads(done.stdout)


def _compile_all(pool: str, path: Path) -> dict[str, float]:
    begun = time.perf_counter()
    _variants(path)
    start = time.perf_counter() - begun
    begun = time.perf_counter()
    if pool in ("one process", "threads"):
        _here(path, threads=pool == "threads")
    else:
        _elsewhere(path, "spawn" if pool == "spawned processes" else "forkserver")
    return {"start": start, "compile": time.perf_counter() - begun}


def _here(path: Path, *, threads: bool) -> None:
    import triton

    executor = ThreadPoolExecutor(len(os.sched_getaffinity(0)))
    with executor, triton.AsyncCompileMode(executor) if threads else nullcontext():
        for number in range(len(_variants(path))):
            _warm_up(path, number)


def _elsewhere(path: Path, method: str) -> None:
    context = multiprocessing.get_context(method)
    if method == "forkserver":
        context.set_forkserver_preload(["benchmarks.pools_preload"])
    pool: Executor = ProcessPoolExecutor(len(os.sched_getaffinity(0)), context)
    with pool:
        list(pool.map(_warm_up, [path] * len(_variants(path)), range(len(_variants(path)))))


_known: dict[Path, list[tuple[Any, Any]]] = {}


def _variants(path: Path) -> list[tuple[Any, Any]]:
    """The function and key of each variant, once a process."""
    if path not in _known:
        from jitaudit.jit.timing import hash_installation

        manifest = manifests.read([path])
        _known[path] = [(found(k.id, k.object or ""), v.key) for k in manifest.kernels for v in k.variants]
        hash_installation()
    return _known[path]


def _warm_up(path: Path, number: int) -> None:
    from jitaudit.jit import decoding
    from jitaudit.jit.rebuild import compiling_for

    function, key = _variants(path)[number]
    arguments = {name: decoding.argument(text) for name, text in key.arguments.items()}
    with compiling_for("cuda:90"):
        function.warmup(grid=(1,), **arguments, **key.options)


if __name__ == "__main__":
    main()
