"""What the three kernels share: the sparse length, and the copy of a request's slots into page tables.

Device functions first, then what launchers and references need of them.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ..arguments import I32, INTS, check_at_least, check_tensor

COLUMNS = 128
"""Columns that a program copies at a time."""

PROGRAMS = 8192
"""How many programs the copy is split into, as far as the rows are long enough: the grid depends on shapes only."""


@triton.jit
def dsa_len(n, TOPK: tl.constexpr, K_POOL: tl.constexpr):
    """The keys that sparse attention reads of ``n``: pooled ones up to TOPK, and the rest of an unfinished pool."""
    if K_POOL <= 1:
        return tl.minimum(n, TOPK)
    else:
        pooled = n // K_POOL * K_POOL
        return tl.minimum(pooled, TOPK) + (n - pooled)


@triton.jit
def copy_slots(
    slots_ptr,  # [ctx] of the request, a row of req_to_token
    live,  # columns to copy
    row,
    split,
    splits,
    page_table_1_ptr,  # [rows, max_len] or None
    page_table_1_stride,
    real_page_table_ptr,  # [rows, pages] or None
    real_page_table_stride,
    PAGE_SIZE: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Copy every ``splits``-th tile of the request's live slots into output row ``row``; later columns keep theirs."""
    columns = tl.arange(0, COLUMNS)
    if page_table_1_ptr is not None:
        table_ptr = page_table_1_ptr + row.to(tl.int64) * page_table_1_stride
        for start in range(split * COLUMNS, live, splits * COLUMNS):
            column = start + columns
            slots = tl.load(slots_ptr + column, mask=column < live)
            tl.store(table_ptr + column, slots, mask=column < live)
    if PAGE_SIZE > 1 and real_page_table_ptr is not None:
        table_ptr = real_page_table_ptr + row.to(tl.int64) * real_page_table_stride
        pages = tl.cdiv(live, PAGE_SIZE)
        for start in range(split * COLUMNS, pages, splits * COLUMNS):
            page = start + columns
            slots = tl.load(slots_ptr + page * PAGE_SIZE, mask=page < pages)
            tl.store(table_ptr + page, slots // PAGE_SIZE, mask=page < pages)


def copy_splits(rows: int, max_len: int) -> int:
    """How many programs share the copy of one of ``rows`` rows."""
    return max(1, min(PROGRAMS // max(rows, 1), triton.cdiv(max_len, COLUMNS)))


def row_stride(table: torch.Tensor | None) -> int:
    """Elements from one row to the next; 0 of a table that is not given."""
    return 0 if table is None else table.stride(0)


def check_metadata(
    seq_lens: torch.Tensor,
    req_pool_indices: torch.Tensor,
    req_to_token: torch.Tensor,
    cache_seqlens: torch.Tensor,
    cu_seqlens_k: torch.Tensor,
    page_table_1: torch.Tensor | None,
    dsa_cache_seqlens: torch.Tensor,
    dsa_cu_seqlens_k: torch.Tensor,
    real_page_table: torch.Tensor | None,
    *,
    rows: int,
    max_len: int,
    topk: int,
    page_size: int,
    k_pool: int,
) -> None:
    """Check what all three launchers take beside ``seq_lens``, for tables of ``rows`` rows."""
    for name, value in (("max_len", max_len), ("topk", topk), ("page_size", page_size), ("k_pool", k_pool)):
        check_at_least(name, value, 1)
    bs, device = seq_lens.shape[0], seq_lens.device
    check_tensor("req_pool_indices", req_pool_indices, (bs,), INTS, device)
    check_tensor("req_to_token", req_to_token, (None, None), I32, device)
    check_tensor("cache_seqlens", cache_seqlens, (bs,), I32, device)
    check_tensor("cu_seqlens_k", cu_seqlens_k, (bs + 1,), I32, device)
    check_tensor("dsa_cache_seqlens", dsa_cache_seqlens, (rows,), I32, device)
    check_tensor("dsa_cu_seqlens_k", dsa_cu_seqlens_k, (rows + 1,), I32, device)
    if page_table_1 is not None:
        check_tensor("page_table_1", page_table_1, (rows, max_len), I32, device)
    elif page_size == 1 or real_page_table is None:
        raise ValueError("page_table_1 must be given when page_size is 1 or there is no real_page_table")
    if real_page_table is not None:
        check_tensor("real_page_table", real_page_table, (rows, triton.cdiv(max_len, page_size)), I32, device)


def start_prefix_sums(*prefix_sums: torch.Tensor) -> None:
    """What an empty batch still writes."""
    for prefix_sum in prefix_sums:
        prefix_sum[:1].zero_()


def dsa_len_reference(n: torch.Tensor, topk: int, k_pool: int) -> torch.Tensor:
    """``dsa_len`` of each element."""
    pooled = n if k_pool <= 1 else n // k_pool * k_pool
    return pooled.clamp(max=topk) + (n - pooled)


def prefix_sum_reference(out: torch.Tensor, lens: torch.Tensor) -> None:
    """Write the prefix sums of ``lens`` with their leading 0."""
    out[0] = 0
    out[1 : len(lens) + 1] = lens.cumsum(0)


def copy_slots_reference(
    slots: torch.Tensor,
    live: int,
    row: int,
    page_table_1: torch.Tensor | None,
    real_page_table: torch.Tensor | None,
    page_size: int,
) -> None:
    """``copy_slots`` of a whole row."""
    if page_table_1 is not None:
        page_table_1[row, :live] = slots[:live]
    if real_page_table is not None and page_size > 1:
        pages = slots[:live:page_size] // page_size
        real_page_table[row, : len(pages)] = pages


def sweep_tensors(
    bs: int, rows: int, max_len: int, page_size: int, tables: str, dtype: torch.dtype
) -> tuple[torch.Tensor | None, ...]:
    """The nine tensors that the launchers share; ``tables`` is "both", "page_table_1" or "real_page_table"."""

    def i32(*shape: int) -> torch.Tensor:
        return torch.empty(*shape, dtype=torch.int32, device="cuda")

    return (
        torch.empty(bs, dtype=dtype, device="cuda"),
        torch.empty(bs, dtype=dtype, device="cuda"),
        i32(512, max_len),
        i32(bs),
        i32(bs + 1),
        i32(rows, max_len) if tables != "real_page_table" else None,
        i32(rows),
        i32(rows + 1),
        i32(rows, -(-max_len // page_size)) if tables != "page_table_1" else None,
    )
