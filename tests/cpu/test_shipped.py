"""The shipped kernels' counts, by the sweeps with their default axes: baseline beside floored, on cuda:90."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from jitaudit.boxes import expand
from jitaudit.model import Box
from jitaudit.probing import Probe

pytestmark = pytest.mark.xdist_group("shipped")

SIZES = {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 13, 14, 15, 16}
"""Batch sizes that a server captures graphs for."""

COUNTS = [
    # sweep, kernel, baseline, floored
    ("dsa_metadata.decode_step:sweep_decode", "decode_kernel", 512, 4),
    ("dsa_metadata.verify_step:sweep_verify", "verify_kernel", 512, 4),
    ("dsa_metadata.draft_extend_step:sweep_draft_extend", "draft_extend_kernel", 1024, 8),
    ("mamba_replay:sweep_state_indices", "state_indices_kernel", 24, 1),
    ("mamba_replay:sweep_conv_window_scatter", "conv_window_scatter_kernel", 27, 1),
    ("draft_seqlens:sweep_draft_seqlens", "draft_seqlens_kernel", 16, 4),
    ("verify_commit:sweep_verify_commit", "verify_commit_kernel", 8, 2),
    ("tree_build:sweep_tree_build", "tree_build_kernel", 16, 4),
    ("chain_accept:sweep_chain_accept", "chain_accept_kernel", 4, 4),
    ("compact_draft:sweep_compact_draft", "compact_draft_kernel", 1, 1),
    ("draft_topk:sweep_draft_topk", "draft_tile_kernel", 1, 1),
    ("draft_topk:sweep_draft_topk", "draft_row_kernel", 1, 1),
    ("vocab_shard:sweep_vocab_shard", "local_keys_kernel", 1, 1),
]

GRAPH_SIZES = [
    ("dsa_metadata.decode_step:sweep_decode", "decode_kernel", 14, 1),
    ("dsa_metadata.verify_step:sweep_verify", "verify_kernel", 14, 1),
    ("dsa_metadata.draft_extend_step:sweep_draft_extend", "draft_extend_kernel", 28, 2),
]


@pytest.fixture(scope="module")
def shipped(probe_here: Callable[..., Probe]) -> Probe:
    return probe_here("jitaudit_kernels")


@pytest.mark.parametrize(("sweep", "kernel", "baseline", "floored"), COUNTS)
def test_count(shipped: Probe, sweep: str, kernel: str, baseline: int, floored: int):
    assert reached(shipped, sweep, kernel) == {"baseline": baseline, "floored": floored}


@pytest.mark.parametrize(("sweep", "kernel", "baseline", "floored"), GRAPH_SIZES)
def test_count_over_the_sizes_of_captured_graphs(shipped: Probe, sweep: str, kernel: str, baseline: int, floored: int):
    def is_captured(box: Box) -> bool:
        return not SIZES.isdisjoint(map(int, expand(tuple(box["bs"]))))

    assert reached(shipped, sweep, kernel, is_captured) == {"baseline": baseline, "floored": floored}


def test_no_valid_request_is_a_class_of_its_own(probe_here: Callable[..., Probe]):
    probe = probe_here("jitaudit_kernels.mamba_replay", valid="0..64")
    counts = reached(probe, "mamba_replay:sweep_state_indices", "state_indices_kernel")
    assert counts == {"baseline": 29, "floored": 1}


def test_every_case_counts_and_every_kernel_is_launched(shipped: Probe):
    assert all((sweep.counted, sweep.verdict) == (sweep.cases, "pass") for sweep in shipped.manifest.sweeps)
    assert {finding.code for finding in shipped.findings} == {"JA008"}


def test_only_baseline_grows_with_the_batch(shipped: Probe):
    linear = {(count.kernel.rpartition(":")[2], count.group) for count in shipped.counts if count.growth == "linear"}
    assert linear == {(f"{kernel}_kernel", "baseline") for kernel in ("decode", "verify", "draft_extend")}


def reached(
    probe: Probe, sweep: str, kernel: str, admits: Callable[[Box], bool] = lambda box: True
) -> dict[str | None, int]:
    """By group: the variants of `kernel` that the cases of `sweep` reach."""
    return {
        found.group: sum(
            any(box["sweep"] == f"jitaudit_kernels.{sweep}" and admits(box) for box in variant.cases)
            for variant in found.variants
        )
        for found in probe.manifest.kernels
        if found.id.endswith(f":{kernel}")
    }
