"""Logits as int64 keys whose signed order is argmax's: the larger logit, then the lower index.

The high half is the float's bits mapped so that they order as signed ints, −0.0 as +0.0 and every NaN as one pattern
above +inf, as torch.argmax has it; the low half is the complement of the index. So the largest key of a row, of a tile
or of a shard names the winner there, and keys of tiles and shards compare.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

TILE = 1024
"""Logits that a program reduces: a row of 128k fills a GPU."""

NO_KEY = tl.constexpr(-(2**63))
"""Below every logit's key, −inf's too."""


@triton.jit
def logit_key(logit, index):
    """The key of each logit (fp32) at ``index`` < 2³²."""
    bits = logit.to(tl.int32, bitcast=True)
    magnitude = bits & 0x7FFFFFFF
    bits = tl.where(magnitude == 0, 0, tl.where(magnitude > 0x7F800000, 0x7FC00000, bits))
    ordered = bits ^ ((bits >> 31) & 0x7FFFFFFF)
    return (ordered.to(tl.int64) << 32) | (0xFFFFFFFF - index.to(tl.int64))


@triton.jit
def key_index(key):
    """The index in a key."""
    return 0xFFFFFFFF - (key & 0xFFFFFFFF)


@triton.jit
def key_logit(key):
    """The logit in a key."""
    ordered = (key >> 32).to(tl.int32)
    return (ordered ^ ((ordered >> 31) & 0x7FFFFFFF)).to(tl.float32, bitcast=True)


def logit_keys_reference(logits: torch.Tensor, first_index: int) -> torch.Tensor:
    """The key of each logit of [rows, V], the first column's index being ``first_index``."""
    values = logits.float()
    bits = torch.where(values.isnan(), 0x7FC00000, torch.where(values == 0, 0.0, values).view(torch.int32).long())
    ordered = torch.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
    index = torch.arange(first_index, first_index + logits.shape[1], device=logits.device)
    return ordered * 2**32 + (0xFFFFFFFF - index)


def key_index_reference(keys: torch.Tensor) -> torch.Tensor:
    """The index in each key."""
    return 0xFFFFFFFF - (keys & 0xFFFFFFFF)
