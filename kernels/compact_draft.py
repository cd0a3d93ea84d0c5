"""Rebuild of a compact draft model's slots: each request's kept suffix and the slots just verified.

How much is kept is data, read in the kernel: the host never waits for it, and the grid depends on shapes only.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

import jitaudit

from .arguments import I32, INTS, check_batch, check_tensor
from .blocks import next_power_of_2
from .policy import POLICIES, PolicyName, policies, resolve_policy

TILE = 1024
"""Slots that a program copies at a time."""

PROGRAMS = 2048
"""How many programs the copy is split into, as far as the rows are long enough."""


@policies()
def compact_draft_kernel(
    draft_ptr,  # [pool, len]
    target_ptr,  # [pool, ctx]
    req_pool_indices_ptr,  # [bs]
    suffix_start_ptr,  # [bs]
    prefix_lens_ptr,  # [bs]
    verify_loc_ptr,  # [bs, VERIFIED]
    draft_stride,
    target_stride,
    verify_loc_stride,
    VERIFIED: tl.constexpr,
    BLOCK: tl.constexpr,
    TILE: tl.constexpr,
):
    request = tl.program_id(0)
    split = tl.program_id(1)
    pool_row = tl.load(req_pool_indices_ptr + request).to(tl.int64)
    prefix_len = tl.load(prefix_lens_ptr + request).to(tl.int32)
    row_ptr = draft_ptr + pool_row * draft_stride
    kept_ptr = target_ptr + pool_row * target_stride + tl.load(suffix_start_ptr + request)
    for start in range(split * TILE, prefix_len, tl.num_programs(1) * TILE):
        columns = start + tl.arange(0, TILE)
        slots = tl.load(kept_ptr + columns, mask=columns < prefix_len)
        tl.store(row_ptr + columns, slots, mask=columns < prefix_len)
    if split == 0:
        verified = tl.arange(0, BLOCK)
        slots = tl.load(verify_loc_ptr + request * verify_loc_stride + verified, mask=verified < VERIFIED)
        tl.store(row_ptr + prefix_len + verified, slots, mask=verified < VERIFIED)


def rebuild_compact_draft(
    draft_req_to_token: torch.Tensor,
    target_req_to_token: torch.Tensor,
    req_pool_indices: torch.Tensor,
    suffix_start: torch.Tensor,
    prefix_lens: torch.Tensor,
    verify_loc: torch.Tensor,
    *,
    policy: PolicyName | None = None,
) -> None:
    """Write each request's row of ``draft_req_to_token``: ``prefix_lens`` kept slots, then those of ``verify_loc``.

    The kept slots start at ``suffix_start`` of the request's row of ``target_req_to_token``; the rest of a row is left
    alone.
    """
    policy = resolve_policy(policy, "compact_draft")
    bs, device = check_batch("req_pool_indices", req_pool_indices)
    check_tensor("draft_req_to_token", draft_req_to_token, (None, None), I32, device)
    check_tensor("target_req_to_token", target_req_to_token, (draft_req_to_token.shape[0], None), I32, device)
    check_tensor("suffix_start", suffix_start, (bs,), INTS, device)
    check_tensor("prefix_lens", prefix_lens, (bs,), INTS, device)
    check_tensor("verify_loc", verify_loc, (bs, None), INTS, device)
    if bs == 0:
        return
    verified = verify_loc.shape[1]
    splits = max(1, min(PROGRAMS // bs, triton.cdiv(draft_req_to_token.shape[1], TILE)))
    compact_draft_kernel[policy][(bs, splits)](
        draft_req_to_token,
        target_req_to_token,
        req_pool_indices,
        suffix_start,
        prefix_lens,
        verify_loc,
        draft_req_to_token.stride(0),
        target_req_to_token.stride(0),
        verify_loc.stride(0),
        VERIFIED=verified,
        BLOCK=next_power_of_2(verified),
        TILE=TILE,
    )


def rebuild_compact_draft_reference(
    draft_req_to_token: torch.Tensor,
    target_req_to_token: torch.Tensor,
    req_pool_indices: torch.Tensor,
    suffix_start: torch.Tensor,
    prefix_lens: torch.Tensor,
    verify_loc: torch.Tensor,
    *,
    policy: PolicyName | None = None,
) -> None:
    """``rebuild_compact_draft`` in plain PyTorch."""
    rows = zip(req_pool_indices.tolist(), suffix_start.tolist(), prefix_lens.tolist(), verify_loc, strict=True)
    for pool_row, start, length, verified in rows:
        draft_req_to_token[pool_row, :length] = target_req_to_token[pool_row, start : start + length]
        draft_req_to_token[pool_row, length : length + len(verified)] = verified


@jitaudit.sweep(
    bs=jitaudit.ints(1, 512),
    policy=list(POLICIES),
    block=[4],
    dtype=[torch.int32],
    compare="policy",
)
def sweep_compact_draft(bs, policy, block, dtype):
    rebuild_compact_draft(
        torch.empty(512, 2048, dtype=torch.int32, device="cuda"),
        torch.empty(512, 8192, dtype=torch.int32, device="cuda"),
        torch.empty(bs, dtype=dtype, device="cuda"),
        torch.empty(bs, dtype=dtype, device="cuda"),
        torch.empty(bs, dtype=dtype, device="cuda"),
        torch.empty(bs, block, dtype=dtype, device="cuda"),
        policy=policy,
    )
