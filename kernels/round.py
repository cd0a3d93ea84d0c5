"""One speculative-decoding round: the kernels in serving order, on static buffers.

draft (topk, seqlens) → tree_build → verify metadata → accept → commit → compact rebuild → mamba scatter → draft_extend
metadata. The models are left out: a caller writes what they would (draft logits, the target's predictions) and the
slots that the allocator gave. The tail, from accept on, can be captured in a CUDA graph.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch

import jitaudit

from .arguments import check_at_least
from .blocks import next_power_of_2
from .chain_accept import chain_accept, chain_accept_reference
from .compact_draft import rebuild_compact_draft, rebuild_compact_draft_reference
from .draft_seqlens import update_draft_step_seqlens, update_draft_step_seqlens_reference
from .draft_topk import select_draft, select_draft_reference
from .dsa_metadata import draft_extend, draft_extend_reference, verify, verify_reference
from .mamba_replay import (
    WindowPair,
    conv_window_scatter,
    conv_window_scatter_reference,
    state_indices,
    state_indices_reference,
)
from .policy import POLICIES, PolicyName
from .round_buffers import RoundShape, make_metadata_buffers, make_round_buffers
from .tree_build import Tree, build_tree, build_tree_reference
from .verify_commit import (
    VerifyCommit,
    prepare_verify_commit_outputs,
    prepare_verify_commit_outputs_reference,
)

Readback = Literal["sync", "async"]


@dataclass(frozen=True)
class RoundOps:
    """The operations of a round, in order: the launchers, or their references."""

    select_draft: Callable[..., tuple[torch.Tensor, torch.Tensor]] = select_draft
    update_draft_step_seqlens: Callable[..., None] = update_draft_step_seqlens
    build_tree: Callable[..., Tree] = build_tree
    verify: Callable[..., None] = verify
    chain_accept: Callable[..., None] = chain_accept
    prepare_verify_commit_outputs: Callable[..., VerifyCommit] = prepare_verify_commit_outputs
    rebuild_compact_draft: Callable[..., None] = rebuild_compact_draft
    state_indices: Callable[..., None] = state_indices
    conv_window_scatter: Callable[..., None] = conv_window_scatter
    draft_extend: Callable[..., None] = draft_extend


LAUNCHERS = RoundOps()

REFERENCES = RoundOps(
    select_draft_reference,
    update_draft_step_seqlens_reference,
    build_tree_reference,
    verify_reference,
    chain_accept_reference,
    prepare_verify_commit_outputs_reference,
    rebuild_compact_draft_reference,
    state_indices_reference,
    conv_window_scatter_reference,
    draft_extend_reference,
)


SERVED = RoundShape()


class DecodeRound:
    """Rounds of up to ``bs`` requests with trees of ``W`` nodes, ``depth`` deep.

    Write the batch into ``buffers`` (``load`` does), then ``step``. ``readback`` says how accepted lengths reach the
    host: "sync" waits in ``step``, "async" copies to pinned memory and waits when they are asked for.
    Raises ``ValueError`` naming the argument.
    """

    def __init__(
        self,
        bs: int,
        W: int,
        depth: int,
        *,
        shape: RoundShape = SERVED,
        device: str = "cuda",
        policy: PolicyName | None = None,
        readback: Readback = "sync",
        ops: RoundOps = LAUNCHERS,
    ) -> None:
        for name, value in (("bs", bs), ("W", W), ("depth", depth)):
            check_at_least(name, value, 1)
        if depth * shape.topk + 1 < W:
            raise ValueError(f"W must be at most {depth * shape.topk + 1}, what depth and topk draft, got {W}")
        if shape.draft_len < W:
            raise ValueError(f"W must be at most the {shape.draft_len} slots of the compact draft, got {W}")
        if bs > shape.pool:
            raise ValueError(f"bs must be at most the pool's {shape.pool} rows, got {bs}")
        if readback not in ("sync", "async"):
            raise ValueError(f"readback must be sync or async, got {readback!r}")
        self.bs, self.W, self.depth, self.shape = bs, W, depth, shape
        self.buffers = make_round_buffers(bs, W, depth, shape, device)
        self.verify_metadata = make_metadata_buffers(bs, bs * W, shape, device)
        self.extend_metadata = make_metadata_buffers(bs, bs * W, shape, device)
        self._policy, self._readback, self._ops = policy, readback, ops
        self._pairs: list[WindowPair] = [(self.buffers.conv, self.buffers.conv_steps)]
        self._captured: dict[int, _CapturedTail] = {}
        self._pinned = _PinnedLens(bs, self.buffers.accept_lens.is_cuda) if readback == "async" else None

    def load(
        self,
        pool_rows: torch.Tensor,
        draft_logits: torch.Tensor,
        target_predict: torch.Tensor,
        verify_loc: torch.Tensor,
    ) -> None:
        """Write a batch, as long as ``pool_rows``: what scheduler, draft, target and allocator give."""
        n = len(pool_rows)
        self.buffers.req_pool_indices[:n] = pool_rows
        self.buffers.pool_rows[:n] = pool_rows
        self.buffers.draft_logits[:n] = draft_logits
        self.buffers.target_predict[: n * self.W] = target_predict
        self.buffers.verify_loc[:n] = verify_loc

    def step(self, n: int) -> AcceptedLens:
        """Do a round of the first ``n`` requests in the buffers; its tail is replayed where it was captured."""
        self.launch(n)
        lens = self.buffers.accept_lens[:n]
        return AcceptedLens(lens.tolist(), None) if self._pinned is None else self._pinned.copy(lens)

    def launch(self, n: int) -> None:
        """Do a round without telling the host what was accepted."""
        if n > self.bs:
            raise ValueError(f"n must be at most {self.bs}, got {n}")
        self._head(n)
        if n in self._captured:
            self._captured[n].graph.replay()
        else:
            self._tail(n)

    def capture_tail(self, n: int) -> None:
        """Capture the tail of a round of ``n`` requests, for ``step`` to replay. A round must have run before."""
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            commit = self._tail(n)
        self._captured[n] = _CapturedTail(graph, commit)

    def _head(self, n: int) -> None:
        buffers, shape, policy = self.buffers, self.shape, self._policy
        pool_rows, seq_lens = buffers.pool_rows[:n], buffers.seq_lens[:n]
        seq_lens.copy_(buffers.pool_seq_lens[pool_rows])
        logits = buffers.draft_logits[:n].view(n * self.depth, shape.vocabulary)
        _, tokens = self._ops.select_draft(logits, shape.topk, policy=policy)
        buffers.candidates[:n, 0] = buffers.pool_tokens[pool_rows]
        buffers.candidates[:n, 1:] = tokens.view(n, self.depth * shape.topk)[:, : self.W - 1]
        self._ops.update_draft_step_seqlens(
            seq_lens=seq_lens,
            cache_seqlens=buffers.draft_cache_seqlens,
            cu_seqlens_k=buffers.draft_cu_seqlens_k,
            bs=n,
            steps=self.depth,
            first_offset=1,
            policy=policy,
        )
        tree = self._ops.build_tree(
            buffers.parent_list[:n],
            buffers.selected_index[:n],
            seq_lens,
            topk=shape.topk,
            depth=self.depth,
            num_draft_tokens=self.W,
            mask_mode="full",
            fill_prefix=False,
            seq_lens_sum=n * shape.max_len,
            policy=policy,
        )
        for name in _LINKS:
            built = getattr(tree, name)
            getattr(buffers, name)[: len(built)].copy_(built)
        *metadata, seqlens_expanded = self.verify_metadata.sliced(n, n * self.W)
        self._ops.verify(
            seq_lens,
            pool_rows,
            buffers.req_to_token,
            *metadata,
            seqlens_expanded,
            None,
            next_n=self.W,
            **self._metadata_keywords(),
        )

    def _tail(self, n: int) -> VerifyCommit:
        buffers, shape, policy = self.buffers, self.shape, self._policy
        pool_rows, accept_lens = buffers.pool_rows[:n], buffers.accept_lens[:n]
        predict, accept_index = buffers.predict[: n * self.W], buffers.accept_index[:n]
        self._ops.chain_accept(
            buffers.candidates[:n],
            buffers.retrieve_index[:n],
            buffers.retrieve_next_token[:n],
            buffers.retrieve_next_sibling[:n],
            buffers.target_predict[: n * self.W],
            predict,
            accept_index,
            accept_lens,
            buffers.num_correct[:n],
            verify=True,
            finish=True,
            policy=policy,
        )
        commit = self._ops.prepare_verify_commit_outputs(
            predict,
            accept_index,
            accept_lens,
            buffers.seq_lens[:n],
            num_draft_tokens=self.W,
            track_interval=shape.track_interval,
            policy=policy,
        )
        buffers.pool_seq_lens.index_copy_(0, buffers.req_pool_indices[:n], commit.new_seq_lens)
        buffers.pool_tokens.index_copy_(0, buffers.req_pool_indices[:n], commit.bonus)
        most_kept = shape.draft_len - self.W
        self._ops.rebuild_compact_draft(
            buffers.draft_req_to_token,
            buffers.req_to_token,
            pool_rows,
            (commit.new_seq_lens - most_kept).clamp(min=0),
            commit.new_seq_lens.clamp(max=most_kept),
            buffers.verify_loc[:n],
            policy=policy,
        )
        # Padded as batches are for graphs that are captured for powers of two.
        padded = min(next_power_of_2(n), self.bs)
        self._ops.state_indices(
            buffers.req_pool_indices[:padded],
            buffers.mapping,
            buffers.states[:padded],
            valid=n,
            total=padded,
            policy=policy,
        )
        slots = buffers.states[:n].long()
        snapshot = commit.last_step if commit.track is None else commit.track
        self._ops.conv_window_scatter(self._pairs, slots, commit.last_step, slots + shape.pool, snapshot, policy=policy)
        # The host does not know how many rows were accepted, so all are in use; those past the sum belong to none.
        *metadata, seqlens_expanded = self.extend_metadata.sliced(n, n * self.W)
        self._ops.draft_extend(
            commit.new_seq_lens,
            pool_rows,
            buffers.req_to_token,
            *metadata,
            accept_lens,
            seqlens_expanded,
            total_len=n * self.W,
            max_extend_len=self.W,
            max_total_len=n * self.W,
            static_extend_len=False,
            **self._metadata_keywords(),
        )
        return commit

    def _metadata_keywords(self) -> dict[str, object]:
        shape = self.shape
        return {
            "max_len": shape.max_len,
            "topk": shape.dsa_topk,
            "page_size": shape.page_size,
            "k_pool": shape.k_pool,
            "policy": self._policy,
        }


@dataclass(frozen=True)
class AcceptedLens:
    """How many tokens each request accepted, once they have reached the host."""

    copied: list[int] | torch.Tensor
    event: torch.cuda.Event | None

    def wait(self) -> list[int]:
        """The lengths; waits for an asynchronous copy."""
        if self.event is not None:
            self.event.synchronize()
        return self.copied if isinstance(self.copied, list) else self.copied.tolist()


@jitaudit.sweep(bs=jitaudit.ints(1, 64), policy=list(POLICIES), width=[4], depth=[3], compare="policy")
def sweep_round(bs, policy, width, depth):
    DecodeRound(512, width, depth, policy=policy).launch(bs)


_LINKS = ("positions", "retrieve_index", "retrieve_next_token", "retrieve_next_sibling")


class _CapturedTail(NamedTuple):
    graph: torch.cuda.CUDAGraph
    commit: VerifyCommit
    """Kept, since the graph writes there."""


class _PinnedLens:
    """Two pinned buffers in turn, so that a round can start while the lengths of the one before are on their way."""

    def __init__(self, bs: int, is_cuda: bool) -> None:
        self._buffers = [torch.zeros(bs, dtype=torch.int32, pin_memory=is_cuda) for _ in range(2)]
        self._is_cuda = is_cuda

    def copy(self, lens: torch.Tensor) -> AcceptedLens:
        self._buffers.reverse()
        copied = self._buffers[0][: len(lens)]
        copied.copy_(lens, non_blocking=True)
        event = torch.cuda.Event() if self._is_cuda else None
        if event is not None:
            event.record()
        return AcceptedLens(copied, event)
