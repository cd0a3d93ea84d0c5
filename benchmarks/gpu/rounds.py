"""Whole rounds: the tail captured in a CUDA graph against eager, and accepted lengths read back in two ways."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from statistics import median

import torch

from benchmarks.gpu.measure import cost
from benchmarks.gpu.tables import Prefix, Rate
from benchmarks.gpu.workloads import W, prefix_workload, started_round
from jitaudit_kernels.round import AcceptedLens, DecodeRound

BATCHES = (64, 128)
CONTEXTS = (1024, 4096, 8192, 16384, 32768)
STEPS, BLOCKS = 50, 15

MODEL_CYCLES = 4_000_000
"""A spin of about 2 ms for the models that a round here leaves out."""


def rates() -> Iterator[Rate]:
    """Each batch size, tail and readback, without and with the models' time."""
    for bs in BATCHES:
        for tail in ("eager", "captured"):
            for readback in ("sync", "async"):
                served = started_round(bs, "floored", readback)
                if tail == "captured":
                    served.launch(bs)
                    served.capture_tail(bs)
                for model in (False, True):
                    yield Rate(bs, tail, readback, model, round(_rate(served, bs, model), 1))


def _rate(served: DecodeRound, bs: int, model: bool) -> float:
    starts = served.buffers.pool_seq_lens.clone()
    served.step(bs).wait()
    seconds = []
    for _ in range(BLOCKS):
        served.buffers.pool_seq_lens.copy_(starts)  # each round adds a token
        torch.cuda.synchronize()
        seconds.append(_seconds(served, bs, model))
    return STEPS / median(seconds)


def _seconds(served: DecodeRound, bs: int, model: bool) -> float:
    """A block of rounds, the lengths of each read after the next was launched where that can be."""
    begun = time.perf_counter()
    before: AcceptedLens | None = None
    for _ in range(STEPS):
        if model:
            torch.cuda._sleep(MODEL_CYCLES)
        accepted = served.step(bs)
        if before is not None:
            before.wait()
        before = accepted
    assert before is not None
    before.wait()
    torch.cuda.synchronize()
    return time.perf_counter() - begun


def prefixes(bs: int = 128) -> Iterator[Prefix]:
    """The mask's prefix filled and left, against the context's length."""
    for context in CONTEXTS:
        filled, left = (prefix_workload(bs, context, fill) for fill in (True, False))
        yield Prefix(
            rows=bs * W,
            context=context,
            bytes=bs * W * context,
            filled=cost(_floored(filled.launch)),
            left=cost(_floored(left.launch)),
        )


def _floored(launch: Callable[..., object]) -> Callable[[], object]:
    return lambda: launch(policy="floored")
