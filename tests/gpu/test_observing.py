"""The pytest plugin on a real GPU: launches happen, results are right, and the count is what Triton compiled."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "samples" / "rowscale"))

Watch = Callable[..., AbstractContextManager]
SCALE = "rowscale.kernels:scale_kernel"


def scaled(rows: int, columns: int) -> None:
    from rowscale import scale_rows

    x, scale = torch.randn(rows, columns, device="cuda"), torch.randn(rows, device="cuda")
    expected = x * scale[:, None]
    scale_rows(x, scale)
    torch.testing.assert_close(x, expected)


def test_real_launches_are_counted(jit_variants: Watch) -> None:
    from rowscale.kernels import scale_kernel

    device = torch.cuda.current_device()
    with jit_variants() as seen:
        for rows in (1, 3, 16, 33):
            for columns in (64, 100, 256):
                scaled(rows, columns)
    compiled = scale_kernel.device_caches[device][0]
    major, minor = torch.cuda.get_device_capability()
    assert seen.target == f"cuda:{major * 10 + minor}"
    assert seen.count(SCALE) == len(compiled) == 3


def test_a_target_is_counted_on_stand_ins_beside_the_gpu(jit_variants: Watch) -> None:
    from rowscale import scale_rows

    with jit_variants(target="hip:gfx942") as seen:
        scale_rows(torch.empty(3, 64, device="cuda"), torch.empty(3, device="cuda"))
    assert seen.target == "hip:gfx942"
    assert seen.count(SCALE) == 1


@pytest.mark.jit_budget(kernel=SCALE, max=1)
def test_a_budget_holds_for_real_launches() -> None:
    for rows in (1, 3, 16):
        scaled(rows, 64)


def test_what_an_autotuner_times_is_seen_once_a_config(jit_variants: Watch) -> None:
    import triton
    import triton.language as tl

    @triton.autotune([triton.Config({"BLOCK": block}) for block in (64, 128)], key=["n"])
    @triton.jit
    def fill_kernel(x_ptr, n, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(x_ptr + at, 1.0, mask=at < n)

    x = torch.zeros(1000, device="cuda")
    with jit_variants() as seen:
        fill_kernel[lambda meta: (triton.cdiv(1000, meta["BLOCK"]),)](x, 1000)
    assert x.sum().item() == 1000
    assert seen.count("*fill_kernel") == 2
