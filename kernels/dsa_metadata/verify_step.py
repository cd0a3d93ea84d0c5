"""Metadata of a verify step: one row a draft token, ``next_n`` a request."""

from __future__ import annotations

import torch
import triton.language as tl

import jitaudit

from ..arguments import I32, check_at_least, check_batch, check_tensor
from ..blocks import BATCH_FLOOR, EXPANDED_FLOOR
from ..policy import POLICIES, Policy, PolicyName, batch_block, policies, resolve_policy
from .tables import (
    COLUMNS,
    check_metadata,
    copy_slots,
    copy_slots_reference,
    copy_splits,
    dsa_len,
    dsa_len_reference,
    prefix_sum_reference,
    row_stride,
    start_prefix_sums,
    sweep_tensors,
)


@policies(baseline=Policy(constexpr=("bs",)), floored=Policy(do_not_specialize=("bs",)))
def verify_kernel(
    seq_lens_ptr,  # [bs]
    req_pool_indices_ptr,  # [bs]
    req_to_token_ptr,  # [pool, ctx]
    cache_seqlens_ptr,  # [bs]
    cu_seqlens_k_ptr,  # [bs + 1]
    page_table_1_ptr,  # [bs * NEXT_N, max_len] or None
    dsa_cache_seqlens_ptr,  # [bs * NEXT_N]
    dsa_cu_seqlens_k_ptr,  # [bs * NEXT_N + 1]
    real_page_table_ptr,  # [bs * NEXT_N, pages] or None
    seqlens_expanded_ptr,  # [bs * NEXT_N]
    ctx_lens_2d_ptr,  # [bs, NEXT_N] or None
    bs,
    max_len,
    req_to_token_stride,
    page_table_1_stride,
    real_page_table_stride,
    TOPK: tl.constexpr,
    K_POOL: tl.constexpr,
    PAGE_SIZE: tl.constexpr,
    NEXT_N: tl.constexpr,
    BLOCK_BS: tl.constexpr,
    BLOCK_ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    program = tl.program_id(0)
    if program == 0:
        requests = tl.arange(0, BLOCK_BS)
        mask = requests < bs
        lens = tl.load(seq_lens_ptr + requests, mask=mask, other=0).to(tl.int32) + NEXT_N
        tl.store(cache_seqlens_ptr + requests, lens, mask=mask)
        tl.store(cu_seqlens_k_ptr, 0)
        tl.store(cu_seqlens_k_ptr + 1 + requests, tl.cumsum(lens, 0), mask=mask)
        rows = tl.arange(0, BLOCK_ROWS)
        row_mask = rows < bs * NEXT_N
        seq_lens = tl.load(seq_lens_ptr + rows // NEXT_N, mask=row_mask, other=0).to(tl.int32)
        expanded = seq_lens + rows % NEXT_N + 1
        dsa_lens = dsa_len(expanded, TOPK, K_POOL)
        tl.store(seqlens_expanded_ptr + rows, expanded, mask=row_mask)
        tl.store(dsa_cache_seqlens_ptr + rows, dsa_lens, mask=row_mask)
        tl.store(dsa_cu_seqlens_k_ptr, 0)
        tl.store(dsa_cu_seqlens_k_ptr + 1 + rows, tl.cumsum(dsa_lens, 0), mask=row_mask)
        if ctx_lens_2d_ptr is not None:
            tl.store(ctx_lens_2d_ptr + rows, seq_lens + NEXT_N, mask=row_mask)
    else:
        splits = (tl.num_programs(0) - 1) // (bs * NEXT_N)
        row = (program - 1) // splits
        request = row // NEXT_N
        live = tl.minimum(tl.load(seq_lens_ptr + request).to(tl.int32) + NEXT_N, max_len)
        pool_row = tl.load(req_pool_indices_ptr + request).to(tl.int64)
        copy_slots(
            req_to_token_ptr + pool_row * req_to_token_stride,
            live,
            row,
            (program - 1) % splits,
            splits,
            page_table_1_ptr,
            page_table_1_stride,
            real_page_table_ptr,
            real_page_table_stride,
            PAGE_SIZE,
            COLUMNS,
        )


def verify(
    seq_lens: torch.Tensor,
    req_pool_indices: torch.Tensor,
    req_to_token: torch.Tensor,
    cache_seqlens: torch.Tensor,
    cu_seqlens_k: torch.Tensor,
    page_table_1: torch.Tensor | None,
    dsa_cache_seqlens: torch.Tensor,
    dsa_cu_seqlens_k: torch.Tensor,
    real_page_table: torch.Tensor | None,
    seqlens_expanded: torch.Tensor,
    ctx_lens_2d: torch.Tensor | None,
    *,
    next_n: int,
    max_len: int,
    topk: int,
    page_size: int,
    k_pool: int,
    policy: PolicyName | None = None,
) -> None:
    """Write the metadata of a verify step: row ``q * next_n + j`` of the tables is draft token j of request q."""
    policy = resolve_policy(policy, "dsa_metadata")
    check_at_least("next_n", next_n, 1)
    bs, device = check_batch("seq_lens", seq_lens)
    rows = bs * next_n
    tensors = (
        seq_lens,
        req_pool_indices,
        req_to_token,
        cache_seqlens,
        cu_seqlens_k,
        page_table_1,
        dsa_cache_seqlens,
        dsa_cu_seqlens_k,
        real_page_table,
    )
    check_metadata(*tensors, rows=rows, max_len=max_len, topk=topk, page_size=page_size, k_pool=k_pool)
    check_tensor("seqlens_expanded", seqlens_expanded, (rows,), I32, device)
    if ctx_lens_2d is not None:
        check_tensor("ctx_lens_2d", ctx_lens_2d, (bs, next_n), I32, device, packed=True)
    if bs == 0:
        return start_prefix_sums(cu_seqlens_k, dsa_cu_seqlens_k)
    verify_kernel[policy][(1 + rows * copy_splits(rows, max_len),)](
        *tensors,
        seqlens_expanded,
        ctx_lens_2d,
        bs,
        max_len,
        req_to_token.stride(0),
        row_stride(page_table_1),
        row_stride(real_page_table),
        TOPK=topk,
        K_POOL=k_pool,
        PAGE_SIZE=page_size,
        NEXT_N=next_n,
        BLOCK_BS=batch_block(bs, BATCH_FLOOR, policy),
        BLOCK_ROWS=batch_block(rows, EXPANDED_FLOOR, policy),
        COLUMNS=COLUMNS,
    )


def verify_reference(
    seq_lens: torch.Tensor,
    req_pool_indices: torch.Tensor,
    req_to_token: torch.Tensor,
    cache_seqlens: torch.Tensor,
    cu_seqlens_k: torch.Tensor,
    page_table_1: torch.Tensor | None,
    dsa_cache_seqlens: torch.Tensor,
    dsa_cu_seqlens_k: torch.Tensor,
    real_page_table: torch.Tensor | None,
    seqlens_expanded: torch.Tensor,
    ctx_lens_2d: torch.Tensor | None,
    *,
    next_n: int,
    max_len: int,
    topk: int,
    page_size: int,
    k_pool: int,
    policy: PolicyName | None = None,
) -> None:
    """``verify`` in plain PyTorch."""
    lens = seq_lens.to(torch.int32)
    cache_seqlens.copy_(lens + next_n)
    seqlens_expanded.copy_((lens[:, None] + torch.arange(1, next_n + 1, dtype=torch.int32)).flatten())
    dsa_cache_seqlens.copy_(dsa_len_reference(seqlens_expanded, topk, k_pool))
    prefix_sum_reference(cu_seqlens_k, cache_seqlens)
    prefix_sum_reference(dsa_cu_seqlens_k, dsa_cache_seqlens)
    if ctx_lens_2d is not None:
        ctx_lens_2d.copy_(cache_seqlens[:, None])
    for row in range(len(seqlens_expanded)):
        slots, live = req_to_token[req_pool_indices[row // next_n]], int(cache_seqlens[row // next_n])
        copy_slots_reference(slots, min(live, max_len), row, page_table_1, real_page_table, page_size)


@jitaudit.sweep(
    bs=jitaudit.ints(1, 512),
    policy=list(POLICIES),
    next_n=[4],
    max_len=[8192],
    topk=[2048],
    page_size=[64],
    k_pool=[4],
    tables=["both"],
    ctx_lens=[False],
    dtype=[torch.int32],
    compare="policy",
)
def sweep_verify(bs, policy, next_n, max_len, topk, page_size, k_pool, tables, ctx_lens, dtype):
    rows = bs * next_n
    verify(
        *sweep_tensors(bs, rows, max_len, page_size, tables, dtype),
        torch.empty(rows, dtype=torch.int32, device="cuda"),
        torch.empty(bs, next_n, dtype=torch.int32, device="cuda") if ctx_lens else None,
        next_n=next_n,
        max_len=max_len,
        topk=topk,
        page_size=page_size,
        k_pool=k_pool,
        policy=policy,
    )
