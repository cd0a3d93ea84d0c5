"""Real libraries' launchers, unmodified, with no GPU: the counts that their released kernels reach."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from jitaudit.probing import Probe

pytestmark = pytest.mark.xdist_group("libraries")

COUNTS = [
    # target, sweep, kernel, cases, variants, the arguments that split it
    ("liger", "rms_norm", "_rms_norm_forward_kernel", 256, 1, ()),
    ("liger", "rope", "_triton_rope", 128, 3, ("sl",)),
    ("liger", "swiglu", "_swiglu_forward_kernel", 128, 1, ()),
    ("liger", "modulated_rms_norm", "_modulated_rms_norm_forward_kernel", 128, 128, ("rows_per_modulation",)),
    ("fla", "fused_recurrent_gdn", "fused_recurrent_gated_delta_rule_fwd_kernel", 128, 1, ()),
]


@pytest.mark.parametrize(("target", "sweep", "kernel", "cases", "variants", "split_by"), COUNTS)
def test_count(
    probe_here: Callable[..., Probe],
    target: str,
    sweep: str,
    kernel: str,
    cases: int,
    variants: int,
    split_by: tuple[str, ...],
):
    probed = probe_here("libraries")
    count = next(c for c in probed.counts if c.sweep.endswith(f"{target}:{sweep}"))
    assert count.kernel.rpartition(":")[2] == kernel
    assert (count.cases, count.launches, count.variants) == (cases, cases, variants)
    assert tuple(cause.argument for cause in count.causes) == split_by
