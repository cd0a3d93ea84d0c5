"""From sightings to a manifest. What the source does not tell is opaque there, and a finding says so."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from jitaudit.manifest import sorted_findings
from jitaudit.model import (
    SCHEMA_VERSION,
    Compile,
    Environment,
    Finding,
    Kernel,
    Manifest,
    Parameter,
    Profile,
    Variant,
)
from jitaudit.scanning.sightings import UNKNOWN, Reading, Sighting
from jitaudit.scanning.tallying import Row


def to_manifest(reading: Reading, rows: Sequence[Row]) -> Manifest:
    """The reading's kernels for its commonest target: one a manifest. `rows`: its tally."""
    targets = Counter(sighting.target for sighting in reading.sightings)
    target = min(targets, key=lambda name: (-targets[name], name), default=UNKNOWN)
    kernels: dict[str, list[Sighting]] = defaultdict(list)
    for sighting in reading.sightings:
        if sighting.target == target:
            kernels[sighting.kernel].append(sighting)
    tritons = sorted({sighting.triton for sightings in kernels.values() for sighting in sightings})
    variables = {name: value for group in kernels.values() for item in group for name, value in item.variables.items()}
    return Manifest(
        schema_version=SCHEMA_VERSION,
        target=target,
        configuration="",
        environment=Environment(
            triton=", ".join(tritons) or UNKNOWN,
            torch=UNKNOWN,
            python=UNKNOWN,
            variables=dict(sorted(variables.items())),
        ),
        profile=Profile(asked=()),
        sweeps=(),
        kernels=tuple(_kernel(name, kernels[name], reading) for name in sorted(kernels)),
        findings=findings([row for row in rows if row.target == target]),
    )


def findings(rows: Sequence[Row]) -> tuple[Finding, ...]:
    """JA008, JA011 and JA012 as far as the rows show them."""
    return sorted_findings(finding for row in rows for finding in _findings(row))


def _kernel(name: str, sightings: Sequence[Sighting], reading: Reading) -> Kernel:
    latest = max(sightings, key=lambda sighting: (sighting.written or 0, sighting.identity))
    variants: dict[str, list[Sighting]] = defaultdict(list)
    for sighting in sightings:
        variants[sighting.key.text].append(sighting)
    return Kernel(
        id=name,
        group=None,
        object=None,
        file=latest.file,
        line=latest.line,
        source="",
        parameters=_parameters(sightings),
        autotuner=None,
        launches=len(sightings) if reading.origin == "log" else 0,
        variants=tuple(_variant(variants[text], reading) for text in sorted(variants)),
    )


def _parameters(sightings: Sequence[Sighting]) -> tuple[Parameter, ...]:
    """As the source has them; without it, what the entries name, each a runtime argument at least once or folded."""
    known = next((sighting.parameters for sighting in sightings if sighting.parameters), ())
    names = dict.fromkeys(name for sighting in sightings for name in sighting.key.arguments if name.isidentifier())
    return known or tuple(Parameter(name=name, policy="specialized") for name in names)


def _variant(sightings: Sequence[Sighting], reading: Reading) -> Variant:
    """One key; where it stands several times (other Triton builds, an edited source), with the last binary."""
    latest = max(sightings, key=lambda sighting: (sighting.written or 0, sighting.identity))
    return Variant(
        key=latest.key,
        via="jit",
        origin=reading.origin,
        launches=len(sightings) if reading.origin == "log" else 0,
        cases=(),
        compile=Compile(binary=latest.binary, seconds={}) if latest.binary else None,
    )


def _findings(row: Row) -> Iterator[Finding]:
    if row.growing:
        message = (
            f"{row.entries:,} entries, and in the second half of the time new ones came as fast as before: "
            f"{_blamed(row)}"
        )
        yield Finding(code="JA008", name="linear-growth", message=message, kernel=row.kernel)
    if 0 < row.binaries < row.variants:
        message = f"{row.variants:,} variants hold {row.binaries:,} binaries: some classes change nothing"
        yield Finding(code="JA011", name="redundant-variant", message=message, kernel=row.kernel)
    if row.keys < row.variants or row.folded:
        names = ", ".join(row.folded) or "its constexprs"
        message = f"the values of {names} are not in what was read: opaque, so warm can't make its variants again"
        yield Finding(code="JA012", name="not-warmable", message=message, kernel=row.kernel)


def _blamed(row: Row) -> str:
    shown = [split.argument for split in row.splits]
    if row.keys < row.variants:
        shown.append(f"what is folded ({', '.join(row.folded)})" if row.folded else "what does not show")
    return f"split by {', '.join(dict.fromkeys(shown))}" if shown else "no argument that shows splits it"
