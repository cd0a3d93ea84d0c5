"""What holds for any kernel and any sweep: predicted counts are the real ones, and causes lead from key to key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jitaudit.boxes import read_range
from jitaudit.jit import identity
from jitaudit.jit.capture import Capture, capturing
from jitaudit.jit.remedying import Trials
from jitaudit.jit.respecialize import respecialize
from jitaudit.judging.nearest import Neighbours, changed, differences
from jitaudit.judging.plans import plan
from jitaudit.judging.remedies import Remedies
from jitaudit.judging.trees import Split, tree
from jitaudit.model import Kernel, Remedy, SweepRun, Variant, VariantKey

pytestmark = pytest.mark.matrix

NAMES = ("a_ptr", "b_ptr", "n", "stride", "SIZE", "WIDTH")


@triton.jit
def masked_kernel(a_ptr, b_ptr, n, stride, SIZE: tl.constexpr, WIDTH: tl.constexpr):
    offsets = tl.arange(0, WIDTH)
    x = tl.load(a_ptr + tl.program_id(0) * stride + offsets, mask=offsets < n)
    tl.store(b_ptr, tl.sum(x) + SIZE)


@triton.jit
def careless_kernel(a_ptr, b_ptr, n, stride, SIZE: tl.constexpr, WIDTH: tl.constexpr):
    tl.store(a_ptr + tl.arange(0, SIZE), tl.load(b_ptr + stride))


@triton.jit
def needy_kernel(a_ptr, b_ptr, n: tl.int64, stride, SIZE: tl.constexpr, WIDTH: tl.constexpr):
    for _ in tl.static_range(SIZE):
        tl.store(a_ptr + n, WIDTH)


INTS = st.sampled_from([0, 1, 2, 3, 8, 16, 17, 32, 48, 2**31 - 1, 2**31, 2**40])
SCALARS = st.one_of(INTS, st.booleans(), st.sampled_from([0.0, 0.5, 1.0]))
CONSTEXPRS = st.one_of(
    st.sampled_from([1, 2, 4, 8, 64]), INTS, st.booleans(), st.sampled_from([1.0, 0.25, "fp32", None, tl.float32])
)
POINTERS = st.tuples(st.sampled_from([torch.int32, torch.int64, torch.float16]), st.sampled_from([0, 1, 4, 8, None]))
OPTIONS = st.sampled_from([{}, {}, {"num_warps": 8}, {"num_warps": 2, "num_stages": 4}])
LAUNCHES = st.lists(
    st.tuples(POINTERS, POINTERS, SCALARS, st.one_of(INTS, st.none()), CONSTEXPRS, CONSTEXPRS, OPTIONS),
    min_size=1,
    max_size=12,
)
SUBSETS = st.sets(st.sampled_from(NAMES[:4]))


@pytest.fixture(scope="module", params=["cuda:90", "hip:gfx942"])
def capture(request: pytest.FixtureRequest) -> Iterator[Capture]:
    with capturing(request.param) as capture:
        yield capture


def tensor(dtype: torch.dtype, offset: int | None) -> torch.Tensor | None:
    return None if offset is None else torch.empty(64, dtype=dtype, device="cuda")[offset:]


def launch_all(capture: Capture, function: Any, launches: Sequence[tuple[Any, ...]]) -> None:
    capture.take()
    for case, (a, b, n, stride, size, width, options) in enumerate(launches):
        capture.begin(case)
        function[(1,)](tensor(*a), tensor(*b), n, stride, SIZE=size, WIDTH=width, **options)
        capture.end()


def kernel_of(capture: Capture, function: Any, cases: int) -> tuple[Kernel, SweepRun]:
    """What was captured, as a manifest has it: one axis that numbers the launches."""
    (seen,) = capture.take().values()
    variants = tuple(
        Variant(
            variant.key, "jit", "probe", variant.launches, ({"sweep": "s", "case": tuple(map(str, variant.cases))},)
        )
        for variant in seen.variants.values()
    )
    kernel = Kernel(
        id="m:k", group=None, object="k", file="m.py", line=1, source="", parameters=identity.parameters(function),
        autotuner=None, launches=cases, variants=variants,
    )  # fmt: skip
    axis = (f"0..{cases - 1}",) if cases > 1 else ("0",)
    return kernel, SweepRun("s", {"case": axis}, None, cases, cases, "pass")


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from([masked_kernel, careless_kernel, needy_kernel]), SUBSETS, SUBSETS, LAUNCHES)
def test_predicted_counts_are_the_real_ones(
    capture: Capture, source: Any, dns: set[str], dnsa: set[str], launches: Any
):
    function = respecialize(source, do_not_specialize=sorted(dns), do_not_specialize_on_alignment=sorted(dnsa))
    launch_all(capture, function, launches)
    kernel, sweep = kernel_of(capture, function, len(launches))
    remedies = Remedies(kernel, [sweep])
    steps = [step.remedy for step in plan(remedies)]
    stages = [(remedy,) for remedy in remedies.all] + [tuple(steps[:length]) for length in range(2, len(steps) + 1)]
    stages = list(dict.fromkeys(stages))
    trials = Trials(capture, lambda _: stages)
    with trials.following():
        launch_all(capture, function, launches)
    if stages:
        (trial,) = trials.kernels.values()
        assert [stage.failure for stage in trial.stages] == [None] * len(stages)
        real = {stage.remedies: len(stage.variants) for stage in trial.stages}
        assert real == {stage: remedies.count(stage) for stage in stages}
    assert remedies.count(steps) >= remedies.intended


TEXTS = st.sampled_from(
    ["i32 =1", "i32 %16", "i64 any", "u1", "fp32", "none", "*fp16 aligned", "*fp16 unaligned <2GB", "constexpr int 3",
     "constexpr bool True", "(i32 any, *i32 aligned)", 'constexpr str "a"']
)  # fmt: skip
KEYS = st.builds(
    VariantKey,
    st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), TEXTS),
    st.dictionaries(st.sampled_from(["num_warps", "maxnreg"]), st.sampled_from([1, 8, True, "x", None, 0.5])),
)


@given(KEYS, KEYS)
def test_all_differences_lead_from_one_key_to_the_other(was: VariantKey, now: VariantKey):
    parts = differences(was, now)
    assert changed(was, parts).text == now.text
    assert (parts == ()) == (was.text == now.text)  # Python calls True and 1 equal; a key does not


@given(KEYS, st.lists(KEYS, min_size=1, max_size=8))
def test_the_nearest_differs_in_the_fewest_parts(key: VariantKey, known: list[VariantKey]):
    nearest = Neighbours(known).nearest(key)
    least = min(len(differences(other, key)) for other in known)
    assert [len(differences(other, key)) for other in nearest] == [least] * len(nearest)
    assert len(nearest) == sum(len(differences(other, key)) == least for other in known)


def leaves(split: Split | None) -> int:
    """The variants that a tree tells apart."""
    if split is None:
        return 1
    return sum(leaves(branch.split) * sum(_classes(held.text) for held in branch.classes) for branch in split.branches)


def _classes(text: str) -> int:
    numbers = read_range(text.removeprefix("constexpr int ")) if text.startswith("constexpr int ") else None
    return len(numbers) if numbers is not None else 1


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(LAUNCHES)
def test_the_tree_has_a_leaf_for_each_variant(capture: Capture, launches: Any):
    launch_all(capture, masked_kernel, launches)
    kernel, sweep = kernel_of(capture, masked_kernel, len(launches))
    remedies = Remedies(kernel, [sweep])
    assert leaves(tree(remedies.reach)) == len(kernel.variants)


def test_remedies_are_found_at_all(capture: Capture):
    """The properties above are about something: every kind of remedy but a bucket turns up."""
    launches = [
        ((torch.int32, 0), (torch.int32, 0), 1, 1, 8, 1, {}),
        ((torch.int64, 1), (torch.int32, 4), 16, 16, 8, True, {"num_warps": 8}),
        ((torch.int32, 4), (torch.int32, 1), 17, 2**40, 8, 1.0, {}),
        ((torch.int32, 4), (torch.int32, 1), 0.5, 2**40, 64, 1, {}),
    ]
    kinds = set()
    for source in (masked_kernel, careless_kernel):
        launch_all(capture, source, launches)
        kernel, sweep = kernel_of(capture, source, len(launches))
        kinds |= {remedy.kind for remedy in Remedies(kernel, [sweep]).all}
    assert kinds == {
        "drop", "retype", "cast", "align", "floor", "option", "runtime", "annotate", "do_not_specialize",
        "do_not_specialize_on_alignment",
    }  # fmt: skip
    assert Remedy("floor", "SIZE", 64) in Remedies(kernel, [sweep]).all


def test_a_default_is_a_value_like_another(capture):
    """Where one launch sets fewer warps than Triton's own 4, the plan is 4: those with more work need them."""
    launches = [
        ((torch.int32, 4), (torch.int32, 4), 17, 17, 8, 1, {"num_warps": 1, "num_stages": 1}),
        ((torch.int32, 4), (torch.int32, 4), 17, 17, 8, 1, {}),
    ]
    launch_all(capture, masked_kernel, launches)
    kernel, sweep = kernel_of(capture, masked_kernel, len(launches))
    found = {remedy for remedy in Remedies(kernel, [sweep], capture.target).all if remedy.kind == "option"}
    stages = 3 if capture.target.startswith("cuda") else 2
    assert found == {Remedy("option", "num_warps", 4), Remedy("option", "num_stages", stages)}
