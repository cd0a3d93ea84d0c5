"""Cases of the three dsa_metadata kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from jitaudit_kernels import dsa_metadata

from .arena import Arena
from .compare import Call, Case
from .values import Values


@dataclass(frozen=True)
class Shape:
    """What moves beside the batch."""

    max_len: int = 300
    topk: int = 64
    page_size: int = 16
    k_pool: int = 4
    tables: str = "both"
    dtype: torch.dtype = torch.int32
    ctx: int = 310
    """Columns of req_to_token; lengths may exceed ``max_len``, never this."""

    def __str__(self) -> str:
        table = {"both": "", "page_table_1": " table only", "real_page_table": " pages only"}[self.tables]
        return f"max_len={self.max_len} topk={self.topk} page={self.page_size} pool={self.k_pool} {self.dtype}{table}"

    def tensors(self, arena: Arena, values: Values, lens: torch.Tensor, rows: int) -> tuple[torch.Tensor | None, ...]:
        """The nine tensors that all launchers share."""
        bs = len(lens)
        pages = -(-self.max_len // self.page_size)
        return (
            arena.given(lens.to(self.dtype)),
            arena.given(values.distinct(bs + 3, bs, self.dtype)),
            arena.given(values.ints(0, 10**6, bs + 3, self.ctx), pad=(0, 7)),
            arena.blank(bs),
            arena.blank(bs + 1),
            arena.blank(rows, self.max_len, pad=(0, 5)) if self.tables != "real_page_table" else None,
            arena.blank(rows),
            arena.blank(rows + 1),
            arena.blank(rows, pages, pad=(0, 3)) if self.tables != "page_table_1" else None,
        )

    def keywords(self) -> dict[str, object]:
        return {"max_len": self.max_len, "topk": self.topk, "page_size": self.page_size, "k_pool": self.k_pool}


SHAPES = (
    Shape(),
    Shape(tables="page_table_1", page_size=64, dtype=torch.int64),
    Shape(tables="real_page_table", page_size=2, k_pool=1),
    Shape(tables="page_table_1", page_size=1, k_pool=7, topk=21),
    Shape(max_len=129, ctx=140, topk=2048, dtype=torch.int64),
    Shape(max_len=1, ctx=4, page_size=1, k_pool=3, topk=1),
)

SMALL = Shape(max_len=40, ctx=48, page_size=8)
"""For hundreds of requests: one program copies a row."""


def cases(sizes: Sequence[int]) -> Iterator[Case]:
    for number, bs in enumerate(sizes):
        shape = SMALL if bs > 100 else SHAPES[number % len(SHAPES)]
        yield _decode(bs, shape)
        yield _verify(bs, shape, next_n=1 if bs > 100 else 1 + number % 4, ctx_lens=number % 2 == 0)
        most = 1 if bs > 100 else 1 + number % 5
        yield _draft_extend(bs, shape, most, static=True, idle=number // 2 % 2, unused=number % 3)
        yield _draft_extend(bs, shape, most, static=False, idle=number % 2 * 3, unused=number % 3)
    for number, shape in enumerate(SHAPES):
        yield _decode(5, shape)
        yield _verify(5, shape, next_n=3, ctx_lens=number % 2 == 1)
        yield _draft_extend(5, shape, 3, static=False, idle=1, unused=2)


def _decode(bs: int, shape: Shape) -> Case:
    name = f"decode bs={bs} {shape}"

    def make(arena: Arena) -> Call:
        values = Values.of(name)
        lens = values.ints(0, shape.ctx, bs)
        return Call(shape.tensors(arena, values, lens, bs), shape.keywords())

    return Case(name, dsa_metadata.decode, dsa_metadata.decode_reference, make)


def _verify(bs: int, shape: Shape, *, next_n: int, ctx_lens: bool) -> Case:
    name = f"verify bs={bs} next_n={next_n} ctx_lens={ctx_lens} {shape}"

    def make(arena: Arena) -> Call:
        values = Values.of(name)
        lens = values.ints(0, max(shape.ctx - next_n, 0), bs)
        rows = bs * next_n
        return Call(
            (
                *shape.tensors(arena, values, lens, rows),
                arena.blank(rows),
                arena.blank(bs, next_n) if ctx_lens else None,
            ),
            {"next_n": next_n, **shape.keywords()},
        )

    return Case(name, dsa_metadata.verify, dsa_metadata.verify_reference, make)


def _draft_extend(bs: int, shape: Shape, most: int, *, static: bool, idle: int, unused: int) -> Case:
    """``idle`` rows are in use but no request's, as in a captured graph; ``unused`` ones only lie in the buffers."""
    name = f"draft_extend bs={bs} most={most} static={static} idle={idle} unused={unused} {shape}"

    def make(arena: Arena) -> Call:
        values = Values.of(name)
        lens = values.ints(0, shape.ctx, bs)
        extend_lens = torch.full((bs,), most) if static else values.ints(0, most, bs)
        total = int(extend_lens.sum()) + idle
        rows = total + unused
        return Call(
            (
                *shape.tensors(arena, values, lens, rows),
                arena.given(extend_lens.to(shape.dtype)),
                arena.blank(rows),
            ),
            {
                "total_len": total,
                "max_extend_len": most,
                "max_total_len": rows,
                "static_extend_len": static,
                **shape.keywords(),
            },
        )

    return Case(name, dsa_metadata.draft_extend, dsa_metadata.draft_extend_reference, make)
