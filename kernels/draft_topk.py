"""The draft's next tokens: argmax, or the k most probable with their probabilities.

Each row is split into tiles, so that a handful of wide rows fills the GPU; a tile keeps its best keys, and for more
than one token the maximum and the sum that the softmax needs. Greedy drafting does no softmax. Nothing here depends on
the batch: a negative control for the audit.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

import jitaudit

from .arguments import check_at_least, check_tensor, device_of
from .blocks import next_power_of_2
from .logit_keys import NO_KEY, TILE, key_index, key_logit, logit_key, logit_keys_reference
from .policy import POLICIES, PolicyName, policies, resolve_policy

FLOATS = (torch.float32, torch.bfloat16, torch.float16)


@policies()
def draft_tile_kernel(
    logits_ptr,  # [rows, V]
    keys_ptr,  # [rows, tiles, TOPK]
    tops_ptr,  # [rows, tiles] or None for TOPK = 1
    sums_ptr,  # [rows, tiles] or None for TOPK = 1
    V,
    logits_stride,
    TOPK: tl.constexpr,
    TILE: tl.constexpr,
):
    tile = tl.program_id(0)
    row = tl.program_id(1).to(tl.int64)
    columns = tile * TILE + tl.arange(0, TILE)
    in_row = columns < V
    logits = tl.load(logits_ptr + row * logits_stride + columns, mask=in_row, other=float("-inf")).to(tl.float32)
    keys = tl.where(in_row, logit_key(logits, columns), NO_KEY)
    at = row * tl.num_programs(0) + tile
    for k in range(TOPK):
        best = tl.max(keys, 0)
        tl.store(keys_ptr + at * TOPK + k, best)
        keys = tl.where(keys == best, NO_KEY, keys)
    if TOPK > 1:
        top = tl.max(logits, 0)
        tl.store(tops_ptr + at, top)
        tl.store(sums_ptr + at, tl.sum(tl.where(logits == float("-inf"), 0.0, tl.exp(logits - top)), 0))


@policies()
def draft_row_kernel(
    keys_ptr,  # [rows, TILES, TOPK]
    tops_ptr,  # [rows, TILES] or None for TOPK = 1
    sums_ptr,  # [rows, TILES] or None for TOPK = 1
    probs_ptr,  # [rows, TOPK]
    index_ptr,  # [rows, TOPK]
    TILES: tl.constexpr,
    TOPK: tl.constexpr,
    BLOCK_TILES: tl.constexpr,
    BLOCK_KEYS: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    candidates = tl.arange(0, BLOCK_KEYS)
    keys = tl.load(keys_ptr + row * TILES * TOPK + candidates, mask=candidates < TILES * TOPK, other=NO_KEY)
    top = 0.0
    total = 1.0
    if TOPK > 1:
        tiles = tl.arange(0, BLOCK_TILES)
        tops = tl.load(tops_ptr + row * TILES + tiles, mask=tiles < TILES, other=float("-inf"))
        sums = tl.load(sums_ptr + row * TILES + tiles, mask=tiles < TILES, other=0.0)
        top = tl.max(tops, 0)
        total = tl.sum(tl.where(sums == 0, 0.0, sums * tl.exp(tops - top)), 0)
    for k in range(TOPK):
        best = tl.max(keys, 0)
        keys = tl.where(keys == best, NO_KEY, keys)
        tl.store(index_ptr + row * TOPK + k, key_index(best))
        if TOPK > 1:
            # In double: few enough to cost nothing, and the fast single exponential is off by more than the rest is.
            prob = tl.exp((key_logit(best) - top).to(tl.float64)) / total
            tl.store(probs_ptr + row * TOPK + k, prob)
        else:
            tl.store(probs_ptr + row, 1.0)


def select_draft(
    logits: torch.Tensor, topk: int, *, policy: PolicyName | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the probabilities (f32) and tokens (i64), [rows, topk], the most probable first, of ``logits`` [rows, V].

    ``topk`` 1 is torch.argmax (the lowest index of equals, a NaN above all) with probability 1, as greedy drafting has
    it; more are ordered by logit, equals by index.
    """
    policy = resolve_policy(policy, "draft_topk")
    device = device_of("logits", logits)
    check_tensor("logits", logits, (None, None), FLOATS, device)
    rows, vocabulary = logits.shape
    check_at_least("topk", topk, 1)
    if topk > vocabulary:
        raise ValueError(f"topk must be at most the vocabulary's {vocabulary} tokens, got {topk}")
    probs = torch.empty(rows, topk, dtype=torch.float32, device=device)
    index = torch.empty(rows, topk, dtype=torch.int64, device=device)
    if rows == 0:
        return probs, index
    tiles = triton.cdiv(vocabulary, TILE)
    keys = torch.empty(rows, tiles, topk, dtype=torch.int64, device=device)
    tops = torch.empty(rows, tiles, dtype=torch.float32, device=device) if topk > 1 else None
    sums = torch.empty(rows, tiles, dtype=torch.float32, device=device) if topk > 1 else None
    draft_tile_kernel[policy][(tiles, rows)](
        logits, keys, tops, sums, vocabulary, logits.stride(0), TOPK=topk, TILE=TILE
    )
    draft_row_kernel[policy][(rows,)](
        keys,
        tops,
        sums,
        probs,
        index,
        TILES=tiles,
        TOPK=topk,
        BLOCK_TILES=next_power_of_2(tiles),
        BLOCK_KEYS=next_power_of_2(tiles * topk),
    )
    return probs, index


def select_draft_reference(
    logits: torch.Tensor, topk: int, *, policy: PolicyName | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """``select_draft`` in plain PyTorch: argmax, or a softmax of the row and its largest logits."""
    if topk == 1:
        index = logits.argmax(1, keepdim=True)
        return torch.ones_like(index, dtype=torch.float32), index
    index = logit_keys_reference(logits, 0).topk(topk, 1).indices
    return logits.double().softmax(1).gather(1, index).float(), index


@jitaudit.sweep(
    bs=jitaudit.ints(1, 512),
    policy=list(POLICIES),
    topk=[2],
    vocabulary=[4096],
    dtype=[torch.float32],
    compare="policy",
)
def sweep_draft_topk(bs, policy, topk, vocabulary, dtype):
    select_draft(torch.empty(bs, vocabulary, dtype=dtype, device="cuda"), topk, policy=policy)
