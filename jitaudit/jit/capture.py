"""Capture: run launchers for real, see each launch's key, compile nothing and launch nothing.

`JITFunction.run` is replaced. The key comes from Triton's own binder for the target; a memo keeps the design-word key
of each one seen. Autotuners run their own code with a benchmarker that calls each config once and finds them equal, so
pruning, hooks, subclasses and tuning keys are theirs; their state is put back afterwards.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from jitaudit.errors import SetupError
from jitaudit.jit import values
from jitaudit.jit.device import answering
from jitaudit.jit.driver import bench_once, offline_driver
from jitaudit.jit.environment import SUPPORTED_TRITON, is_supported
from jitaudit.jit.keys import Opaque, changed_options, value_text, variant_key
from jitaudit.jit.patching import patched
from jitaudit.jit.standin import standing_in
from jitaudit.jit.stops import Unsupported
from jitaudit.jit.target import device_profile, require_target
from jitaudit.jit.timing import require_gpu
from jitaudit.model import Scalar, VariantKey

_EXACT = {int, bool, str, type(None)}
"""Types whose Python equality, together with the type, is the equality of keys. Not float: -0.0 == 0.0."""


@dataclass(slots=True)
class SeenVariant:
    """One key of one kernel, with the launches and the cases that reached it."""

    key: VariantKey
    tuned: bool
    launch: tuple[dict[str, Any], list[Any], dict[str, Any]]
    """Its first launch, from which it can be compiled: bound arguments, what the binder said of them, keywords."""
    launches: int = 0
    cases: list[int] = field(default_factory=list)


@dataclass(slots=True)
class SeenTuner:
    """What a kernel's autotuner did."""

    tuner: Any
    tuning_keys: dict[tuple[str, ...], tuple[int, ...]] = field(default_factory=dict)
    benchmark_runs: int = 0


@dataclass(slots=True)
class SeenKernel:
    """A `JITFunction` and what was seen of it."""

    function: Any
    variants: dict[str, SeenVariant] = field(default_factory=dict)
    tuner: SeenTuner | None = None


@contextmanager
def capturing(target: str) -> Iterator[Capture]:
    """Capture launches for `target` inside the block, with no GPU. Everything is put back, whatever happens inside.

    Raises SetupError where Triton is missing, interprets kernels, or can't compile for the target.
    """
    require_triton()
    require_target(target)
    from triton.runtime.driver import driver as active

    capture = Capture(target)
    driver = offline_driver(target, capture.asked.add)
    with (
        answering(device_profile(target), capture.asked.add),
        patched([(active, "_active", driver), *_following(capture)]),
        standing_in(),
    ):
        try:
            yield capture
        finally:
            capture.restore_tuners()


@contextmanager
def capturing_on_gpu() -> Iterator[Capture]:
    """Capture launches on the GPU that is here: real tensors, and still nothing is compiled or launched.

    Raises SetupError where there is none.
    """
    require_triton()
    require_gpu()
    from triton.runtime.driver import driver

    target = driver.active.get_current_target()
    capture = Capture(f"{target.backend}:{target.arch}")
    with patched(_following(capture)):
        try:
            yield capture
        finally:
            capture.restore_tuners()


def require_triton() -> None:
    """Raise SetupError unless a supported Triton is installed and compiles kernels rather than interpreting them."""
    try:
        import triton
    except ImportError as error:
        raise SetupError(
            f"Triton can't be imported ({error}); install jitaudit[triton], or Triton for your GPU"
        ) from None
    try:
        import torch  # noqa: F401
    except ImportError as error:
        raise SetupError(
            f"torch can't be imported ({error}); install jitaudit[triton], or torch for your GPU"
        ) from None
    if not is_supported(triton.__version__):
        raise SetupError(f"Triton {triton.__version__} is not supported; jitaudit knows {', '.join(SUPPORTED_TRITON)}")
    if triton.knobs.runtime.interpret:
        raise SetupError("TRITON_INTERPRET is set: interpreted kernels have no keys; unset it")


