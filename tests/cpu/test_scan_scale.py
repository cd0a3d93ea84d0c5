"""`jitaudit scan` over 20,000 entries: 30 s of one core and 1 GiB, twice. benchmarks.scan has real sizes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from made_entries import Made, write_entry

ENTRIES = 20_000


@pytest.mark.nightly
def test_twenty_thousand_entries_within_half_a_minute_and_a_gibibyte(tmp_path: Path):
    for number in range(ENTRIES):
        write_entry(tmp_path, Made(kernel=f"kernel_{number % 300}", salt=str(number), code=bytes(number % 7) * 2_000))
    first, second = (_scan(tmp_path) for _ in range(2))
    assert max(first[0], second[0]) < 30
    assert max(first[1], second[1]) < 1 << 30
    assert second[0] < 1.5 * first[0] + 1


def _scan(cache: Path) -> tuple[float, int]:
    """The command's seconds of the core, which other work on this machine does not stretch, and its peak bytes."""
    child = os.fork()
    if child == 0:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.execv(sys.executable, [sys.executable, "-c", "from jitaudit.cli import main; main()", "scan", str(cache)])
    _, status, usage = os.wait4(child, 0)
    assert status == 0
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024
