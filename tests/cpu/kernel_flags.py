"""Sweeps that move what the shipped kernels' own sweeps hold still: tables, dtypes, flags, widths."""

from __future__ import annotations

import torch

import jitaudit
from jitaudit_kernels.chain_accept import sweep_chain_accept
from jitaudit_kernels.compact_draft import sweep_compact_draft
from jitaudit_kernels.draft_seqlens import sweep_draft_seqlens
from jitaudit_kernels.draft_topk import sweep_draft_topk
from jitaudit_kernels.dsa_metadata import sweep_decode, sweep_draft_extend, sweep_verify
from jitaudit_kernels.mamba_replay import sweep_conv_window_scatter, sweep_state_indices
from jitaudit_kernels.policy import POLICIES
from jitaudit_kernels.tree_build import sweep_tree_build
from jitaudit_kernels.verify_commit import sweep_verify_commit
from jitaudit_kernels.vocab_shard import sweep_vocab_shard

BATCHES = [3]

INTS = [torch.int32, torch.int64]
FLOATS = [torch.float32, torch.bfloat16, torch.float16]


def tables_fit(tables: str, page_size: int) -> bool:
    """Pages of one token need the token table."""
    return page_size > 1 or tables != "real_page_table"


TABLES = {"tables": ["both", "page_table_1", "real_page_table"], "page_size": [1, 64]}


@jitaudit.sweep(bs=BATCHES, policy=POLICIES, **TABLES, k_pool=[1, 4], dtype=INTS, where=tables_fit, compare="policy")
def decode(bs, policy, tables, page_size, k_pool, dtype):
    sweep_decode(bs, policy, 300, 64, page_size, k_pool, tables, dtype)


@jitaudit.sweep(bs=BATCHES, policy=POLICIES, **TABLES, ctx_lens=[True, False], where=tables_fit, compare="policy")
def verify(bs, policy, tables, page_size, ctx_lens):
    sweep_verify(bs, policy, 3, 300, 64, page_size, 4, tables, ctx_lens, torch.int64)


@jitaudit.sweep(
    bs=BATCHES, policy=POLICIES, **TABLES, static_extend_len=[True, False], where=tables_fit, compare="policy"
)
def draft_extend(bs, policy, tables, page_size, static_extend_len):
    sweep_draft_extend(bs, policy, static_extend_len, 3, 300, 64, page_size, 4, tables, torch.int64)


@jitaudit.sweep(bs=[15, 17, 33], policy=POLICIES, static_extend_len=[True, False], compare="policy")
def draft_extend_by_one(bs, policy, static_extend_len):
    sweep_draft_extend(bs, policy, static_extend_len, 1, 129, 2048, 16, 4, "both", torch.int64)


@jitaudit.sweep(valid=[3], total=[65], policy=POLICIES, v2p=[True, False], compare="policy")
def state_indices(valid, total, policy, v2p):
    sweep_state_indices(valid, total, policy, v2p)


@jitaudit.sweep(n1=[5], offset=[1], policy=POLICIES, dtype=[*FLOATS, torch.int8], compare="policy")
def conv_window_scatter(n1, offset, policy, dtype):
    sweep_conv_window_scatter(n1, 3, offset, policy, 3, 2, dtype)


@jitaudit.sweep(bs=BATCHES, policy=POLICIES, first_offset=[2], dtype=INTS, compare="policy")
def draft_seqlens(bs, policy, first_offset, dtype):
    sweep_draft_seqlens(bs, policy, 2, first_offset, dtype)


@jitaudit.sweep(
    policy=POLICIES,
    flags=["verify", "verify+finish", "finish", "finish+simulate", "verify+finish+simulate+real"],
    width=[1, 5],
    dtype=INTS,
    where=lambda flags, width: width > 1 or "simulate" not in flags,
    compare="policy",
)
def chain_accept(policy, flags, width, dtype):
    sweep_chain_accept(3, policy, flags, width, dtype)


@jitaudit.sweep(policy=POLICIES, block=[1, 5], dtype=INTS, compare="policy")
def compact_draft(policy, block, dtype):
    sweep_compact_draft(3, policy, block, dtype)


@jitaudit.sweep(
    bs=BATCHES, policy=POLICIES, width=[1, 5], mask_mode=["full", "qlen"], fill_prefix=[True, False], compare="policy"
)
def tree_build(bs, policy, width, mask_mode, fill_prefix):
    sweep_tree_build(bs, policy, 2, 3, width, mask_mode, fill_prefix, torch.int64)


@jitaudit.sweep(
    bs=BATCHES, policy=POLICIES, bonus_dtype=INTS, num_draft_tokens=[0, 4], track_interval=[0, 7], compare="policy"
)
def verify_commit(bs, policy, bonus_dtype, num_draft_tokens, track_interval):
    sweep_verify_commit(bs, policy, bonus_dtype, num_draft_tokens, track_interval, torch.int64)


@jitaudit.sweep(policy=POLICIES, topk=[1, 3], vocabulary=[1000, 3001], dtype=FLOATS, compare="policy")
def draft_topk(policy, topk, vocabulary, dtype):
    sweep_draft_topk(3, policy, topk, vocabulary, dtype)


@jitaudit.sweep(policy=POLICIES, vocabulary=[1000, 3001], dtype=FLOATS, compare="policy")
def vocab_shard(policy, vocabulary, dtype):
    sweep_vocab_shard(3, policy, vocabulary, dtype)
