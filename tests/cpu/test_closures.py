"""Kernels that a factory makes: what each captured is part of what Triton compiles, and so of which kernel it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from jitaudit.probing import probe
from jitaudit.sweeping import Narrowing

pytestmark = pytest.mark.matrix

FACTORY = """
import torch, triton, triton.language as tl, jitaudit

@triton.jit
def doubled(x):
    return x * 2

@triton.jit
def negated(x):
    return -x

def make(factor, apply):
    FACTOR = tl.constexpr(factor)

    @triton.jit
    def made_kernel(out_ptr, n):
        tl.store(out_ptr, apply(n) + FACTOR)

    return made_kernel

@jitaudit.sweep(factor=[3, 5], apply=[doubled, negated], n=[2, 3, 16])
def made(factor, apply, n):
    make(factor, apply)[(1,)](torch.empty(1, device="cuda"), n)

three = make(3, doubled)
five = make(5, doubled)

@jitaudit.sweep(n=[3])
def held(n):
    three[(1,)](torch.empty(1, device="cuda"), n)
    five[(1,)](torch.empty(1, device="cuda"), n)
"""


@pytest.fixture
def factory(tmp_path: Path) -> str:
    (tmp_path / "factory.py").write_text(FACTORY)
    return str(tmp_path / "factory.py")


def test_each_captured_value_is_a_kernel_of_its_own(factory: str) -> None:
    manifest = probe([f"{factory}::made"], "cuda:90", Narrowing(), lambda *_: None).manifest
    assert {kernel.id.partition(":")[2]: len(kernel.variants) for kernel in manifest.kernels} == {
        f"make.<locals>.made_kernel(FACTOR={factor}, apply={apply})": 2
        for factor in (3, 5)
        for apply in ("doubled", "negated")
    }


def test_each_is_found_again_where_its_module_holds_it(factory: str) -> None:
    manifest = probe([f"{factory}::held"], "cuda:90", Narrowing(), lambda *_: None).manifest
    assert {kernel.object for kernel in manifest.kernels} == {"three", "five"}
