"""What the sweeps' launchers are given."""

from __future__ import annotations

import torch


def bf16(*shape, grad=False):
    return torch.empty(shape, dtype=torch.bfloat16, device="cuda", requires_grad=grad)


def fp16(*shape):
    return torch.empty(shape, dtype=torch.float16, device="cuda")


def fp32(*shape, grad=False):
    return torch.empty(shape, dtype=torch.float32, device="cuda", requires_grad=grad)


def i32(*shape):
    return torch.empty(shape, dtype=torch.int32, device="cuda")


def i64(*shape):
    return torch.empty(shape, dtype=torch.int64, device="cuda")


def two_sequences(length):
    """Cumulative lengths of two packed sequences, whose values are known."""
    return torch.tensor([0, length // 2, length], dtype=torch.int64, device="cuda")


def backward(out):
    """Run the backward of every result that has one."""
    results = out if isinstance(out, tuple) else (out,)
    outputs = [result for result in results if isinstance(result, torch.Tensor) and result.requires_grad]
    torch.autograd.backward(outputs, [None if o.numel() == 1 else torch.empty_like(o) for o in outputs])
