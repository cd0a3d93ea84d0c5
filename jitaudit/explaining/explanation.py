"""What explain tells of a manifest, and the part of it that needs the manifest alone."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import msgspec

from jitaudit.judging.findings import judge_kernel, judged
from jitaudit.judging.plans import plan
from jitaudit.judging.remedies import Remedies
from jitaudit.judging.trees import Split, named, tree
from jitaudit.judging.tuning import Tuning, tuning
from jitaudit.model import SCHEMA_VERSION, Cause, Finding, Growth, Kernel, Manifest, ParameterUse, Remedy
from jitaudit.pricing import Price


class Offer(msgspec.Struct, frozen=True):
    """A remedy, and what it comes to if it alone is done."""

    remedy: Remedy
    count: int
    use: ParameterUse | None = None
    """What the kernel does with the argument: what the remedy may cost, as long as nothing was compiled."""
    lanes: float | None = None
    """Of a floor: how many times today's lanes run then, on average over the launches."""
    confirmed: int | None = None
    """The count when it was really done."""
    failure: str | None = None
    """Why it can't be done: what the compiler said."""
    price: Price | None = None


class Planned(msgspec.Struct, frozen=True):
    """A remedy of the plan, and the count once it and all before it are done."""

    offer: Offer
    count: int
    confirmed: int | None = None


class Redundant(msgspec.Struct, frozen=True):
    """Keys of which some are one binary apart from names."""

    variants: int
    binaries: int
    arguments: tuple[str, ...]
    """In what the keys of one binary differ."""


class Explained(msgspec.Struct, frozen=True):
    """One kernel under one group."""

    kernel: str
    group: str | None
    launches: int
    variants: int
    intended: int
    growth: Growth
    causes: tuple[Cause, ...]
    tree: Split | None
    follows: tuple[str, ...]
    """Arguments that differ too, but only where those of the tree do."""
    plan: tuple[Planned, ...]
    offers: tuple[Offer, ...]
    """Every remedy, each alone; those of the plan too."""
    unmended: tuple[Cause, ...]
    tuning: Tuning | None
    redundant: Redundant | None
    prices: tuple[Price, ...] = ()
    """Of the whole plan, for several launches."""


class Explanation(msgspec.Struct, frozen=True):
    """``--format json``."""

    schema_version: int
    target: str
    kernels: tuple[Explained, ...]
    """From the most variants on."""
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()
    """What could not be compiled or measured, and why."""
    missing: str | None = None
    """What this machine lacks of what was asked for: the command ends with exit code 3."""


def explain_manifest(manifest: Manifest) -> Explanation:
    """Explain every kernel of a manifest. Pure."""
    explained: list[Explained] = []
    findings: list[Finding] = []
    for kernel in manifest.kernels:
        remedies = Remedies(kernel, manifest.sweeps, manifest.target)
        explained.append(explain_kernel(kernel, remedies))
        findings += judge_kernel(remedies.reach)
    return Explanation(
        schema_version=SCHEMA_VERSION,
        target=manifest.target,
        kernels=tuple(sorted(explained, key=lambda one: (-one.variants, one.kernel, one.group or ""))),
        findings=judged(manifest, findings),
    )


def explain_kernel(kernel: Kernel, remedies: Remedies, excluded: Collection[Remedy] = ()) -> Explained:
    """Explain one kernel, with a plan that does without the remedies in `excluded`."""
    reach = remedies.reach
    split = tree(reach)
    told = set(named(split))
    offers = {remedy: _offer(remedy, remedies) for remedy in remedies.all}
    return Explained(
        kernel=kernel.id,
        group=kernel.group,
        launches=kernel.launches,
        variants=len(kernel.variants),
        intended=remedies.intended,
        growth=reach.growth,
        causes=reach.causes,
        tree=split,
        follows=tuple(dict.fromkeys(cause.argument for cause in reach.causes if cause.argument not in told)),
        plan=tuple(Planned(offers[step.remedy], step.count) for step in plan(remedies, excluded)),
        offers=tuple(offers.values()),
        unmended=remedies.unmended,
        tuning=tuning(kernel),
        redundant=_redundant(kernel),
    )


def _offer(remedy: Remedy, remedies: Remedies) -> Offer:
    lanes = remedies.lanes(remedy) if remedy.kind == "floor" else None
    return Offer(remedy, remedies.count([remedy]), remedies.use(remedy.argument), lanes)


def _redundant(kernel: Kernel) -> Redundant | None:
    compiled = [variant for variant in kernel.variants if variant.compile and variant.compile.code]
    by_binary: dict[str, list[dict[str, str]]] = {}
    for variant in compiled:
        assert variant.compile is not None
        assert variant.compile.code is not None
        by_binary.setdefault(variant.compile.code.digest, []).append(
            variant.key.arguments | {name: str(value) for name, value in variant.key.options.items()}
        )
    if len(by_binary) == len(compiled):
        return None
    names = (name for keys in by_binary.values() for name in _differing(keys))
    return Redundant(len(compiled), len(by_binary), tuple(dict.fromkeys(names)))


def _differing(keys: list[dict[str, str]]) -> Iterator[str]:
    for name in dict.fromkeys(name for key in keys for name in key):
        if len({key.get(name) for key in keys}) > 1:
            yield name
