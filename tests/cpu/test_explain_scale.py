"""`jitaudit explain` over 100,000 variants, in each shape that benchmarks.explain has and times: at most 1 GiB."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.explain import SHAPES, measure
from jitaudit.model import Manifest

VARIANTS = 100_000


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_a_hundred_thousand_variants(shape: Callable[[int], Manifest], tmp_path: Path):
    manifest = shape(VARIANTS)
    assert sum(len(kernel.variants) for kernel in manifest.kernels) == VARIANTS
    _, _, mebibytes = measure(manifest, tmp_path)
    assert mebibytes < 1024
