"""Launchers of Liger-Kernel 0.8.5, unmodified."""

from __future__ import annotations

import torch
from liger_kernel.ops.modulated_rms_norm import LigerModulatedRMSNormFunction
from liger_kernel.ops.rms_norm import LigerRMSNormFunction
from liger_kernel.ops.rope import LigerRopeFunction
from liger_kernel.ops.swiglu import LigerSiLUMulFunction

import jitaudit


def bf16(*shape: int) -> torch.Tensor:
    return torch.empty(shape, dtype=torch.bfloat16, device="cuda")


@jitaudit.sweep(tokens=jitaudit.ints(1, 256))
def rms_norm(tokens):
    LigerRMSNormFunction.apply(bf16(tokens, 4096), bf16(4096), 1e-6)


@jitaudit.sweep(tokens=jitaudit.ints(1, 128))
def rope(tokens):
    q, k = bf16(1, 32, tokens, 128), bf16(1, 8, tokens, 128)
    LigerRopeFunction.apply(q, k, bf16(1, tokens, 128), bf16(1, tokens, 128))


@jitaudit.sweep(tokens=jitaudit.ints(1, 128))
def swiglu(tokens):
    LigerSiLUMulFunction.apply(bf16(tokens, 11008), bf16(tokens, 11008))


@jitaudit.sweep(tokens=jitaudit.ints(1, 128))
def modulated_rms_norm(tokens):
    """Two samples, each with a scale and a shift of its own."""
    LigerModulatedRMSNormFunction.apply(bf16(2, tokens, 1024), bf16(1024), bf16(2, 1024), bf16(2, 1024), 1e-6)
