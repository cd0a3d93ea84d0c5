"""Greedy sampling over a sharded vocabulary: ranks exchange a key a row in place of their logits.

One all-reduce MAX of ``rows`` keys replaces an all-gather of ``rows × V`` logits, and gives torch.argmax of the
gathered row. Nothing here depends on the batch: a negative control for the audit.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.distributed as dist
import triton
import triton.language as tl

import jitaudit

from .arguments import I64, check_at_least, check_tensor, device_of
from .logit_keys import NO_KEY, TILE, key_index_reference, logit_key, logit_keys_reference
from .policy import POLICIES, PolicyName, policies, resolve_policy

FLOATS = (torch.float32, torch.bfloat16, torch.float16)


@policies()
def local_keys_kernel(
    logits_ptr,  # [rows, V_local]
    keys_ptr,  # [rows, tiles]
    vocab_start,
    V_local,
    logits_stride,
    TILE: tl.constexpr,
):
    tile = tl.program_id(0)
    row = tl.program_id(1).to(tl.int64)
    columns = tile * TILE + tl.arange(0, TILE)
    in_shard = columns < V_local
    logits = tl.load(logits_ptr + row * logits_stride + columns, mask=in_shard, other=0.0).to(tl.float32)
    keys = tl.where(in_shard, logit_key(logits, columns + vocab_start), NO_KEY)
    tl.store(keys_ptr + row * tl.num_programs(0) + tile, tl.max(keys, 0))


def local_keys(logits: torch.Tensor, vocab_start: int, *, policy: PolicyName | None = None) -> torch.Tensor:
    """Return the winner of each row of this rank's ``logits`` [rows, V_local] as a key, [rows] i64.

    ``vocab_start`` is the index of the first column in the whole vocabulary, which ends before 2³¹.
    """
    policy = resolve_policy(policy, "vocab_shard")
    device = device_of("logits", logits)
    check_tensor("logits", logits, (None, None), FLOATS, device)
    check_at_least("vocab_start", vocab_start, 0)
    rows, width = logits.shape
    if width == 0:
        raise ValueError("logits must have at least 1 column, got 0")
    if vocab_start + width > 2**31:
        raise ValueError(f"vocab_start must leave the vocabulary within 2**31 tokens, got {vocab_start}")
    tiles = triton.cdiv(width, TILE)
    keys = torch.empty(rows, tiles, dtype=torch.int64, device=device)
    if rows > 0:
        local_keys_kernel[policy][(tiles, rows)](logits, keys, vocab_start, width, logits.stride(0), TILE=TILE)
    return keys.amax(1)


def local_keys_reference(logits: torch.Tensor, vocab_start: int, *, policy: PolicyName | None = None) -> torch.Tensor:
    """``local_keys`` in plain PyTorch."""
    return logit_keys_reference(logits, vocab_start).amax(1)


def winning_tokens(keys: torch.Tensor, group: dist.ProcessGroup | None = None) -> torch.Tensor:
    """Return the winning token of each row over all ranks of ``group``, [rows] i64, from this rank's ``keys``.

    Every rank gets the same tokens; without an initialised ``torch.distributed`` this rank's shard is the vocabulary.
    """
    check_tensor("keys", keys, (None,), I64, device_of("keys", keys))
    if dist.is_initialized():
        keys = keys.clone()
        dist.all_reduce(keys, dist.ReduceOp.MAX, group=group)
    return key_index_reference(keys)


def winning_tokens_reference(keys: torch.Tensor, group: dist.ProcessGroup | None = None) -> torch.Tensor:
    """``winning_tokens`` by gathering the ranks' keys."""
    if not dist.is_initialized():
        return key_index_reference(keys)
    gathered = [torch.empty_like(keys) for _ in range(dist.get_world_size(group))]
    dist.all_gather(gathered, keys, group=group)
    return key_index_reference(torch.stack(gathered).amax(0))


@dataclass(frozen=True)
class SamplingRequest:
    """What of a request decides whether its winner alone is enough."""

    temperature: float = 0.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    min_new_tokens: int = 0
    logit_bias: bool = False
    grammar: bool = False
    logprobs: int | None = None
    """How many to report beside the token's own; 0 reports that one."""


def requires_full_logits(request: SamplingRequest) -> bool:
    """Whether a request must take the full path: it samples, changes logits before the choice, or reports them.

    Any object with these attributes will do; one that lacks an attribute does not ask for what it names.
    """
    return any(_asks(getattr(request, name, plain), plain) for name, plain in vars(SamplingRequest()).items())


@jitaudit.sweep(
    bs=jitaudit.ints(1, 512),
    policy=list(POLICIES),
    vocabulary=[4096],
    dtype=[torch.float32],
    compare="policy",
)
def sweep_vocab_shard(bs, policy, vocabulary, dtype):
    local_keys(torch.empty(bs, vocabulary, dtype=dtype, device="cuda"), 0, policy=policy)


def _asks(value: object, plain: object) -> bool:
    """Whether an attribute asks for more than its plain value does; an empty bias or grammar asks for nothing."""
    if value is None or value is False:
        return False
    return bool(value) if plain is False else value != plain
