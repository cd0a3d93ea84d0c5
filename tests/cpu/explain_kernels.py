"""Kernels and sweeps for the tests of explain: rows 21, 24, 25 and 26 of the field cases, and what can't be mended."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

import jitaudit


@triton.jit
def scan_kernel(x_ptr, state_ptr, stride, HAS_INITIAL_STATE: tl.constexpr, BLOCK: tl.constexpr):
    column = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * stride + column)
    if HAS_INITIAL_STATE:
        x += tl.load(state_ptr + column)
    tl.store(x_ptr + tl.program_id(0) * stride + column, x)


@jitaudit.sweep(sequences=[1], continued=[False], columns=[64])
def chunk_scan(sequences, continued, columns):
    """Rows 21 and 24: a warm-up takes the defaults, traffic moves the axes."""
    x = torch.empty(sequences, columns, device="cuda")
    scan_kernel[(sequences,)](x, torch.empty(64, device="cuda"), x.stride(0), HAS_INITIAL_STATE=continued, BLOCK=64)


@triton.jit
def page_kernel(x_ptr, STRIDE: tl.constexpr, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.program_id(0) * STRIDE + tl.arange(0, BLOCK), 0)


@jitaudit.sweep(step=jitaudit.ints(1, 64))
def decode_steps(step):
    """Row 25: the page table grows by 3 a step, and each of its strides is a constexpr."""
    table = torch.empty(8, 3 * step, dtype=torch.int32, device="cuda")
    page_kernel[(8,)](table, STRIDE=table.stride(0), BLOCK=1)


@triton.jit
def norm_kernel(x_ptr, y_ptr, stride, columns, BLOCK: tl.constexpr):
    column = tl.arange(0, BLOCK)
    mask = column < columns
    x = tl.load(x_ptr + tl.program_id(0) * stride + column, mask=mask).to(tl.float32)
    tl.store(y_ptr + tl.program_id(0) * stride + column, x - tl.sum(x) / columns, mask=mask)


@jitaudit.sweep(columns=[1008, 1009, 1024], offset=[0, 1])
def layer_norm(columns, offset):
    """Row 26: a row stride and a pointer that vector loads need."""
    x = torch.empty(4 * columns + offset, dtype=torch.float16, device="cuda")[offset:].view(4, columns)
    norm_kernel[(4,)](x, torch.empty_like(x), x.stride(0), columns, BLOCK=1024)


@triton.jit
def unrolled_kernel(x_ptr, ROUNDS: tl.constexpr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    for _ in tl.static_range(ROUNDS):
        x = x * 2
    tl.store(x_ptr + tl.arange(0, BLOCK), x)


@jitaudit.sweep(rounds=jitaudit.ints(1, 3))
def unrolled(rounds):
    """A constexpr that the compiler needs, and that is no length."""
    unrolled_kernel[(1,)](torch.empty(64, device="cuda"), ROUNDS=rounds, BLOCK=64)


@triton.jit
def bins_kernel(x_ptr, out_ptr, BINS: tl.constexpr, BLOCK: tl.constexpr):
    counts = tl.histogram(tl.load(x_ptr + tl.arange(0, BLOCK)), BINS)
    tl.store(out_ptr, tl.max(counts))


@jitaudit.sweep(bins=[16, 32, 64])
def histogram(bins):
    """A constexpr that the compiler needs, though nothing in the source's words says so."""
    x, out = torch.empty(2, 64, dtype=torch.int32, device="cuda")
    bins_kernel[(1,)](x, out, BINS=bins, BLOCK=64)


@triton.jit
def store_kernel(x_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, 1.0, mask=offsets < n)


@jitaudit.sweep(n=jitaudit.ints(16, 32))
def store(n):
    """The words of the tree: 16 and 32 are divisible by 16, 17..31 are not."""
    store_kernel[(1,)](torch.empty(64, device="cuda"), n, BLOCK=64)


@jitaudit.sweep(n=[1, 2, 16], launch=[False])
def nothing(n, launch):
    """Launches no kernel unless asked."""
    if launch:
        store(n)
