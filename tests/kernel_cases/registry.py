"""All cases of all kernels."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType

from . import (
    chain_accept,
    compact_draft,
    draft_seqlens,
    draft_topk,
    dsa_metadata,
    mamba_replay,
    tree_build,
    verify_commit,
    vocab_shard,
)
from .compare import Case

MODULES: tuple[ModuleType, ...] = (
    dsa_metadata,
    mamba_replay,
    draft_seqlens,
    chain_accept,
    verify_commit,
    compact_draft,
    tree_build,
    draft_topk,
    vocab_shard,
)

INTERPRETER_SIZES = (0, 1, 2, 3, 15, 16, 17, 63, 64, 65, 128, 300, 512)
"""Batch sizes on both sides of every class and block."""

GPU_SIZES = (1, 2, 3, 15, 16, 17, 63, 64, 65, 127, 128, 300, 512) * 5
"""Each size five times, each time with other flags, which follow the position in the list."""


def all_cases(sizes: Sequence[int]) -> list[Case]:
    return [case for module in MODULES for case in module.cases(sizes)]
