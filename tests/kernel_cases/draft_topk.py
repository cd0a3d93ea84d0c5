"""Cases of draft_topk: greedy on everything that argmax can stumble over, and more tokens than one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from jitaudit_kernels import draft_topk

from .arena import Arena
from .compare import Call, Case
from .logits import draw_logits
from .values import Values


def cases(sizes: Sequence[int]) -> Iterator[Case]:
    for number, rows in enumerate(sizes):
        dtype = draft_topk.FLOATS[number % 3]
        yield _case(rows, 300 if rows > 100 else 1500, 1, dtype, special=True)
        yield _case(rows, 5 if rows > 100 else 1030, 2 if rows > 100 else 2 + number % 3, torch.float32, special=False)
    for vocabulary in (1, 2, 1023, 1024, 1025, 4096):
        yield _case(3, vocabulary, 1, torch.float32, special=vocabulary > 2)
        yield _case(3, vocabulary, min(vocabulary, 8), torch.float32, special=False)
    yield _case(2, 9, 9, torch.bfloat16, special=False)


def _case(rows: int, vocabulary: int, topk: int, dtype: torch.dtype, *, special: bool) -> Case:
    name = f"draft_topk rows={rows} V={vocabulary} topk={topk} {dtype} special={special}"

    def make(arena: Arena) -> Call:
        logits = draw_logits(Values.of(name), rows, vocabulary, dtype, special=special)
        return Call((arena.given(logits, pad=(0, rows % 3)), topk))

    return Case(name, draft_topk.select_draft, draft_topk.select_draft_reference, make, rtol=1e-6)
