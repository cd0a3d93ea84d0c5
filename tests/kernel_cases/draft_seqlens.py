"""Cases of draft_seqlens: buffers as wide as the batch, and wider ones as a server keeps them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from jitaudit_kernels import draft_seqlens

from .arena import Arena
from .compare import Call, Case
from .values import Values


def cases(sizes: Sequence[int]) -> Iterator[Case]:
    for number, bs in enumerate(sizes):
        yield _case(bs, 1 + number % 4, number % 3, (0, 5)[number % 2], (torch.int32, torch.int64)[number // 2 % 2])
    yield _case(4, 0, 1, 0, torch.int32)


def _case(bs: int, steps: int, first_offset: int, spare: int, dtype: torch.dtype) -> Case:
    name = f"draft_seqlens bs={bs} steps={steps} first_offset={first_offset} spare={spare} {dtype}"

    def make(arena: Arena) -> Call:
        return Call(
            keywords={
                "seq_lens": arena.given(Values.of(name).ints(0, 10**6, bs, dtype=dtype), offset=spare),
                "cache_seqlens": arena.blank(steps, bs + spare, pad=(0, spare)),
                "cu_seqlens_k": arena.blank(steps, bs + 1 + spare),
                "bs": bs,
                "steps": steps,
                "first_offset": first_offset,
            }
        )

    return Case(name, draft_seqlens.update_draft_step_seqlens, draft_seqlens.update_draft_step_seqlens_reference, make)
