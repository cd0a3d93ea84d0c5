"""Cases of the two mamba_replay kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from jitaudit_kernels import mamba_replay

from .arena import Arena
from .compare import Call, Case
from .values import Values


def cases(sizes: Sequence[int]) -> Iterator[Case]:
    for number, total in enumerate(sizes):
        for valid in sorted({0, total // 2, total}):
            yield _state_indices(valid, total, v2p=(number + valid) % 2 == 0, offset=number % 3)
    for offset, (n1, n2) in enumerate([(1, None), (3, 5), (16, 3), (5, 16), (0, 4), (17, 0), (2, 1)]):
        yield _conv_window_scatter(n1, n2, offset, torch.bfloat16)
        yield _conv_window_scatter(n1, n2, 2 * offset, (torch.float32, torch.int8)[offset % 2])


def _state_indices(valid: int, total: int, *, v2p: bool, offset: int) -> Case:
    name = f"state_indices valid={valid} total={total} v2p={v2p} offset={offset}"

    def make(arena: Arena) -> Call:
        values = Values.of(name)
        physical = values.ints(0, 99, 30, dtype=torch.int64)
        return Call(
            (
                arena.given(values.ints(0, 39, total, dtype=torch.int64), offset=offset),
                arena.given(values.ints(0, 29, 40)),
                arena.blank(total, offset=offset),
            ),
            {
                "valid": valid,
                "total": total,
                "v2p": arena.given(physical) if v2p else None,
            },
        )

    return Case(name, mamba_replay.state_indices, mamba_replay.state_indices_reference, make)


def _conv_window_scatter(n1: int, n2: int | None, offset: int, dtype: torch.dtype) -> Case:
    """Two pairs of unlike shapes; some slots and steps are out of range, and no slot is named twice."""
    name = f"conv_window_scatter n1={n1} n2={n2} offset={offset} {dtype}"
    slots, steps = 50, 3

    def make(arena: Arena) -> Call:
        values = Values.of(name)
        rows = max(n1, n2 or 0, 1)
        pairs = [
            (
                arena.blank(layers, slots, dim, win, dtype=dtype, pad=(0, pad, 0, 0)),
                arena.given(values.ints(0, 100, layers, rows, steps, dim, win, dtype=dtype), pad=(0, 1, pad, 0, 0)),
            )
            for layers, dim, win, pad in ((2, 5, 3, 0), (1, 8, 4, 1))
        ]
        named = values.distinct(slots + 6, n1 + (n2 or 0)) - 3
        return Call(
            (
                pairs,
                arena.given(named[:n1], offset=offset),
                arena.given(values.ints(-1, steps, n1), offset=offset),
                None if n2 is None else arena.given(named[n1:], offset=offset),
                None if n2 is None else arena.given(values.ints(-1, steps, n2), offset=offset),
            )
        )

    return Case(name, mamba_replay.conv_window_scatter, mamba_replay.conv_window_scatter_reference, make)
