"""Pointers: views at offsets, and pointers that may be missing (rows 11, 12)."""

from __future__ import annotations

from types import SimpleNamespace

import torch
import triton
import triton.language as tl

import jitaudit
from jitaudit.jit.respecialize import respecialize


@triton.jit
def mark_end_kernel(lens_ptr, end_ptr, BLOCK: tl.constexpr):
    tl.store(end_ptr, tl.sum(tl.load(lens_ptr + tl.arange(0, BLOCK))))


MARK_END = SimpleNamespace(
    plain=mark_end_kernel,
    dnsa=respecialize(mark_end_kernel, do_not_specialize_on_alignment=["end_ptr"]),
)


@jitaudit.sweep(offset=jitaudit.ints(0, 16, 4), policy=list(vars(MARK_END)), compare="policy")
def mark_end(offset, policy):
    """Row 11: a view `offset` bytes into an int32 buffer, written by one scalar store."""
    lens = torch.empty(64, dtype=torch.int32, device="cuda")
    ends = torch.empty(64, dtype=torch.int32, device="cuda")
    getattr(MARK_END, policy)[(1,)](lens, ends[offset // 4 :], BLOCK=64)


@triton.jit
def optional_kernel(x_ptr, table_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    index = offsets if table_ptr is None else tl.load(table_ptr + offsets)
    tl.store(x_ptr + offsets, index)


OPTIONAL = SimpleNamespace(plain=optional_kernel, dns=respecialize(optional_kernel, do_not_specialize=["table_ptr"]))


@jitaudit.sweep(table=["none", "i32", "i64", "i32 unaligned"], policy=list(vars(OPTIONAL)), compare="policy")
def optional_pointer(table, policy):
    """Row 12: a table that may be missing, of two dtypes and any alignment."""
    tables = {
        "none": None,
        "i32": torch.empty(64, dtype=torch.int32, device="cuda"),
        "i64": torch.empty(64, dtype=torch.int64, device="cuda"),
        "i32 unaligned": torch.empty(65, dtype=torch.int32, device="cuda")[1:],
    }
    getattr(OPTIONAL, policy)[(1,)](torch.empty(64, dtype=torch.int64, device="cuda"), tables[table], BLOCK=64)


@triton.jit
def touch_kernel(x_ptr, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), 1)


@jitaudit.sweep(megabytes=[1, 2047, 2048])
def large_buffer(megabytes):
    """AMD's backend keys a pointer by whether its storage is under 2 GB; NVIDIA's does not."""
    touch_kernel[(1,)](torch.empty(megabytes << 20, dtype=torch.int8, device="cuda"), BLOCK=64)
