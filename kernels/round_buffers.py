"""The static buffers of a decoding round, and the shape that a server fixes when it starts."""

from __future__ import annotations

from dataclasses import dataclass, fields
from itertools import pairwise

import torch


@dataclass(frozen=True)
class RoundShape:
    """What a server fixes when it starts, beside the batch and the tree."""

    topk: int = 2
    vocabulary: int = 4096
    pool: int = 512
    max_len: int = 8192
    draft_len: int = 2048
    """Slots of a request that the compact draft holds."""
    dsa_topk: int = 2048
    page_size: int = 64
    k_pool: int = 4
    track_interval: int = 0
    """Tokens between snapshots of the mamba states; 0 takes one every round."""
    layers: int = 2
    dim: int = 512
    win: int = 3


@dataclass(frozen=True)
class MetadataBuffers:
    """What dsa_metadata writes for up to ``rows`` rows."""

    cache_seqlens: torch.Tensor
    cu_seqlens_k: torch.Tensor
    page_table_1: torch.Tensor
    dsa_cache_seqlens: torch.Tensor
    dsa_cu_seqlens_k: torch.Tensor
    real_page_table: torch.Tensor
    seqlens_expanded: torch.Tensor

    def sliced(self, n: int, rows: int) -> tuple[torch.Tensor, ...]:
        """The buffers of a batch of ``n`` requests, in the launchers' order."""
        sizes = (n, n + 1, rows, rows, rows + 1, rows, rows)
        return tuple(getattr(self, field.name)[:size] for field, size in zip(fields(self), sizes, strict=True))


@dataclass(frozen=True)
class RoundBuffers:
    """Static buffers. Those of a batch hold its requests first; a pool row is a request's for as long as it lives."""

    pool_seq_lens: torch.Tensor  # [pool] i32
    pool_tokens: torch.Tensor  # [pool] i32, the last token of each request
    req_to_token: torch.Tensor  # [pool, max_len] i32
    draft_req_to_token: torch.Tensor  # [pool, draft_len] i32
    mapping: torch.Tensor  # [pool] i32, mamba states
    req_pool_indices: torch.Tensor  # [bs] i64; the padding of a batch reads row 0
    pool_rows: torch.Tensor  # [bs] i32, the same for the kernels that take either
    seq_lens: torch.Tensor  # [bs] i32
    draft_logits: torch.Tensor  # [bs, depth, V] f32
    verify_loc: torch.Tensor  # [bs, W] i32
    target_predict: torch.Tensor  # [bs * W] i32
    candidates: torch.Tensor  # [bs, W] i32
    draft_cache_seqlens: torch.Tensor  # [depth, bs] i32
    draft_cu_seqlens_k: torch.Tensor  # [depth, bs + 1] i32
    parent_list: torch.Tensor  # [bs, topk * (depth - 1) + 1] i64
    selected_index: torch.Tensor  # [bs, W - 1] i64
    positions: torch.Tensor  # [bs * W] i64
    retrieve_index: torch.Tensor  # [bs, W] i64
    retrieve_next_token: torch.Tensor  # [bs, W] i64
    retrieve_next_sibling: torch.Tensor  # [bs, W] i64
    predict: torch.Tensor  # [bs * W] i32
    accept_index: torch.Tensor  # [bs, W] i32
    accept_lens: torch.Tensor  # [bs] i32
    num_correct: torch.Tensor  # [bs] i32
    states: torch.Tensor  # [bs] i32
    conv: torch.Tensor  # [layers, 2 * pool, dim, win] bf16, the snapshots in the second half
    conv_steps: torch.Tensor  # [layers, bs, W, dim, win] bf16


def make_metadata_buffers(bs: int, rows: int, shape: RoundShape, device: str) -> MetadataBuffers:
    """Zeroed buffers for up to ``bs`` requests and ``rows`` rows."""

    def i32(*size: int) -> torch.Tensor:
        return torch.zeros(*size, dtype=torch.int32, device=device)

    pages = -(-shape.max_len // shape.page_size)
    return MetadataBuffers(
        i32(bs), i32(bs + 1), i32(rows, shape.max_len), i32(rows), i32(rows + 1), i32(rows, pages), i32(rows)
    )


def make_round_buffers(bs: int, W: int, depth: int, shape: RoundShape, device: str) -> RoundBuffers:
    """Zeroed buffers; the draft's tree and the mamba states of the pool rows are set."""

    def zeros(*size: int, dtype: torch.dtype = torch.int32) -> torch.Tensor:
        return torch.zeros(*size, dtype=dtype, device=device)

    i64 = torch.int64
    parents, selected = _level_order_tree(W, depth, shape.topk)
    return RoundBuffers(
        pool_seq_lens=zeros(shape.pool),
        pool_tokens=zeros(shape.pool),
        req_to_token=zeros(shape.pool, shape.max_len),
        draft_req_to_token=zeros(shape.pool, shape.draft_len),
        mapping=torch.arange(shape.pool, dtype=torch.int32, device=device),
        req_pool_indices=torch.arange(bs, device=device),
        pool_rows=torch.arange(bs, dtype=torch.int32, device=device),
        seq_lens=zeros(bs),
        draft_logits=zeros(bs, depth, shape.vocabulary, dtype=torch.float32),
        verify_loc=zeros(bs, W),
        target_predict=zeros(bs * W),
        candidates=zeros(bs, W),
        draft_cache_seqlens=zeros(depth, bs),
        draft_cu_seqlens_k=zeros(depth, bs + 1),
        parent_list=torch.tensor([parents] * bs, device=device),
        selected_index=torch.tensor([selected] * bs, dtype=i64, device=device).view(bs, W - 1),
        positions=zeros(bs * W, dtype=i64),
        retrieve_index=zeros(bs, W, dtype=i64),
        retrieve_next_token=zeros(bs, W, dtype=i64),
        retrieve_next_sibling=zeros(bs, W, dtype=i64),
        predict=zeros(bs * W),
        accept_index=zeros(bs, W),
        accept_lens=zeros(bs),
        num_correct=zeros(bs),
        states=zeros(bs),
        conv=zeros(shape.layers, 2 * shape.pool, shape.dim, shape.win, dtype=torch.bfloat16),
        conv_steps=zeros(shape.layers, bs, W, shape.dim, shape.win, dtype=torch.bfloat16),
    )


def _level_order_tree(W: int, depth: int, topk: int) -> tuple[list[int], list[int]]:
    """``parent_list`` and ``selected_index`` of a draft that expands the best node of each level, level by level."""
    blocks = [0, *(1 + level * topk for level in range(depth - 1))]
    parents = [-1] * (topk * (depth - 1) + 1)
    for above, block in pairwise(blocks):
        parents[block] = above * topk
    return parents, [block * topk + child for block in blocks for child in range(topk)][: W - 1]
