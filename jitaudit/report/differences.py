"""What parts a key from another, in words."""

from __future__ import annotations

from collections.abc import Iterable

from jitaudit.judging.nearest import Difference


def difference_words(parts: Iterable[Difference]) -> str:
    """``BS was int 4, is int 5``."""
    return "; ".join(
        f"{part.name} was {_shown(part, part.was, part.added)}, is {_shown(part, part.now, part.removed)}"
        for part in parts
    )


def _shown(part: Difference, value: object, absent: bool) -> str:
    if absent:
        return "at its default" if part.option else "absent"
    return str(value).removeprefix("constexpr ")
