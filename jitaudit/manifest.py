"""The manifest file: nouns to JSON and back, strictly; and the union of several."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from jitaudit.boxes import Grid
from jitaudit.errors import RequestError
from jitaudit.model import SCHEMA_VERSION, Autotuner, Box, Finding, Kernel, Manifest, Profile, SweepRun, Variant


def encode(manifest: Manifest) -> bytes:
    """The file's bytes: sorted keys, one item a line, the same for the same manifest."""
    builtins = msgspec.to_builtins(manifest, str_keys=True, order="deterministic")  # JSON's keys are strings
    return msgspec.json.format(msgspec.json.encode(builtins), indent=1) + b"\n"


def decode(data: bytes, name: str) -> Manifest:
    """Read a manifest strictly; `name` stands in the error. Raises RequestError for anything else."""
    try:
        version = msgspec.json.decode(data, type=_Version).schema_version
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RequestError(f"{name}: not a manifest: {error}") from None
    if version != SCHEMA_VERSION:
        advice = (
            "a newer jitaudit wrote it; upgrade jitaudit"
            if version > SCHEMA_VERSION
            else "make it again with jitaudit probe -o"
        )
        raise RequestError(f"{name}: schema version {version}, this jitaudit reads {SCHEMA_VERSION}; {advice}")
    try:
        return msgspec.json.decode(data, type=Manifest)
    except (msgspec.DecodeError, RecursionError) as error:
        raise RequestError(f"{name}: not a manifest: {error}") from None


def read(paths: Sequence[Path]) -> Manifest:
    """The manifests at `paths`, united. Raises RequestError where one can't be read."""
    return union([decode(_bytes(path), str(path)) for path in paths])


def write(manifest: Manifest, path: Path, *, force: bool = False) -> None:
    """Write a manifest whole or not at all. Raises RequestError as `require_writable` does."""
    write_whole(encode(manifest), path, force=force)


def write_whole(data: bytes, path: Path, *, force: bool = False) -> None:
    """Write a file whole or not at all. Raises RequestError as `require_writable` does."""
    require_writable(path, force=force)
    try:
        descriptor, staged = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        os.chmod(staged, 0o666 & ~_umask())
        os.replace(staged, path)
    except OSError as error:
        raise RequestError(f"{path}: can't be written: {error.strerror}") from None


def require_writable(path: Path, *, force: bool = False) -> None:
    """Raise RequestError where `write` would, before the work is done."""
    if path.is_dir():
        raise RequestError(f"{path}: is a directory; name a file")
    if path.exists() and not force:
        raise RequestError(f"{path}: exists; give another -o, or --force to replace it")
    if not path.parent.is_dir():
        raise RequestError(f"{path}: no such directory: {path.parent}")
    if not os.access(path.parent, os.W_OK):
        raise RequestError(f"{path}: can't be written: {path.parent} is not writable")


def union(manifests: Sequence[Manifest]) -> Manifest:
    """One manifest of several: kernels merged by (id, group), variants by key, launches added.

    Raises RequestError where their targets or configurations differ, or one sweep stands in two with different axes.
    """
    first = manifests[0]
    for other in manifests[1:]:
        if (other.target, other.configuration) != (first.target, first.configuration):
            raise RequestError(
                f"manifests of {first.target} {first.configuration!r} and {other.target} {other.configuration!r}: "
                "one target and one configuration at a time"
            )
    sweeps: dict[str, SweepRun] = {}
    for run in (run for manifest in manifests for run in manifest.sweeps):
        if sweeps.setdefault(run.name, run).axes != run.axes:
            raise RequestError(f"sweep {run.name} stands in two of the manifests with different axes")
    kernels: dict[tuple[str, str], list[Kernel]] = {}
    for kernel in (kernel for manifest in manifests for kernel in manifest.kernels):
        kernels.setdefault((kernel.id, kernel.group or ""), []).append(kernel)
    grids = {name: Grid(run.axes) for name, run in sweeps.items()}
    return Manifest(
        schema_version=SCHEMA_VERSION,
        target=first.target,
        configuration=first.configuration,
        environment=first.environment,
        profile=Profile(
            asked=tuple(sorted({name for m in manifests for name in m.profile.asked})),
            stubs=tuple(sorted({name for m in manifests for name in m.profile.stubs})),
        ),
        sweeps=tuple(sweeps[name] for name in sorted(sweeps)),
        kernels=tuple(_merge_kernels(kernels[key], grids) for key in sorted(kernels)),
        findings=sorted_findings(finding for manifest in manifests for finding in manifest.findings),
    )


def sorted_findings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Findings once each, by code, kernel, argument and case."""

    def order(finding: Finding) -> tuple[str, ...]:
        f = finding
        return (f.code, f.kernel or "", f.argument or "", f.sweep or "", f.case or "", f.message)

    return tuple({order(finding): finding for finding in sorted(findings, key=order)}.values())


def _merge_kernels(kernels: Sequence[Kernel], grids: dict[str, Grid]) -> Kernel:
    if len(kernels) == 1:
        return kernels[0]
    variants: dict[str, _Merging] = {}
    for variant in (variant for kernel in kernels for variant in kernel.variants):
        variants.setdefault(variant.key.text, _Merging(variant, grids)).add(variant)
    return msgspec.structs.replace(
        kernels[0],
        autotuner=_merge_tuners([kernel.autotuner for kernel in kernels if kernel.autotuner]),
        launches=sum(kernel.launches for kernel in kernels),
        variants=tuple(variants[key].variant() for key in sorted(variants)),
    )


@dataclass
class _Merging:
    """One variant that stands in several manifests."""

    first: Variant
    grids: dict[str, Grid]
    launches: int = 0
    cases: dict[str, list[tuple[Box, ...]]] = field(default_factory=dict)
    """By sweep: the boxes of each manifest."""

    def add(self, variant: Variant) -> None:
        self.launches += variant.launches
        for sweep in dict.fromkeys(str(box["sweep"]) for box in variant.cases):
            self.cases.setdefault(sweep, []).append(tuple(box for box in variant.cases if box["sweep"] == sweep))

    def variant(self) -> Variant:
        cases = tuple(box for sweep in sorted(self.cases) for box in self._united(sweep))
        return msgspec.structs.replace(self.first, launches=self.launches, cases=cases)

    def _united(self, sweep: str) -> tuple[Box, ...]:
        """The boxes of one sweep: of one manifest as they are, of several made anew, since theirs may overlap."""
        if len(self.cases[sweep]) == 1:
            return self.cases[sweep][0]
        grid = self.grids[sweep]
        return grid.boxes(
            sweep, {number for boxes in self.cases[sweep] for box in boxes for number in grid.numbers(box)}
        )


def _merge_tuners(tuners: Sequence[Autotuner]) -> Autotuner | None:
    if not tuners:
        return None
    keys = {key.key: key for tuner in tuners for key in tuner.tuning_keys}
    return msgspec.structs.replace(
        tuners[0],
        tuning_keys=tuple(keys[key] for key in sorted(keys)),
        benchmark_runs=sum(len(key.configs) for key in keys.values() if len(key.configs) > 1),
    )


class _Version(msgspec.Struct):
    schema_version: int


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise RequestError(f"{path}: no such file") from None
    except OSError as error:
        raise RequestError(f"{path}: can't be read: {error.strerror}") from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
