"""Every kernel compiles, in both policies, under every flag, for every target: the interpreter ignores policies."""

from __future__ import annotations

from pathlib import Path

import pytest

from jitaudit.sweeping import Narrowing, run

pytestmark = pytest.mark.matrix

FLAGS = str(Path(__file__).with_name("kernel_flags.py"))


@pytest.mark.parametrize("target", ["cuda:90", "hip:gfx942"])
def test_every_flag_compiles(target: str):
    manifest = run([FLAGS], target, Narrowing(compile=True))
    assert {sweep.name: sweep.verdict for sweep in manifest.sweeps} == {sweep.name: "pass" for sweep in manifest.sweeps}
    failed = [variant.key.text for kernel in manifest.kernels for variant in kernel.variants if variant.compile is None]
    assert failed == []
    assert {kernel.group for kernel in manifest.kernels} == {"baseline", "floored"}
    assert len(manifest.sweeps) == 13
