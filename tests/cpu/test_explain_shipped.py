"""On the shipped kernels the plan for the baseline names what the floored policy changes, found by the tool."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from jitaudit.explaining import explain_manifest
from jitaudit.judging.remedies import Remedies
from jitaudit.model import Kernel
from jitaudit.probing import Probe

pytestmark = pytest.mark.xdist_group("shipped")

SWEEPS = {
    "dsa_metadata.decode_step:sweep_decode": {},
    "dsa_metadata.verify_step:sweep_verify": {},
    "dsa_metadata.draft_extend_step:sweep_draft_extend": {},
    "mamba_replay:sweep_state_indices": {},
    "mamba_replay:sweep_conv_window_scatter": {},
    "draft_seqlens:sweep_draft_seqlens": {"first_offset": "0..4"},
    "verify_commit:sweep_verify_commit": {},
    "tree_build:sweep_tree_build": {},
}
"""Every kernel that the floored policy changes, over axes that move all of what it changes."""

CONTROLS = (
    "chain_accept:sweep_chain_accept", "compact_draft:sweep_compact_draft", "draft_topk:sweep_draft_topk",
    "vocab_shard:sweep_vocab_shard",
)  # fmt: skip


def changed_by_hand(baseline: Kernel, floored: Kernel) -> set[str]:
    """The arguments that the floored policy lists, or whose constexprs it floors."""
    policies = {parameter.name: parameter.policy for parameter in baseline.parameters}
    listed = {p.name for p in floored.parameters if p.policy != policies[p.name]}
    blocks = {
        p.name
        for p in floored.parameters
        if p.policy == "constexpr" and values(baseline, p.name) != values(floored, p.name)
    }
    return listed | blocks


def values(kernel: Kernel, name: str) -> set[str]:
    return {variant.key.arguments[name] for variant in kernel.variants}


@pytest.mark.parametrize("sweep", SWEEPS)
def test_the_plan_is_the_floored_policy(sweep: str, probe_here: Callable[..., Probe]):
    manifest = probe_here(f"jitaudit_kernels.{sweep}", **SWEEPS[sweep]).manifest
    baseline, floored = manifest.kernels
    assert (baseline.group, floored.group) == ("baseline", "floored")
    one = next(one for one in explain_manifest(manifest).kernels if one.group == "baseline")
    assert {step.offer.remedy.argument for step in one.plan} == changed_by_hand(baseline, floored)
    assert one.plan[-1].count == one.intended
    assert one.intended <= len(floored.variants)
    assert one.unmended == ()


@pytest.mark.parametrize("sweep", SWEEPS)
def test_nothing_but_a_larger_floor_is_left_of_the_floored_policy(sweep: str, probe_here: Callable[..., Probe]):
    manifest = probe_here(f"jitaudit_kernels.{sweep}", **SWEEPS[sweep]).manifest
    floored = Remedies(manifest.kernels[1], manifest.sweeps)
    assert {remedy.kind for remedy in floored.all} <= {"floor"}


@pytest.mark.parametrize("sweep", CONTROLS)
def test_negative_controls_need_nothing(sweep: str, probe_here: Callable[..., Probe]):
    explanation = explain_manifest(probe_here(f"jitaudit_kernels.{sweep}").manifest)
    assert explanation.kernels
    for one in explanation.kernels:
        assert (one.plan, one.unmended, one.variants) == ((), (), one.intended)
