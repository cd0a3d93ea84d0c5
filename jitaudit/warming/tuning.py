"""The process that launches on the GPU: autotuners measure, host builds are made, and what won is kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from jitaudit.jit.hostbuilds import host_builds
from jitaudit.jit.inprocess import current_device, measured_winners
from jitaudit.jit.marker import Launched, Winner
from jitaudit.jit.observing import Observation, observing
from jitaudit.jit.rebuild import NotWarmable
from jitaudit.jit.settling import zeroed
from jitaudit.jit.timing import require_gpu, synchronize
from jitaudit.model import Manifest
from jitaudit.planning import find_kernels, plan, tuners_of, use_cache
from jitaudit.sweeping.axes import Sweep
from jitaudit.sweeping.process import Progress, serve
from jitaudit.sweeping.targets import load, read_target
from jitaudit.warming.nouns import Request, Tuned


def main(progress: int, private: str) -> None:
    """Answer the request that stands on standard input."""
    serve(tune, Request, progress, private)


def tune(request: Request, progress: Progress) -> Tuned:
    """Launch every case of the sweeps for real. Raises SetupError where there is no GPU, or another than the target."""
    device, manifest = require_gpu(), request.manifest
    current_device(manifest.target)
    use_cache(request.cache)
    with observing() as observed, zeroed():
        raised = tuple(_launch(request.sources.targets, manifest, progress))
    functions = find_kernels(manifest, request.sources)
    _, rebuilt = plan(manifest, functions)
    builds = host_builds(rebuilt.values(), manifest.target, Path(request.cache.path))
    missing = sum(not build.is_there for build in builds)
    won = tuple(winners(manifest, functions, device))
    return Tuned(device, won, raised, missing, tuple(launched(manifest, functions, observed)))


def winners(manifest: Manifest, functions: Sequence[Any], device: str) -> Iterator[Winner]:
    """What the autotuners of this process have measured for the manifest's kernels. `functions`: as they were found."""
    tuners = tuners_of(manifest)
    for kernel, function in zip(manifest.kernels, functions, strict=True):
        if kernel.autotuner is None or isinstance(function, NotWarmable):
            continue
        wanted = {tuning.key for tuning in kernel.autotuner.tuning_keys}
        for tuner in tuners.get(function, ()):
            for key, config in measured_winners(tuner):
                if key in wanted:
                    yield Winner(kernel.id, kernel.group, key, config, device)


def launched(manifest: Manifest, functions: Sequence[Any], observed: Observation) -> Iterator[Launched]:
    """What autotuned kernels were launched as, beside the benchmark runs, and the manifest does not have.

    Where a tuning key is known already, the winner is launched on arguments that were never benchmarked; which of the
    configs that is, no manifest can tell.
    """
    for kernel, function in zip(manifest.kernels, functions, strict=True):
        if kernel.autotuner is not None and not isinstance(function, NotWarmable) and function in observed.seen:
            known = {variant.key.text for variant in kernel.variants}
            for text, variant in observed.seen[function].variants.items():
                if text not in known:
                    yield Launched(kernel.id, kernel.group, variant.key)


def recorded(sweeps: dict[str, Sweep], manifest: Manifest) -> dict[str, Sweep]:
    """The sweeps that the manifest was made from, over its axes; all as they are where it names none of them."""
    axes = {run.name: run.axes for run in manifest.sweeps}
    return {name: sweep.as_recorded(axes[name]) for name, sweep in sweeps.items() if name in axes} or sweeps


def _launch(targets: Sequence[str], manifest: Manifest, progress: Progress) -> Iterator[str]:
    """Run the cases of the manifest's sweeps; those that raise, a line each."""
    for text in targets:
        for name, sweep in recorded(load(read_target(text)).sweeps, manifest).items():
            cases = list(sweep.cases())
            for number, (_, case) in enumerate(cases):
                try:
                    sweep(**case)
                except Exception as error:  # a launcher of the user's
                    yield f"{name}: {type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
                progress(f"launching {name}", number + 1, len(cases))
            synchronize()
