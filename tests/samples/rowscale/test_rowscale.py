"""What the package promises about its variants, with jitaudit's pytest plugin."""

import pytest
import torch
from rowscale import gather_rows, scale_rows


def test_the_batch_is_not_in_the_key(jit_variants):
    with jit_variants() as seen:
        for rows in range(1, 33):
            scale_rows(torch.empty(rows, 64, device="cuda"), torch.empty(rows, device="cuda"))
    assert seen.count("rowscale.kernels:scale_kernel") == 1


@pytest.mark.jit_budget(kernel="rowscale.kernels:gather_kernel", max=1)
def test_gather():
    for rows in (1, 16, 33):
        index = torch.empty(rows, dtype=torch.int32, device="cuda")
        gather_rows(torch.empty(rows, 64, device="cuda"), torch.empty(1024, 64, device="cuda"), index)
