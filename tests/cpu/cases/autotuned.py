"""Autotuners: tuning keys, benchmark runs and JIT variants are three different counts (row 16)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
import triton
import triton.language as tl

import jitaudit

CONFIGS = [triton.Config({"BLOCK": block}) for block in (64, 128, 256)]


def attention_kernel(x_ptr, seq_len, seq_len_bucket, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, 1.0, mask=offsets < seq_len)


def keep_large(configs: list[triton.Config], arguments: dict[str, Any], **_: object) -> list[triton.Config]:
    return [config for config in configs if config.kwargs["BLOCK"] > 64]


ATTENTION = SimpleNamespace(
    exact=triton.autotune(CONFIGS, key=["seq_len"])(triton.jit(attention_kernel, do_not_specialize=["seq_len_bucket"])),
    bucketed=triton.autotune(CONFIGS, key=["seq_len_bucket"])(
        triton.jit(attention_kernel, do_not_specialize=["seq_len_bucket"])
    ),
    pruned=triton.autotune(CONFIGS, key=["seq_len"], prune_configs_by={"early_config_prune": keep_large})(
        triton.jit(attention_kernel, do_not_specialize=["seq_len_bucket"])
    ),
)


def attend(seq_len: int, key: str) -> None:
    getattr(ATTENTION, key)[lambda meta: (triton.cdiv(seq_len, meta["BLOCK"]),)](
        torch.empty(seq_len, device="cuda"), seq_len, triton.next_power_of_2(seq_len)
    )


@jitaudit.sweep(kilo=jitaudit.ints(8, 72), key=list(vars(ATTENTION)), compare="key")
def attention(kilo, key):
    """Row 16: lengths of 8k to 72k, all multiples of 16."""
    attend(1024 * kilo, key)


def ragged_kernel(x_ptr, seq_len, seq_len_bucket, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, 2.0, mask=offsets < seq_len)


RAGGED = SimpleNamespace(
    exact=triton.autotune(CONFIGS, key=["seq_len"])(triton.jit(ragged_kernel, do_not_specialize=["seq_len_bucket"])),
    bucketed=triton.autotune(CONFIGS, key=["seq_len_bucket"])(
        triton.jit(ragged_kernel, do_not_specialize=["seq_len_bucket"])
    ),
)


@jitaudit.sweep(length=[8193, 8195, 9216, 16384], key=list(vars(RAGGED)), compare="key")
def ragged_attention(length, key):
    """Row 16: lengths of two classes. A known tuning key launches its winner alone, whatever the class."""
    getattr(RAGGED, key)[lambda meta: (triton.cdiv(length, meta["BLOCK"]),)](
        torch.empty(length, device="cuda"), length, triton.next_power_of_2(length)
    )
