"""Manifests made by hand."""

from __future__ import annotations

from jitaudit.boxes import boxes, compact
from jitaudit.model import SCHEMA_VERSION, Environment, Kernel, Manifest, Profile, SweepRun, Variant, VariantKey

BS = tuple(range(6))
FLAGS = (True, False)


def manifest_of(reached: dict[str, set[tuple[int, int]]]) -> Manifest:
    """One kernel over bs × flag: for each class of its argument the cases, as positions, that reach it."""
    sweep = SweepRun(
        name="s.py:s",
        axes={"bs": compact(map(str, BS)), "flag": FLAGS},
        compare=None,
        cases=len(BS) * len(FLAGS),
        counted=len(BS) * len(FLAGS),
        verdict="pass",
    )
    variants = tuple(
        Variant(
            key=VariantKey(arguments={"x": text, "n": "i32 any"}, options={}),
            via="jit",
            origin="probe",
            launches=len(cases),
            cases=tuple(
                {
                    "sweep": sweep.name,
                    "bs": compact(str(BS[at]) for at in box[0]),
                    "flag": tuple(FLAGS[at] for at in box[1]),
                }
                for box in boxes(cases)
            ),
        )
        for text, cases in sorted(reached.items())
    )
    return Manifest(
        schema_version=SCHEMA_VERSION,
        target="cuda:90",
        configuration="",
        environment=Environment(triton="3.7.1", torch="2.13.0", python="3.11.7", variables={}),
        profile=Profile(asked=()),
        sweeps=(sweep,),
        kernels=(
            Kernel(
                id="s.py:k",
                group=None,
                object="k",
                file="s.py",
                line=1,
                source="sha256:0",
                parameters=(),
                autotuner=None,
                launches=sum(variant.launches for variant in variants),
                variants=variants,
            ),
        ),
        findings=(),
    )
