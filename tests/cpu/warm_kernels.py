"""Kernels that compile in a moment, and their sweeps, for the tests of warm and check."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

import jitaudit


@triton.jit
def copy_kernel(dst_ptr, src_ptr, n, BLOCK: tl.constexpr):
    element = tl.arange(0, BLOCK)
    tl.store(dst_ptr + element, tl.load(src_ptr + element, mask=element < n), mask=element < n)


@triton.jit
def cast_kernel(out_ptr, n):
    """Compiles for every n but 1: Triton makes that a constant, which has no ``to``."""
    tl.store(out_ptr, n.to(tl.float32))


@triton.jit
def unrolled_kernel(out_ptr, STEPS: tl.constexpr):
    value = tl.load(out_ptr)
    for step in tl.static_range(STEPS):
        value = value * value + step
    tl.store(out_ptr, value)


@triton.autotune(configs=[triton.Config({"BLOCK": 16}), triton.Config({"BLOCK": 32})], key=["n"])
@triton.jit
def tuned_kernel(dst_ptr, n, BLOCK: tl.constexpr):
    tl.store(dst_ptr + tl.arange(0, BLOCK), 1, mask=tl.arange(0, BLOCK) < n)


def make_kernel():
    @triton.jit
    def closure_kernel(out_ptr, n):
        tl.store(out_ptr, n)

    return closure_kernel


@jitaudit.sweep(n=[1, 3, 16], offset=[0, 1])
def copy(n, offset):
    """Six variants: three classes of n, two of the source's alignment."""
    source = torch.empty(17, device="cuda")
    copy_kernel[(1,)](torch.empty(16, device="cuda"), source[offset:], n, BLOCK=16)


@jitaudit.sweep(n=[1, 42])
def cast(n):
    cast_kernel[(1,)](torch.empty(1, device="cuda"), n)


@jitaudit.sweep(steps=[1, 20000])
def unrolled(steps):
    unrolled_kernel[(1,)](torch.empty(1, device="cuda"), STEPS=steps)


@jitaudit.sweep(n=[8, 24])
def tuned(n):
    tuned_kernel[(1,)](torch.empty(32, device="cuda"), n)


@jitaudit.sweep(n=[2])
def closure(n):
    make_kernel()[(1,)](torch.empty(1, device="cuda"), n)
