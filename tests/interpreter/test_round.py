"""A decoding round equals the round on references, round after round, with batches of every size."""

from __future__ import annotations

import pytest
import torch
from kernel_cases.rounds import BATCH, assert_same_rounds, draw_batches, start_round, step

from jitaudit_kernels.policy import POLICIES, PolicyName
from jitaudit_kernels.round import REFERENCES, DecodeRound
from jitaudit_kernels.round_buffers import RoundShape


@pytest.mark.parametrize("policy", POLICIES)
def test_equals_the_round_on_references(policy: PolicyName) -> None:
    batches = draw_batches(policy, 50)
    assert {len(batch.pool_rows) for batch in batches} == set(range(1, BATCH + 1))
    assert_same_rounds(batches, start_round("cpu", policy=policy), start_round("cpu", ops=REFERENCES))


def test_some_drafts_are_accepted_and_some_are_not() -> None:
    reference = start_round("cpu", ops=REFERENCES)
    accepted = {length for batch in draw_batches("lengths", 50) for length in step(reference, batch)}
    assert accepted == {1, 2, 3}, (
        "the root alone, or with one or two levels of the draft, which is all that W = 4 takes"
    )


def test_async_readback_gives_what_sync_gives() -> None:
    batches = draw_batches("readback", 8)
    sync, asynchronous = (start_round("cpu", ops=REFERENCES, readback=readback) for readback in ("sync", "async"))
    assert [step(sync, batch) for batch in batches] == [step(asynchronous, batch) for batch in batches]


def test_lengths_outlive_the_next_round() -> None:
    first, second = draw_batches("two rounds", 2)
    expected = start_round("cpu", ops=REFERENCES)
    one = start_round("cpu", ops=REFERENCES, readback="async")
    waits = []
    for batch in (first, second):
        one.load(batch.pool_rows, batch.draft_logits, batch.target_predict, batch.verify_loc)
        waits.append(one.step(len(batch.pool_rows)))
    assert [lens.wait() for lens in waits] == [step(expected, first), step(expected, second)]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("bs", {"bs": 0}),
        ("W", {"W": 0}),
        ("W", {"W": 8}),
        ("W", {"shape": RoundShape(draft_len=3)}),
        ("depth", {"depth": 0}),
        ("bs", {"bs": 5, "shape": RoundShape(pool=4)}),
        ("readback", {"readback": "later"}),
    ],
)
def test_bad_arguments_are_named(name: str, arguments: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=rf"^{name} must be"):
        DecodeRound(**{"bs": 2, "W": 4, "depth": 3, "device": "cpu", **arguments})


def test_a_batch_is_not_larger_than_the_buffers() -> None:
    one = start_round("cpu", ops=REFERENCES)
    with pytest.raises(ValueError, match=rf"^n must be at most {BATCH}, got {BATCH + 1}$"):
        one.launch(BATCH + 1)
    assert torch.equal(one.buffers.accept_lens, torch.zeros(BATCH, dtype=torch.int32))
