"""What the manifest promises, put to the test: remedies are really applied, counted again, and compiled."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from jitaudit.configuration import SHIPPED
from jitaudit.errors import RequestError
from jitaudit.explaining.explanation import Explained, Explanation, Offer, Planned, explain_kernel
from jitaudit.judging.remedies import Remedies
from jitaudit.judging.tuning import Tuning
from jitaudit.model import AxisValue, Manifest, Remedy, Timing
from jitaudit.pricing import Price, price
from jitaudit.sweeping import Narrowing, Progress
from jitaudit.sweeping.targets import read_target
from jitaudit.sweeping.trying import Attempt, Compared, Outcome, Stage, Trying, try_remedies

Name = tuple[str, str | None]
"""A kernel's id and group."""

ROUNDS = 3
"""Plans that are tried at most: each does without what failed in the one before."""
COMPILED = 4
"""Variants that are compiled of a whole plan; of a remedy alone it is one."""


class Place(msgspec.Struct, frozen=True):
    """Where a manifest's sweeps can be run again."""

    target: str
    narrowing: Narrowing
    sweeps: dict[str, dict[str, tuple[AxisValue, ...]]] | None
    """Sweep → its axes as they were; None: all that the target has, as narrowed."""


def places_of_targets(targets: Sequence[str], narrowing: Narrowing) -> tuple[Place, ...]:
    """The places of what was probed just now."""
    return tuple(Place(target, narrowing, None) for target in targets)


def places_of_manifest(manifest: Manifest, files: Sequence[Path]) -> tuple[tuple[Place, ...], tuple[str, ...]]:
    """Where a manifest's sweeps live, and notes on those that can't be found.

    `files`: the files of the user's that hold sweeps; those of modules are imported by name.
    """
    places: dict[str, dict[str, dict[str, tuple[AxisValue, ...]]]] = {}
    notes = []
    for sweep in manifest.sweeps:
        home, _, _ = sweep.name.rpartition(":")
        if home.endswith(".py"):
            target = next((str(file) for file in files if file.resolve().as_posix().endswith(f"/{home}")), None)
        else:
            target = SHIPPED if f"{home}.".startswith(f"{SHIPPED}.") else home
        if target is None:
            notes.append(f"{sweep.name}: not compiled: it lives in a file; say which with --sweeps {home}")
        else:
            places.setdefault(target, {})[sweep.name] = sweep.axes
    return tuple(Place(target, _hosts(sweeps), sweeps) for target, sweeps in places.items()), tuple(notes)


def confirm(explanation: Explanation, manifest: Manifest, places: Iterable[Place], progress: Progress) -> Explanation:
    """Try every remedy alone, and the plans; drop from a plan what fails or changes nothing. Needs no GPU."""
    return _Confirming(explanation, manifest, list(places), progress).run()


def measure(explanation: Explanation, places: Iterable[Place], progress: Progress) -> Explanation:
    """Launch on the GPU that is here what was compiled, before and after, and take the time. Inputs are zero.

    Raises SetupError where there is no GPU, or another than the manifest's target.
    """
    timings: dict[tuple[Name, tuple[Remedy, ...]], tuple[Timing, Timing]] = {}
    notes = []
    for place in places:
        attempts = tuple(Attempt(one.kernel, one.group, tuple(_measured_stages(one))) for one in explanation.kernels)
        request = Trying(
            read_target(place.target), explanation.target, place.narrowing, attempts, place.sweeps, gpu=True
        )
        try:
            outcomes = try_remedies(request, progress)
        except RequestError as error:  # a kernel that faults on zeros takes its process with it
            notes.append(f"not measured: {error}")
            continue
        for outcome in outcomes:
            for compared in outcome.compared:
                if compared.timing:
                    timings.setdefault(((outcome.kernel, outcome.group), outcome.remedies), compared.timing)
    kernels = tuple(_timed(one, timings) for one in explanation.kernels)
    return msgspec.structs.replace(explanation, kernels=kernels, notes=(*explanation.notes, *notes))


def _measured_stages(one: Explained) -> Iterator[Stage]:
    for stage in _stages(one):
        if stage.compiles:
            yield Stage(stage.remedies, 1)


def _timed(one: Explained, timings: dict[tuple[Name, tuple[Remedy, ...]], tuple[Timing, Timing]]) -> Explained:
    name = (one.kernel, one.group)

    def timed(found: Price | None, remedies: tuple[Remedy, ...]) -> Price | None:
        timing = timings.get((name, remedies))
        return msgspec.structs.replace(found, timing=timing) if found and timing else found

    offers = {o.remedy: msgspec.structs.replace(o, price=timed(o.price, (o.remedy,))) for o in one.offers}
    plan = tuple(msgspec.structs.replace(step, offer=offers[step.offer.remedy]) for step in one.plan)
    whole = tuple(step.offer.remedy for step in one.plan)
    prices = tuple(found for price in one.prices[:1] if (found := timed(price, whole)))
    return msgspec.structs.replace(one, offers=tuple(offers.values()), plan=plan, prices=(*prices, *one.prices[1:]))


