"""Observe the launches that really happen on a GPU. The program does what it would do without.

`JITFunction.run` is wrapped: the key comes from Triton's own binder, then the launch takes its course. Triton's hooks
are left alone, since installing one can crash a program: Triton serialises the key before it calls them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from jitaudit.jit.capture import (
    Binder,
    Capture,
    SeenKernel,
    SeenVariant,
    capturing,
    exactly,
    require_triton,
    run_options,
)
from jitaudit.jit.keys import Opaque
from jitaudit.jit.patching import patched
from jitaudit.jit.target import DEFAULT_TARGET


def watching(target: str | None) -> AbstractContextManager[Capture | Observation]:
    """Observe real launches where torch sees a GPU and no target is asked for; else capture, for cuda:90 by default.

    Raises SetupError as `capturing` does.
    """
    require_triton()
    import torch

    if target is None and torch.cuda.is_available():
        return observing()
    return capturing(target or DEFAULT_TARGET)


@contextmanager
def observing() -> Iterator[Observation]:
    """Observe every launch inside the block, of the target that Triton's driver stands for.

    Of the launches that an autotuner times only the first of each config is observed, so that the timings stay what
    they are. A compiled kernel that the program kept from before is launched without Triton, and is not seen.
    """
    require_triton()
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.driver import driver
    from triton.runtime.jit import JITFunction

    target = driver.active.get_current_target()
    observation = Observation(f"{target.backend}:{target.arch}")
    run, bench = JITFunction.run, Autotuner._bench

    def launch(function: Any, *args: Any, **kwargs: Any) -> Any:
        observation.launch(function, args, dict(kwargs))
        return run(function, *args, **kwargs)

    def time_config(tuner: Any, *args: Any, **kwargs: Any) -> Any:
        observation.timed, before = set(), observation.timed
        try:
            return bench(tuner, *args, **kwargs)
        finally:
            observation.timed = before

    with patched([(JITFunction, "run", launch), (Autotuner, "_bench", time_config)]):
        yield observation


class Observation:
    """The launches so far, as a `Capture` has them: `begin` and `end` frame each case."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.seen: dict[Any, SeenKernel] = {}
        self.failed: list[str] = []
        """What could not be observed, in words: the launch went on all the same."""
        self.timed: set[Any] | None = None
        """While an autotuner times a config: the kernels that it launched."""
        self._binders: dict[Any, Binder] = {}
        self._opaque = Opaque()
        self._case = 0

    def begin(self, case: int) -> None:
        """Start case number `case`."""
        self._case = case

    def end(self) -> None:
        """The case is over."""

    def launch(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """See one launch that is about to happen."""
        if self.timed is not None:
            if function in self.timed:
                return
            self.timed.add(function)
        try:
            variant = self._variant(function, args, kwargs)
        except Exception as error:  # the program may not notice; if the launch itself is wrong, Triton raises next
            self.failed.append(f"{function.__name__}: {type(error).__name__}: {error}")
            return
        variant.launches += 1
        if not variant.cases or variant.cases[-1] != self._case:
            variant.cases.append(self._case)

    def _variant(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> SeenVariant:
        kwargs.pop("grid", None)
        kwargs.pop("warmup", None)
        binder = self._binders.get(function) or self._binders.setdefault(function, Binder(function, self._opaque))
        debug = kwargs.get("debug", function.debug)
        kwargs |= run_options()
        if debug:
            kwargs["debug"] = debug
        _, specialization, options = binder.bind(*args, **kwargs)
        memo = exactly(specialization, options)
        variant = binder.memo.get(memo)
        if variant is None:
            key = binder.key(specialization, kwargs)
            kernel = self.seen.setdefault(function, SeenKernel(function))
            new = SeenVariant(key, self.timed is not None, ({}, [], {}))
            variant = binder.memo[memo] = kernel.variants.setdefault(key.text, new)
        return variant
