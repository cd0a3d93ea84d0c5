"""Draft trees in every shape: random, chains, stars."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Literal

import torch

Kind = Literal["random", "chain", "star"]


@dataclass(frozen=True)
class DraftTree:
    """A tree as the draft describes it: the selected values, and the value that each block of children hangs on."""

    selected: list[int]
    parent_list: list[int]

    def links(self, topk: int) -> tuple[list[int], list[int]]:
        """``next_token`` and ``next_sibling`` of each node, in the order of the nodes."""
        parents = [
            0 if value < topk else 1 + self.selected.index(self.parent_list[value // topk]) for value in self.selected
        ]
        width = len(self.selected) + 1
        children = [[node for node in range(1, width) if parents[node - 1] == above] for above in range(width)]
        next_token, next_sibling = [-1] * width, [-1] * width
        for above, below in enumerate(children):
            for one, following in zip([above, *below], [*below, -1], strict=True):
                (next_token if one == above else next_sibling)[one] = following
        return next_token, next_sibling


def draw_tree(rng: random.Random, kind: Kind, width: int, topk: int, depth: int) -> DraftTree:
    """A tree of ``width`` nodes with its root, which must fit ``topk`` and ``depth``; its nodes are in random order."""
    parent_list = [-1] * (topk * (depth - 1) + 1)
    free = [(1, value) for value in range(topk)]
    selected: list[int] = []
    unused_blocks = list(range(1, len(parent_list)))
    while len(selected) < width - 1:
        level, value = max(free) if kind == "chain" else min(free) if kind == "star" else rng.choice(free)
        free.remove((level, value))
        selected.append(value)
        if level < depth and unused_blocks:
            block = unused_blocks.pop(rng.randrange(len(unused_blocks)))
            parent_list[block] = value
            free += [(level + 1, block * topk + child) for child in range(topk)]
    rng.shuffle(selected)
    return DraftTree(selected, parent_list)


def link_tensors(trees: list[DraftTree], topk: int, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    """``next_token`` and ``next_sibling`` of a batch, [bs, width] i64."""
    links = [tree.links(topk) for tree in trees]
    next_token, next_sibling = (torch.tensor([link[side] for link in links], dtype=torch.int64) for side in (0, 1))
    return next_token.view(-1, width), next_sibling.view(-1, width)
