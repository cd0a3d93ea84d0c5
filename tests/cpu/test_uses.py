"""What a kernel does with each parameter is read from its source, through helpers and loops."""

from __future__ import annotations

import explain_kernels
import pytest
import triton
import triton.language as tl
from cases import constexprs, ints, pointers

from jitaudit.jit.uses import parameter_uses

pytestmark = pytest.mark.matrix


@triton.jit
def helper(base_ptr, offset, LENGTH: tl.constexpr):
    return tl.load(base_ptr + offset + tl.arange(0, LENGTH))


@triton.jit
def calling_kernel(x_ptr, y_ptr, row, unused, LENGTH: tl.constexpr, TYPE: tl.constexpr, OP: tl.constexpr):
    values = helper(x_ptr, row, LENGTH).to(TYPE)
    tl.store(y_ptr, tl.sum(OP(values, 1)))


@triton.jit
def looping_kernel(x_ptr, step, rounds, MODE: tl.constexpr, WIDE: tl.constexpr):
    at_ptr = x_ptr
    for _ in range(rounds):
        tl.store(at_ptr + tl.arange(0, 64), 0)
        at_ptr += step  # reaches the store above in the next round
    if MODE == "twice":
        tl.store(x_ptr, tl.load(x_ptr) * 2)
    tl.store(x_ptr + tl.arange(0, 64), tl.load(x_ptr + tl.arange(0, 64)).reshape([WIDE, 8]).reshape([64]))


@pytest.mark.parametrize(
    ("kernel", "uses"),
    [
        (
            calling_kernel,
            {
                "x_ptr": "vector", "y_ptr": "scalar", "row": "vector", "unused": "unread", "LENGTH": "block",
                "TYPE": "static", "OP": "static",
            },
        ),
        (
            looping_kernel,
            {"x_ptr": "vector", "step": "vector", "rounds": "scalar", "MODE": "static", "WIDE": "static"},
        ),
        (constexprs.l2norm_kernel, {"T": "vector", "NB": "unread", "BLOCK": "block"}),
        (constexprs.rope_kernel, {"seq_len": "scalar", "cos_ptr": "vector"}),
        (pointers.mark_end_kernel, {"lens_ptr": "vector", "end_ptr": "scalar"}),
        (ints.scale_kernel, {"scale": "scalar"}),
        (explain_kernels.unrolled_kernel, {"ROUNDS": "static", "BLOCK": "block"}),
        (explain_kernels.norm_kernel, {"stride": "vector", "columns": "vector"}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)  # fmt: skip
def test_uses(kernel: object, uses: dict[str, str]):
    found = parameter_uses(kernel)
    assert {name: found[name] for name in uses} == uses
