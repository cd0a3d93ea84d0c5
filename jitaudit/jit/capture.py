"""Capture: run launchers for real, see each launch's key, compile nothing and launch nothing.

`JITFunction.run` is replaced. The key comes from Triton's own binder for the target; a memo keeps the design-word key
of each one seen. Autotuners are followed by `jitaudit.jit.tuning`.
"""

from __future__ import annotations

import operator
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from jitaudit.errors import SetupError
from jitaudit.jit import twins
from jitaudit.jit.device import answering
from jitaudit.jit.driver import offline_driver
from jitaudit.jit.environment import SUPPORTED_TRITON, is_supported
from jitaudit.jit.keys import Opaque, changed_options, variant_key
from jitaudit.jit.patching import patched
from jitaudit.jit.standin import standing_in
from jitaudit.jit.stops import Unsupported
from jitaudit.jit.target import device_profile, require_target
from jitaudit.jit.timing import require_gpu
from jitaudit.jit.tuning import SeenTuner, Tuners
from jitaudit.jit.writes import may_write
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
    driver = offline_driver(target, capture.asked.add, capture.tuners.benchmark)
    with (
        answering(device_profile(target), capture.asked.add),
        patched([(active, "_active", driver)]),
        standing_in(),
        _following(capture),
    ):
        yield capture


