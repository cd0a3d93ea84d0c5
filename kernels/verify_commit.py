"""What a verify step commits: new lengths, bonus tokens, and where each request's last accepted token lies."""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl

import jitaudit

from .arguments import I32, INTS, check_at_least, check_tensor, device_of
from .policy import POLICIES, Policy, PolicyName, policies, resolve_policy

BLOCK = 128
"""Requests, and predicted tokens, that a program serves."""


@policies(floored=Policy(do_not_specialize=("bs", "predicted")))
def verify_commit_kernel(
    predict_ptr,  # [predicted]
    accept_index_ptr,  # [bs, columns]
    accept_lens_ptr,  # [bs]
    seq_lens_ptr,  # [bs]
    new_seq_lens_ptr,  # [bs]
    bonus_ptr,  # [bs]
    last_step_ptr,  # [bs] or None, as all below
    track_ptr,  # [bs]
    correct_ptr,  # [bs]
    select_ptr,  # [bs]
    ids_ptr,  # [predicted]
    bs,
    predicted,
    accept_index_stride,
    W: tl.constexpr,
    TRACK_INTERVAL: tl.constexpr,
    BLOCK: tl.constexpr,
):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < bs
    accept_lens = tl.load(accept_lens_ptr + at, mask=mask, other=1)
    seq_lens = tl.load(seq_lens_ptr + at, mask=mask, other=0)
    accepted_ptr = accept_index_ptr + at * accept_index_stride
    last = tl.load(accepted_ptr + accept_lens - 1, mask=mask, other=0)
    new_seq_lens = seq_lens + accept_lens
    tl.store(new_seq_lens_ptr + at, new_seq_lens, mask=mask)
    bonus = tl.load(predict_ptr + tl.where(last < 0, last + predicted, last), mask=mask)
    tl.store(bonus_ptr + at, bonus, mask=mask)
    if W > 0:
        tl.store(last_step_ptr + at, last - at * W, mask=mask)
        tl.store(correct_ptr + at, accept_lens - 1, mask=mask)
        tl.store(select_ptr + at, at * W + accept_lens - 1, mask=mask)
        tokens = tl.load(predict_ptr + at, mask=at < predicted)
        tl.store(ids_ptr + at, tokens, mask=at < predicted)
    if TRACK_INTERVAL > 0:
        boundary = new_seq_lens // TRACK_INTERVAL
        crosses = mask & (seq_lens // TRACK_INTERVAL != boundary)
        step = tl.maximum(boundary * TRACK_INTERVAL - seq_lens - 1, 0)
        node = tl.load(accepted_ptr + step, mask=crosses, other=0)
        tl.store(track_ptr + at, tl.where(crosses, node - at * W, -1), mask=mask)


class VerifyCommit(NamedTuple):
    """What is committed; None for what was not asked. [bs] each, ``ids`` as long as ``predict``."""

    new_seq_lens: torch.Tensor
    """Of ``seq_lens``' dtype."""
    bonus: torch.Tensor
    """Of ``bonus_dtype``."""
    last_step: torch.Tensor | None
    """i32: the node of its own tree at which each request stopped; a step of ``conv_window_scatter``."""
    track: torch.Tensor | None
    """i32: the node at the interval's boundary, −1 where none was crossed."""
    correct: torch.Tensor | None
    """i32"""
    select: torch.Tensor | None
    """i64"""
    ids: torch.Tensor | None
    """i64"""


def prepare_verify_commit_outputs(
    predict: torch.Tensor,
    accept_index: torch.Tensor,
    accept_lens: torch.Tensor,
    seq_lens: torch.Tensor,
    *,
    num_draft_tokens: int = 0,
    track_interval: int = 0,
    bonus_dtype: torch.dtype = torch.int32,
    policy: PolicyName | None = None,
) -> VerifyCommit:
    """Return what a verify step commits; each of ``accept_lens`` is at least 1.

    ``num_draft_tokens`` > 0 asks for the positions within a request's tree, ``track_interval`` > 0 for ``track``.
    """
    policy = resolve_policy(policy, "verify_commit")
    check_at_least("num_draft_tokens", num_draft_tokens, 0)
    check_at_least("track_interval", track_interval, 0)
    device = device_of("predict", predict)
    check_tensor("predict", predict, (None,), I32, device)
    check_tensor("seq_lens", seq_lens, (None,), INTS, device)
    bs, predicted = seq_lens.shape[0], predict.shape[0]
    check_tensor("accept_index", accept_index, (bs, None), INTS, device)
    check_tensor("accept_lens", accept_lens, (bs,), INTS, device)
    if bonus_dtype not in INTS:
        raise ValueError(f"bonus_dtype must be torch.int32 or torch.int64, got {bonus_dtype}")
    outputs = _empty_outputs(
        bs, predicted, seq_lens.dtype, bonus_dtype, device, in_tree=num_draft_tokens > 0, tracked=track_interval > 0
    )
    longest = max(bs, predicted) if num_draft_tokens else bs
    if longest == 0:
        return outputs
    verify_commit_kernel[policy][(triton.cdiv(longest, BLOCK),)](
        predict,
        accept_index,
        accept_lens,
        seq_lens,
        *outputs,
        bs,
        predicted,
        accept_index.stride(0),
        W=num_draft_tokens,
        TRACK_INTERVAL=track_interval,
        BLOCK=BLOCK,
    )
    return outputs


def prepare_verify_commit_outputs_reference(
    predict: torch.Tensor,
    accept_index: torch.Tensor,
    accept_lens: torch.Tensor,
    seq_lens: torch.Tensor,
    *,
    num_draft_tokens: int = 0,
    track_interval: int = 0,
    bonus_dtype: torch.dtype = torch.int32,
    policy: PolicyName | None = None,
) -> VerifyCommit:
    """``prepare_verify_commit_outputs`` in plain PyTorch."""
    requests = torch.arange(len(seq_lens), device=predict.device)
    first_node = requests * num_draft_tokens
    last = accept_index[requests, accept_lens - 1]
    new_seq_lens = seq_lens + accept_lens
    last_step = track = correct = select = ids = None
    if num_draft_tokens:
        last_step = (last - first_node).int()
        correct = (accept_lens - 1).int()
        select = first_node + accept_lens - 1
        ids = predict.long()
    if track_interval:
        boundary = new_seq_lens // track_interval
        step = (boundary * track_interval - seq_lens - 1).clamp(min=0)
        crosses = seq_lens // track_interval != boundary
        node = accept_index[requests, torch.where(crosses, step, 0)]
        track = torch.where(crosses, node - first_node, -1).int()
    bonus = predict[last.long()].to(bonus_dtype)
    return VerifyCommit(new_seq_lens.to(seq_lens.dtype), bonus, last_step, track, correct, select, ids)


@jitaudit.sweep(
    bs=jitaudit.ints(1, 512),
    policy=list(POLICIES),
    bonus_dtype=[torch.int32, torch.int64],
    num_draft_tokens=[4],
    track_interval=[0],
    dtype=[torch.int32],
    compare="policy",
)
def sweep_verify_commit(bs, policy, bonus_dtype, num_draft_tokens, track_interval, dtype):
    prepare_verify_commit_outputs(
        torch.empty(bs * 4, dtype=torch.int32, device="cuda"),
        torch.empty(bs, 4, dtype=torch.int32, device="cuda"),
        torch.empty(bs, dtype=torch.int32, device="cuda"),
        torch.empty(bs, dtype=dtype, device="cuda"),
        num_draft_tokens=num_draft_tokens,
        track_interval=track_interval,
        bonus_dtype=bonus_dtype,
        policy=policy,
    )


def _empty_outputs(
    bs: int,
    predicted: int,
    lens_dtype: torch.dtype,
    bonus_dtype: torch.dtype,
    device: torch.device,
    *,
    in_tree: bool,
    tracked: bool,
) -> VerifyCommit:
    def empty(size: int, dtype: torch.dtype) -> torch.Tensor:
        return torch.empty(size, dtype=dtype, device=device)

    return VerifyCommit(
        new_seq_lens=empty(bs, lens_dtype),
        bonus=empty(bs, bonus_dtype),
        last_step=empty(bs, torch.int32) if in_tree else None,
        track=empty(bs, torch.int32) if tracked else None,
        correct=empty(bs, torch.int32) if in_tree else None,
        select=empty(bs, torch.int64) if in_tree else None,
        ids=empty(predicted, torch.int64) if in_tree else None,
    )
