"""Which variant to compile next."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Sequence
from statistics import mean

from jitaudit.planning import Planned

DEFAULT_SECONDS = 0.2
"""What a compile is taken to cost where nothing is known of its kernel; a small kernel's."""


class Queue:
    """Hands out variants by number: the longest compiles first, so that no worker is left with one at the end.

    With a budget, those first that reach the most cases per second of compile, and none that would outlast it. A
    compile's length is what the manifest says, else what the kernel's other variants took in this run.
    """

    def __init__(self, variants: Sequence[Planned], budget: float | None = None) -> None:
        self._variants = variants
        self._ends = math.inf if budget is None else time.monotonic() + budget
        self._by_cases = budget is not None
        self._again: list[int] = []
        self._taken: dict[str, list[float]] = defaultdict(list)
        self._waiting: dict[str, list[int]] = defaultdict(list)
        for number, variant in enumerate(variants):
            self._waiting[variant.kernel].append(number)
        for numbers in self._waiting.values():  # the best of each kernel last
            numbers.sort(key=lambda number: (self._worth(number), -number))

    def next(self) -> int | None:
        """The number of the next variant, None where nothing is left or fits."""
        now = time.monotonic()
        if now >= self._ends:
            return None
        if self._again:
            return self._again.pop()
        for numbers in self._waiting.values():
            while numbers and now + self._seconds(numbers[-1]) > self._ends:
                numbers.pop()
        heads = [numbers[-1] for numbers in self._waiting.values() if numbers]
        if not heads:
            return None
        best = max(heads, key=lambda number: (self._worth(number), -number))
        return self._waiting[self._variants[best].kernel].pop()

    def close(self) -> None:
        """Hand out nothing any more."""
        self._ends = -math.inf

    def took(self, number: int, seconds: float) -> None:
        """Learn from a compile that is done."""
        self._taken[self._variants[number].kernel].append(seconds)

    def retry(self, number: int) -> None:
        """Hand this variant out once more, before the others."""
        self._again.append(number)

    def _worth(self, number: int) -> float:
        seconds = self._seconds(number)
        return self._variants[number].cases / seconds if self._by_cases else seconds

    def _seconds(self, number: int) -> float:
        variant = self._variants[number]
        if variant.seconds:
            return variant.seconds
        taken = self._taken[variant.kernel]
        return mean(taken) if taken else DEFAULT_SECONDS
