"""Random decoding rounds with batches of every size, and the comparison of a round's whole state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import torch

from jitaudit_kernels.round import DecodeRound
from jitaudit_kernels.round_buffers import RoundShape

from .values import Values

SHAPE = RoundShape(
    topk=2,
    vocabulary=4,
    pool=9,
    max_len=250,
    draft_len=28,
    dsa_topk=16,
    page_size=16,
    track_interval=5,
    layers=2,
    dim=3,
)
"""Small enough for the interpreter; with four tokens, what is drafted is accepted about every other time."""

WIDTH, DEPTH, BATCH = 4, 3, 5


@dataclass(frozen=True)
class Batch:
    """What one round is given."""

    pool_rows: torch.Tensor
    draft_logits: torch.Tensor
    target_predict: torch.Tensor
    verify_loc: torch.Tensor


def draw_batches(name: str, count: int) -> list[Batch]:
    """``count`` batches of 1 to ``BATCH`` requests, each request in its own pool row."""
    values = Values.of(name)
    batches = []
    for _ in range(count):
        n = int(values.ints(1, BATCH, 1))
        logits = [values.distinct(SHAPE.vocabulary, SHAPE.vocabulary).float() for _ in range(n * DEPTH)]
        batches.append(
            Batch(
                pool_rows=values.distinct(SHAPE.pool, n),
                draft_logits=torch.stack(logits).view(n, DEPTH, SHAPE.vocabulary),
                target_predict=values.ints(0, SHAPE.vocabulary - 1, n * WIDTH),
                verify_loc=values.ints(0, 10**6, n, WIDTH),
            )
        )
    return batches


def start_round(device: str, **options: object) -> DecodeRound:
    """A round whose pool holds requests of some tokens already."""
    started = DecodeRound(BATCH, WIDTH, DEPTH, shape=SHAPE, device=device, **options)
    values = Values.of("start")
    buffers = started.buffers
    buffers.pool_seq_lens.copy_(values.ints(1, 40, SHAPE.pool))
    buffers.pool_tokens.copy_(values.ints(0, SHAPE.vocabulary - 1, SHAPE.pool))
    buffers.req_to_token.copy_(values.ints(0, 10**6, SHAPE.pool, SHAPE.max_len))
    buffers.mapping.copy_(values.distinct(SHAPE.pool, SHAPE.pool))
    buffers.conv_steps.copy_(values.ints(0, 100, *buffers.conv_steps.shape))
    return started


def step(one: DecodeRound, batch: Batch) -> list[int]:
    """Load a batch, do its round and wait for what was accepted."""
    one.load(batch.pool_rows, batch.draft_logits, batch.target_predict, batch.verify_loc)
    return one.step(len(batch.pool_rows)).wait()


def state(one: DecodeRound) -> dict[str, torch.Tensor]:
    """Every buffer of a round, on the CPU."""
    return {
        f"{name}.{field.name}": getattr(group, field.name).cpu()
        for name, group in vars(one).items()
        if name in ("buffers", "verify_metadata", "extend_metadata")
        for field in fields(group)
    }


def assert_same_rounds(batches: Sequence[Batch], one: DecodeRound, reference: DecodeRound) -> None:
    """Both do every round alike: what they accept, and every element of every buffer."""
    for number, batch in enumerate(batches):
        assert step(one, batch) == step(reference, batch), f"round {number}"
        expected = state(reference)
        for name, buffer in state(one).items():
            assert torch.equal(buffer, expected[name]), f"round {number} of {len(batch.pool_rows)}: {name}"
