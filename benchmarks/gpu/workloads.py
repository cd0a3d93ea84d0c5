"""One workload a kernel and flag: the call, its eager chain, and the rivals that kernels.md names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

import torch

from benchmarks.gpu import eager
from jitaudit_kernels import (
    chain_accept,
    compact_draft,
    draft_seqlens,
    draft_topk,
    dsa_metadata,
    mamba_replay,
    tree_build,
    verify_commit,
    vocab_shard,
)
from jitaudit_kernels.policy import POLICIES, PolicyName
from jitaudit_kernels.round import DecodeRound, Readback

Launch = Callable[..., object]

W, DEPTH, TOPK, MAX_LEN, CONTEXT, VOCABULARY = 4, 3, 2, 8192, 4096, 128 * 1024


@dataclass(frozen=True)
class Workload:
    """``launch`` takes the policy; ``eager``, where there is such a chain, and the rivals take nothing."""

    name: str
    launch: Launch
    eager: Launch | None
    rivals: dict[str, Launch] = field(default_factory=dict)


def workloads(bs: int) -> Iterator[Workload]:
    """All of them for one batch size, one after the other: each holds its buffers only while it is measured."""
    yield _decode(bs)
    yield _verify(bs)
    yield _draft_extend(bs, static=True)
    yield _draft_extend(bs, static=False)
    yield _state_indices(bs)
    yield _conv_window_scatter(bs)
    yield _draft_seqlens(bs)
    yield _chain_accept(bs)
    yield _verify_commit(bs)
    yield _compact_draft(bs)
    yield from (prefix_workload(bs, context, fill) for context in (1024, 65536) for fill in (True, False))
    yield _draft_topk(bs, 1)
    yield _draft_topk(bs, TOPK)
    yield _vocab_shard(bs)
    yield _round(bs)


def _i32(*shape: int) -> torch.Tensor:
    return torch.zeros(*shape, dtype=torch.int32, device="cuda")


def _i64(*shape: int) -> torch.Tensor:
    return torch.zeros(*shape, dtype=torch.int64, device="cuda")


def _lens(bs: int, longest: int = CONTEXT) -> torch.Tensor:
    return torch.randint(longest // 2, longest, (bs,), dtype=torch.int32, device="cuda")


def _metadata(bs: int, rows: int) -> tuple[torch.Tensor, ...]:
    return (
        _lens(bs),
        torch.randperm(512, device="cuda")[:bs],
        torch.randint(0, 10**6, (512, MAX_LEN), dtype=torch.int32, device="cuda"),
        _i32(bs),
        _i32(bs + 1),
        _i32(rows, MAX_LEN),
        _i32(rows),
        _i32(rows + 1),
        _i32(rows, MAX_LEN // 64),
    )


METADATA = {"max_len": MAX_LEN, "topk": 2048, "page_size": 64, "k_pool": 4}


def _decode(bs: int) -> Workload:
    tensors = _metadata(bs, bs)
    return Workload(
        "dsa_metadata decode",
        partial(dsa_metadata.decode, *tensors, **METADATA),
        partial(eager.decode, *tensors, **METADATA),
    )


def _verify(bs: int) -> Workload:
    tensors = (*_metadata(bs, bs * W), _i32(bs * W), None)
    return Workload(
        "dsa_metadata verify",
        partial(dsa_metadata.verify, *tensors, next_n=W, **METADATA),
        partial(eager.verify, *tensors, next_n=W, **METADATA),
    )


def _draft_extend(bs: int, *, static: bool) -> Workload:
    rows = bs * W
    tensors = (*_metadata(bs, rows), _i32(bs).fill_(W), _i32(rows))
    flags = {"total_len": rows, "max_extend_len": W, "max_total_len": rows, "static_extend_len": static}
    return Workload(
        f"dsa_metadata draft_extend, {'static' if static else 'dynamic'}",
        partial(dsa_metadata.draft_extend, *tensors, **flags, **METADATA),
        partial(eager.draft_extend, *tensors, **flags, **METADATA),
    )


def _state_indices(bs: int) -> Workload:
    total = max(bs, 2)
    tensors = (_i64(total), torch.arange(512, dtype=torch.int32, device="cuda"), _i32(total))
    flags = {"valid": bs, "total": total}
    return Workload(
        "mamba_replay state_indices",
        partial(mamba_replay.state_indices, *tensors, **flags),
        partial(mamba_replay.state_indices_reference, *tensors, **flags),
    )


def _conv_window_scatter(bs: int) -> Workload:
    layers, slots = 8, 2 * 512
    pairs = [
        (
            torch.zeros(layers, slots, dim, 3, dtype=torch.bfloat16, device="cuda"),
            torch.ones(layers, bs, W, dim, 3, dtype=torch.bfloat16, device="cuda"),
        )
        for dim in (1024, 2048)
    ]
    index = torch.randperm(512, device="cuda")[:bs]
    step = torch.randint(0, W, (bs,), dtype=torch.int32, device="cuda")
    tensors = (pairs, index, step, index + 512, torch.where(step == 0, step, -1))
    return Workload(
        "mamba_replay conv_window_scatter",
        partial(mamba_replay.conv_window_scatter, *tensors),
        partial(eager.conv_window_scatter, *tensors),
    )


def _draft_seqlens(bs: int) -> Workload:
    flags = {
        "seq_lens": _lens(bs),
        "cache_seqlens": _i32(DEPTH, 512),
        "cu_seqlens_k": _i32(DEPTH, 513),
        "bs": bs,
        "steps": DEPTH,
        "first_offset": 1,
    }

    def one_launch_a_step() -> None:
        for step in range(DEPTH):
            draft_seqlens.update_draft_step_seqlens(
                **{
                    **flags,
                    "cache_seqlens": flags["cache_seqlens"][step : step + 1],
                    "cu_seqlens_k": flags["cu_seqlens_k"][step : step + 1],
                    "steps": 1,
                    "first_offset": 1 + step,
                }
            )

    return Workload(
        "draft_seqlens",
        partial(draft_seqlens.update_draft_step_seqlens, **flags),
        partial(draft_seqlens.update_draft_step_seqlens_reference, **flags),
        {f"{DEPTH} launches": one_launch_a_step},
    )


def _tree(bs: int) -> tuple[torch.Tensor, torch.Tensor]:
    """``parent_list`` and ``selected_index`` of trees two levels deep: two children of the root, one grandchild."""
    parents = _i64(bs, TOPK * (DEPTH - 1) + 1)
    return parents, torch.tensor([0, 1, TOPK], device="cuda").expand(bs, W - 1).contiguous()


def _chain_accept(bs: int) -> Workload:
    tree = tree_build.build_tree(*_tree(bs), _lens(bs), topk=TOPK, depth=DEPTH, num_draft_tokens=W, mask_mode="qlen")
    tensors = (
        torch.randint(0, 2, (bs, W), dtype=torch.int32, device="cuda"),
        tree.retrieve_index,
        tree.retrieve_next_token,
        tree.retrieve_next_sibling,
        torch.randint(0, 2, (bs * W,), dtype=torch.int32, device="cuda"),
        _i32(bs * W),
        _i32(bs, W),
        _i32(bs),
        _i32(bs),
    )
    return Workload(
        "chain_accept",
        partial(chain_accept.chain_accept, *tensors, verify=True, finish=True),
        partial(eager.chain_accept, *tensors, verify=True, finish=True),
    )


def _verify_commit(bs: int) -> Workload:
    nodes = torch.arange(bs * W, dtype=torch.int32, device="cuda").view(bs, W)
    tensors = (_i32(bs * W), nodes, _i32(bs).fill_(2), _lens(bs))
    flags = {"num_draft_tokens": W, "track_interval": 64}
    return Workload(
        "verify_commit",
        partial(verify_commit.prepare_verify_commit_outputs, *tensors, **flags),
        partial(verify_commit.prepare_verify_commit_outputs_reference, *tensors, **flags),
    )


def _compact_draft(bs: int) -> Workload:
    lens = _lens(bs)
    tensors = (
        _i32(512, 2048 + W),
        torch.randint(0, 10**6, (512, MAX_LEN), dtype=torch.int32, device="cuda"),
        torch.randperm(512, device="cuda")[:bs],
        (lens - 2048).clamp(min=0),
        lens.clamp(max=2048),
        _i32(bs, W),
    )
    chain = partial(eager.rebuild_compact_draft, *tensors)
    return Workload(
        "compact_draft", partial(compact_draft.rebuild_compact_draft, *tensors), chain, {".max().item()": chain}
    )


def prefix_workload(bs: int, context: int, fill: bool) -> Workload:
    """``build_tree`` with the whole mask, its prefix filled or left."""
    lens = _i32(bs).fill_(context)
    flags = {
        "topk": TOPK,
        "depth": DEPTH,
        "num_draft_tokens": W,
        "mask_mode": "full",
        "fill_prefix": fill,
        "seq_lens_sum": bs * context,
    }
    return Workload(
        f"tree_build, context {context}, {'prefix filled' if fill else 'prefix left'}",
        partial(tree_build.build_tree, *_tree(bs), lens, **flags),
        partial(eager.build_tree, *_tree(bs), lens, **flags),
    )


def _draft_topk(bs: int, topk: int) -> Workload:
    logits = torch.randn(bs, VOCABULARY, device="cuda")

    def softmax_and_topk() -> object:
        return logits.softmax(1).topk(topk, 1)

    rivals = {"argmax": partial(torch.argmax, logits, 1)} if topk == 1 else {}
    return Workload(
        f"draft_topk, topk {topk}, V {VOCABULARY}",
        partial(draft_topk.select_draft, logits, topk),
        softmax_and_topk,
        rivals,
    )


def _vocab_shard(bs: int) -> Workload:
    logits = torch.randn(bs, VOCABULARY // 8, device="cuda")
    return Workload(
        f"vocab_shard, V {VOCABULARY // 8}",
        partial(vocab_shard.local_keys, logits, 0),
        partial(torch.max, logits, 1),
    )


def _round(bs: int) -> Workload:
    """A round that accepts no draft, so that its requests stay short however often it is measured."""
    rounds = {policy: started_round(bs, policy) for policy in POLICIES}

    def launch(*, policy: PolicyName) -> None:
        rounds[policy].launch(bs)

    rivals: dict[str, Launch] = {}
    if torch.cuda.is_available():
        captured = started_round(bs, "floored")
        captured.launch(bs)
        captured.capture_tail(bs)
        rivals["captured tail"] = partial(captured.launch, bs)
    return Workload("round", launch, None, rivals)


def started_round(bs: int, policy: PolicyName, readback: Readback = "sync") -> DecodeRound:
    """A round of ``bs`` requests that accepts no draft."""
    started = DecodeRound(bs, W, DEPTH, policy=policy, readback=readback)
    started.buffers.target_predict.fill_(-1)
    return started
