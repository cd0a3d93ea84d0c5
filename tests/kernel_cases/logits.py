"""Logits with everything that an argmax can stumble over."""

from __future__ import annotations

import math

import torch

from .values import Values

SPECIAL = (math.nan, -math.nan, math.inf, -math.inf, 0.0, -0.0)


def draw_logits(values: Values, rows: int, vocabulary: int, dtype: torch.dtype, *, special: bool) -> torch.Tensor:
    """Distinct logits in each row; with ``special``, ties at the top, NaN, ±inf, ±0.0, and rows of one value."""
    logits = torch.zeros(rows, vocabulary, dtype=dtype)
    for row in range(rows):
        logits[row] = values.distinct(vocabulary, vocabulary).double() / 64 - vocabulary / 128
    if special:
        for row in range(rows):
            value = SPECIAL[row % len(SPECIAL)]
            match row // len(SPECIAL) % 3:
                case 0:
                    logits[row] = -logits[row].abs()
                    logits[row, values.distinct(vocabulary, 3)] = value
                case 1:
                    logits[row] = value
                case 2:
                    logits[row] = torch.where(values.ints(0, 1, vocabulary) == 0, value, -value)
    return logits
