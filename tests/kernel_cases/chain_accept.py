"""Cases of chain_accept: trees of every shape, accepted to every depth, under every set of flags."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import torch

from jitaudit_kernels import chain_accept

from .arena import Arena
from .compare import Call, Case
from .trees import Kind, draw_tree, link_tensors
from .values import Values

FLAGS: tuple[dict[str, bool | int], ...] = (
    {"verify": True, "finish": True},
    {"verify": False, "finish": True},
    {"verify": False, "finish": False, "simulate": 1},
    {"verify": False, "finish": False, "simulate": 1, "real_draft_tokens": True},
    {"verify": True, "finish": False},
    {"verify": True, "finish": True, "simulate": 2, "real_draft_tokens": True},
    {"verify": False, "finish": True, "simulate": 3},
)

KINDS: tuple[Kind, ...] = ("random", "chain", "star")

TOKENS = {"none": (5, 9), "some": (0, 1), "all": (7, 7)}
"""Draft tokens are 0 and 1, or all 7: what the target predicts decides how much is accepted."""


def cases(sizes: Sequence[int]) -> Iterator[Case]:
    accepted = tuple(TOKENS)
    for number, bs in enumerate(sizes):
        yield _case(bs, 1 + number % 8, KINDS[number % 3], accepted[number // 3 % 3], FLAGS[number % len(FLAGS)])
        if bs <= 65:
            yield _case(bs, 4, "random", "some", FLAGS[0])
    for number, flags in enumerate(FLAGS):
        for width in (3, 5, 8):
            yield _case(6, width, KINDS[(number + width) % 3], accepted[number % 3], flags, dtype=torch.int64)
    for width in range(1, 9):
        for kind in KINDS:
            yield _case(7, width, kind, accepted[width % 3], FLAGS[0])
    yield _case(6, 6, "random", "some", FLAGS[0], scattered=True)


def _case(
    bs: int,
    width: int,
    kind: Kind,
    accepted: str,
    flags: dict[str, bool | int],
    *,
    dtype: torch.dtype = torch.int32,
    scattered: bool = False,
) -> Case:
    """``scattered`` numbers the nodes of the whole batch at random, as ``retrieve_index`` allows."""
    flags = {name: min(value, width) if name == "simulate" else value for name, value in flags.items()}
    name = f"chain_accept bs={bs} width={width} {kind} accepted={accepted} {flags} {dtype} scattered={scattered}"

    def make(arena: Arena) -> Call:
        values, rng = Values.of(name), random.Random(name)
        topk = max(width - 1, 1)
        next_token, next_sibling = link_tensors(
            [draw_tree(rng, kind, width, topk, depth=width) for _ in range(bs)], topk, width
        )
        nodes = values.distinct(bs * width, bs * width) if scattered else torch.arange(bs * width)
        candidates = torch.full((bs, width), 7) if accepted == "all" else values.ints(0, 1, bs, width)
        given = torch.where(values.ints(0, 1, bs, width) == 0, -1, values.ints(0, 99, bs, width))
        return Call(
            (
                arena.given(candidates.to(dtype), pad=(0, 1)),
                arena.given(nodes.view(bs, width)),
                arena.given(next_token, pad=(0, 3)),
                arena.given(next_sibling),
                arena.given(values.ints(*TOKENS[accepted], bs * width, dtype=dtype)),
                arena.blank(bs * width),
                arena.blank(bs, width) if flags["verify"] or "simulate" in flags else arena.given(given),
                arena.blank(bs),
                arena.blank(bs),
            ),
            flags,
        )

    return Case(name, chain_accept.chain_accept, chain_accept.chain_accept_reference, make)
