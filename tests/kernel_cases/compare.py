"""One case, judged: both policies against the reference, byte for byte."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from jitaudit_kernels.policy import POLICIES

from .arena import Arena


@dataclass(frozen=True)
class Call:
    """A launcher's arguments, all tensors from one arena."""

    positional: tuple[object, ...] = ()
    keywords: dict[str, object] | None = None


@dataclass(frozen=True)
class Case:
    """One call of a launcher that can be made again and again, each time with the same values in new buffers."""

    name: str
    launcher: Callable[..., object]
    reference: Callable[..., object]
    make: Callable[[Arena], Call]
    rtol: float = 0.0
    """Of floating-point results; everything else is compared as bytes."""


def compare(case: Case, device: torch.device) -> int:
    """Assert that both policies give what the reference gives and write nowhere else; return the buffers compared."""
    buffers = 0
    for policy in POLICIES:
        arena = Arena(device)
        call = case.make(arena)
        with arena.guarding_allocations() as allocated:
            results = case.launcher(*call.positional, **call.keywords or {}, policy=policy)
        expect(case, arena, allocated, results)
        buffers += len(arena.buffers) + len(allocated.buffers)
    return buffers


def expect(case: Case, arena: Arena, allocated: Arena, results: object) -> None:
    """Assert that a call in ``arena``, with its own allocations in ``allocated``, gave what the reference gives.

    The reference runs on the CPU, in buffers with the same guards: equal bytes mean equal results, and that every
    guard and every element that the definition leaves alone holds what it held.
    """
    cpu = Arena(torch.device("cpu"))
    call = case.make(cpu)
    with cpu.guarding_allocations():
        expected = case.reference(*call.positional, **call.keywords or {})
    allocated.assert_guards()
    for number, (want, have) in enumerate(zip(cpu.bytes(), arena.bytes(), strict=True)):
        assert torch.equal(want, have), f"{case.name}: tensor {number} of the call differs"
    for number, (want, have) in enumerate(zip(_tensors(expected), _tensors(results), strict=True)):
        _assert_result(want, have, case.rtol, f"{case.name}: result {number}")


def _tensors(result: object) -> list[torch.Tensor | None]:
    match result:
        case None:
            return []
        case torch.Tensor():
            return [result]
        case _:
            return list(result)  # type: ignore[call-overload]


def _assert_result(want: torch.Tensor | None, have: torch.Tensor | None, rtol: float, what: str) -> None:
    assert (want is None) == (have is None), f"{what}: one is None"
    if want is None or have is None:
        return
    assert (want.dtype, want.shape) == (have.dtype, have.shape), what
    if want.is_floating_point() and rtol:
        torch.testing.assert_close(
            have.cpu(), want, rtol=rtol, atol=0, equal_nan=True, msg=lambda text: f"{what}: {text}"
        )
    else:
        assert torch.equal(_bytes(want), _bytes(have)), f"{what} differs"


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.cpu().contiguous().flatten().view(torch.uint8)
