"""Every row of the field cases has its cause, its remedy, the count that the remedy leads to, and a plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest

from jitaudit.explaining import explain_manifest
from jitaudit.explaining.explanation import Explained
from jitaudit.model import Remedy
from jitaudit.probing import Probe

pytestmark = pytest.mark.xdist_group("field cases")

UNLIST = "do_not_specialize"
UNALIGN = "do_not_specialize_on_alignment"


class Row(NamedTuple):
    """A kernel under a group: a cause as (argument, kind, axis), remedies alone with their counts, and the plan."""

    row: str
    kernel: str
    group: str | None
    causes: tuple[tuple[str, str, str | None], ...]
    alone: dict[Remedy, int]
    plan: tuple[tuple[Remedy, int], ...]
    intended: int


ROWS = [
    Row(
        "1", "ints:penalty_kernel", "plain", (("num_seqs", "int_class", "num_seqs"),),
        {Remedy(UNLIST, "num_seqs"): 1, Remedy(UNALIGN, "num_seqs"): 2}, ((Remedy(UNLIST, "num_seqs"), 1),), 1,
    ),
    Row(
        "2", "constexprs:decode_stage2_kernel", "constexpr", (("BATCH_NUM", "constexpr", "batch"),),
        {Remedy("runtime", "BATCH_NUM"): 3, Remedy("runtime", "BATCH_NUM", UNLIST): 1},
        ((Remedy("runtime", "BATCH_NUM", UNLIST), 1),), 1,
    ),
    Row(
        "3", "constexprs:l2norm_kernel", "constexpr", (("T", "constexpr", "blocks"), ("NB", "constexpr", "blocks")),
        {Remedy("runtime", "T", UNLIST): 32, Remedy("drop", "NB"): 32},
        ((Remedy("drop", "NB"), 32), (Remedy("runtime", "T", UNLIST), 1)), 1,
    ),
    Row("3", "constexprs:l2norm_kernel", "T_alone", (("NB", "constexpr", "blocks"),), {Remedy("drop", "NB"): 1},
        ((Remedy("drop", "NB"), 1),), 1),
    Row(
        "4", "constexprs:split_k_reduce_kernel", None,
        (("ELEMENTS", "constexpr", "m"), ("SPLITS", "constexpr", "splits")),
        {Remedy("runtime", "ELEMENTS", UNLIST): 4, Remedy("runtime", "SPLITS", UNLIST): 64},
        ((Remedy("runtime", "ELEMENTS", UNLIST), 4), (Remedy("runtime", "SPLITS", UNLIST), 1)), 1,
    ),
    Row(
        "5", "constexprs:gemm_kernel", "constexpr", (("M", "constexpr", "tokens"),),
        {Remedy("runtime", "M", UNLIST): 1}, ((Remedy("runtime", "M", UNLIST), 1),), 1,
    ),
    Row(
        "6", "constexprs:fill_kernel", "dns", (("BLOCK", "constexpr", "numel"),), {Remedy("floor", "BLOCK", 1024): 1},
        ((Remedy("floor", "BLOCK", 1024), 1),), 1,
    ),
    Row(
        "6", "constexprs:fill_kernel", "plain", (("numel", "int_class", "numel"), ("BLOCK", "constexpr", "numel")),
        {Remedy("floor", "BLOCK", 1024): 3, Remedy(UNLIST, "numel"): 11},
        ((Remedy("floor", "BLOCK", 1024), 3), (Remedy(UNLIST, "numel"), 1)), 1,
    ),
    Row(
        "7", "constexprs:listed_constexpr_kernel", None, (("BATCH", "constexpr", "batch"),),
        {Remedy("runtime", "BATCH"): 3, Remedy("runtime", "BATCH", UNLIST): 1},
        ((Remedy("runtime", "BATCH", UNLIST), 1),), 1,
    ),
    Row(
        "8", "ints:slot_mapping_kernel", "plain", (("num_tokens", "int_class", "num_tokens"),),
        {Remedy(UNLIST, "num_tokens"): 2}, ((Remedy(UNLIST, "num_tokens"), 2), (Remedy(UNLIST, "stride"), 1)), 1,
    ),
    Row(
        "9", "ints:sampler_kernel", "plain",
        (("BATCH_SIZE", "int_class", "batch_size"), ("TOPK", "constexpr", "topk"), ("TOPP", "constexpr", "topp")),
        {Remedy(UNLIST, "BATCH_SIZE"): 3}, ((Remedy(UNLIST, "BATCH_SIZE"), 3),), 3,
    ),
    Row(
        "10", "ints:spec_decode_kernel", None, (("batch", "int_class", "batch"),), {Remedy(UNLIST, "batch"): 9},
        tuple((Remedy(UNLIST, name), 3 ** (2 - at)) for at, name in enumerate(("batch", "draft_tokens", "stride"))), 1,
    ),
    Row(
        "11", "pointers:mark_end_kernel", "plain", (("end_ptr", "alignment", "offset"),),
        {Remedy(UNALIGN, "end_ptr"): 1, Remedy("align", "end_ptr"): 1}, ((Remedy(UNALIGN, "end_ptr"), 1),), 1,
    ),
    Row(
        "12", "pointers:optional_kernel", "plain", (("table_ptr", "none", "table"), ("table_ptr", "dtype", "table")),
        {Remedy(UNLIST, "table_ptr"): 3}, ((Remedy("align", "table_ptr"), 3),), 3,
    ),
    Row(
        "13", "ints:scale_kernel", None, (("scale", "dtype", "scale"),), {Remedy("retype", "scale", "float"): 1},
        ((Remedy("retype", "scale", "float"), 1),), 1,
    ),
    Row(
        "14", "constexprs:flag_kernel", None, (("FLAG", "constexpr", "flag"),), {Remedy("retype", "FLAG", "bool"): 1},
        ((Remedy("retype", "FLAG", "bool"), 1),), 1,
    ),
    Row(
        "14", "constexprs:cleared_flag_kernel", None, (("FLAG", "constexpr", "flag"),),
        {Remedy("retype", "FLAG", "bool"): 1}, ((Remedy("retype", "FLAG", "bool"), 1),), 1,
    ),
    Row(
        "15", "constexprs:rope_kernel", "constexpr", (("seq_len", "constexpr", "length"),),
        {Remedy("runtime", "seq_len", UNLIST): 1}, ((Remedy("runtime", "seq_len", UNLIST), 1),), 1,
    ),
    Row("15", "constexprs:rope_control_kernel", "constexpr", (), {}, (), 1),
    Row(
        "17", "declarations:misspelt_kernel", None, (("batch", "int_class", "batch"),), {Remedy(UNLIST, "batch"): 1},
        ((Remedy(UNLIST, "batch"), 1),), 1,
    ),
]  # fmt: skip


@pytest.fixture(scope="module")
def explained(field_cases: Probe) -> dict[tuple[str, str | None], Explained]:
    """By kernel, as the rows call it, and group."""
    kernels = explain_manifest(field_cases.manifest).kernels
    return {(one.kernel.removeprefix("cases."), one.group): one for one in kernels}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.row}-{row.kernel}-{row.group}")
def test_row(row: Row, explained: dict[tuple[str, str | None], Explained]):
    one = explained[row.kernel, row.group]
    found = {(cause.argument, cause.kind, axis) for cause in one.causes for axis in cause.axis or (None,)}
    assert found >= set(row.causes)
    alone = {offer.remedy: offer.count for offer in one.offers}
    assert {remedy: alone.get(remedy) for remedy in row.alone} == row.alone
    assert tuple((step.offer.remedy, step.count) for step in one.plan) == row.plan
    assert one.intended == row.intended
    assert (one.plan[-1].count if one.plan else one.variants) == row.intended
    assert one.unmended == ()


def test_only_what_moves_is_at_fault(explained: dict[tuple[str, str | None], Explained]):
    """Row 5: nothing is said about the model's constants."""
    one = explained["constexprs:gemm_kernel", "constexpr"]
    assert {cause.argument for cause in one.causes} == {offer.remedy.argument for offer in one.offers} == {"M"}


