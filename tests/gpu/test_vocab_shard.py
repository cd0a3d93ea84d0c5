"""Sharded greedy sampling over NCCL."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.multiprocessing
from kernel_cases.shards import rank_main


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
def test_two_gpus_agree_with_argmax(tmp_path: Path) -> None:
    torch.multiprocessing.spawn(rank_main, args=(str(tmp_path / "store"), "cuda", "nccl"), nprocs=2)


def test_two_processes_on_one_gpu_agree_with_argmax(tmp_path: Path) -> None:
    torch.multiprocessing.spawn(rank_main, args=(str(tmp_path / "store"), "cuda:0", "gloo"), nprocs=2)
