"""Guarded buffers: every tensor that a kernel gets is the middle of a longer one.

Output guards, and outputs themselves before the launch, hold a sentinel; input guards hold a poison that makes an index
or a logit absurd. A store without its mask changes a guard, a load without its mask brings the poison in.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from unittest import mock

import torch

SENTINEL = 0xA5
POISON = 0x5B

GUARD = 4096
"""Elements on each side: at least the largest block, and for every dtype a multiple of 16 bytes."""


@dataclass(frozen=True)
class Buffer:
    """A tensor's surroundings as bytes: guard, the tensor, guard."""

    memory: torch.Tensor
    guard: int
    """Bytes on each side."""


@dataclass
class Arena:
    """Makes a call's tensors on one device and remembers the buffers around them."""

    device: torch.device
    buffers: list[Buffer] = field(default_factory=list)
    """In the order they were made."""

    def given(self, values: torch.Tensor, *, offset: int = 0, pad: tuple[int, ...] = ()) -> torch.Tensor:
        """An input with these values, ``offset`` elements past alignment, strided over ``pad`` more a dimension."""
        view = self._view(tuple(values.shape), values.dtype, POISON, offset, pad)
        view.copy_(values)
        return view

    def blank(
        self, *shape: int, dtype: torch.dtype = torch.int32, offset: int = 0, pad: tuple[int, ...] = ()
    ) -> torch.Tensor:
        """An output full of sentinels."""
        return self._view(shape, dtype, SENTINEL, offset, pad)

    def bytes(self) -> list[torch.Tensor]:
        """The whole buffers as they are now, on the CPU."""
        return [buffer.memory.cpu() for buffer in self.buffers]

    @contextmanager
    def guarding_allocations(self) -> Iterator[Arena]:
        """Guard what a launcher allocates itself; yield the arena of those buffers."""
        allocated = Arena(self.device)

        def empty(*shape: int, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
            assert torch.device(device) == self.device
            return allocated.blank(*shape, dtype=dtype)

        def ones(*shape: int, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
            return empty(*shape, dtype=dtype, device=device).fill_(1)

        with mock.patch.object(torch, "empty", empty), mock.patch.object(torch, "ones", ones):
            yield allocated

    def assert_guards(self) -> None:
        """Nothing wrote into the guards of an output."""
        for number, buffer in enumerate(self.buffers):
            for side in (buffer.memory[: buffer.guard], buffer.memory[-buffer.guard :]):
                assert bool((side == SENTINEL).all()), f"allocation {number}: a guard was overwritten"

    def _view(
        self, shape: tuple[int, ...], dtype: torch.dtype, fill: int, offset: int, pad: tuple[int, ...]
    ) -> torch.Tensor:
        padded = tuple(size + extra for size, extra in zip(shape, pad or (0,) * len(shape), strict=True))
        count = torch.Size(padded).numel()
        size = (2 * GUARD + offset + count) * dtype.itemsize
        memory = torch.full((size,), fill, dtype=torch.uint8, device=self.device)
        self.buffers.append(Buffer(memory, GUARD * dtype.itemsize))
        middle = memory.view(dtype)[GUARD + offset : GUARD + offset + count].view(padded)
        return middle[tuple(slice(0, size) for size in shape)]
