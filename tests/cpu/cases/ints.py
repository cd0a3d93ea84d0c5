"""Runtime ints: what their classes cost, alone and together (rows 1, 8, 9, 10, 13)."""

from __future__ import annotations

from types import SimpleNamespace

import torch
import triton
import triton.language as tl

import jitaudit
from jitaudit.jit.respecialize import respecialize


@triton.jit
def penalty_kernel(logits_ptr, penalties_ptr, num_seqs, BLOCK: tl.constexpr):
    seqs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    logits = tl.load(logits_ptr + seqs, mask=seqs < num_seqs)
    tl.store(logits_ptr + seqs, logits * tl.load(penalties_ptr + seqs, mask=seqs < num_seqs), mask=seqs < num_seqs)


PENALTY = SimpleNamespace(
    plain=penalty_kernel,
    dns=respecialize(penalty_kernel, do_not_specialize=["num_seqs"]),
    dnsa=respecialize(penalty_kernel, do_not_specialize_on_alignment=["num_seqs"]),
)


@jitaudit.sweep(num_seqs=[1, 3, 8, 16, 32], policy=list(vars(PENALTY)), compare="policy")
def penalty(num_seqs, policy):
    """Row 1: a batch size as a plain int."""
    logits = torch.empty(num_seqs, device="cuda")
    getattr(PENALTY, policy)[(triton.cdiv(num_seqs, 64),)](logits, torch.empty_like(logits), num_seqs, BLOCK=64)


@triton.jit
def slot_mapping_kernel(slots_ptr, table_ptr, num_tokens, stride, BLOCK: tl.constexpr):
    tokens = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    pages = tl.load(table_ptr + tokens * stride, mask=tokens < num_tokens)
    tl.store(slots_ptr + tokens, pages, mask=tokens < num_tokens)


SLOT_MAPPING = SimpleNamespace(
    plain=slot_mapping_kernel,
    dns=respecialize(slot_mapping_kernel, do_not_specialize=["num_tokens"]),
)


@jitaudit.sweep(num_tokens=[1, 3, 16], stride=[1, 5], policy=list(vars(SLOT_MAPPING)), compare="policy")
def slot_mapping(num_tokens, stride, policy):
    """Row 8: one kernel serves several cache groups, each with a stride of its own."""
    slots = torch.empty(num_tokens, dtype=torch.int64, device="cuda")
    table = torch.empty(num_tokens, stride, dtype=torch.int64, device="cuda")
    getattr(SLOT_MAPPING, policy)[(triton.cdiv(num_tokens, 64),)](slots, table, num_tokens, table.stride(0), BLOCK=64)


@triton.jit
def sampler_kernel(
    logits_ptr, top_ks_ptr, top_ps_ptr, BATCH_SIZE, TOPK: tl.constexpr, TOPP: tl.constexpr, BLOCK: tl.constexpr
):
    request = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    logits = tl.load(logits_ptr + request, mask=request < BATCH_SIZE)
    if TOPK:
        logits = tl.minimum(logits, tl.load(top_ks_ptr + request, mask=request < BATCH_SIZE))
    if TOPP:
        logits = tl.maximum(logits, tl.load(top_ps_ptr + request, mask=request < BATCH_SIZE))
    tl.store(logits_ptr + request, logits, mask=request < BATCH_SIZE)


SAMPLER = SimpleNamespace(plain=sampler_kernel, dns=respecialize(sampler_kernel, do_not_specialize=["BATCH_SIZE"]))


def sample(batch_size: int, topk: bool, topp: bool, policy: str) -> None:
    logits, top_ks, top_ps = torch.empty(3, 64, device="cuda")
    getattr(SAMPLER, policy)[(1,)](logits, top_ks, top_ps, batch_size, TOPK=topk, TOPP=topp, BLOCK=64)


@jitaudit.sweep(
    batch_size=[1, 8, 15, 16],
    topk=[True, False],
    topp=[True, False],
    policy=list(vars(SAMPLER)),
    compare="policy",
    where=lambda topk, topp: topk or topp,
)
def sampler(batch_size, topk, topp, policy):
    """Row 9: a batch size and two flags that requests set."""
    sample(batch_size, topk, topp, policy)


@jitaudit.sweep(batch_size=[16], topk=[True], topp=[True], policy=list(vars(SAMPLER)), compare="policy")
def sampler_warmup(batch_size, topk, topp, policy):
    """Row 9: what a warm-up at one point of those axes reaches."""
    sample(batch_size, topk, topp, policy)


@triton.jit
def spec_decode_kernel(out_ptr, batch, draft_tokens, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    tl.store(out_ptr + row * stride + column, row, mask=(row < batch) & (column < draft_tokens))


def spec_decode(batch: int, draft_tokens: int, stride: int) -> None:
    out = torch.empty(batch, stride, dtype=torch.int32, device="cuda")
    spec_decode_kernel[(batch,)](out, batch, draft_tokens, stride, BLOCK=16)


@jitaudit.sweep(batch=[1, 2], draft_tokens=[1, 2], stride=[1, 2])
def three_ints_of_two_classes(batch, draft_tokens, stride):
    """Row 10: the question "which of them is 1?" finds eight keys."""
    spec_decode(batch, draft_tokens, stride)


@jitaudit.sweep(batch=[1, 2, 16], draft_tokens=[1, 2, 16], stride=[1, 2, 16])
def three_ints(batch, draft_tokens, stride):
    """Row 10: with the multiples of 16 there are 27."""
    spec_decode(batch, draft_tokens, stride)


@triton.jit
def scale_kernel(x_ptr, scale, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, tl.load(x_ptr + offsets) * scale)


@jitaudit.sweep(scale=[1, True, False, 1.0, 0.5, 2])
def untyped_scalar(scale):
    """Row 13: a scalar without a type takes whatever callers pass."""
    scale_kernel[(1,)](torch.empty(64, device="cuda"), scale, BLOCK=64)
