"""--compile really applies the remedies: counts are confirmed, binaries priced, and what fails leaves the plan."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from cases import NARROWED

from jitaudit import manifest as manifests
from jitaudit.explaining import Explanation, Question, explain, explain_manifest
from jitaudit.explaining.explanation import Explained
from jitaudit.model import Remedy
from jitaudit.probing import Probe
from jitaudit.report.explain import markdown
from jitaudit.sweeping import Narrowing, run

pytestmark = [pytest.mark.matrix, pytest.mark.xdist_group("explain --compile")]

HERE = Path(__file__).parent


def compiled(*arguments: str, **narrowing: object) -> Explanation:
    question = Question(arguments, narrowing=Narrowing(**narrowing), compile=True)
    return explain(question, lambda sweep, done, cases: None)


@pytest.fixture(scope="module")
def own(module_folder: None) -> dict[str, Explained]:
    """The kernels of `explain_kernels`, by name."""
    explanation = compiled("explain_kernels")
    assert explanation.notes == ()
    return {one.kernel.partition(":")[2]: one for one in explanation.kernels}


@pytest.fixture(scope="module")
def module_folder() -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(HERE)
        yield


def offer_of(one: Explained, remedy: Remedy):
    return next(offer for offer in one.offers if offer.remedy == remedy)


def test_every_count_of_the_field_cases_is_confirmed(module_folder: None):
    explanation = compiled("cases", axes=NARROWED)
    assert explanation.notes == ()
    offers = [(one, offer) for one in explanation.kernels for offer in one.offers]
    assert len(offers) > 60
    for one, offer in offers:
        assert (one.kernel, offer.remedy, offer.confirmed) == (one.kernel, offer.remedy, offer.count)
        assert (one.kernel, offer.remedy, offer.failure) == (one.kernel, offer.remedy, None)
        # Row 7: Triton refuses to compile what is both a constexpr and listed, so nothing is there to compare with.
        assert (offer.price is None) == one.kernel.endswith("listed_constexpr_kernel")
    steps = [(one, step) for one in explanation.kernels for step in one.plan]
    assert len(steps) > 25
    for one, step in steps:
        assert (one.kernel, step.offer.remedy, step.confirmed) == (one.kernel, step.offer.remedy, step.count)
    buckets = [bucket for one in explanation.kernels if one.tuning for bucket in one.tuning.buckets]
    assert len(buckets) >= 3
    assert all(bucket.confirmed == bucket.keys for bucket in buckets)


def test_removing_specialization_says_what_it_costs(own: dict[str, Explained]):
    """Row 26: what feeds vector accesses costs, the copy that keeps it does not."""
    norm = own["norm_kernel"]
    dear = offer_of(norm, Remedy("do_not_specialize_on_alignment", "x_ptr")).price
    assert dear is not None
    assert dear.verdict == "costs"
    assert dear.changes[0] == "1×128-bit loads become 8×16-bit"
    kept = offer_of(norm, Remedy("align", "x_ptr")).price
    assert kept is not None
    assert kept.verdict == "free"
    assert norm.plan[0].offer.remedy == Remedy("align", "x_ptr")
    assert [price.verdict for price in norm.prices] == ["costs"]


def test_a_constexpr_that_the_compiler_needs_leaves_the_plan(own: dict[str, Explained]):
    bins = own["bins_kernel"]
    offer = offer_of(bins, Remedy("runtime", "BINS", "do_not_specialize"))
    assert offer.count == 1
    assert offer.failure is not None
    assert bins.plan == ()


def test_a_linear_kernel_is_cured_for_free(own: dict[str, Explained]):
    """Row 25."""
    (step,) = own["page_kernel"].plan
    assert (step.offer.remedy, step.confirmed) == (Remedy("runtime", "STRIDE", "do_not_specialize"), 1)
    assert step.offer.price is not None
    assert step.offer.price.verdict == "free"


def test_a_manifest_is_enough(module_folder: None, probe_here: Callable[..., Probe], tmp_path: Path):
    """The sweeps are found again by their module, and run over the manifest's own axes."""
    manifest = probe_here("explain_kernels:store", n="1..48").manifest
    manifests.write(manifest, tmp_path / "m.json")
    explanation = compiled(str(tmp_path / "m.json"))
    (one,) = explanation.kernels
    assert (one.variants, one.plan[0].count, one.plan[0].confirmed) == (3, 1, 1)
    assert offer_of(one, Remedy("do_not_specialize_on_alignment", "n")).confirmed == 2


def test_redundant_keys_are_told(module_folder: None):
    """A compiled manifest says which keys are one binary: row 3's block count is in the key alone."""
    narrowing = Narrowing(axes={"blocks": "1..4"}, groups=("T_alone",), compile=True)
    manifest = run(["cases.constexprs:l2norm"], "cuda:90", narrowing)
    explanation = explain_manifest(manifest)
    (one,) = explanation.kernels
    assert one.redundant is not None
    assert (one.redundant.variants, one.redundant.binaries, one.redundant.arguments) == (4, 1, ("NB",))
    assert "JA011" in {finding.code for finding in explanation.findings}
    assert "4 keys are 1 binaries apart from names" in markdown(explanation)
