"""How long `jitaudit scan` takes over a large cache: `python -m benchmarks.scan [--entries N] [-o FILE]`.

Real compiles of the shipped kernels, with no GPU, are written again and again under other hashes until there are N
entries (20,000). The command then scans them in a process of its own on one core, first with the files dropped from
the page cache as far as the kernel obliges, then twice more. The bar: 30 s and 1 GiB each.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path

import msgspec

from benchmarks.conditions import conditions, write_json
from jitaudit.sweeping import Narrowing
from jitaudit.sweeping.process import ask
from jitaudit.sweeping.running import Answer, Request
from jitaudit.sweeping.targets import read_target

SECONDS, BYTES = 30.0, 1 << 30

TARGET = "jitaudit_kernels.mamba_replay"


class Measured(msgspec.Struct, frozen=True):
    """One scan."""

    pages: str
    seconds: float
    cpu_seconds: float
    """User and system: on a machine with other work, what one core alone would take at most, reading apart."""
    peak_bytes: int


class Report(msgspec.Struct, frozen=True):
    """What is written with ``-o``."""

    conditions: dict[str, str | int]
    entries: int
    cache_bytes: int
    scans: tuple[Measured, ...]


def main() -> None:
    """Build the cache, scan it three times, and end with 1 where a scan missed the bar."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=20_000)
    parser.add_argument("-o", "--output", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        compiled, cache = Path(folder, "compiled"), Path(folder, "cache")
        _compile_into(compiled)
        size = sum(_multiplied(compiled, cache, arguments.entries))
        _drop_pages(cache)
        scans = tuple(_scan(cache, pages) for pages in ("dropped", "cached", "cached"))
    for scan in scans:
        print(f"{scan.pages}: {scan.seconds:.2f} s, {scan.cpu_seconds:.2f} s of the core, {scan.peak_bytes >> 20} MiB")
    if arguments.output:
        report = Report(conditions("benchmarks.scan"), arguments.entries, size, scans)
        write_json(arguments.output, report)
    raise SystemExit(any(scan.seconds > SECONDS or scan.peak_bytes > BYTES for scan in scans))


def _compile_into(cache: Path) -> None:
    request = Request(read_target(TARGET), "cuda:90", Narrowing(axes={"total": "1..16"}, compile=True))
    ask("jitaudit.sweeping.child", request, Answer, TARGET, lambda *_: None, {"TRITON_CACHE_DIR": str(cache)})


def _multiplied(compiled: Path, cache: Path, entries: int) -> Iterator[int]:
    """Write `entries` entries, each a compiled one under a hash of its own; yields their bytes."""
    templates = [folder for folder in sorted(compiled.iterdir()) if list(folder.glob("__grp__*"))]
    for number, template in enumerate(islice(cycle(templates), entries)):
        digest = hashlib.sha256(f"{number} {template.name}".encode()).hexdigest()
        folder = cache / base64.b32encode(bytes.fromhex(digest)).decode().rstrip("=")
        folder.mkdir(parents=True)
        for file in sorted(template.iterdir()):
            data = file.read_bytes()
            if file.suffix == ".json" and not file.name.startswith("__grp__"):
                data = json.dumps(json.loads(data) | {"hash": digest}).encode()
            elif file.suffix == ".json":
                data = data.replace(os.fsencode(template), os.fsencode(folder))
            (folder / file.name).write_bytes(data)
            yield len(data)


def _drop_pages(cache: Path) -> None:
    os.sync()
    for file in cache.rglob("*"):
        descriptor = os.open(file, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def _scan(cache: Path, pages: str) -> Measured:
    """The whole command, from its start to its last line."""
    start = time.perf_counter()
    child = os.fork()
    if child == 0:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(1, 2)
        os.execv(sys.executable, [sys.executable, "-c", "from jitaudit.cli import main; main()", "scan", str(cache)])
    _, status, usage = os.wait4(child, 0)
    if status:
        raise SystemExit(f"the scan ended with {os.waitstatus_to_exitcode(status)}")
    seconds = time.perf_counter() - start
    return Measured(pages, round(seconds, 2), round(usage.ru_utime + usage.ru_stime, 2), usage.ru_maxrss * 1024)


if __name__ == "__main__":
    main()
