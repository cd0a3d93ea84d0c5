"""The verify tree of each request from what the draft selected: links, positions and the attention mask."""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
import triton.language as tl

import jitaudit

from .arguments import I64, INTS, check_at_least, check_tensor, device_of
from .blocks import BATCH_FLOOR, next_power_of_2
from .policy import POLICIES, Policy, PolicyName, batch_block, policies, resolve_policy

MaskMode = Literal["full", "qlen"]


@policies(floored=Policy(do_not_specialize=("bs",)))
def tree_build_kernel(
    parent_list_ptr,  # [bs, TOPK * (depth - 1) + 1]
    selected_index_ptr,  # [bs, W - 1]
    seq_lens_ptr,  # [bs]
    tree_mask_ptr,  # packed [W, seq_len + W] a request, or [bs, W, W]
    positions_ptr,  # [bs, W]
    retrieve_index_ptr,  # [bs, W]
    retrieve_next_token_ptr,  # [bs, W]
    retrieve_next_sibling_ptr,  # [bs, W]
    bs,
    parent_list_stride,
    selected_index_stride,
    TOPK: tl.constexpr,
    W: tl.constexpr,
    FULL_MASK: tl.constexpr,
    BLOCK_BS: tl.constexpr,
    BLOCK_W: tl.constexpr,
):
    request = tl.program_id(0)
    seq_len = tl.load(seq_lens_ptr + request).to(tl.int64)
    node = tl.arange(0, BLOCK_W)
    is_drafted = (node > 0) & (node < W)

    selected_ptr = selected_index_ptr + request * selected_index_stride - 1
    selected = tl.load(selected_ptr + node, mask=is_drafted, other=-1)
    parent_block = selected // TOPK
    has_parent = is_drafted & (parent_block > 0)
    wanted = tl.load(parent_list_ptr + request * parent_list_stride + parent_block, mask=has_parent, other=-2)
    is_parent = (wanted[:, None] == selected[None, :]) & is_drafted[None, :]
    parent = tl.sum(tl.where(is_parent, node[None, :], 0), 1)

    # Children are listed from the first on: what inserting the nodes from the last to the first leaves.
    is_child = is_drafted[None, :] & (parent[None, :] == node[:, None])
    child = tl.min(tl.where(is_child, node[None, :], BLOCK_W), 1)
    is_sibling = is_drafted[None, :] & (parent[None, :] == parent[:, None]) & (node[None, :] > node[:, None])
    sibling = tl.min(tl.where(is_sibling & is_drafted[:, None], node[None, :], BLOCK_W), 1)

    ancestor = node
    sees = node[None, :] == node[:, None]
    for _ in range(W - 1):
        ancestor = tl.gather(parent, ancestor, 0)
        sees = sees | (node[None, :] == ancestor[:, None])
    depth = tl.sum(sees.to(tl.int32), 1) - 1

    at = request * W + node
    in_tree = node < W
    tl.store(positions_ptr + at, seq_len + depth, mask=in_tree)
    tl.store(retrieve_index_ptr + at, at, mask=in_tree)
    tl.store(retrieve_next_token_ptr + at, tl.where(child < BLOCK_W, child, -1), mask=in_tree)
    tl.store(retrieve_next_sibling_ptr + at, tl.where(sibling < BLOCK_W, sibling, -1), mask=in_tree)

    if FULL_MASK:
        others = tl.arange(0, BLOCK_BS)
        lens = tl.load(seq_lens_ptr + others, mask=(others < bs) & (others < request), other=0).to(tl.int64)
        row_len = seq_len + W
        first = W * (tl.sum(lens, 0) + request.to(tl.int64) * W) + seq_len
    else:
        row_len = W
        first = request.to(tl.int64) * W * W
    cell = first + node[:, None] * row_len + node[None, :]
    tl.store(tree_mask_ptr + cell, sees, mask=in_tree[:, None] & in_tree[None, :])