class Capture:
    """The launches of one sweep. `begin` and `end` frame each case; only what a completed case did is counted."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.asked: set[str] = set()
        self._kernels: dict[Any, SeenKernel] = {}
        self._opaque = Opaque()
        self._binders: dict[Any, _Binder] = {}
        self._case = 0
        self._options = run_options()
        self._launched: list[SeenVariant] = []
        self._benched: list[SeenVariant] = []
        self._tuning: list[_Tuning] = []
        self._tuner_states: dict[Any, dict[str, Any]] = {}

    def begin(self, case: int) -> None:
        """Start case number `case`; what an unfinished one did is forgotten."""
        self._case = case
        self._options = run_options()
        self._launched.clear()
        self._benched.clear()

    def end(self) -> None:
        """Count what the case did."""
        for variant in self._launched:
            variant.launches += 1
        for variant in (*self._launched, *self._benched):
            if not variant.cases or variant.cases[-1] != self._case:
                variant.cases.append(self._case)

    @property
    def seen(self) -> dict[Any, SeenKernel]:
        """The kernels seen so far, by function."""
        return self._kernels

    def take(self) -> dict[Any, SeenKernel]:
        """The kernels seen so far. The next case starts afresh, autotuners too, as in a new process."""
        seen, self._kernels = self._kernels, {}
        for binder in self._binders.values():
            binder.memo.clear()
        self.restore_tuners()
        return seen

    def seed(self) -> None:
        """Start every random generator from 0, so that a sweep's counts don't depend on what ran before."""
        import torch

        random.seed(0)
        torch.manual_seed(0)

    def restore_tuners(self) -> None:
        """Put back the state of every autotuner that was run."""
        for tuner, state in self._tuner_states.items():
            vars(tuner).clear()
            vars(tuner).update(state)
        self._tuner_states.clear()

    def launch(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What stands for `JITFunction.run`: the key is seen, nothing is compiled or launched."""
        grid, warmup = kwargs.pop("grid", None), kwargs.pop("warmup", False)
        binder = self._binders.get(function) or self._binders.setdefault(function, _Binder(function, self._opaque))
        debug = kwargs.get("debug", function.debug)
        kwargs.update(self._options)
        if debug:
            kwargs["debug"] = debug
        for hook in function.pre_run_hooks:
            hook(*args, **kwargs)
        bound, specialization, options = binder.bind(*args, **kwargs)
        exact = [
            repr(item) if item[0].__class__ is tuple or item[1].__class__ not in _EXACT else item[1].__class__
            for item in specialization
        ]
        memo = (*specialization, *exact, str(options))
        variant = binder.memo.get(memo)
        if variant is None:
            variant = binder.memo[memo] = self._see(function, binder, bound, specialization, kwargs)
        if not warmup and callable(grid):
            grid(bound)
        values.forget_written(bound.values())
        (self._benched if self._tuning and self._tuning[-1].benching else self._launched).append(variant)
        return _Launched(self._launched, variant)

    def _see(self, function: Any, binder: _Binder, bound: Any, specialization: Any, kwargs: Any) -> SeenVariant:
        _refuse_host_pointers(bound)
        key = variant_key(binder.names, binder.constexprs, specialization, binder.changed(kwargs), self._opaque)
        tuned = bool(self._tuning) and self._tuning[-1].function is function
        variants = self._kernels.setdefault(function, SeenKernel(function)).variants
        return variants.setdefault(key.text, SeenVariant(key, tuned, (bound, specialization, kwargs)))

    @contextmanager
    def tuning(self, tuner: Any) -> Iterator[None]:
        """Follow one `Autotuner.run`: its own code runs, from an empty tuning cache at the first."""
        if tuner not in self._tuner_states:
            self._tuner_states[tuner] = dict(vars(tuner))
            vars(tuner).update(cache={}, cache_results=False, do_bench=bench_once)
        current = _Tuning(tuner)
        self._tuning.append(current)
        known = len(tuner.cache)
        try:
            yield
        finally:
            self._tuning.pop()
        seen = self._kernels.setdefault(current.function, SeenKernel(current.function))
        seen.tuner = seen.tuner or SeenTuner(tuner)
        seen.tuner.benchmark_runs += current.benchmark_runs
        for key in list(tuner.cache)[known:]:
            text = tuple(value_text(value, self._opaque) for value in key)
            seen.tuner.tuning_keys[text] = tuple(tuner.configs.index(config) for config in current.survivors)

    @contextmanager
    def benching(self) -> Iterator[None]:
        """One benchmark run of the autotuner that is running."""
        current = self._tuning[-1]
        current.benching = True
        current.benchmark_runs += 1
        try:
            yield
        finally:
            current.benching = False

    def pruned(self, survivors: list[Any]) -> None:
        """The autotuner that is running kept these configs."""
        if self._tuning:
            self._tuning[-1].survivors = survivors


