"""The explanation in words: one screen, one argument a step, what to change, and what it costs."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hand_made import manifest_of
from rich.console import Console

from jitaudit.explaining import explain_manifest
from jitaudit.explaining.explanation import Explained
from jitaudit.judging.trees import Branch, Held, Split
from jitaudit.probing import Probe
from jitaudit.report import explain as report
from jitaudit.report.splits import listed, tree_lines

pytestmark = pytest.mark.xdist_group("field cases")


def explained(probe: Probe, kernel: str, group: str | None = None) -> Explained:
    found = explain_manifest(probe.manifest).kernels
    return next(one for one in found if one.kernel.endswith(f":{kernel}") and one.group == group)


def printed(renderable: object) -> list[str]:
    console = Console(width=200, color_system=None)
    with console.capture() as capture:
        console.print(renderable)
    return capture.get().splitlines()


def test_a_step_reads_as_a_sentence(probe_here: Callable[..., Probe]):
    one = explained(probe_here("explain_kernels:store"), "store_kernel")
    assert list(tree_lines(one.tree)) == ["`n` = 16 and 32 are divisible by 16, 17..31 are not: one variant each"]


@pytest.mark.parametrize(
    ("kernel", "group", "lines"),
    [
        (
            "penalty_kernel",
            "plain",
            ["`num_seqs` = 1 is 1, 16 and 32 are divisible by 16, 3 and 8 are neither: one variant each"],
        ),
        ("decode_stage2_kernel", "constexpr", ["`BATCH_NUM` = 1..256: one variant each"]),
        (
            "split_k_reduce_kernel",
            None,
            ["`ELEMENTS` = 128..8192:128: 4 variants each", "  `SPLITS` = 2, 4, 8 and 16: one variant each"],
        ),
        (
            "mark_end_kernel",
            "plain",
            ["`end_ptr` is aligned at offset = 0 and 16; unaligned at offset = 4, 8 and 12: one variant each"],
        ),
        (
            "optional_kernel",
            "dns",
            [
                "`table_ptr` is *i32 at table = i32 and i32 unaligned; *i64 at table = i64; None at table = none: "
                "one variant each"
            ],
        ),
        (
            "scale_kernel",
            None,
            [
                "`scale` is int i32 =1 at scale = 1; int i32 any at scale = 2; float at scale = 1.0 and 0.5; "
                "bool at scale = True and False: one variant each"
            ],
        ),
        ("flag_kernel", None, ["`FLAG` = int 1, bool True and float 1.0: one variant each"]),
        (
            "fill_kernel",
            "plain",
            [
                "`BLOCK` = 1, 2, 4 (numel 3..4) and 8 (numel 5..8): one variant each",
                "`BLOCK` = 16 (numel 9..16), 32 (numel 17..32), 64 (numel 33..64), … 1024 (numel 513..3000): "
                "2 variants each",
                "  `numel` = 16..2992:16 are divisible by 16, 9..15, 17..31, 33..47, … 2993..3000 are not: "
                "one variant each",
            ],
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_trees(kernel: str, group: str | None, lines: list[str], field_cases: Probe):
    assert list(tree_lines(explained(field_cases, kernel, group).tree)) == lines


def test_what_follows_another_argument_is_no_step(field_cases: Probe):
    one = explained(field_cases, "l2norm_kernel", "constexpr")
    assert one.follows == ("NB",)
    assert list(tree_lines(one.tree)) == ["`T` = 64..2048:64: one variant each"]


def test_branches_that_go_on_differently_are_told_apart():
    below = Split("n", None, (Branch((Held("i32 =1", ()), Held("i32 any", ())), 1, None),))
    split = Split(
        "p",
        "offset",
        (
            Branch((Held("*i32 aligned", ("0", "4")),), 2, below),
            Branch((Held("*i32 unaligned", ("1..3",)), Held("none", (False,))), 1, None),
        ),
    )
    assert list(tree_lines(split)) == [
        "`p` is aligned at offset = 0 and 4: 2 variants",
        "  `n` is 1, not: one variant each",
        "`p` is unaligned at offset = 1..3; None at offset = False: one variant each",
    ]


def test_long_lists_are_cut():
    assert listed([1]) == "1"
    assert listed([1, 2, 3, 4, 5]) == "1, 2, 3, 4 and 5"
    assert listed([1, 2, 3, 4, 5, 6]) == "1, 2, 3, … 6"


def test_one_screen_by_cost(field_cases: Probe):
    explanation = explain_manifest(field_cases.manifest)
    lines = printed(report.text(explanation))
    assert len(lines) <= report.SCREEN + 3
    assert lines[-1].endswith("more, use -v")
    heads = [line for line in lines if not line.startswith(" ")]
    assert "256 variants" in heads[0]
    everything = printed(report.text(explanation, verbose=True))
    assert sum(": " in line and "intended; growth" in line for line in everything) == len(explanation.kernels)
    assert sum(line.startswith("JA") for line in everything) == len(explanation.findings)


def test_the_plan_says_who_changes_what(field_cases: Probe):
    one = explained(field_cases, "fill_kernel", "plain")
    lines = list(report._block(one, verbose=False))
    assert lines[-2:] == [
        "  plan (call site) pass no BLOCK below 1024, and mask what lies past the end: 18 → 3; costs where less would "
        "do; 1.1× the lanes on average",
        "       (kernel) list numel in do_not_specialize: 3 → 1; may cost: it is in the address or the mask of vector "
        "accesses",
    ]


def test_no_variants():
    manifest = manifest_of({})
    explanation = explain_manifest(manifest)
    (one,) = explanation.kernels
    assert (one.variants, one.intended, one.tree, one.plan) == (0, 0, None, ())
    empty = explain_manifest(
        type(manifest)(**{**{f: getattr(manifest, f) for f in manifest.__struct_fields__}, "kernels": ()})
    )
    assert printed(report.text(empty)) == ["no variants: no case launched a kernel"]
