"""Block sizes that stop following the batch.

``next_power_of_2`` of a batch size is a new constexpr, hence a new variant, at 1, 2, 4, 8, …. A floor merges the small
ones, which traffic reaches first, and costs nothing: a few hundred elements fit into one program's registers.
"""

from __future__ import annotations

BATCH_FLOOR = 64
"""Of an axis with one element a request."""

EXPANDED_FLOOR = 512
"""Of an axis with one element a draft token: requests × draft tokens."""


def next_power_of_2(n: int) -> int:
    """The smallest power of two ≥ max(n, 1)."""
    return 1 << max(n - 1, 0).bit_length()


def floored_block(n: int, floor: int) -> int:
    """The smallest power of two ≥ max(n, 1), but at least ``floor``, which must be a power of two."""
    if floor < 1 or floor & (floor - 1):
        raise ValueError(f"floor must be a power of two, got {floor}")
    return max(next_power_of_2(n), floor)
