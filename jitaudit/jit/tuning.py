"""Autotuners as they behave: their own code runs, with a benchmarker that makes each call once and finds all equal.

So pruning, performance models, hooks, key strategies, subclasses and the tuning cache are theirs. Which config would
win is unknown offline: the first that survives stands for the winner. Their state is put back afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from jitaudit.jit.keys import Opaque, value_text
from jitaudit.jit.patching import patched

UNKNOWN_TIMING = 1.0
"""What the offline benchmarker says of every call, in milliseconds."""


@dataclass(slots=True)
class SeenTuner:
    """What a kernel's autotuner did."""

    arguments: tuple[str, ...]
    """The names in its key."""
    configs: list[Any]
    """Its configs, and those that its pruning made."""
    tuning_keys: dict[tuple[str, ...], tuple[int, ...]] = field(default_factory=dict)
    """Tuning key → the configs, by index, that were benchmarked there."""
    benchmark_runs: int = 0


class Tuners:
    """Follows the autotuners that run inside `following`."""

    def __init__(self, opaque: Opaque) -> None:
        self.seen: dict[Any, SeenTuner] = {}
        """`JITFunction` → what its autotuner did."""
        self.benching = False
        """Whether a benchmark run is under way."""
        self.new_cache: Callable[[Any], dict[Any, Any]] = lambda tuner: {}
        """Makes a tuner's tuning cache at its first run."""
        self._opaque = opaque
        self._running: list[_Run] = []
        self._states: dict[Any, dict[str, Any]] = {}

    def tunes(self, function: Any) -> bool:
        """Whether an autotuner of `function` is running."""
        return bool(self._running) and self._running[-1].function is function

    def restore(self) -> None:
        """Put back the state of every autotuner that was run."""
        for tuner, state in self._states.items():
            vars(tuner).clear()
            vars(tuner).update(state)
        self._states.clear()

    def benchmark(
        self, call: Callable[[], object], *args: object, quantiles: Sequence[float] | None = None, **options: object
    ) -> Any:
        """Stands for every benchmarker: makes the call once, so that its key is seen."""
        self.benching, before = True, self.benching
        try:
            call()
        finally:
            self.benching = before
        if self._running:
            self._running[-1].benchmark_runs += 1
        timings = [UNKNOWN_TIMING] * len(quantiles or ())
        return timings if len(timings) > 1 or options.get("return_mode") == "all" else UNKNOWN_TIMING

    @contextmanager
    def following(self) -> Iterator[None]:
        """Follow every autotuner, of subclasses too, those made inside the block included."""
        import triton.testing
        from triton.runtime.autotuner import Autotuner

        later: list[tuple[Any, str, Any]] = []

        def follow_later(cls: type[Any], /, **kwargs: Any) -> None:
            super(Autotuner, cls).__init_subclass__(**kwargs)
            later.extend((cls, name, vars(cls)[name]) for name in ("run", "_bench") if name in vars(cls))
            for owner, name, follower in self._followers(cls):
                setattr(owner, name, follower)

        existing = [Autotuner, *_subclasses(Autotuner)]
        followers = [follower for cls in existing for follower in self._followers(cls)]
        with patched(
            [
                *followers,
                (Autotuner, "__init_subclass__", classmethod(follow_later)),
                (triton.testing, "do_bench", self.benchmark),
                (triton.testing, "do_bench_cudagraph", self.benchmark),
            ]
        ):
            try:
                yield
            finally:
                for owner, name, original in later:
                    setattr(owner, name, original)

    def _followers(self, cls: type) -> list[tuple[Any, str, Any]]:
        """The patches of the methods that `cls` itself defines."""
        run, bench = vars(cls).get("run"), vars(cls).get("_bench")

        def follow_run(tuner: Any, *args: Any, **kwargs: Any) -> Any:
            with self._tuning(tuner):
                return run(tuner, *args, **kwargs)  # type: ignore[misc]

        def follow_bench(tuner: Any, *args: Any, config: Any, **kwargs: Any) -> Any:
            if self._running:
                self._running[-1].benched.append(config)
            return bench(tuner, *args, config=config, **kwargs)  # type: ignore[misc]

        return [
            (cls, name, follower)
            for name, original, follower in (("run", run, follow_run), ("_bench", bench, follow_bench))
            if original is not None
        ]

    @contextmanager
    def _tuning(self, tuner: Any) -> Iterator[None]:
        """Follow one run of a tuner, from an empty tuning cache at its first; `super().run` is the same run."""
        if self._running and self._running[-1].tuner is tuner:
            yield
            return
        if tuner not in self._states:
            self._states[tuner] = dict(vars(tuner))
            vars(tuner).update(cache=self.new_cache(tuner), cache_results=False, do_bench=self.benchmark)
        run = _Run(tuner)
        known = len(tuner.cache)
        self._running.append(run)
        try:
            yield
        finally:
            self._running.pop()
        seen = self.seen.get(run.function)
        if seen is None:
            seen = self.seen[run.function] = SeenTuner(tuple(map(str, tuner.keys)), list(tuner.configs))
        seen.benchmark_runs += run.benchmark_runs
        for key in list(tuner.cache)[known:] if len(tuner.cache) > known else ():
            text = tuple(value_text(value, self._opaque) for value in key)
            tried = run.benched or [tuner.cache[key]]
            seen.tuning_keys[text] = tuple(dict.fromkeys(_index(seen.configs, config) for config in tried))


def config_text(config: Any) -> str:
    """A config as Triton prints it, without the options that are unset: which there are differs between Tritons."""
    return ", ".join(f"{name}: {value}" for name, value in config.all_kwargs().items())


class _Run:
    """A run of an autotuner under way."""

    def __init__(self, tuner: Any) -> None:
        from triton.runtime.jit import JITFunction

        self.tuner = tuner
        self.function = tuner.fn
        while not isinstance(self.function, JITFunction):
            self.function = self.function.fn
        self.benched: list[Any] = []
        self.benchmark_runs = 0


def _subclasses(cls: type[Any]) -> list[type[Any]]:
    below: list[type[Any]] = cls.__subclasses__()
    return below + [found for child in below for found in _subclasses(child)]


def _index(configs: list[Any], config: Any) -> int:
    """The place of `config`, which pruning may have made: then it is added."""
    place = next((index for index, known in enumerate(configs) if known is config), None)
    if place is None:
        text = str(config)
        place = next((index for index, known in enumerate(configs) if str(known) == text), None)
    if place is None:
        configs.append(config)
        place = len(configs) - 1
    return place
