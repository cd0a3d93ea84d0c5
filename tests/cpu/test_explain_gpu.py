"""--gpu: what a GPU measured stands beside the static price. The launches themselves are in tests/gpu."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from jitaudit.errors import RequestError
from jitaudit.explaining import confirming, explain_manifest
from jitaudit.model import Code, Remedy, Timing
from jitaudit.pricing import price
from jitaudit.probing import Probe
from jitaudit.report.remedies import price_words
from jitaudit.sweeping import Narrowing
from jitaudit.sweeping.trying import Compared, Outcome, Trying

pytestmark = pytest.mark.xdist_group("field cases")

UNLIST = Remedy("do_not_specialize", "num_seqs")
CODE = Code("sha256:a", instructions=10, registers=8, spills=0, shared=0, loads={32: 1}, stores={32: 1})
PLACE = confirming.Place("cases.ints:penalty", Narrowing(), None)


@pytest.fixture
def compiled(probe_here: Callable[..., Probe]):
    """An explanation as --compile leaves it."""
    explanation = explain_manifest(probe_here("cases.ints:penalty").manifest)
    priced = price("key", CODE, msgspec.structs.replace(CODE, digest="sha256:b"))

    def with_price(offer):
        return msgspec.structs.replace(offer, price=priced)

    kernels = tuple(
        msgspec.structs.replace(
            one,
            offers=tuple(map(with_price, one.offers)),
            plan=tuple(msgspec.structs.replace(step, offer=with_price(step.offer)) for step in one.plan),
        )
        for one in explanation.kernels
    )
    return msgspec.structs.replace(explanation, kernels=kernels)


def test_medians_stand_beside_the_price(compiled, monkeypatch: pytest.MonkeyPatch):
    def launched(request: Trying, progress: object) -> tuple[Outcome, ...]:
        assert request.gpu
        assert {stage.compiles for attempt in request.attempts for stage in attempt.stages} <= {1}
        compared = Compared("key", CODE, CODE, (Timing(2.5, 11.0), Timing(2.75, 10.0)))
        return (Outcome("cases.ints:penalty_kernel", "plain", (UNLIST,), frozenset("k"), None, (compared,)),)

    monkeypatch.setattr(confirming, "try_remedies", launched)
    measured = confirming.measure(compiled, [PLACE], lambda *progress: None)
    plain = next(one for one in measured.kernels if one.group == "plain")
    (step,) = plain.plan
    assert price_words(step.offer) == "free; 2.5 → 2.8 µs on the GPU, 11.0 → 10.0 µs on the host"
    assert [offer.price.timing is not None for offer in plain.offers] == [
        offer.remedy == UNLIST for offer in plain.offers
    ]


def test_a_fault_costs_its_own_sweep_alone(compiled, monkeypatch: pytest.MonkeyPatch):
    def launched(request: Trying, progress: object) -> tuple[Outcome, ...]:
        raise RequestError("its process ended with code -6 and no answer")

    monkeypatch.setattr(confirming, "try_remedies", launched)
    measured = confirming.measure(compiled, [PLACE], lambda *progress: None)
    assert measured.notes == ("not measured: its process ended with code -6 and no answer",)
    assert measured.kernels == compiled.kernels
