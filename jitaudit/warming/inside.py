"""Warm this process: each kernel's own caches are filled and its modules loaded, before the first launch."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jitaudit import manifest as manifests
from jitaudit.configuration import kernel_name
from jitaudit.jit.capture import require_triton
from jitaudit.jit.inprocess import cache_directory, current_device, device_name, fill, recall_winner, restore_winner
from jitaudit.jit.living import follow_new_kernels, is_kernel, living_kernels
from jitaudit.jit.marker import read_markers
from jitaudit.jit.rebuild import NotWarmable
from jitaudit.model import Kernel, Manifest
from jitaudit.planning import Sources, find_kernels, surviving, tuners_of


@dataclass
class Warmth:
    """What `warm` has done so far; kernels that did not exist then are added when they are made."""

    ready: int = 0
    """Variants whose kernels are in the process, loaded."""
    failed: list[str] = field(default_factory=list)
    """What could not be made, or no longer fits, a line each."""
    waiting: tuple[str, ...] = ()
    """Kernels that do not exist yet."""
    tuned: int = 0
    """Tuning keys whose winner is known, so that they are not benchmarked."""


def warm(manifest: Manifest | str | Path, *, load: bool = True, any_device: bool = False) -> Warmth:
    """Make every variant of `manifest` a hit in this process, on its current device.

    After it, a launch of these variants compiles nothing, reads nothing from disk and loads no module; autotuners whose
    winner was measured (``jitaudit warm --gpu``) benchmark nothing. Kernels that are made later are warmed then.

    load: False leaves the modules to the first launch. any_device: take winners that another model of GPU measured.
    Raises RequestError for a manifest that can't be read, SetupError where the device is not the manifest's target.
    """
    read = manifest if isinstance(manifest, Manifest) else manifests.read([Path(manifest)])
    require_triton()
    device = current_device(read.target)
    warming = _Warming(read, device, load, any_device)
    warming.start()
    return warming.warmth


class _Warming:
    """One `warm` of this process. Kernels that are made later may come from any thread."""

    def __init__(self, manifest: Manifest, device: int, load: bool, any_device: bool) -> None:
        self.warmth = Warmth()
        self._manifest = manifest
        self._device = device
        self._load = load
        self._any_device = any_device
        self._waiting: list[Kernel] = []
        self._tuners: dict[Any, list[Any]] = {}
        self._lock = threading.RLock()
        markers = list(read_markers(cache_directory()).readable.values())
        self._winners = [winner for marker in markers for winner in marker.winners]
        self._launched = [launched for marker in markers for launched in marker.launched]

    def start(self) -> None:
        """Warm what is there, and follow what comes."""
        functions = find_kernels(self._manifest, Sources())
        alive, self._tuners = living_kernels(), tuners_of(self._manifest)
        for kernel, function in zip(self._manifest.kernels, functions, strict=True):
            if not isinstance(function, NotWarmable):
                self._fill(kernel, function)
                continue
            found = [self._fill(kernel, living) for living in alive if is_kernel(living, kernel)]
            if kernel.object is None or not any(found):
                self._waiting.append(kernel)
        self._note_waiting()
        if self._waiting:
            follow_new_kernels(self._made)

    def _made(self, function: Any) -> None:
        with self._lock:
            self._tuners = tuners_of(self._manifest)
            for kernel in [kernel for kernel in self._waiting if is_kernel(function, kernel)]:
                if self._fill(kernel, function) and kernel.object is not None:
                    self._waiting.remove(kernel)
            self._note_waiting()

    def _fill(self, kernel: Kernel, function: Any) -> bool:
        """Whether the function has any of the kernel's variants; one source may be several kernels."""
        keys = [variant.key for variant in kernel.variants]
        filled = fill(function, keys, self._device, load=self._load)
        if len(filled.unknown) == len(keys):
            return False
        self.warmth.ready += filled.ready
        self._fail(kernel, (filled.unknown | filled.failed).items())
        self._tune(kernel, function)
        tuned = [seen.key for seen in self._launched if (seen.kernel, seen.group) == (kernel.id, kernel.group)]
        self.warmth.ready += fill(function, tuned, self._device, load=self._load).ready
        return True

    def _tune(self, kernel: Kernel, function: Any) -> None:
        """Give the kernel's autotuners the winners that were measured, those of Triton's own results too."""
        if kernel.autotuner is None:
            return
        winners = [w for w in self._winners if (w.kernel, w.group) == (kernel.id, kernel.group)]
        stored = {winner.key for winner in winners}
        for tuner in self._tuners.get(function, ()):
            for tuning in kernel.autotuner.tuning_keys:
                if tuning.key not in stored:
                    self.warmth.tuned += recall_winner(tuner, tuning.key, surviving(kernel, tuning))
            for winner in winners:
                name = f"tuning key {', '.join(winner.key)}"
                if winner.device != device_name() and not self._any_device:
                    self._fail(kernel, [(name, f"JA220 winner-elsewhere: measured on {winner.device}")])
                elif restore_winner(tuner, winner.key, winner.config):
                    self.warmth.tuned += 1
                else:
                    self._fail(kernel, [(name, f"JA219 winner-gone: {winner.config} is no config any more")])

    def _fail(self, kernel: Kernel, reasons: Iterable[tuple[str, str]]) -> None:
        name = kernel_name(kernel.id, kernel.group)
        self.warmth.failed += [f"{name}: {what}: {why}" for what, why in reasons]

    def _note_waiting(self) -> None:
        self.warmth.waiting = tuple(kernel_name(kernel.id, kernel.group) for kernel in self._waiting)
