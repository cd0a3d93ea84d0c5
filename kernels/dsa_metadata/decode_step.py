"""Metadata of a decode step: one row a request."""

from __future__ import annotations

import torch
import triton.language as tl

import jitaudit

from ..arguments import check_batch
from ..blocks import BATCH_FLOOR
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
def decode_kernel(
    seq_lens_ptr,  # [bs]
    req_pool_indices_ptr,  # [bs]
    req_to_token_ptr,  # [pool, ctx]
    cache_seqlens_ptr,  # [bs]
    cu_seqlens_k_ptr,  # [bs + 1]
    page_table_1_ptr,  # [bs, max_len] or None
    dsa_cache_seqlens_ptr,  # [bs]
    dsa_cu_seqlens_k_ptr,  # [bs + 1]
    real_page_table_ptr,  # [bs, pages] or None
    bs,
    max_len,
    req_to_token_stride,
    page_table_1_stride,
    real_page_table_stride,
    TOPK: tl.constexpr,
    K_POOL: tl.constexpr,
    PAGE_SIZE: tl.constexpr,
    BLOCK_BS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    program = tl.program_id(0)
    if program == 0:
        requests = tl.arange(0, BLOCK_BS)
        mask = requests < bs
        seq_lens = tl.load(seq_lens_ptr + requests, mask=mask, other=0).to(tl.int32)
        dsa_lens = dsa_len(seq_lens, TOPK, K_POOL)
        tl.store(cache_seqlens_ptr + requests, seq_lens, mask=mask)
        tl.store(dsa_cache_seqlens_ptr + requests, dsa_lens, mask=mask)
        tl.store(cu_seqlens_k_ptr, 0)
        tl.store(dsa_cu_seqlens_k_ptr, 0)
        tl.store(cu_seqlens_k_ptr + 1 + requests, tl.cumsum(seq_lens, 0), mask=mask)
        tl.store(dsa_cu_seqlens_k_ptr + 1 + requests, tl.cumsum(dsa_lens, 0), mask=mask)
    else:
        splits = (tl.num_programs(0) - 1) // bs
        row = (program - 1) // splits
        live = tl.minimum(tl.load(seq_lens_ptr + row).to(tl.int32), max_len)
        pool_row = tl.load(req_pool_indices_ptr + row).to(tl.int64)
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


def decode(
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
    max_len: int,
    topk: int,
    page_size: int,
    k_pool: int,
    policy: PolicyName | None = None,
) -> None:
    """Write the metadata of a decode step: a row of the tables is a request."""
    policy = resolve_policy(policy, "dsa_metadata")
    bs, _ = check_batch("seq_lens", seq_lens)
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
    check_metadata(*tensors, rows=bs, max_len=max_len, topk=topk, page_size=page_size, k_pool=k_pool)
    if bs == 0:
        return start_prefix_sums(cu_seqlens_k, dsa_cu_seqlens_k)
    decode_kernel[policy][(1 + bs * copy_splits(bs, max_len),)](
        *tensors,
        bs,
        max_len,
        req_to_token.stride(0),
        row_stride(page_table_1),
        row_stride(real_page_table),
        TOPK=topk,
        K_POOL=k_pool,
        PAGE_SIZE=page_size,
        BLOCK_BS=batch_block(bs, BATCH_FLOOR, policy),
        COLUMNS=COLUMNS,
    )


def decode_reference(
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
    max_len: int,
    topk: int,
    page_size: int,
    k_pool: int,
    policy: PolicyName | None = None,
) -> None:
    """``decode`` in plain PyTorch."""
    lens = seq_lens.to(torch.int32)
    cache_seqlens.copy_(lens)
    dsa_cache_seqlens.copy_(dsa_len_reference(lens, topk, k_pool))
    prefix_sum_reference(cu_seqlens_k, lens)
    prefix_sum_reference(dsa_cu_seqlens_k, dsa_cache_seqlens)
    for row, live in enumerate(lens.tolist()):
        slots = req_to_token[req_pool_indices[row]]
        copy_slots_reference(slots, min(live, max_len), row, page_table_1, real_page_table, page_size)


@jitaudit.sweep(
    bs=jitaudit.ints(1, 512),
    policy=list(POLICIES),
    max_len=[8192],
    topk=[2048],
    page_size=[64],
    k_pool=[4],
    tables=["both"],
    dtype=[torch.int32],
    compare="policy",
)
def sweep_decode(bs, policy, max_len, topk, page_size, k_pool, tables, dtype):
    tensors = sweep_tensors(bs, bs, max_len, page_size, tables, dtype)
    decode(*tensors, max_len=max_len, topk=topk, page_size=page_size, k_pool=k_pool, policy=policy)
