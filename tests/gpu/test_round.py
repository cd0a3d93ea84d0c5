"""A decoding round on the GPU equals the round on references: eager, captured, and however its lengths come back."""

from __future__ import annotations

import pytest
import triton
from kernel_cases.rounds import BATCH, assert_same_rounds, draw_batches, start_round, step

from jitaudit_kernels.policy import POLICIES, PolicyName
from jitaudit_kernels.round import REFERENCES, DecodeRound, Readback


def warmed(policy: PolicyName, readback: Readback = "sync") -> DecodeRound:
    """A round that has run once for every batch size, and then been started afresh in the same buffers."""
    one = start_round("cuda", policy=policy, readback=readback)
    fresh = start_round("cuda", policy=policy, readback=readback)
    for n in range(1, BATCH + 1):
        one.launch(n)
    for group in ("buffers", "verify_metadata", "extend_metadata"):
        for name, buffer in vars(getattr(one, group)).items():
            buffer.copy_(getattr(getattr(fresh, group), name))
    return one


@pytest.mark.parametrize("readback", ["sync", "async"])
@pytest.mark.parametrize("policy", POLICIES)
def test_eager(policy: PolicyName, readback: Readback) -> None:
    one = start_round("cuda", policy=policy, readback=readback)
    assert_same_rounds(draw_batches(policy, 60), one, start_round("cpu", ops=REFERENCES))


@pytest.mark.parametrize("readback", ["sync", "async"])
@pytest.mark.parametrize("policy", POLICIES)
def test_captured_tail(policy: PolicyName, readback: Readback) -> None:
    one = warmed(policy, readback)
    for n in range(1, BATCH + 1):
        one.capture_tail(n)
    assert_same_rounds(draw_batches(policy, 60), one, start_round("cpu", ops=REFERENCES))


@pytest.mark.parametrize("policy", POLICIES)
def test_capturing_a_warmed_round_compiles_nothing(policy: PolicyName, monkeypatch: pytest.MonkeyPatch) -> None:
    one = warmed(policy)
    compiled: list[str] = []
    monkeypatch.setattr(
        triton.knobs.compilation, "listener", lambda *, src, **rest: compiled.append(src.fn.__qualname__)
    )
    for n in range(1, BATCH + 1):
        one.capture_tail(n)
    assert compiled == []


def test_lengths_outlive_the_next_round() -> None:
    batches = draw_batches("two rounds", 2)
    expected, one = start_round("cpu", ops=REFERENCES), start_round("cuda", readback="async")
    waits = []
    for batch in batches:
        one.load(batch.pool_rows, batch.draft_logits, batch.target_predict, batch.verify_loc)
        waits.append(one.step(len(batch.pool_rows)))
    assert [lens.wait() for lens in waits] == [step(expected, batch) for batch in batches]
