"""The README's table of variants is what `jitaudit probe` counts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from jitaudit.probing import Probe

README = Path(__file__).parents[2] / "README.md"
BEGIN, END = "<!-- variants: tests/cpu/test_readme.py --update-golden -->\n", "<!-- /variants -->"


def test_the_table_is_what_probe_counts(probe_here: Callable[..., Probe], pytestconfig: pytest.Config) -> None:
    before, rest = README.read_text().split(BEGIN)
    shown, after = rest.split(END)
    table = _table(probe_here("jitaudit_kernels"))
    if pytestconfig.getoption("--update-golden"):
        README.write_text(f"{before}{BEGIN}{table}{END}{after}")
        shown = table
    assert shown == table


def _table(probe: Probe) -> str:
    variants = {(count.kernel, count.group): count.variants for count in probe.counts}
    kernels = dict.fromkeys(count.kernel for count in probe.counts)
    lines = ["| kernel | baseline | floored |", "|---|---:|---:|"]
    lines += [
        f"| {kernel.partition('.')[2]} | {variants[kernel, 'baseline']:,} | {variants[kernel, 'floored']:,} |"
        for kernel in sorted(kernels, key=lambda kernel: (-variants[kernel, "baseline"], kernel))
    ]
    totals = [sum(variants[kernel, group] for kernel in kernels) for group in ("baseline", "floored")]
    return "\n".join([*lines, f"| **all** | **{totals[0]:,}** | **{totals[1]:,}** |"]) + "\n"
