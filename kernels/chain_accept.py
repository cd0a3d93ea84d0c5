"""Greedy verification of a draft tree in one launch: walk, simulated acceptance and counting.

One program a request holds its tree in registers and walks it with predicated steps, so that requests whose trees are
accepted to different depths cost the same. Nothing here depends on the batch: a negative control for the audit.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

import jitaudit

from .arguments import I32, I64, INTS, check_at_least, check_tensor, device_of
from .blocks import next_power_of_2
from .policy import POLICIES, PolicyName, policies, resolve_policy

SIMULATED_TOKEN = 100
"""The token id that a simulated acceptance predicts everywhere."""


@triton.jit
def at_column(row, columns, column):
    """Element ``column`` of a row in registers; 0 where there is no such column."""
    return tl.sum(tl.where(columns == column, row, 0), 0)


@policies()
def chain_accept_kernel(
    candidates_ptr,  # [bs, W]
    retrieve_index_ptr,  # [bs, W]
    retrieve_next_token_ptr,  # [bs, W]
    retrieve_next_sibling_ptr,  # [bs, W]
    target_predict_ptr,  # [bs * W]
    predict_ptr,  # [bs * W]
    accept_index_ptr,  # [bs, W]
    accept_lens_ptr,  # [bs]
    num_correct_ptr,  # [bs]
    candidates_stride,
    retrieve_index_stride,
    retrieve_next_token_stride,
    retrieve_next_sibling_stride,
    accept_index_stride,
    VERIFY: tl.constexpr,
    FINISH: tl.constexpr,
    SIMULATE: tl.constexpr,
    REAL_DRAFT_TOKENS: tl.constexpr,
    SIMULATED_TOKEN: tl.constexpr,
    W: tl.constexpr,
    BLOCK: tl.constexpr,
):
    request = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    in_tree = columns < W
    candidates_ptr += request * candidates_stride
    accept_index_ptr += request * accept_index_stride
    root = tl.load(retrieve_index_ptr + request * retrieve_index_stride)
    if VERIFY:
        candidates = tl.load(candidates_ptr + columns, mask=in_tree, other=0)
        nodes = tl.load(retrieve_index_ptr + request * retrieve_index_stride + columns, mask=in_tree, other=0)
        child_row_ptr = retrieve_next_token_ptr + request * retrieve_next_token_stride
        sibling_row_ptr = retrieve_next_sibling_ptr + request * retrieve_next_sibling_stride
        children = tl.load(child_row_ptr + columns, mask=in_tree, other=-1)
        siblings = tl.load(sibling_row_ptr + columns, mask=in_tree, other=-1)
        accepted = tl.where(columns == 0, root, -1)
        last = root
        count = 1
        column = at_column(children, columns, 0)
        # No node is visited twice, so W - 1 steps end every walk, however its depth and its siblings share them.
        for _ in tl.static_range(W - 1):
            target = tl.load(target_predict_ptr + last)
            tl.store(predict_ptr + last, target)
            is_node = column != -1
            matches = is_node & (at_column(candidates, columns, column) == target)
            node = at_column(nodes, columns, column)
            accepted = tl.where(matches & (columns == count), node, accepted)
            last = tl.where(matches, node, last)
            count = tl.where(matches, count + 1, count)
            following = tl.where(matches, children, siblings)
            column = tl.where(is_node, at_column(following, columns, column), -1)
        tl.store(predict_ptr + last, tl.load(target_predict_ptr + last))
    else:
        accepted = tl.load(accept_index_ptr + columns, mask=in_tree, other=-1).to(tl.int64)
    if SIMULATE > 0:
        accepted = tl.where(columns < SIMULATE, root + columns, -1)
        if VERIFY:
            # Other threads have written what this overwrites.
            tl.debug_barrier()
        if REAL_DRAFT_TOKENS:
            drafted = tl.load(candidates_ptr + columns + 1, mask=columns < SIMULATE - 1, other=0)
            bonus = tl.load(target_predict_ptr + request * W + SIMULATE - 1)
            tokens = tl.where(columns == SIMULATE - 1, bonus, drafted)
            tl.store(predict_ptr + root + columns, tokens, mask=columns < SIMULATE)
        else:
            tl.store(predict_ptr + request * W + columns, SIMULATED_TOKEN, mask=in_tree)
    if VERIFY or SIMULATE > 0:
        tl.store(accept_index_ptr + columns, accepted, mask=in_tree)
    if FINISH:
        accept_len = tl.sum((in_tree & (accepted != -1)).to(tl.int32), 0)
        tl.store(accept_lens_ptr + request, accept_len)
        tl.store(num_correct_ptr + request, accept_len - 1)


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
    policy: PolicyName | None = None,
) -> None:
    """Accept the longest path of each draft tree that the target model predicts.

    ``verify`` walks the trees; else ``accept_index`` is taken as given. ``simulate`` > 0 overwrites with a fixed
    acceptance of that many tokens, which ``real_draft_tokens`` takes from the draft. ``finish`` counts what is
    accepted, and alone writes ``accept_lens`` and ``num_correct``.
    """
    policy = resolve_policy(policy, "chain_accept")
    device = device_of("candidates", candidates)
    check_tensor("candidates", candidates, (None, None), INTS, device)
    bs, width = candidates.shape
    if width == 0:
        raise ValueError("candidates must have at least 1 column, the root, got 0")
    check_tensor("retrieve_index", retrieve_index, (bs, width), I64, device)
    check_tensor("retrieve_next_token", retrieve_next_token, (bs, width), I64, device)
    check_tensor("retrieve_next_sibling", retrieve_next_sibling, (bs, width), I64, device)
    check_tensor("target_predict", target_predict, (bs * width,), INTS, device)
    check_tensor("predict", predict, (bs * width,), I32, device)
    check_tensor("accept_index", accept_index, (bs, width), I32, device)
    check_tensor("accept_lens", accept_lens, (bs,), I32, device)
    check_tensor("num_correct", num_correct, (bs,), I32, device)
    check_at_least("simulate", simulate, 0)
    if simulate > width:
        raise ValueError(f"simulate must be at most the tree's {width} nodes, got {simulate}")
    if not (verify or finish or simulate):
        raise ValueError("verify, finish and simulate are all off: there is nothing to do")
    if bs == 0:
        return
    chain_accept_kernel[policy][(bs,)](
        candidates,
        retrieve_index,
        retrieve_next_token,
        retrieve_next_sibling,
        target_predict,
        predict,
        accept_index,
        accept_lens,
        num_correct,
        candidates.stride(0),
        retrieve_index.stride(0),
        retrieve_next_token.stride(0),
        retrieve_next_sibling.stride(0),
        accept_index.stride(0),
        VERIFY=bool(verify),
        FINISH=bool(finish),
        SIMULATE=simulate,
        REAL_DRAFT_TOKENS=bool(real_draft_tokens),
        SIMULATED_TOKEN=SIMULATED_TOKEN,
        W=width,
        BLOCK=next_power_of_2(width),
        num_warps=1,
    )


def chain_accept_reference(
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
    policy: PolicyName | None = None,
) -> None:
    """``chain_accept`` as the chain of steps that servers ran, in plain PyTorch."""
    width = candidates.shape[1]
    for b in range(len(candidates)):
        if verify:
            path = _walk_reference(
                candidates[b], retrieve_index[b], retrieve_next_token[b], retrieve_next_sibling[b], target_predict
            )
            predict[path] = target_predict[path].int()
            accept_index[b] = -1
            accept_index[b, : len(path)] = path.int()
        if simulate:
            base = int(retrieve_index[b, 0])
            accept_index[b] = -1
            accept_index[b, :simulate] = base + torch.arange(simulate)
            if real_draft_tokens:
                predict[base : base + simulate - 1] = candidates[b, 1:simulate]
                predict[base + simulate - 1] = target_predict[b * width + simulate - 1]
            else:
                predict[b * width : (b + 1) * width] = SIMULATED_TOKEN
    if finish:
        accept_lens.copy_((accept_index != -1).sum(1))
        num_correct.copy_(accept_lens - 1)


@jitaudit.sweep(
    bs=jitaudit.ints(1, 512),
    policy=list(POLICIES),
    flags=["verify+finish", "finish", "simulate", "simulate+real"],
    width=[4],
    dtype=[torch.int32],
    compare="policy",
)
def sweep_chain_accept(bs, policy, flags, width, dtype):
    def empty(*shape: int, dtype: torch.dtype = torch.int32) -> torch.Tensor:
        return torch.empty(*shape, dtype=dtype, device="cuda")

    chain_accept(
        empty(bs, width, dtype=dtype),
        empty(bs, width, dtype=torch.int64),
        empty(bs, width, dtype=torch.int64),
        empty(bs, width, dtype=torch.int64),
        empty(bs * width, dtype=dtype),
        empty(bs * width),
        empty(bs, width),
        empty(bs),
        empty(bs),
        verify="verify" in flags,
        finish="finish" in flags,
        simulate=2 if "simulate" in flags else 0,
        real_draft_tokens="real" in flags,
        policy=policy,
    )


def _walk_reference(
    candidates: torch.Tensor,
    nodes: torch.Tensor,
    next_token: torch.Tensor,
    next_sibling: torch.Tensor,
    target_predict: torch.Tensor,
) -> torch.Tensor:
    """The accepted nodes of one tree, the root first."""
    path = [nodes[0]]
    cur = int(next_token[0])
    while cur != -1:
        if candidates[cur] == target_predict[path[-1]]:
            path.append(nodes[cur])
            cur = int(next_token[cur])
        else:
            cur = int(next_sibling[cur])
    return torch.stack(path)
