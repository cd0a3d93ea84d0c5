"""Cases of tree_build: trees of every shape and width, both masks, the prefix filled and left."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import torch

from jitaudit_kernels import tree_build

from .arena import Arena
from .compare import Call, Case
from .trees import Kind, draw_tree
from .values import Values

KINDS: tuple[Kind, ...] = ("random", "chain", "star")
MASKS: tuple[tuple[tree_build.MaskMode, bool], ...] = (("full", True), ("full", False), ("qlen", True))


def cases(sizes: Sequence[int]) -> Iterator[Case]:
    for number, bs in enumerate(sizes):
        dtype = (torch.int32, torch.int64)[number % 2]
        yield _case(bs, 1 + number % 8, KINDS[number % 3], MASKS[number // 2 % 3], dtype=dtype)
        if bs <= 65:
            yield _case(bs, 4, "random", MASKS[number % 3], dtype=dtype)
    for width in range(1, 9):
        for number, kind in enumerate(KINDS):
            yield _case(5, width, kind, MASKS[(width + number) % 3], bound=width % 2 * 10)
    yield _case(3, 33, "random", ("full", False))
    yield _case(4, 5, "random", ("full", True), bound=None)


def _case(
    bs: int,
    width: int,
    kind: Kind,
    mask: tuple[tree_build.MaskMode, bool],
    *,
    dtype: torch.dtype = torch.int32,
    bound: int | None = 0,
) -> Case:
    """``bound`` is how far the given sum of lengths exceeds the real one; None gives no sum."""
    name = f"tree_build bs={bs} width={width} {kind} mask={mask} {dtype} bound={bound}"
    topk, depth = (width, 2) if kind == "star" else (2, width + 1)

    def make(arena: Arena) -> Call:
        values, rng = Values.of(name), random.Random(name)
        trees = [draw_tree(rng, kind, width, topk, depth) for _ in range(bs)]
        seq_lens = values.ints(0, 30, bs, dtype=dtype)
        parents = torch.tensor([tree.parent_list for tree in trees], dtype=torch.int64)
        selected = torch.tensor([tree.selected for tree in trees], dtype=torch.int64)
        return Call(
            (
                arena.given(parents.view(bs, topk * (depth - 1) + 1), pad=(0, width % 2)),
                arena.given(selected.view(bs, width - 1), pad=(0, 1)),
                arena.given(seq_lens),
            ),
            {
                "topk": topk,
                "depth": depth,
                "num_draft_tokens": width,
                "mask_mode": mask[0],
                "fill_prefix": mask[1],
                "seq_lens_sum": None if bound is None else int(seq_lens.sum()) + bound,
            },
        )

    return Case(name, tree_build.build_tree, tree_build.build_tree_reference, make)
