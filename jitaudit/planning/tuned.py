"""Which tuning keys a server would still benchmark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from jitaudit.jit.inprocess import recall_winner
from jitaudit.jit.living import tuners_by_function
from jitaudit.jit.marker import Markers
from jitaudit.jit.rebuild import NotWarmable
from jitaudit.model import Kernel, Manifest, TuningKey
from jitaudit.planning.nouns import Untuned


def tuners_of(manifest: Manifest) -> dict[Any, list[Any]]:
    """The autotuners of this process by `JITFunction`; none where no kernel is tuned, which spares the search."""
    return tuners_by_function() if any(kernel.autotuner for kernel in manifest.kernels) else {}


def untuned(manifest: Manifest, functions: Sequence[Any], markers: Markers) -> Iterator[Untuned]:
    """The tuning keys that have several configs to benchmark and no winner, in a marker or in Triton's own results.

    `functions`: what `find_kernels` found.
    """
    tuners = tuners_of(manifest)
    for kernel, function in zip(manifest.kernels, functions, strict=True):
        found = [] if isinstance(function, NotWarmable) else tuners.get(function, [])
        if keys := tuple(_untuned_keys(kernel, found, markers)):
            yield Untuned(kernel.id, kernel.group, keys)


def _untuned_keys(kernel: Kernel, tuners: Sequence[Any], markers: Markers) -> Iterator[tuple[str, ...]]:
    known = {
        winner.key
        for marker in markers.readable.values()
        for winner in marker.winners
        if (winner.kernel, winner.group) == (kernel.id, kernel.group)
    }
    for tuning in kernel.autotuner.tuning_keys if kernel.autotuner else ():
        if len(tuning.configs) > 1 and tuning.key not in known:
            configs = surviving(kernel, tuning)
            if not any(recall_winner(tuner, tuning.key, configs) for tuner in tuners):
                yield tuning.key


def surviving(kernel: Kernel, tuning: TuningKey) -> tuple[str, ...]:
    """The configs, as text, that are benchmarked at a tuning key."""
    assert kernel.autotuner is not None
    return tuple(kernel.autotuner.configs[index] for index in tuning.configs)
