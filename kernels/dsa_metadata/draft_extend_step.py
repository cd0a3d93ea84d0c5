"""Metadata of a draft-extend step: one row a new token, packed."""

from __future__ import annotations

import torch
import triton.language as tl

import jitaudit

from ..arguments import I32, INTS, check_at_least, check_batch, check_tensor
from ..blocks import BATCH_FLOOR, next_power_of_2
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


@policies(
    baseline=Policy(constexpr=("bs", "total_len")),
    floored=Policy(do_not_specialize=("bs", "total_len")),
)
def draft_extend_kernel(
    seq_lens_ptr,  # [bs]
    req_pool_indices_ptr,  # [bs]
    req_to_token_ptr,  # [pool, ctx]
    cache_seqlens_ptr,  # [bs]
    cu_seqlens_k_ptr,  # [bs + 1]
    page_table_1_ptr,  # [max_total_len, max_len] or None
    dsa_cache_seqlens_ptr,  # [max_total_len]
    dsa_cu_seqlens_k_ptr,  # [max_total_len + 1]
    real_page_table_ptr,  # [max_total_len, pages] or None
    extend_lens_ptr,  # [bs]
    seqlens_expanded_ptr,  # [max_total_len]
    bs,
    total_len,
    max_len,
    req_to_token_stride,
    page_table_1_stride,
    real_page_table_stride,
    TOPK: tl.constexpr,
    K_POOL: tl.constexpr,
    PAGE_SIZE: tl.constexpr,
    STATIC_EXTEND_LEN: tl.constexpr,
    BLOCK_BS: tl.constexpr,
    BLOCK_EXTEND: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    program = tl.program_id(0)
    requests = tl.arange(0, BLOCK_BS)
    mask = requests < bs
    if STATIC_EXTEND_LEN:
        extend_lens = tl.where(mask, tl.load(extend_lens_ptr).to(tl.int32), 0)
        ends = (requests + 1) * extend_lens
    else:
        extend_lens = tl.load(extend_lens_ptr + requests, mask=mask, other=0).to(tl.int32)
        ends = tl.cumsum(extend_lens, 0)
    if program == 0:
        seq_lens = tl.load(seq_lens_ptr + requests, mask=mask, other=0).to(tl.int32)
        tl.store(cache_seqlens_ptr + requests, seq_lens, mask=mask)
        tl.store(cu_seqlens_k_ptr, 0)
        tl.store(cu_seqlens_k_ptr + 1 + requests, tl.cumsum(seq_lens, 0), mask=mask)
        tokens = tl.arange(0, BLOCK_EXTEND)[None, :]
        rows = (ends - extend_lens)[:, None] + tokens
        row_mask = (tokens < extend_lens[:, None]) & (rows < total_len)
        expanded = tl.maximum((seq_lens - extend_lens)[:, None] + tokens + 1, 0)
        dsa_lens = tl.where(row_mask, dsa_len(expanded, TOPK, K_POOL), 0)
        of_request = tl.sum(dsa_lens, 1)
        before = tl.cumsum(of_request, 0) - of_request
        tl.store(seqlens_expanded_ptr + rows, expanded, mask=row_mask)
        tl.store(dsa_cache_seqlens_ptr + rows, dsa_lens, mask=row_mask)
        tl.store(dsa_cu_seqlens_k_ptr, 0)
        tl.store(dsa_cu_seqlens_k_ptr + 1 + rows, before[:, None] + tl.cumsum(dsa_lens, 1), mask=row_mask)
    else:
        splits = (tl.num_programs(0) - 1) // total_len
        row = (program - 1) // splits
        # The requests that end at or before this row come before its own; a row that is not in use belongs to none.
        owner = tl.sum((mask & (ends <= row)).to(tl.int32), 0)
        live = tl.minimum(tl.load(seq_lens_ptr + owner, mask=owner < bs, other=0).to(tl.int32), max_len)
        pool_row = tl.load(req_pool_indices_ptr + owner, mask=owner < bs, other=0).to(tl.int64)
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


def draft_extend(
    seq_lens: torch.Tensor,
    req_pool_indices: torch.Tensor,
    req_to_token: torch.Tensor,
    cache_seqlens: torch.Tensor,
    cu_seqlens_k: torch.Tensor,
    page_table_1: torch.Tensor | None,
    dsa_cache_seqlens: torch.Tensor,
    dsa_cu_seqlens_k: torch.Tensor,
    real_page_table: torch.Tensor | None,
    extend_lens: torch.Tensor,
    seqlens_expanded: torch.Tensor,
    *,
    total_len: int,
    max_extend_len: int,
    max_total_len: int,
    static_extend_len: bool,
    max_len: int,
    topk: int,
    page_size: int,
    k_pool: int,
    policy: PolicyName | None = None,
) -> None:
    """Write the metadata of a draft-extend step: the rows of request q are its ``extend_lens[q]`` new tokens, packed.

    ``total_len`` rows are in use, of the ``max_total_len`` that the buffers have; where the host does not know how many
    that are, a bound will do, and rows past the requests' own keep what they held. ``max_extend_len`` bounds
    ``extend_lens``, and ``static_extend_len`` says that these are all equal.
    """
    policy = resolve_policy(policy, "dsa_metadata")
    check_at_least("total_len", total_len, 0)
    check_at_least("max_extend_len", max_extend_len, 0)
    check_at_least("max_total_len", max_total_len, total_len)
    bs, device = check_batch("seq_lens", seq_lens)
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
    check_metadata(*tensors, rows=max_total_len, max_len=max_len, topk=topk, page_size=page_size, k_pool=k_pool)
    check_tensor("extend_lens", extend_lens, (bs,), INTS, device)
    check_tensor("seqlens_expanded", seqlens_expanded, (max_total_len,), I32, device)
    if bs == 0:
        return start_prefix_sums(cu_seqlens_k, dsa_cu_seqlens_k)
    draft_extend_kernel[policy][(1 + total_len * copy_splits(total_len, max_len),)](
        *tensors,
        extend_lens,
        seqlens_expanded,
        bs,
        total_len,
        max_len,
        req_to_token.stride(0),
        row_stride(page_table_1),
        row_stride(real_page_table),
        TOPK=topk,
        K_POOL=k_pool,
        PAGE_SIZE=page_size,
        STATIC_EXTEND_LEN=static_extend_len,
        BLOCK_BS=batch_block(bs, BATCH_FLOOR, policy),
        BLOCK_EXTEND=max(next_power_of_2(max_extend_len), 2),  # Triton 3.6 fails to compile a block one row wide
        COLUMNS=COLUMNS,
    )


def draft_extend_reference(
    seq_lens: torch.Tensor,
    req_pool_indices: torch.Tensor,
    req_to_token: torch.Tensor,
    cache_seqlens: torch.Tensor,
    cu_seqlens_k: torch.Tensor,
    page_table_1: torch.Tensor | None,
    dsa_cache_seqlens: torch.Tensor,
    dsa_cu_seqlens_k: torch.Tensor,
    real_page_table: torch.Tensor | None,
    extend_lens: torch.Tensor,
    seqlens_expanded: torch.Tensor,
    *,
    total_len: int,
    max_extend_len: int,
    max_total_len: int,
    static_extend_len: bool,
    max_len: int,
    topk: int,
    page_size: int,
    k_pool: int,
    policy: PolicyName | None = None,
) -> None:
    """``draft_extend`` in plain PyTorch."""
    cache_seqlens.copy_(seq_lens.to(torch.int32))
    prefix_sum_reference(cu_seqlens_k, cache_seqlens)
    row = 0
    for request, (seq_len, extend_len) in enumerate(zip(seq_lens.tolist(), extend_lens.tolist(), strict=True)):
        for token in range(extend_len):
            seqlens_expanded[row] = max(0, seq_len - extend_len + token + 1)
            slots = req_to_token[req_pool_indices[request]]
            copy_slots_reference(slots, min(seq_len, max_len), row, page_table_1, real_page_table, page_size)
            row += 1
    dsa_cache_seqlens[:row] = dsa_len_reference(seqlens_expanded[:row], topk, k_pool)
    prefix_sum_reference(dsa_cu_seqlens_k, dsa_cache_seqlens[:row])


@jitaudit.sweep(
    bs=jitaudit.ints(1, 512),
    policy=list(POLICIES),
    static_extend_len=[True, False],
    max_extend_len=[4],
    max_len=[8192],
    topk=[2048],
    page_size=[64],
    k_pool=[4],
    tables=["both"],
    dtype=[torch.int32],
    compare="policy",
)
def sweep_draft_extend(bs, policy, static_extend_len, max_extend_len, max_len, topk, page_size, k_pool, tables, dtype):
    rows = bs * max_extend_len
    draft_extend(
        *sweep_tensors(bs, rows, max_len, page_size, tables, dtype),
        torch.empty(bs, dtype=dtype, device="cuda"),
        torch.empty(rows, dtype=torch.int32, device="cuda"),
        total_len=rows,
        max_extend_len=max_extend_len,
        max_total_len=rows,
        static_extend_len=static_extend_len,
        max_len=max_len,
        topk=topk,
        page_size=page_size,
        k_pool=k_pool,
        policy=policy,
    )
