"""The plan for real libraries' kernels, unmodified: the remedy is named, confirmed by a compile, and priced."""

from __future__ import annotations

from pathlib import Path

import pytest

from jitaudit.explaining import Question, explain
from jitaudit.model import Remedy
from jitaudit.sweeping import Narrowing

LAUNCHERS = Path(__file__).parents[1] / "launchers"

UNLIST = "do_not_specialize"


@pytest.mark.parametrize(
    ("sweep", "axis", "kernel", "before", "culprit", "after"),
    [
        ("liger.py::modulated_rms_norm", "tokens", "_modulated_rms_norm_forward_kernel", 24, "rows_per_modulation", 1),
        ("liger_losses.py::grpo_loss", "length", "_grpo_loss_fwd_kernel", 24, "L", 3),
        ("liger.py::neighborhood_attention", "length", "_neighborhood_mask_kernel", 24, "seq_len", 6),
        ("fla_modules.py::rotary", "T", "rotary_embedding_kernel", 24 + 14, "TR", 15),
        ("fla_modules.py::fused_kl_div", "N", "kl_div_kernel", 24 + 15, "N", 2),
    ],
)
def test_the_plan_for_a_kernel_that_grows(sweep: str, axis: str, kernel: str, before: int, culprit: str, after: int):
    narrowing = Narrowing(axes={axis: "1..24"}, kernels=(kernel,))
    question = Question((f"{LAUNCHERS}/{sweep}",), narrowing=narrowing, compile=True)
    explanation = explain(question, lambda *progress: None)
    assert explanation.notes == ()
    (one,) = explanation.kernels
    assert (one.variants, one.growth) == (before, "linear")
    first = one.plan[0]
    assert (first.offer.remedy, first.count) == (Remedy("runtime", culprit, UNLIST), after)
    assert [(step.confirmed, step.offer.failure) for step in one.plan] == [(step.count, None) for step in one.plan]
    assert one.plan[-1].count == one.intended
    assert first.offer.price is not None
    assert first.offer.price.verdict == "free"
