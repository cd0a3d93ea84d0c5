"""Seeded values for cases: the same name gives the same numbers on every machine."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import torch


@dataclass
class Values:
    """A generator of one case's values."""

    generator: torch.Generator

    @staticmethod
    def of(name: str) -> Values:
        return Values(torch.Generator().manual_seed(zlib.crc32(name.encode())))

    def ints(self, low: int, high: int, *shape: int, dtype: torch.dtype = torch.int32) -> torch.Tensor:
        """Uniform in [low, high], both ends included."""
        return torch.randint(low, high + 1, shape, generator=self.generator).to(dtype)

    def distinct(self, below: int, count: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
        """``count`` different numbers below ``below``, in random order."""
        return torch.randperm(below, generator=self.generator)[:count].to(dtype)
