"""Sharded greedy sampling gives torch.argmax of the gathered row."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import torch.multiprocessing
from kernel_cases.shards import hard_rows, rank_main

from jitaudit_kernels.vocab_shard import SamplingRequest, local_keys, requires_full_logits, winning_tokens


def test_two_ranks_agree_with_argmax(tmp_path: Path) -> None:
    torch.multiprocessing.spawn(rank_main, args=(str(tmp_path / "store"), "cpu", "gloo"), nprocs=2)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_one_rank_is_the_whole_vocabulary(dtype: torch.dtype) -> None:
    rows = hard_rows(dtype)
    assert torch.equal(winning_tokens(local_keys(rows, 0)), rows.argmax(1))


def test_greedy_requests_need_no_logits() -> None:
    assert not requires_full_logits(SamplingRequest())
    assert not requires_full_logits(
        SimpleNamespace(prompt="no sampling asked", temperature=None, logit_bias={}, grammar="")
    )


@pytest.mark.parametrize(
    "asked",
    [
        {"temperature": 0.7},
        {"presence_penalty": 0.5},
        {"frequency_penalty": -0.5},
        {"repetition_penalty": 1.1},
        {"min_new_tokens": 4},
        {"logit_bias": True},
        {"grammar": True},
        {"logprobs": 0},
        {"logprobs": 5},
    ],
)
def test_what_needs_the_logits_takes_the_full_path(asked: dict[str, object]) -> None:
    assert requires_full_logits(SamplingRequest(**asked))
    assert requires_full_logits(SimpleNamespace(**asked))


def test_keys_are_checked() -> None:
    with pytest.raises(ValueError, match=r"^keys must be torch.int64"):
        winning_tokens(torch.zeros(3, dtype=torch.int32))
