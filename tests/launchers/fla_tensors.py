"""What fla-core's operators are given: H heads of D."""

from __future__ import annotations

from tensors import bf16, fp32

H, D = 4, 64


def heads(count, T, grad=False):
    """`count` tensors of [1, T, H, D]."""
    return [bf16(1, T, H, D, grad=grad) for _ in range(count)]


def gate(T, grad=False):
    return fp32(1, T, H, grad=grad)


def gates(T, grad=False):
    return fp32(1, T, H, D, grad=grad)
