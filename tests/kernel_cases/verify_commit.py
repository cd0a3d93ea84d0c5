"""Cases of verify_commit: every set of outputs, boundaries crossed and not, an index that wraps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import torch

from jitaudit_kernels import verify_commit

from .arena import Arena
from .compare import Call, Case
from .values import Values

INTS = (torch.int32, torch.int64)


def cases(sizes: Sequence[int]) -> Iterator[Case]:
    asked = list(product((4, 0, 1, 7), (0, 5, 1), INTS))
    for number, bs in enumerate(sizes):
        width, interval, bonus = asked[number % len(asked)]
        yield _case(bs, width, interval, bonus, INTS[number % 2])
    for number, (width, interval, bonus) in enumerate(asked):
        yield _case(9, width, interval, bonus, INTS[number % 2])


def _case(bs: int, width: int, interval: int, bonus: torch.dtype, dtype: torch.dtype) -> Case:
    name = f"verify_commit bs={bs} width={width} interval={interval} bonus={bonus} {dtype}"
    columns = width or 3

    def make(arena: Arena) -> Call:
        values = Values.of(name)
        nodes = torch.arange(bs)[:, None] * columns + values.ints(0, columns - 1, bs, columns)
        nodes[values.ints(0, 7, bs) == 0] = -1
        return Call(
            (
                arena.given(values.ints(0, 10**5, bs * columns), offset=bs % 3),
                arena.given(nodes.to(dtype), pad=(0, bs % 2)),
                arena.given(values.ints(1, columns, bs)),
                arena.given(values.ints(0, 40, bs, dtype=dtype)),
            ),
            {"num_draft_tokens": width, "track_interval": interval, "bonus_dtype": bonus},
        )

    launcher = verify_commit.prepare_verify_commit_outputs
    return Case(name, launcher, verify_commit.prepare_verify_commit_outputs_reference, make)
