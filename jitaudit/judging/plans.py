"""The fewest remedies that bring a kernel down to what is intended. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from jitaudit.judging.remedies import Remedies
from jitaudit.model import Remedy


class Step(msgspec.Struct, frozen=True):
    """A remedy of a plan, and the count once it and all before it are done."""

    remedy: Remedy
    count: int


def plan(remedies: Remedies, excluded: Collection[Remedy] = ()) -> tuple[Step, ...]:
    """Remedies none of which can be left out, the most effective first; none of `excluded`.

    Arguments may move together, so that mending one changes nothing until the other is mended too. So the search starts
    from all of them, and leaves out what is not needed, the costliest first.
    """
    best = (next((r for r in choice if r not in excluded), None) for choice in remedies.choices)
    chosen = list(dict.fromkeys(remedy for remedy in best if remedy is not None))
    least = remedies.count(chosen)
    for remedy in sorted(chosen, key=_cost, reverse=True):
        rest = [other for other in chosen if other != remedy]
        if remedies.count(rest) == least:
            chosen = rest
    return tuple(_in_order(remedies, chosen))


_BY_COST = (
    "drop", "retype", "do_not_specialize_on_alignment", "do_not_specialize", "runtime", "annotate", "bucket", "option",
    "floor", "align", "cast",
)  # fmt: skip
"""From what costs nothing to what copies memory."""


def _cost(remedy: Remedy) -> int:
    return _BY_COST.index(remedy.kind)


def _in_order(remedies: Remedies, chosen: Iterable[Remedy]) -> Iterable[Step]:
    done: list[Remedy] = []
    left = list(chosen)
    while left:
        counts = {remedy: remedies.count([*done, remedy]) for remedy in left}
        following = min(left, key=lambda remedy: (counts[remedy], _cost(remedy), left.index(remedy)))
        done.append(following)
        left.remove(following)
        yield Step(following, counts[following])
