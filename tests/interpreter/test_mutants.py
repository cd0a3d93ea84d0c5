"""The comparison with sentinels fails on every kernel that lost a mask or half a block."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from mutants import PACKAGE, Mutant, all_mutants, sample

MUTANTS = all_mutants()


def judge(folder: Path, mutant: Mutant | None, module: str) -> subprocess.CompletedProcess[str]:
    """Run a module's cases on a copy of the package that holds the mutant."""
    copy = folder / "jitaudit_kernels"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    if mutant is not None:
        (copy / mutant.path).write_text(mutant.source())
    path = os.pathsep.join([str(folder), str(Path(__file__).parents[1])])
    return subprocess.run(
        [sys.executable, "-m", "kernel_cases.run", module, str(copy)],
        env={**os.environ, "PYTHONPATH": path, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("mutant", sample(MUTANTS), ids=str)
def test_a_sample_of_mutants_is_caught(mutant: Mutant, tmp_path: Path) -> None:
    assert judge(tmp_path, mutant, mutant.module).returncode != 0


@pytest.mark.nightly
@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_every_mutant_is_caught(mutant: Mutant, tmp_path: Path) -> None:
    assert judge(tmp_path, mutant, mutant.module).returncode != 0


def test_an_unchanged_copy_survives(tmp_path: Path) -> None:
    judged = judge(tmp_path, None, "draft_seqlens")
    assert judged.returncode == 0, judged.stderr


def test_every_kernel_module_has_mutants() -> None:
    assert {mutant.module for mutant in MUTANTS} >= {
        "chain_accept",
        "compact_draft",
        "draft_seqlens",
        "draft_topk",
        "dsa_metadata",
        "mamba_replay",
        "tree_build",
        "verify_commit",
        "vocab_shard",
    }