class _Confirming:
    def __init__(self, explanation: Explanation, manifest: Manifest, places: list[Place], progress: Progress) -> None:
        self._explanation, self._target = explanation, manifest.target
        self._places, self._progress = places, progress
        self._kernels = {(kernel.id, kernel.group): kernel for kernel in manifest.kernels}
        self._remedies = {
            name: Remedies(kernel, manifest.sweeps, manifest.target) for name, kernel in self._kernels.items()
        }
        self._excluded: dict[Name, set[Remedy]] = {name: set() for name in self._kernels}
        self._outcomes: dict[Name, dict[tuple[Remedy, ...], Outcome]] = {name: {} for name in self._kernels}
        self._notes: list[str] = []

    def run(self) -> Explanation:
        explained = {(one.kernel, one.group): one for one in self._explanation.kernels}
        for _ in range(ROUNDS):
            self._try(explained.values())
            failed = {name: new for name, one in explained.items() if (new := self._failed(name, one))}
            if not failed:
                break
            for name, remedies in failed.items():
                self._excluded[name] |= remedies
                explained[name] = explain_kernel(self._kernels[name], self._remedies[name], self._excluded[name])
        kernels = tuple(self._confirmed(name, one) for name, one in explained.items())
        notes = (*self._explanation.notes, *self._notes, *self._lost(explained))
        return msgspec.structs.replace(self._explanation, kernels=kernels, notes=notes)

    def _try(self, explained: Iterable[Explained]) -> None:
        """Run the sweeps once for all that is new in these plans."""
        attempts = []
        for one in explained:
            known = self._outcomes[one.kernel, one.group]
            stages = tuple(stage for stage in _stages(one) if stage.remedies not in known)
            offered = one.tuning.buckets if one.tuning else ()
            buckets = tuple(b.remedy.argument for b in offered if (b.remedy,) not in known)
            if stages or buckets:
                attempts.append(Attempt(one.kernel, one.group, stages, buckets))
        if not attempts:
            return
        for place in list(self._places):
            request = Trying(read_target(place.target), self._target, place.narrowing, tuple(attempts), place.sweeps)
            try:
                outcomes = try_remedies(request, self._progress)
            except RequestError as error:
                self._notes.append(f"not compiled: {error}")
                self._places.remove(place)
                continue
            for outcome in outcomes:
                self._keep(outcome)

    def _keep(self, outcome: Outcome) -> None:
        """Sweeps, and places, that reach one kernel count together."""
        known = self._outcomes[outcome.kernel, outcome.group]
        before = known.get(outcome.remedies)
        if before is not None:
            outcome = Outcome(
                outcome.kernel,
                outcome.group,
                outcome.remedies,
                outcome.keys | before.keys,
                before.failure or outcome.failure,
                (*before.compared, *outcome.compared),
            )
        known[outcome.remedies] = outcome

    def _lost(self, explained: dict[Name, Explained]) -> Iterator[str]:
        """Notes on kernels that were to be tried, and that nothing launched."""
        for (kernel, group), one in explained.items():
            if one.offers and not self._outcomes[kernel, group] and self._places:
                under = f" [{group}]" if group is not None else ""
                yield f"{kernel}{under}: not compiled: no case launches it any more"

    def _failed(self, name: Name, one: Explained) -> set[Remedy]:
        """The remedies of a plan that don't compile, or don't do what they promised."""
        outcomes = self._outcomes[name]
        done: tuple[Remedy, ...] = ()
        failed = set()
        for step in one.plan:
            remedy = step.offer.remedy
            done = (*done, remedy)
            alone, together = outcomes.get((remedy,)), outcomes.get(done)
            if (alone is not None and alone.failure) or (together is not None and len(together.keys) > step.count):
                failed.add(remedy)
                break
        return failed

    def _confirmed(self, name: Name, one: Explained) -> Explained:
        outcomes = self._outcomes[name]
        offers = {offer.remedy: _confirmed_offer(offer, outcomes.get((offer.remedy,))) for offer in one.offers}
        plan: list[Planned] = []
        done: tuple[Remedy, ...] = ()
        for step in one.plan:
            done = (*done, step.offer.remedy)
            together = outcomes.get(done)
            plan.append(Planned(offers[step.offer.remedy], step.count, len(together.keys) if together else None))
        whole = outcomes.get(done)
        prices = tuple(_price(compared) for compared in whole.compared) if whole and len(done) > 1 else ()
        return msgspec.structs.replace(
            one, offers=tuple(offers.values()), plan=tuple(plan), prices=prices, tuning=_confirmed_tuning(one, outcomes)
        )


def _stages(one: Explained) -> Iterator[Stage]:
    """Each remedy alone, and the plan up to each of its steps: only whole plans and single remedies are compiled."""
    planned = tuple(step.offer.remedy for step in one.plan)
    for offer in one.offers:
        yield Stage((offer.remedy,), COMPILED if planned == (offer.remedy,) else 1)
    for length in range(2, len(planned) + 1):
        yield Stage(planned[:length], COMPILED if length == len(planned) else 0)


def _confirmed_offer(offer: Offer, outcome: Outcome | None) -> Offer:
    if outcome is None:
        return offer
    return msgspec.structs.replace(
        offer,
        confirmed=len(outcome.keys),
        failure=outcome.failure,
        price=_price(outcome.compared[0]) if outcome.compared else None,
    )


def _confirmed_tuning(one: Explained, outcomes: dict[tuple[Remedy, ...], Outcome]) -> Tuning | None:
    if one.tuning is None:
        return None
    buckets = tuple(
        msgspec.structs.replace(bucket, confirmed=len(outcomes[bucket.remedy,].keys))
        if (bucket.remedy,) in outcomes
        else bucket
        for bucket in one.tuning.buckets
    )
    return msgspec.structs.replace(one.tuning, buckets=buckets)


def _price(compared: Compared) -> Price:
    return price(compared.key, compared.before, compared.after)


def _hosts(sweeps: dict[str, dict[str, tuple[AxisValue, ...]]]) -> Narrowing:
    """The values that ``--host-value`` gave, which a manifest has among its axes as FILE:LINE."""
    given = {
        name: ",".join(map(str, values))
        for axes in sweeps.values()
        for name, values in axes.items()
        if name.rpartition(":")[2].isdigit() and ":" in name
    }
    return Narrowing(host_values=tuple(f"{line}={values}" for line, values in sorted(given.items())))
