"""Cases of compact_draft: nothing kept, less and more than a tile kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from jitaudit_kernels import compact_draft

from .arena import Arena
from .compare import Call, Case
from .values import Values


def cases(sizes: Sequence[int]) -> Iterator[Case]:
    for number, bs in enumerate(sizes):
        dtype = (torch.int32, torch.int64)[number % 2]
        yield _case(bs, length=90, block=1 + number % 6, dtype=dtype)
        if bs <= 17:
            yield _case(bs, length=2200, block=4, dtype=dtype)
    yield _case(3, length=40, block=0, dtype=torch.int32)


def _case(bs: int, *, length: int, block: int, dtype: torch.dtype) -> Case:
    name = f"compact_draft bs={bs} length={length} block={block} {dtype}"

    def make(arena: Arena) -> Call:
        values = Values.of(name)
        prefix_lens = values.ints(0, length - block, bs)
        prefix_lens[::4] = 0
        return Call(
            (
                arena.blank(bs + 2, length, pad=(0, 3)),
                arena.given(values.ints(0, 10**6, bs + 2, 2 * length), pad=(0, 1)),
                arena.given(values.distinct(bs + 2, bs, dtype)),
                arena.given(values.ints(0, length, bs, dtype=dtype)),
                arena.given(prefix_lens.to(dtype), offset=1),
                arena.given(values.ints(0, 10**6, bs, block, dtype=dtype), pad=(0, 2)),
            )
        )

    return Case(name, compact_draft.rebuild_compact_draft, compact_draft.rebuild_compact_draft_reference, make)