def test_a_floor_says_what_it_wastes(explained: dict[tuple[str, str | None], Explained]):
    """Row 6: of 3,000 sizes 512 and more fill their block already."""
    (offer,) = explained["constexprs:fill_kernel", "dns"].offers
    blocks = [min(1024, 1 << (numel - 1).bit_length()) for numel in range(1, 3001)]
    assert offer.lanes == pytest.approx(1024 * 3000 / sum(blocks))


@pytest.mark.parametrize(("group", "runs"), [("exact", 15), ("pruned", 10)])
def test_a_tuning_key_is_bucketed(group: str, runs: int, explained: dict[tuple[str, str | None], Explained]):
    """Row 16: a tuning key for each of 65 lengths, or 5."""
    tuning = explained["autotuned:attention_kernel", group].tuning
    assert tuning is not None
    assert tuning.keys == 65
    (bucket,) = tuning.buckets
    assert (bucket.remedy, bucket.keys, bucket.benchmark_runs) == (Remedy("bucket", "seq_len"), 5, runs)


def test_findings_stand_beside(field_cases: Probe):
    """Rows 7, 13, 14, 17 and 18."""
    findings = {(finding.code, finding.kernel) for finding in explain_manifest(field_cases.manifest).findings}
    assert findings >= {
        ("JA001", "cases.constexprs:listed_constexpr_kernel"),
        ("JA002", "cases.declarations:misspelt_kernel"),
        ("JA003", "cases.constexprs:l2norm_kernel"),
        ("JA004", "cases.ints:scale_kernel"),
        ("JA005", "cases.constexprs:flag_kernel"),
        ("JA006", "cases.declarations:forgotten_kernel"),
    }


def test_endless_constexprs_grow_linearly(probe_here: Callable[..., Probe]):
    """Row 25."""
    explanation = explain_manifest(probe_here("explain_kernels:decode_steps").manifest)
    (one,) = explanation.kernels
    assert (one.variants, one.growth, one.causes[0].growth) == (64, "linear", "linear")
    assert [(step.offer.remedy, step.count) for step in one.plan] == [(Remedy("runtime", "STRIDE", UNLIST), 1)]
    assert "JA008" in {finding.code for finding in explanation.findings}


def test_what_the_compiler_needs_has_no_remedy(probe_here: Callable[..., Probe]):
    (one,) = explain_manifest(probe_here("explain_kernels:unrolled").manifest).kernels
    assert one.plan == ()
    assert [(cause.argument, cause.kind) for cause in one.unmended] == [("ROUNDS", "constexpr")]
