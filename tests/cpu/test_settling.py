"""Real launches of what was written to be counted: zeroed inputs, and launches left out."""

from __future__ import annotations

import torch

from jitaudit.jit.settling import without_launches, zeroed


def test_fresh_tensors_are_zero() -> None:
    before = torch.empty
    with zeroed():
        like = torch.ones(3)
        made = [
            torch.empty(1 << 16, dtype=torch.int64),
            torch.empty(4, requires_grad=True),
            torch.empty_like(like),
            torch.empty_strided((2, 2), (1, 2)),
            like.new_empty(5),
            torch.nn.Linear(2, 2).weight.new_empty(3),
        ]
        assert all(not tensor.any() for tensor in made)
        assert made[1].requires_grad
        assert made[1].is_leaf
    assert torch.empty is before


def test_no_launch_reaches_triton() -> None:
    import warm_kernels

    with without_launches():
        assert warm_kernels.copy_kernel[(1,)](torch.empty(1), 3) is None
        assert warm_kernels.tuned_kernel[(1,)](torch.empty(1), 3) is None
    assert not any(warm_kernels.copy_kernel.device_caches.values())