class Tree(NamedTuple):
    """A batch of verify trees; node 0 of each is its root."""

    tree_mask: torch.Tensor
    """bool: [bs, W, W], or packed rows of ``seq_len + W`` cells, W a request."""
    positions: torch.Tensor
    """[bs · W] i64"""
    retrieve_index: torch.Tensor
    """[bs, W] i64, as all below"""
    retrieve_next_token: torch.Tensor
    retrieve_next_sibling: torch.Tensor


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
    policy: PolicyName | None = None,
) -> Tree:
    """Return the trees of the selected nodes. A node whose parent was not selected is the caller's error.

    ``fill_prefix=False`` is for attention that never reads the prefix of a "full" mask: it stays uninitialised.
    ``seq_lens_sum``, or a bound of it, sizes the "full" mask, which is packed from the front. A server has it on the
    host; without it the sum is read from the device, which waits and which a CUDA graph can't capture.
    """
    policy = resolve_policy(policy, "tree_build")
    for name, value in (("topk", topk), ("depth", depth), ("num_draft_tokens", num_draft_tokens)):
        check_at_least(name, value, 1)
    width = num_draft_tokens
    device = device_of("parent_list", parent_list)
    check_tensor("parent_list", parent_list, (None, topk * (depth - 1) + 1), I64, device)
    bs = parent_list.shape[0]
    check_tensor("selected_index", selected_index, (bs, width - 1), I64, device)
    check_tensor("seq_lens", seq_lens, (bs,), INTS, device)
    if mask_mode not in ("full", "qlen"):
        raise ValueError(f"mask_mode must be full or qlen, got {mask_mode!r}")
    if seq_lens_sum is not None:
        check_at_least("seq_lens_sum", seq_lens_sum, 0)
    tree = Tree(
        _empty_mask(seq_lens, width, mask_mode, fill_prefix, seq_lens_sum),
        torch.empty(bs * width, dtype=torch.int64, device=device),
        *(torch.empty(bs, width, dtype=torch.int64, device=device) for _ in range(3)),
    )
    if bs == 0:
        return tree
    tree_build_kernel[policy][(bs,)](
        parent_list,
        selected_index,
        seq_lens,
        *tree,
        bs,
        parent_list.stride(0),
        selected_index.stride(0),
        TOPK=topk,
        W=width,
        FULL_MASK=mask_mode == "full",
        BLOCK_BS=batch_block(bs, BATCH_FLOOR, policy),
        BLOCK_W=next_power_of_2(width),
    )
    return tree


def build_tree_reference(
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
    policy: PolicyName | None = None,
) -> Tree:
    """``build_tree`` in plain PyTorch: the tree is linked node by node."""
    bs, width = len(seq_lens), num_draft_tokens
    mask = _empty_mask(seq_lens, width, mask_mode, fill_prefix, seq_lens_sum)
    index = torch.arange(bs * width).view(bs, width)
    positions = torch.empty(bs * width, dtype=torch.int64, device=seq_lens.device)
    next_token, next_sibling = torch.full_like(index, -1), torch.full_like(index, -1)
    start = 0
    for b, seq_len in enumerate(seq_lens.tolist()):
        selected = selected_index[b].tolist()
        parents = [0]
        for value in selected:
            block = value // topk
            parents.append(0 if block == 0 else 1 + selected.index(int(parent_list[b, block])))
        for node in range(width - 1, 0, -1):
            next_sibling[b, node] = next_token[b, parents[node]]
            next_token[b, parents[node]] = node
        row_len = seq_len + width if mask_mode == "full" else width
        rows = mask.flatten()[start : start + width * row_len].view(width, row_len)[:, row_len - width :]
        for node in range(width):
            path = [node]
            while path[-1] != 0:
                path.append(parents[path[-1]])
            rows[node] = False
            rows[node, path] = True
            positions[b * width + node] = seq_len + len(path) - 1
        start += width * row_len
    return Tree(mask, positions, index, next_token, next_sibling)


@jitaudit.sweep(
    bs=jitaudit.ints(1, 512),
    policy=list(POLICIES),
    topk=[2],
    depth=[3],
    width=[4],
    mask_mode=["full"],
    fill_prefix=[True],
    dtype=[torch.int32],
    compare="policy",
)
def sweep_tree_build(bs, policy, topk, depth, width, mask_mode, fill_prefix, dtype):
    build_tree(
        torch.empty(bs, topk * (depth - 1) + 1, dtype=torch.int64, device="cuda"),
        torch.empty(bs, width - 1, dtype=torch.int64, device="cuda"),
        torch.empty(bs, dtype=dtype, device="cuda"),
        topk=topk,
        depth=depth,
        num_draft_tokens=width,
        mask_mode=mask_mode,
        fill_prefix=fill_prefix,
        seq_lens_sum=bs * 1024,
        policy=policy,
    )


def _empty_mask(
    seq_lens: torch.Tensor, width: int, mask_mode: MaskMode, fill_prefix: bool, seq_lens_sum: int | None
) -> torch.Tensor:
    bs, device = len(seq_lens), seq_lens.device
    if mask_mode == "qlen":
        return torch.empty(bs, width, width, dtype=torch.bool, device=device)
    prefix = int(seq_lens.sum()) if seq_lens_sum is None else seq_lens_sum
    # A fill runs at the memory's full speed, which stores of single cells from a program a request would not.
    allocate = torch.ones if fill_prefix else torch.empty
    return allocate(width * (prefix + bs * width), dtype=torch.bool, device=device)