class _Tuning:
    """An `Autotuner.run` under way."""

    def __init__(self, tuner: Any) -> None:
        from triton.runtime.jit import JITFunction

        self.function = tuner.fn
        while not isinstance(self.function, JITFunction):
            self.function = self.function.fn
        self.survivors: list[Any] = []
        self.benchmark_runs = 0
        self.benching = False


class _Binder:
    """Triton's binder of one kernel for the capture's target, with the memo of the keys it gave."""

    def __init__(self, function: Any, opaque: Opaque) -> None:
        _, _, _, self._backend, self.bind = function.create_binder()
        self._opaque = opaque
        self.names = [param.name for param in function.params]
        self.constexprs = {param.name for param in function.params if param.is_constexpr}
        self.memo: dict[object, SeenVariant] = {}

    def changed(self, kwargs: dict[str, Any]) -> dict[str, Scalar]:
        """The launch's options that differ from the target's defaults. Raises KeyError for one that Triton rejects."""
        parsed = self._backend.parse_options(dict(kwargs))
        for name in kwargs:
            if name not in vars(parsed) and name not in self.names:
                raise KeyError(f"Keyword argument {name} was specified but unrecognised")
        return changed_options(parsed, self._backend.parse_options(run_options()), self._opaque)


def run_options() -> dict[str, Any]:
    """The options that `JITFunction.run` adds to each launch, from the environment as it is now."""
    from triton import knobs

    options = {"debug": knobs.runtime.debug, "instrumentation_mode": knobs.compilation.instrumentation_mode}
    if hasattr(type(knobs.compilation), "fpsan_homomorphic_casts"):  # Triton 3.9
        options["fpsan_homomorphic_casts"] = knobs.compilation.fpsan_homomorphic_casts
    return options


class _Launched:
    """What a launch returns: stands for the `CompiledKernel`, which launchers may keep and launch again."""

    def __init__(self, launched: list[SeenVariant], variant: SeenVariant) -> None:
        self._again = lambda *args, **kwargs: launched.append(variant)

    def __getitem__(self, grid: object) -> Callable[..., None]:
        return self._again

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise Unsupported(f"CompiledKernel.{name}")


def _following(capture: Capture) -> list[tuple[Any, str, Any]]:
    """The patches that show launches and autotuners to `capture`."""
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.jit import JITFunction

    run, bench, prune = Autotuner.run, Autotuner._bench, Autotuner.prune_configs

    def launch(function: Any, *args: Any, **kwargs: Any) -> Any:
        return capture.launch(function, args, kwargs)

    def tune(tuner: Any, *args: Any, **kwargs: Any) -> Any:
        with capture.tuning(tuner):
            return run(tuner, *args, **kwargs)

    def benchmark(tuner: Any, *args: Any, **kwargs: Any) -> Any:
        with capture.benching():
            return bench(tuner, *args, **kwargs)

    def prune_configs(tuner: Any, *args: Any, **kwargs: Any) -> Any:
        survivors = prune(tuner, *args, **kwargs)
        capture.pruned(survivors)
        return survivors

    return [
        (JITFunction, "run", launch),
        (Autotuner, "run", tune),
        (Autotuner, "_bench", benchmark),
        (Autotuner, "prune_configs", prune_configs),
    ]


def _refuse_host_pointers(bound: dict[str, Any]) -> None:
    import torch

    for name, value in bound.items():
        if isinstance(value, torch.Tensor) and not value.is_meta:
            raise ValueError(f"argument {name} is a tensor on {value.device}: a kernel can't reach it (cpu tensor?)")
