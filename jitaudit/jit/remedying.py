"""Remedies really applied to launches, as they are made: the call site's by rewriting what is passed, the kernel's by
`respecialize`. What the same launch is then keyed as is what Triton's own binder says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from jitaudit.jit.capture import Binder, Capture, SeenVariant, exactly, run_options
from jitaudit.jit.patching import patched
from jitaudit.jit.respecialize import respecialize
from jitaudit.jit.twins import is_stand_in
from jitaudit.model import Remedy


@dataclass(frozen=True, slots=True)
class Launch:
    """A launch as it is bound: its arguments by name, its options, and its grid."""

    arguments: dict[str, Any]
    options: dict[str, Any]
    grid: Any


class Treated:
    """A kernel under a set of remedies: the variants that its launches reach then."""

    def __init__(self, function: Any, remedies: Sequence[Remedy], capture: Capture) -> None:
        self.remedies = tuple(remedies)
        self.function = treated_function(function, remedies)
        self.variants: dict[str, SeenVariant] = {}
        """By key, what completed cases reached."""
        self.failure: str | None = None
        """What Triton said of the first launch that it refused."""
        self._binder = Binder(self.function, capture.opaque)

    def see(self, launch: Launch) -> SeenVariant:
        """The variant that serves a launch now. `keep` makes it count."""
        arguments, options = dict(launch.arguments), dict(launch.options)
        for remedy in self.remedies:
            rewrite(remedy, arguments, options)
        bound, specialization, extra = self._binder.bind(**arguments, **options)
        memo = exactly(specialization, extra)
        variant = self._binder.memo.get(memo)
        if variant is None:
            passed = arguments | options
            variant = SeenVariant(self._binder.key(specialization, passed), False, (bound, specialization, passed))
            self._binder.memo[memo] = variant
        return variant

    def keep(self, variant: SeenVariant) -> None:
        """Count a variant that a completed case reached."""
        self.variants.setdefault(variant.key.text, variant)


def treated_function(function: Any, remedies: Iterable[Remedy]) -> Any:
    """The kernel after what `remedies` do to its declaration."""
    names: dict[str, list[str]] = {}
    for remedy in remedies:
        match remedy.kind, remedy.setting:
            case "runtime", "do_not_specialize":
                names.setdefault("runtime", []).append(remedy.argument)
                names.setdefault("do_not_specialize", []).append(remedy.argument)
            case "runtime", _:
                names.setdefault("runtime", []).append(remedy.argument)
                names.setdefault("specialize", []).append(remedy.argument)
            case ("do_not_specialize" | "do_not_specialize_on_alignment") as option, _:
                names.setdefault(option, []).append(remedy.argument)
            case "retype", "int" if not _is_constexpr(function, remedy.argument):
                names.setdefault("do_not_specialize", []).append(remedy.argument)
            case _:
                continue
    annotate = {remedy.argument: str(remedy.setting) for remedy in remedies if remedy.kind == "annotate"}
    return respecialize(function, annotate=annotate, **names) if names or annotate else function


def rewrite(remedy: Remedy, arguments: dict[str, Any], options: dict[str, Any]) -> None:
    """Change what a launcher passes, as `remedy` says; a remedy of the kernel's changes nothing here."""
    name = remedy.argument
    value: Any = arguments.get(name)
    match remedy.kind:
        case "drop":
            arguments[name] = None
        case "option":
            options[name] = remedy.setting
        case "floor" if type(value) is int:
            arguments[name] = max(value, int(str(remedy.setting)))
        case "retype" if type(value) in (bool, int, float):
            arguments[name] = {"bool": bool, "int": int, "float": float}[str(remedy.setting)](value)
        case "cast" if _is_tensor(value):
            arguments[name] = value.to(_torch_dtype(str(remedy.setting)))
        case "align" if _is_tensor(value) and value.data_ptr() % 16:
            arguments[name] = _aligned(value)
        case _:
            pass


class BucketedCache(dict[tuple[Any, ...], Any]):
    """A tuning cache that takes keys for one where some arguments round up to the same power of two."""

    def __init__(self, places: Iterable[int]) -> None:
        super().__init__()
        self._places = frozenset(places)

    def __contains__(self, key: object) -> bool:
        return super().__contains__(self._bucketed(key))

    def __getitem__(self, key: tuple[Any, ...]) -> Any:
        return super().__getitem__(self._bucketed(key))

    def __setitem__(self, key: tuple[Any, ...], value: Any) -> None:
        super().__setitem__(self._bucketed(key), value)

    def _bucketed(self, key: Any) -> tuple[Any, ...]:
        from triton import next_power_of_2

        return tuple(
            next_power_of_2(item) if at in self._places and type(item) is int else item for at, item in enumerate(key)
        )


