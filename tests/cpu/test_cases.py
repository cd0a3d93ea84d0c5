"""Every count of the field cases (``cases/``), what splits each kernel, and the finding that a reader is shown.

The counts hold for cuda:90 on each supported Triton.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

from jitaudit.boxes import expand
from jitaudit.model import Kernel
from jitaudit.probing import Probe

pytestmark = [pytest.mark.matrix, pytest.mark.xdist_group("field cases")]


class Case(NamedTuple):
    """What the cases of `sweep` in `group` reach of `kernel`, and the arguments that split it."""

    row: str
    sweep: str
    kernel: str
    group: str | None
    variants: int
    split_by: tuple[str, ...]


CASES = [
    Case("1", "ints:penalty", "penalty_kernel", "plain", 3, ("num_seqs",)),
    Case("1", "ints:penalty", "penalty_kernel", "dns", 1, ()),
    Case("1", "ints:penalty", "penalty_kernel", "dnsa", 2, ("num_seqs",)),
    Case("2", "constexprs:decode_stage2", "decode_stage2_kernel", "constexpr", 256, ("BATCH_NUM",)),
    Case("2", "constexprs:decode_stage2", "decode_stage2_kernel", "plain", 3, ("BATCH_NUM",)),
    Case("2", "constexprs:decode_stage2", "decode_stage2_kernel", "dns", 1, ()),
    Case("3", "constexprs:l2norm", "l2norm_kernel", "constexpr", 32, ("T", "NB")),
    Case("3", "constexprs:l2norm", "l2norm_kernel", "T_alone", 32, ("NB",)),
    Case("3", "constexprs:l2norm", "l2norm_without_nb_kernel", "T and NB", 1, ()),
    Case("4", "constexprs:split_k_reduce", "split_k_reduce_kernel", None, 256, ("ELEMENTS", "SPLITS")),
    Case("5", "constexprs:gemm", "gemm_kernel", "constexpr", 32, ("M",)),
    Case("5", "constexprs:gemm", "gemm_kernel", "dns", 1, ()),
    Case("6", "constexprs:fill", "fill_kernel", "dns", 11, ("BLOCK",)),
    Case("6", "constexprs:fill", "fill_kernel", "dns, fixed block", 1, ()),
    Case("6", "constexprs:fill", "fill_kernel", "plain", 18, ("numel", "BLOCK")),
    Case("6", "constexprs:fill", "fill_kernel", "plain, fixed block", 3, ("numel",)),
    Case("7", "constexprs:listed_constexpr", "listed_constexpr_kernel", None, 256, ("BATCH",)),
    Case("8", "ints:slot_mapping", "slot_mapping_kernel", "plain", 6, ("num_tokens", "stride")),
    Case("8", "ints:slot_mapping", "slot_mapping_kernel", "dns", 2, ("stride",)),
    Case("9", "ints:sampler", "sampler_kernel", "plain", 9, ("BATCH_SIZE", "TOPK", "TOPP")),
    Case("9", "ints:sampler", "sampler_kernel", "dns", 3, ("TOPK", "TOPP")),
    Case("9", "ints:sampler_warmup", "sampler_kernel", "plain", 1, ("BATCH_SIZE", "TOPK", "TOPP")),
    Case("10", "ints:three_ints_of_two_classes", "spec_decode_kernel", None, 8, ("batch", "draft_tokens", "stride")),
    Case("10", "ints:three_ints", "spec_decode_kernel", None, 27, ("batch", "draft_tokens", "stride")),
    Case("11", "pointers:mark_end", "mark_end_kernel", "plain", 2, ("end_ptr",)),
    Case("11", "pointers:mark_end", "mark_end_kernel", "dnsa", 1, ()),
    Case("12", "pointers:optional_pointer", "optional_kernel", "plain", 4, ("table_ptr",)),
    Case("12", "pointers:optional_pointer", "optional_kernel", "dns", 3, ("table_ptr",)),
    Case("2 GB", "pointers:large_buffer", "touch_kernel", None, 1, ()),
    Case("13", "ints:untyped_scalar", "scale_kernel", None, 4, ("scale",)),
    Case("14", "constexprs:equal_constexprs", "flag_kernel", None, 3, ("FLAG",)),
    Case("14", "constexprs:equal_cleared_constexprs", "cleared_flag_kernel", None, 3, ("FLAG",)),
    Case("15", "constexprs:rope", "rope_kernel", "constexpr", 100, ("seq_len",)),
    Case("15", "constexprs:rope", "rope_kernel", "dns", 1, ()),
    Case("15", "constexprs:rope", "rope_control_kernel", "constexpr", 1, ()),
    Case("15", "constexprs:rope", "rope_control_kernel", "dns", 1, ()),
    Case("16", "autotuned:attention", "attention_kernel", "exact", 3, ("BLOCK",)),
    Case("16", "autotuned:attention", "attention_kernel", "bucketed", 3, ("BLOCK",)),
    Case("16", "autotuned:attention", "attention_kernel", "pruned", 2, ("BLOCK",)),
    Case("16", "autotuned:ragged_attention", "ragged_kernel", "exact", 6, ("seq_len", "BLOCK")),
    Case("16", "autotuned:ragged_attention", "ragged_kernel", "bucketed", 4, ("seq_len", "BLOCK")),
    Case("17", "declarations:misspelt", "misspelt_kernel", None, 3, ("batch",)),
    Case("closure", "declarations:closure", "make_kernel.<locals>.closure_kernel", None, 2, ("BLOCK",)),
    Case("options", "launch_forms:keyword_options", "options_kernel", None, 2, ("num_warps",)),
    Case("tuples", "launch_forms:tuples", "tuple_kernel", None, 6, ("tensors", "sizes")),
    Case("descriptors", "launch_forms:tensor_descriptors", "descriptor_kernel", None, 2, ("descriptor",)),
    Case("functions", "launch_forms:function_constexprs", "combine_kernel", None, 2, ("OP",)),
    Case("dtypes", "launch_forms:dtype_and_tuple_constexprs", "convert_kernel", None, 4, ("DTYPE", "SHAPE")),
    Case("widths", "launch_forms:int_widths", "width_kernel", None, 7, ("n",)),
    Case("annotations", "launch_forms:annotated", "annotated_kernel", None, 3, ("n",)),
    Case("heuristics", "launch_forms:heuristics", "heuristics_kernel", None, 2, ("EVEN",)),
    Case("gluon", "launch_forms:gluon_launch", "gluon_kernel", None, 3, ("n",)),
]

TUNING = [
    # key, tuning keys, surviving configs
    ("attention_kernel", "exact", 65, 3),
    ("attention_kernel", "bucketed", 5, 3),
    ("attention_kernel", "pruned", 65, 2),
    ("ragged_kernel", "exact", 4, 3),
    ("ragged_kernel", "bucketed", 1, 3),
]

FINDINGS = {
    # code, kernel, argument
    ("JA001", "constexprs:listed_constexpr_kernel", "BATCH"),
    ("JA002", "declarations:misspelt_kernel", "batch_size"),
    ("JA003", "constexprs:l2norm_kernel", "NB"),
    ("JA004", "ints:scale_kernel", "scale"),
    ("JA005", "constexprs:flag_kernel", "FLAG"),
    ("JA005", "constexprs:cleared_flag_kernel", "FLAG"),
    ("JA006", "declarations:forgotten_kernel", None),
    ("JA012", "declarations:make_kernel.<locals>.closure_kernel", None),
}

LINEAR = {
    ("constexprs:decode_stage2_kernel", "constexpr"),
    ("constexprs:l2norm_kernel", "constexpr"),
    ("constexprs:l2norm_kernel", "T_alone"),
    ("constexprs:split_k_reduce_kernel", None),
    ("constexprs:listed_constexpr_kernel", None),
    ("constexprs:rope_kernel", "constexpr"),
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.row}-{case.sweep}-{case.group}")
def test_count(field_cases: Probe, case: Case):
    reached = [
        variant
        for variant in kernel_of(field_cases, module(case.sweep) + case.kernel, case.group).variants
        if any(box["sweep"] == f"cases.{case.sweep}" for box in variant.cases)
    ]
    assert len(reached) == case.variants


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.row}-{case.sweep}-{case.group}")
def test_what_splits_it(field_cases: Probe, case: Case):
    count = next(
        count
        for count in field_cases.counts
        if (count.kernel, count.group) == (f"cases.{module(case.sweep)}{case.kernel}", case.group)
    )
    assert tuple(dict.fromkeys(cause.argument for cause in count.causes)) == case.split_by


def test_the_table_names_every_kernel_that_is_launched(field_cases: Probe):
    expected = {(f"cases.{module(case.sweep)}{case.kernel}", case.group) for case in CASES}
    assert {(count.kernel, count.group) for count in field_cases.counts} == expected


def test_every_case_is_counted_and_launches_its_kernel_once(field_cases: Probe):
    assert all(sweep.counted == sweep.cases > 0 for sweep in field_cases.manifest.sweeps)
    assert {count.kernel: count.launches for count in field_cases.counts if count.launches != count.cases} == {}


def test_a_warm_up_at_one_point_covers_one_of_nine(field_cases: Probe):
    sampler = kernel_of(field_cases, "ints:sampler_kernel", "plain")
    warmed = [
        variant
        for variant in sampler.variants
        if any(box["sweep"] == "cases.ints:sampler_warmup" for box in variant.cases)
    ]
    assert [dict(variant.key.arguments) for variant in warmed] == [
        {
            "logits_ptr": "*fp32 aligned",
            "top_ks_ptr": "*fp32 aligned",
            "top_ps_ptr": "*fp32 aligned",
            "BATCH_SIZE": "i32 %16",
            "TOPK": "constexpr bool True",
            "TOPP": "constexpr bool True",
            "BLOCK": "constexpr int 64",
        }
    ]


@pytest.mark.parametrize(("kernel", "key", "tuning_keys", "configs"), TUNING)
def test_tuning_keys_and_benchmark_runs(field_cases: Probe, kernel: str, key: str, tuning_keys: int, configs: int):
    tuned = kernel_of(field_cases, f"autotuned:{kernel}", key)
    assert tuned.autotuner is not None
    assert len(tuned.autotuner.tuning_keys) == tuning_keys
    assert {len(tuning.configs) for tuning in tuned.autotuner.tuning_keys} == {configs}
    assert tuned.autotuner.benchmark_runs == tuning_keys * configs
    assert {variant.via for variant in tuned.variants} == {"autotune"}


def test_findings_are_these_and_no_others(field_cases: Probe):
    found = {
        (finding.code, (finding.kernel or "").removeprefix("cases."), finding.argument)
        for finding in field_cases.findings
        if finding.code != "JA008"
    }
    assert found == FINDINGS


def test_linear_growth_is_found_where_it_is(field_cases: Probe):
    linear = {(c.kernel.removeprefix("cases."), c.group) for c in field_cases.counts if c.growth == "linear"}
    assert linear == LINEAR
    told = {(f.kernel or "").removeprefix("cases.") for f in field_cases.findings if f.code == "JA008"}
    assert told == {kernel for kernel, _ in LINEAR}


def test_nothing_is_said_of_constants(field_cases: Probe):
    """Row 5: only the axis that moves is at fault."""
    about_gemm = [f for f in field_cases.findings if f.kernel == "cases.constexprs:gemm_kernel"]
    assert about_gemm == []


def test_the_boxes_of_a_kernels_variants_cover_its_sweep_exactly(field_cases: Probe):
    gemm = kernel_of(field_cases, "constexprs:gemm_kernel", "constexpr")
    covered = [value for variant in gemm.variants for box in variant.cases for value in expand(tuple(box["tokens"]))]
    assert sorted(map(int, covered)) == list(range(1, 4097))


def module(sweep: str) -> str:
    return sweep.partition(":")[0] + ":"


def kernel_of(probe: Probe, name: str, group: str | None) -> Kernel:
    return next(k for k in probe.manifest.kernels if (k.id, k.group) == (f"cases.{name}", group))
