"""Fill the caches that Triton keeps in a process, so that a launch finds its kernel there, loaded.

A launch's key in memory depends on how its options are spelt, which no manifest tells: ``num_warps=4`` and nothing at
all are one binary and two keys. So the memo through which Triton computes a new key is watched: where the canonical key
of a new one is warm, the kernel is there before Triton looks for it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jitaudit.errors import SetupError
from jitaudit.jit import decoding
from jitaudit.jit.compiling import last_word
from jitaudit.jit.keys import Opaque, value_text
from jitaudit.jit.rebuild import NotWarmable, Rebuilder
from jitaudit.jit.tuning import config_text
from jitaudit.model import VariantKey


@dataclass(frozen=True)
class Filled:
    """What became of the keys, each by its text."""

    ready: int
    unknown: dict[str, str]
    """Keys that the function does not have, with the reason."""
    failed: dict[str, str]
    """Keys whose compile or load failed."""


def fill(function: Any, keys: Iterable[VariantKey], device: int, *, load: bool = True) -> Filled:
    """Put the kernels of `keys` into the function's cache for `device`, which must be Triton's current one.

    Each comes from the cache on disk, or is compiled. `load`: also load its module on the device.
    """
    import triton
    from triton.runtime.jit import compute_cache_key

    rebuilder = Rebuilder(function)
    memo = _watch(function, device, rebuilder)
    unknown, failed, ready = {}, {}, 0
    for key in keys:
        try:
            made = rebuilder.rebuild(key)
            kernel = triton.compile(made.source, target=memo.target, options=made.options)
            if load:
                kernel._init_handles()
        except NotWarmable as why:
            unknown[key.text] = str(why)
        except Exception as error:  # whatever a compiler or a device raises
            failed[key.text] = last_word(error)
        else:
            ready += 1
            memo.warm[key.text] = kernel
            memo.foresee(made.specialization, made.given, compute_cache_key)
    return Filled(ready, unknown, failed)


def cache_directory() -> Path:
    """Triton's cache directory, as this process uses it now."""
    from triton import knobs

    return Path(knobs.cache.dir)


def current_device(target: str) -> int:
    """The number of the device that Triton uses now. Raises SetupError where it is not the target."""
    from triton.runtime.driver import driver

    try:
        found = driver.active.get_current_target()
        device = int(driver.active.get_current_device())
    except Exception as error:  # whatever a missing or broken driver raises
        raise SetupError(
            f"there is no GPU to load kernels on ({error}); without one, jitaudit warm fills the cache directory"
        ) from None
    if f"{found.backend}:{found.arch}" != target:
        raise SetupError(f"the manifest is for {target}, and the device here is {found.backend}:{found.arch}")
    return device


def device_name() -> str:
    """The name of torch's current GPU; empty where it has none."""
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else ""


def restore_winner(tuner: Any, key: tuple[str, ...], config: str) -> bool:
    """Put a stored winner into an autotuner's cache; False where the config is not in its list any more."""
    found = next((candidate for candidate in tuner.configs if config_text(candidate) == config), None)
    if found is None:
        return False
    tuner.cache.setdefault(tuple(decoding.value(text) for text in key), found)
    return True


def recall_winner(tuner: Any, key: tuple[str, ...], configs: Sequence[str]) -> bool:
    """Whether an autotuner knows a winner, from Triton's own results of tuning on disk too, where it keeps them.

    `configs`: those that survive pruning at this key, in their order: Triton files its results under them.
    """
    values = tuple(decoding.value(text) for text in key)
    if values in tuner.cache:
        return True
    if not getattr(tuner, "cache_results", False):
        return False
    known = {config_text(config): config for config in tuner.configs}
    if not known.keys() >= set(configs):
        return False
    try:
        tuner.check_disk_cache(values, [known[text] for text in configs], _refuse_to_benchmark)
    except Exception:  # nothing is there, or nothing that Triton can read
        return False
    return values in tuner.cache


def _refuse_to_benchmark() -> None:
    raise LookupError("no results on disk")


def measured_winners(tuner: Any) -> Iterator[tuple[tuple[str, ...], str]]:
    """The tuning keys that an autotuner knows, as a manifest has them, and the config that won at each."""
    opaque = Opaque()
    for key, config in tuner.cache.items():
        yield tuple(value_text(value, opaque) for value in key), config_text(config)


class _Memo(dict[Any, str]):
    """Triton's memo of a function's keys: (specialization, options as text) → key in memory."""

    def __init__(self, known: dict[Any, str], kernels: dict[str, Any], target: Any, rebuilder: Rebuilder) -> None:
        super().__init__(known)
        self.target = target
        self.warm: dict[str, Any] = {}
        """Text of the canonical key → kernel."""
        self._kernels = kernels
        self._rebuilder = rebuilder
        self._foreseen: dict[Any, bool] = {}
        """Launches whose key was made known ahead; False where a second one meant it too, and it was taken back."""

    def __setitem__(self, launch: Any, key: str) -> None:
        super().__setitem__(launch, key)
        if key not in self._kernels and (kernel := self._warm_kernel(*launch)) is not None:
            self._kernels[key] = kernel

    def foresee(self, specialization: Any, options: dict[str, Any], compute: Any) -> None:
        """Make the key of the plainest launch known, unless Triton can't tell it from another one.

        Constexprs True, 1 and 1.0 share an entry of the memo: the first of them that is launched decides, as always.
        """
        launch = (tuple(specialization), str(options))
        if launch in self._foreseen:
            if self._foreseen[launch]:
                self._kernels.pop(self.pop(launch), None)
            self._foreseen[launch] = False
        elif launch not in self:
            compute(self, specialization, options)
            self._foreseen[launch] = True

    def _warm_kernel(self, specialization: Any, options: str) -> Any:
        try:
            parsed = self._rebuilder.parse(ast.literal_eval(options))
            return self.warm.get(self._rebuilder.key_of(list(specialization), parsed).text)
        except Exception:  # options of a kind that no manifest holds: Triton goes its own way
            return None


def _watch(function: Any, device: int, rebuilder: Rebuilder) -> _Memo:
    """The function's memo for a device, put there if it isn't yet."""
    kernels, memo, target, backend, binder = function.device_caches[device]
    if not isinstance(memo, _Memo):
        memo = _Memo(memo, kernels, target, rebuilder)
        function.device_caches[device] = (kernels, memo, target, backend, binder)
    return memo
