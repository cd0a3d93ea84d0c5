"""Declarations that Triton accepts in silence, and kernels that nothing launches (rows 17, 18)."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

import jitaudit


@triton.jit(do_not_specialize=["batch_size"])
def misspelt_kernel(x_ptr, batch, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, 1.0, mask=offsets < batch)


@jitaudit.sweep(batch=[1, 2, 16])
def misspelt(batch):
    """Row 17: `do_not_specialize` names a parameter that does not exist."""
    misspelt_kernel[(1,)](torch.empty(64, device="cuda"), batch, BLOCK=64)


def make_kernel():
    @triton.jit
    def closure_kernel(x_ptr, BLOCK: tl.constexpr):
        tl.store(x_ptr + tl.arange(0, BLOCK), 2.0)

    return closure_kernel


@jitaudit.sweep(block=[64, 128])
def closure(block):
    """A kernel that no module holds."""
    make_kernel()[(1,)](torch.empty(128, device="cuda"), BLOCK=block)


@triton.jit
def forgotten_kernel(x_ptr, BLOCK: tl.constexpr):
    """Row 18: no case launches it."""
    tl.store(x_ptr + tl.arange(0, BLOCK), 0.0)
