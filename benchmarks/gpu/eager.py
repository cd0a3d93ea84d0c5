"""The eager PyTorch chains that the kernels replace: vectorised as servers write them, with the launchers' signatures.

Where the reference beside a kernel is vectorised already, it is the chain, and there is none here.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from jitaudit_kernels.dsa_metadata.tables import dsa_len_reference, prefix_sum_reference
from jitaudit_kernels.mamba_replay import WindowPair
from jitaudit_kernels.tree_build import MaskMode, Tree


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
    policy: str | None = None,
) -> None:
    """A decode step's metadata."""
    cache_seqlens.copy_(seq_lens)
    prefix_sum_reference(cu_seqlens_k, cache_seqlens)
    dsa_cache_seqlens.copy_(dsa_len_reference(cache_seqlens, topk, k_pool))
    prefix_sum_reference(dsa_cu_seqlens_k, dsa_cache_seqlens)
    _copy_tables(req_to_token, req_pool_indices, cache_seqlens, page_table_1, real_page_table, max_len, page_size)


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
    policy: str | None = None,
) -> None:
    """A verify step's metadata."""
    bs = len(seq_lens)
    cache_seqlens.copy_(seq_lens + next_n)
    prefix_sum_reference(cu_seqlens_k, cache_seqlens)
    tokens = torch.arange(1, next_n + 1, dtype=torch.int32, device=seq_lens.device)
    seqlens_expanded.view(bs, next_n).copy_(seq_lens[:, None] + tokens)
    dsa_cache_seqlens.copy_(dsa_len_reference(seqlens_expanded, topk, k_pool))
    prefix_sum_reference(dsa_cu_seqlens_k, dsa_cache_seqlens)
    if ctx_lens_2d is not None:
        ctx_lens_2d.copy_(cache_seqlens[:, None].expand(bs, next_n))
    rows = req_pool_indices.repeat_interleave(next_n, output_size=bs * next_n)
    live = cache_seqlens.repeat_interleave(next_n, output_size=bs * next_n)
    _copy_tables(req_to_token, rows, live, page_table_1, real_page_table, max_len, page_size)


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
    policy: str | None = None,
) -> None:
    """A draft-extend step's metadata, all ``total_len`` rows being some request's."""
    cache_seqlens.copy_(seq_lens)
    prefix_sum_reference(cu_seqlens_k, cache_seqlens)
    rows = torch.arange(total_len, dtype=torch.int32, device=seq_lens.device)
    ends = extend_lens.cumsum(0, dtype=torch.int32)
    owner = torch.searchsorted(ends, rows, right=True)
    token = rows - (ends - extend_lens)[owner]
    seqlens_expanded[:total_len] = (seq_lens - extend_lens)[owner].add(token + 1).clamp(min=0)
    dsa_cache_seqlens[:total_len] = dsa_len_reference(seqlens_expanded[:total_len], topk, k_pool)
    prefix_sum_reference(dsa_cu_seqlens_k, dsa_cache_seqlens[:total_len])
    _copy_tables(
        req_to_token,
        req_pool_indices[owner],
        cache_seqlens[owner],
        None if page_table_1 is None else page_table_1[:total_len],
        None if real_page_table is None else real_page_table[:total_len],
        max_len,
        page_size,
    )


def conv_window_scatter(
    pairs: Sequence[WindowPair],
    idx1: torch.Tensor,
    step1: torch.Tensor,
    idx2: torch.Tensor | None,
    step2: torch.Tensor | None,
    *,
    policy: str | None = None,
) -> None:
    """A copy a pair and an index; the selection by a mask waits for the GPU, as it does in servers."""
    for idx, step in ((idx1, step1), (idx2, step2)):
        if idx is None or step is None:
            continue
        for dst, src in pairs:
            served = (idx >= 0) & (idx < dst.shape[1]) & (step >= 0) & (step < src.shape[2])
            row = served.nonzero()[:, 0]
            dst[:, idx[row]] = src[:, row, step[row].long()]


def chain_accept(
    candidates: torch.Tensor,
    retrieve_index: torch.Tensor,
    retrieve_next_token: torch.Tensor,
    retrieve_next_sibling: torch.Tensor,
    target_predict: torch.Tensor,
    predict: torch.Tensor,
    accept_index: torch.Tensor,
    accept_lens: torch.Tensor,
    num_correct: torch.Tensor,
    *,
    verify: bool,
    finish: bool,
    simulate: int = 0,
    real_draft_tokens: bool = False,
    policy: str | None = None,
) -> None:
    """The walk of all trees at once, a step for each node, then the counts; nothing is simulated."""
    width = candidates.shape[1]
    accept_index.fill_(-1)
    accept_index[:, 0] = retrieve_index[:, 0]
    last = retrieve_index[:, 0].clone()
    count = torch.ones_like(last)
    column = retrieve_next_token[:, 0].clone()
    columns = torch.arange(width, device=candidates.device)
    for _ in range(width - 1):
        target = target_predict[last]
        predict[last] = target.int()
        there = column >= 0
        at = column.clamp(min=0)[:, None]
        matches = there & (candidates.gather(1, at)[:, 0] == target)
        node = retrieve_index.gather(1, at)[:, 0]
        accept_index.copy_(torch.where(matches[:, None] & (columns == count[:, None]), node[:, None], accept_index))
        last = torch.where(matches, node, last)
        count = count + matches
        below, beside = retrieve_next_token.gather(1, at)[:, 0], retrieve_next_sibling.gather(1, at)[:, 0]
        column = torch.where(there, torch.where(matches, below, beside), -1)
    predict[last] = target_predict[last].int()
    accept_lens.copy_((accept_index != -1).sum(1))
    num_correct.copy_(accept_lens - 1)


