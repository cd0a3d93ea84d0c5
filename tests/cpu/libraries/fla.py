"""A launcher of fla-core 0.6.0, unmodified."""

from __future__ import annotations

import torch
from fla.ops.gated_delta_rule import fused_recurrent_gated_delta_rule

import jitaudit


def bf16(*shape: int) -> torch.Tensor:
    return torch.empty(shape, dtype=torch.bfloat16, device="cuda")


@jitaudit.sweep(T=jitaudit.ints(1, 128))
def fused_recurrent_gdn(T):
    q, k, v = (bf16(1, T, 4, 64) for _ in range(3))
    fused_recurrent_gated_delta_rule(q, k, v, g=bf16(1, T, 4), beta=bf16(1, T, 4))