@contextmanager
def importing(target: str) -> Iterator[None]:
    """Stand in for a GPU while modules are imported, where torch sees none: some ask it, or put tensors on it, then."""
    require_triton()
    import torch

    if torch.cuda.is_available():
        yield
        return
    with capturing(target):
        yield


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
    with _following(capture):
        yield capture


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
        import torch

        self.target = target
        self.asked: set[str] = set()
        self.opaque = Opaque()
        self.tuners = Tuners(self.opaque)
        self._tensor = torch.Tensor
        self._kernels: dict[Any, SeenKernel] = {}
        self._binders: dict[Any, Binder] = {}
        self._hashed: list[Any] = []
        """The kernels whose globals were looked up here first."""
        self._case = 0
        self._launched: list[SeenVariant] = []
        self._compiled: list[SeenVariant] = []
        """What the case reached without launching it: benchmark runs and warm-ups."""

    def begin(self, case: int) -> None:
        """Start case number `case`; what an unfinished one did is forgotten."""
        self._case = case
        self._launched.clear()
        self._compiled.clear()

    def end(self) -> None:
        """Count what the case did."""
        for variant in self._launched:
            variant.launches += 1
        for variant in (*self._launched, *self._compiled):
            if not variant.cases or variant.cases[-1] != self._case:
                variant.cases.append(self._case)

    @property
    def seen(self) -> dict[Any, SeenKernel]:
        """The kernels seen so far, by function."""
        return self._kernels

    def take(self) -> dict[Any, SeenKernel]:
        """The kernels seen so far. The next case starts afresh, autotuners too, as in a new process."""
        seen, self._kernels = self._kernels, {}
        for function, tuner in self.tuners.seen.items():
            seen.setdefault(function, SeenKernel(function)).tuner = tuner
        self.tuners.seen = {}
        self.tuners.restore()
        self.forget_globals()
        for binder in self._binders.values():
            binder.memo.clear()
        return seen

    def seed(self) -> None:
        """Start every random generator from 0, so that a sweep's counts don't depend on what ran before."""
        import torch

        random.seed(0)
        torch.manual_seed(0)
        if (numpy := sys.modules.get("numpy")) is not None:
            numpy.random.seed(0)

    def launch(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What stands for `JITFunction.run`: the key is seen, nothing is compiled or launched."""
        grid, warmup = kwargs.pop("grid", None), kwargs.pop("warmup", False)
        if function.hash is None:
            self._hashed.append(function)
            function.cache_key  # noqa: B018 - finds out which globals the kernel uses, as a compile does
        binder = self._binders.get(function) or self._binders.setdefault(function, Binder(function, self.opaque))
        debug = kwargs.get("debug", function.debug)
        kwargs.update(run_options())
        if debug:
            kwargs["debug"] = debug
        for hook in function.pre_run_hooks:
            hook(*args, **kwargs)
        bound, specialization, options = binder.bind(*args, **kwargs)
        memo = exactly(specialization, options)
        variant = binder.memo.get(memo)
        if variant is None:
            first = SeenVariant(
                binder.key(specialization, kwargs), self.tuners.tunes(function), (bound, specialization, kwargs)
            )
            variant = binder.memo[memo] = self._see(function, first)
        self._require_same_globals(function)
        if not warmup:
            _require_grid(grid(bound) if callable(grid) else grid)
            self._touch(binder, bound)
        (self._compiled if warmup or self.tuners.benching else self._launched).append(variant)
        return _Launched(function, variant)

    def _require_same_globals(self, function: Any) -> None:
        """Raise as Triton does where a global value that the kernel was compiled with is another one now."""
        for (name, _), (was, held) in function.used_global_vals.items():
            if (now := held.get(name, _ABSENT)) != was:
                raise RuntimeError(
                    f"Global variable {name} has changed since we compiled this kernel, from {was} to {now}"
                )

    def forget_globals(self) -> None:
        """Leave the kernels as if none had been compiled."""
        for function in self._hashed:
            function.hash, function.used_global_vals = None, {}
        self._hashed.clear()

    def launch_again(self, function: Any, first: SeenVariant, args: tuple[Any, ...]) -> None:
        """A launcher kept what a launch returned, perhaps since another sweep, and launches it again."""
        twins.forget_addressed(args)
        twins.forget_written(args)
        self._launched.append(self._see(function, SeenVariant(first.key, first.tuned, first.launch)))

    def _see(self, function: Any, variant: SeenVariant) -> SeenVariant:
        variants = self._kernels.setdefault(function, SeenKernel(function)).variants
        return variants.setdefault(variant.key.text, variant)

    def _touch(self, binder: Binder, bound: dict[str, Any]) -> None:
        """What the launch does to its arguments' values."""
        for name, value in bound.items():
            if isinstance(value, self._tensor) and not value.is_cuda:
                _reach_host(name, value, name in binder.written)
        twins.forget_addressed(bound.values())
        twins.forget_written([value for name, value in bound.items() if name in binder.written])


class Binder:
    """Triton's binder of one kernel for the capture's target, with the memo of the keys it gave.

    Options that Triton itself adds are in a key where they have changed since the binder was made.
    """

    def __init__(self, function: Any, opaque: Opaque) -> None:
        _, _, _, self._backend, self.bind = function.create_binder()
        self._opaque = opaque
        self._defaults = self._backend.parse_options(run_options())
        self.names = [param.name for param in function.params]
        self.constexprs = {param.name for param in function.params if param.is_constexpr}
        self.written = may_write(function)
        self.memo: dict[object, SeenVariant] = {}

    def key(self, specialization: list[tuple[Any, Any]], kwargs: dict[str, Any]) -> VariantKey:
        """The key of a launch, from what `bind` said of it and its keywords. Raises KeyError for an unknown option."""
        return variant_key(self.names, self.constexprs, specialization, self._changed(kwargs), self._opaque)

    def _changed(self, kwargs: dict[str, Any]) -> dict[str, Scalar]:
        parsed = self._backend.parse_options(dict(kwargs))
        for name in kwargs:
            if name not in vars(parsed) and name not in self.names:
                raise KeyError(f"Keyword argument {name} was specified but unrecognised")
        return changed_options(parsed, self._defaults, self._opaque)


def exactly(specialization: list[tuple[Any, Any]], options: dict[str, Any]) -> tuple[Any, ...]:
    """What a binder said of a launch, hashable, with the types that Python's equality would confuse."""
    types = [
        repr(item) if item[0].__class__ is tuple or item[1].__class__ not in _EXACT else item[1].__class__
        for item in specialization
    ]
    return (*specialization, *types, str(options))


def run_options() -> dict[str, Any]:
    """The options that `JITFunction.run` adds to each launch, from the environment as it is now."""
    from triton import knobs

    options = {"debug": knobs.runtime.debug, "instrumentation_mode": knobs.compilation.instrumentation_mode}
    if hasattr(type(knobs.compilation), "fpsan_homomorphic_casts"):  # Triton 3.9
        options["fpsan_homomorphic_casts"] = knobs.compilation.fpsan_homomorphic_casts
    return options


_capture: Capture | None = None
"""The one that is under way."""


@contextmanager
def _following(capture: Capture) -> Iterator[None]:
    """Show launches and autotuners to `capture`."""
    global _capture
    from triton.runtime.jit import JITFunction

    def launch(function: Any, *args: Any, **kwargs: Any) -> Any:
        return capture.launch(function, args, kwargs)

    _capture, before = capture, _capture
    try:
        with patched([(JITFunction, "run", launch)]), capture.tuners.following():
            yield
    finally:
        _capture = before
        capture.tuners.restore()
        capture.forget_globals()


class _Launched:
    """What a launch returns: stands for the `CompiledKernel`, which launchers may keep and launch again."""

    def __init__(self, function: Any, variant: SeenVariant) -> None:
        self._function, self.variant = function, variant

    def __getitem__(self, grid: object) -> Callable[..., None]:
        def launch(*args: Any, **kwargs: Any) -> None:
            if _capture is None:
                raise RuntimeError("this kernel was captured, not compiled: it can be launched inside a capture only")
            _capture.launch_again(self._function, self.variant, (*args, *kwargs.values()))

        return launch

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise Unsupported(f"CompiledKernel.{name}")


def _require_grid(grid: Any) -> None:
    """Read a grid as the launcher does. Raises what it would."""
    for size in grid[:3]:
        if not -_INT_LIMIT <= operator.index(size) < _INT_LIMIT:
            raise OverflowError("signed integer is greater than maximum")


_INT_LIMIT = 1 << 31


_ABSENT = object()


def _reach_host(name: str, tensor: Any, written: bool) -> None:
    """A kernel reaches host memory only where it is pinned; what it writes there can't be made unknown."""
    if not tensor.is_pinned():
        raise ValueError(f"argument {name} is a tensor on {tensor.device}: a kernel can't reach it (cpu tensor?)")
    if written:
        raise Unsupported(f"a kernel that writes pinned host memory (argument {name})")
