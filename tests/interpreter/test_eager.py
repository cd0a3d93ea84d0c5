"""The eager chains that the benchmarks measure compute what the kernels do."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from kernel_cases import chain_accept, compact_draft, dsa_metadata, mamba_replay, tree_build
from kernel_cases.compare import Case, compare

from benchmarks.gpu import eager

SIZES = (1, 5, 17)


def chained_cases() -> list[Case]:
    """The cases that an eager chain covers, with it in the launcher's place."""
    modules = (chain_accept, compact_draft, dsa_metadata, mamba_replay, tree_build)
    return [
        replace(case, launcher=getattr(eager, case.launcher.__name__))
        for module in modules
        for case in module.cases(SIZES)
        if hasattr(eager, case.launcher.__name__) and not any(part in case.name for part in NOT_CHAINED)
    ]


NOT_CHAINED = ("idle=1", "idle=3", "simulate", "'finish': False", "'verify': False")
"""Rows of no request, simulated acceptance, parts of the walk: no eager chain did these."""


@pytest.mark.parametrize("case", chained_cases(), ids=lambda case: case.name)
def test_equals_reference(case: Case) -> None:
    compare(case, torch.device("cpu"))