def rebuild_compact_draft(
    draft_req_to_token: torch.Tensor,
    target_req_to_token: torch.Tensor,
    req_pool_indices: torch.Tensor,
    suffix_start: torch.Tensor,
    prefix_lens: torch.Tensor,
    verify_loc: torch.Tensor,
    *,
    policy: str | None = None,
) -> None:
    """The chain that asks the GPU for the longest prefix first, and so waits for all that is queued there."""
    longest = int(prefix_lens.max().item())
    columns = torch.arange(longest, device=verify_loc.device)
    kept = columns < prefix_lens[:, None]
    source = (suffix_start[:, None] + columns).clamp(max=target_req_to_token.shape[1] - 1)
    slots = target_req_to_token[req_pool_indices[:, None], source]
    held = draft_req_to_token[req_pool_indices, :longest]
    draft_req_to_token[req_pool_indices, :longest] = torch.where(kept, slots, held)
    verified = prefix_lens[:, None] + torch.arange(verify_loc.shape[1], device=verify_loc.device)
    draft_req_to_token[req_pool_indices[:, None], verified] = verify_loc.int()


def build_tree(
    parent_list: torch.Tensor,
    selected_index: torch.Tensor,
    seq_lens: torch.Tensor,
    *,
    topk: int,
    depth: int,
    num_draft_tokens: int,
    mask_mode: MaskMode,
    fill_prefix: bool = True,
    seq_lens_sum: int | None = None,
    policy: str | None = None,
) -> Tree:
    """The tree by comparisons of all nodes with all nodes."""
    bs, width, device = len(seq_lens), num_draft_tokens, seq_lens.device
    node = torch.arange(width, device=device)
    block = selected_index // topk
    wanted = parent_list.gather(1, block)
    matches = (wanted[:, :, None] == selected_index[:, None, :]).int()
    above = torch.where(block == 0, 0, (matches * node[1:]).sum(2)) if width > 1 else block
    parent = torch.cat([torch.zeros_like(seq_lens, dtype=torch.int64)[:, None], above], 1)
    drafted = node > 0
    child = drafted & (parent[:, None, :] == node[:, None])
    sibling = drafted & drafted[:, None] & (parent[:, None, :] == parent[:, :, None]) & (node > node[:, None])
    next_token, next_sibling = (
        torch.where(links.any(2), torch.where(links, node, width).amin(2), -1) for links in (child, sibling)
    )
    sees = (node == node[:, None]).expand(bs, width, width).clone()
    ancestor = node.expand(bs, width)
    for _ in range(depth):
        ancestor = parent.gather(1, ancestor)
        sees |= node == ancestor[:, :, None]
    positions = (seq_lens[:, None] + sees.sum(2) - 1).flatten().long()
    index = torch.arange(bs * width, device=device).view(bs, width)
    if mask_mode == "qlen":
        return Tree(sees, positions, index, next_token, next_sibling)
    prefix = int(seq_lens.sum()) if seq_lens_sum is None else seq_lens_sum
    allocate = torch.ones if fill_prefix else torch.empty
    mask = allocate(width * (prefix + bs * width), dtype=torch.bool, device=device)
    row_len = (seq_lens + width).long()
    first = width * (row_len.cumsum(0) - row_len) + seq_lens
    mask[first[:, None, None] + node[:, None] * row_len[:, None, None] + node] = sees
    return Tree(mask, positions, index, next_token, next_sibling)


def _copy_tables(
    req_to_token: torch.Tensor,
    pool_rows: torch.Tensor,
    lens: torch.Tensor,
    page_table_1: torch.Tensor | None,
    real_page_table: torch.Tensor | None,
    max_len: int,
    page_size: int,
) -> None:
    slots = req_to_token[pool_rows, :max_len]
    live = torch.arange(max_len, device=lens.device) < lens[:, None]
    if page_table_1 is not None:
        page_table_1.copy_(torch.where(live, slots, page_table_1))
    if real_page_table is not None and page_size > 1:
        pages = slots[:, ::page_size] // page_size
        real_page_table.copy_(torch.where(live[:, ::page_size], pages, real_page_table))
