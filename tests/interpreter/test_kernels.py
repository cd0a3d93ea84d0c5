"""Every kernel, in both policies, equals its reference bit for bit and writes nowhere else."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from kernel_cases.compare import Case, compare
from kernel_cases.registry import INTERPRETER_SIZES, all_cases

CASES = all_cases(INTERPRETER_SIZES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_equals_reference(case: Case, record_property: Callable[[str, object], None]) -> None:
    record_property("buffers", compare(case, torch.device("cpu")))
