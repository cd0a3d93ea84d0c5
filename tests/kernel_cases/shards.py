"""A vocabulary sharded over processes: what each rank runs, and the rows that tell right from almost right."""

from __future__ import annotations

import math
from pathlib import Path

import torch
import torch.distributed as dist

from jitaudit_kernels.vocab_shard import local_keys, winning_tokens, winning_tokens_reference

VOCABULARY = 101
"""Not divisible by two."""

SPLIT = 51


def hard_rows(dtype: torch.dtype) -> torch.Tensor:
    """Rows [n, VOCABULARY] whose winner is decided across the shards."""
    negative_nan = torch.tensor(-0x400000, dtype=torch.int32).view(torch.float32).item()
    last = VOCABULARY - 1
    written: list[dict[int, float]] = [
        {3: 5.0, last: 5.0},
        {SPLIT - 1: 5.0, SPLIT: 5.0},
        {SPLIT: 5.0, last: 5.0},
        {0: -0.0, SPLIT: 0.0},
        {SPLIT: -0.0, last: 0.0},
        {2: math.inf, last: math.nan},
        {2: math.nan, last: math.nan},
        {2: negative_nan, last: math.nan},
        {SPLIT: negative_nan, last: math.inf},
        {1: math.inf, last: math.inf},
        {last: -1e-30},
        {0: -1.0},
        {},
    ]
    rows = torch.full((len(written) + 2, VOCABULARY), -2.0)
    for row, values in zip(rows, written, strict=False):
        for column, value in values.items():
            row[column] = value
    rows[-2] = -math.inf
    rows[-1] = torch.arange(VOCABULARY).roll(7).float()
    return rows.to(dtype)


def rank_main(rank: int, store: str, device: str, backend: str) -> None:
    """One rank: its shard's winners, exchanged, equal torch.argmax of the whole row."""
    if device == "cuda":
        torch.cuda.set_device(rank)
    dist.init_process_group(backend, init_method=Path(store).as_uri(), rank=rank, world_size=2)
    try:
        start, end = ((0, SPLIT), (SPLIT, VOCABULARY))[rank]
        for dtype in (torch.float32, torch.bfloat16):
            rows = hard_rows(dtype)
            keys = local_keys(rows[:, start:end].to(device), start)
            kept = keys.clone()
            tokens = winning_tokens(keys)
            assert torch.equal(tokens.cpu(), rows.argmax(1)), (dtype, tokens, rows.argmax(1))
            assert torch.equal(tokens, winning_tokens_reference(keys))
            assert torch.equal(keys, kept), "the caller's keys were overwritten"
    finally:
        dist.destroy_process_group()
