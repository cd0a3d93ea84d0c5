"""Cases of vocab_shard's kernel: the keys of a shard, wherever it starts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from jitaudit_kernels import vocab_shard

from .arena import Arena
from .compare import Call, Case
from .logits import draw_logits
from .values import Values


def cases(sizes: Sequence[int]) -> Iterator[Case]:
    for number, rows in enumerate(sizes):
        dtype = vocab_shard.FLOATS[number % 3]
        yield _case(rows, 200 if rows > 100 else 1300, (0, 1, 1300, 2**31 - 1300)[number % 4], dtype)
    for width in (1, 7, 1023, 1024, 1025, 2049):
        yield _case(19, width, 5, torch.float32)


def _case(rows: int, width: int, vocab_start: int, dtype: torch.dtype) -> Case:
    name = f"vocab_shard rows={rows} width={width} start={vocab_start} {dtype}"

    def make(arena: Arena) -> Call:
        logits = draw_logits(Values.of(name), rows, width, dtype, special=width > 2)
        return Call((arena.given(logits, pad=(0, rows % 2)), vocab_start))

    return Case(name, vocab_shard.local_keys, vocab_shard.local_keys_reference, make)
