"""Blocks, the two policies, and which one a launch takes."""

from __future__ import annotations

import subprocess
import sys

import pytest
import triton.language as tl

from jitaudit_kernels.blocks import floored_block, next_power_of_2
from jitaudit_kernels.policy import Policy, batch_block, policies, resolve_policy


@pytest.mark.parametrize(
    ("n", "floor", "block"), [(0, 64, 64), (1, 1, 1), (64, 64, 64), (65, 64, 128), (513, 512, 1024)]
)
def test_floored_block(n: int, floor: int, block: int):
    assert floored_block(n, floor) == block


@pytest.mark.parametrize("floor", [0, -64, 3, 96])
def test_a_floor_is_a_power_of_two(floor: int):
    with pytest.raises(ValueError, match="floor"):
        floored_block(1, floor)


def test_next_power_of_2_is_the_smallest():
    for n in range(-2, 1100):
        block = next_power_of_2(n)
        assert block & (block - 1) == 0
        assert block >= max(n, 1) > block // 2


def test_only_floored_has_a_floor():
    assert (batch_block(3, 64, "baseline"), batch_block(3, 64, "floored")) == (4, 64)


@policies(baseline=Policy(constexpr=("bs",)), floored=Policy(do_not_specialize=("bs",)))
def bounded_kernel(out_ptr, bs, BLOCK: tl.constexpr):
    tl.store(out_ptr + tl.arange(0, BLOCK), 1, mask=tl.arange(0, BLOCK) < bs)


def test_one_source_makes_two_kernels():
    baseline, floored = (bounded_kernel[policy].params[1] for policy in ("baseline", "floored"))
    assert (baseline.is_constexpr, baseline.do_not_specialize) == (True, False)
    assert (floored.is_constexpr, floored.do_not_specialize) == (False, True)
    assert bounded_kernel.baseline.cache_key == bounded_kernel.floored.cache_key


def test_the_nearest_switch_wins(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("JITAUDIT_POLICY", raising=False)
    monkeypatch.delenv("JITAUDIT_POLICY_TREE_BUILD", raising=False)
    assert resolve_policy(None, "tree_build") == "floored"
    monkeypatch.setenv("JITAUDIT_POLICY", "baseline")
    assert resolve_policy(None, "tree_build") == "baseline"
    monkeypatch.setenv("JITAUDIT_POLICY_TREE_BUILD", "floored")
    assert resolve_policy(None, "tree_build") == "floored"
    assert resolve_policy(None, "draft_topk") == "baseline"
    assert resolve_policy("baseline", "tree_build") == "baseline"


@pytest.mark.parametrize("variable", ["JITAUDIT_POLICY", "JITAUDIT_POLICY_TREE_BUILD"])
def test_an_unknown_policy_names_where_it_was_set(monkeypatch: pytest.MonkeyPatch, variable: str):
    monkeypatch.setenv(variable, "fast")
    with pytest.raises(ValueError, match=rf"^{variable} must be one of baseline, floored, got 'fast'$"):
        resolve_policy(None, "tree_build")


def test_an_unknown_policy_argument_is_refused():
    with pytest.raises(ValueError, match=r"^policy must be one of"):
        resolve_policy("fast", "tree_build")


def test_importing_the_package_loads_nothing():
    code = "import sys, jitaudit_kernels; sys.exit(bool({'torch', 'triton'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_an_unknown_module_is_an_attribute_error():
    import jitaudit_kernels

    with pytest.raises(AttributeError, match="has no attribute 'decode_metadata'"):
        _ = jitaudit_kernels.decode_metadata