class Trials:
    """Every launch inside `following`, bound anew under each set of remedies for its kernel."""

    def __init__(self, capture: Capture, stages_of: Callable[[Any], Sequence[Sequence[Remedy]]]) -> None:
        self.kernels: dict[Any, Trial] = {}
        """By function, those that have remedies to try."""
        self._capture = capture
        self._stages_of = stages_of
        self._untried: set[Any] = set()
        self._launches: list[tuple[Trial, Launch]] = []

    @contextmanager
    def following(self) -> Iterator[None]:
        """Watch the launches of the capture, case by case."""
        from triton.runtime.jit import JITFunction

        run, begin, end = JITFunction.run, self._capture.begin, self._capture.end

        def watched_run(function: Any, *args: Any, **kwargs: Any) -> Any:
            trial = self._trial(function)
            if trial is not None:
                self._launches.append((trial, trial.bound(args, kwargs)))
            return run(function, *args, **kwargs)

        def watched_begin(case: int) -> None:
            self._launches.clear()
            begin(case)

        def watched_end() -> None:
            for trial, launch in self._launches:
                trial.see(launch)
            self._launches.clear()
            end()

        with patched(
            [
                (JITFunction, "run", watched_run),
                (self._capture, "begin", watched_begin),
                (self._capture, "end", watched_end),
            ]
        ):
            yield

    def _trial(self, function: Any) -> Trial | None:
        if function not in self.kernels and function not in self._untried:
            stages = self._stages_of(function)
            if stages:
                self.kernels[function] = Trial(function, stages, self._capture)
            else:
                self._untried.add(function)
        return self.kernels.get(function)


class Trial:
    """One kernel as it is, and under each set of remedies."""

    def __init__(self, function: Any, stages: Sequence[Sequence[Remedy]], capture: Capture) -> None:
        self.untreated = Treated(function, (), capture)
        self.stages = tuple(Treated(function, remedies, capture) for remedies in stages)
        self.pairs: tuple[dict[str, Pair], ...] = tuple({} for _ in stages)
        """By stage: the key before → the first launch with it, before and after."""
        self._bind = Binder(function, capture.opaque).bind

    def bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Launch:
        """A launch with its arguments by name, as `JITFunction.run` binds it."""
        passed = {name: value for name, value in kwargs.items() if name not in ("grid", "warmup")} | run_options()
        debug = kwargs.get("debug", self.untreated.function.debug)
        arguments, _, options = self._bind(*args, **passed | ({"debug": debug} if debug else {}))
        return Launch(arguments, options, kwargs.get("grid"))

    def see(self, launch: Launch) -> None:
        """Count a launch of a completed case."""
        before = self.untreated.see(launch)
        self.untreated.keep(before)
        for stage, pairs in zip(self.stages, self.pairs, strict=True):
            try:
                after = stage.see(launch)
            except Exception as error:  # Triton's own refusal is the outcome
                stage.failure = stage.failure or f"{type(error).__name__}: {error}"
                continue
            stage.keep(after)
            pairs.setdefault(before.key.text, Pair(before, after, launch))


@dataclass(frozen=True, slots=True)
class Pair:
    """The variants that serve one launch before and after."""

    before: SeenVariant
    after: SeenVariant
    launch: Launch


def _is_constexpr(function: Any, name: str) -> bool:
    return any(param.name == name and param.is_constexpr for param in function.params)


def _is_tensor(value: object) -> bool:
    import torch

    return isinstance(value, torch.Tensor)


def _torch_dtype(element: str) -> Any:
    """The torch dtype of an element type in the words of a key: ``i64`` is `torch.int64`."""
    import torch
    from triton._utils import type_canonicalisation_dict

    name = next(name for name, text in type_canonicalisation_dict.items() if text == element and hasattr(torch, name))
    return getattr(torch, name)


def _aligned(tensor: Any) -> Any:
    """The tensor's copy at the start of a storage as large as its own: only its alignment changes."""
    import torch

    storage = tensor.untyped_storage().nbytes() // tensor.element_size()
    copy = torch.empty(max(storage, 1), dtype=tensor.dtype, device=tensor.device)
    view = copy.as_strided(tensor.size(), tensor.stride(), 0)
    return view if is_stand_in(tensor) else view.copy_(tensor)
