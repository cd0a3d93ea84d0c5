"""The shipped kernels' variants, baseline and floored: `python -m benchmarks.variants -o reports/variants.json`.

Over the default axes, and over the 14 batch sizes that the published counts of the DSA trio are for.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import msgspec

from benchmarks.conditions import conditions, write_json
from jitaudit.model import Manifest
from jitaudit.sweeping import Narrowing, run

PUBLISHED_SIZES = "1,2,3,4,5,6,7,8,10,12,13,14,15,16"
TRIO = tuple(f"jitaudit_kernels.dsa_metadata.{step}_step" for step in ("decode", "verify", "draft_extend"))


class Count(msgspec.Struct, frozen=True):
    """One kernel under both policies."""

    kernel: str
    baseline: int
    floored: int


class Variants(msgspec.Struct, frozen=True):
    """What `jitaudit probe` counts."""

    conditions: dict[str, str | int]
    whole: tuple[Count, ...]
    trio: tuple[Count, ...]
    """Over the 14 published batch sizes."""


def main() -> None:
    """Count, and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, required=True)
    output = parser.parse_args().output
    counted = Variants(
        conditions("benchmarks.variants"),
        counts(run(["jitaudit_kernels"], "cuda:90", Narrowing())),
        tuple(
            count
            for target in TRIO
            for count in counts(run([target], "cuda:90", Narrowing(axes={"bs": PUBLISHED_SIZES})))
        ),
    )
    write_json(output, counted)


def counts(manifest: Manifest) -> tuple[Count, ...]:
    """Each kernel's variants by policy, the most first."""
    found = {(kernel.id, kernel.group): len(kernel.variants) for kernel in manifest.kernels}
    rows = [
        Count(kernel.partition(".")[2], found[kernel, "baseline"], found[kernel, "floored"])
        for kernel in {kernel for kernel, _ in found}
    ]
    return tuple(sorted(rows, key=lambda row: (-row.baseline, row.kernel)))


if __name__ == "__main__":
    main()
