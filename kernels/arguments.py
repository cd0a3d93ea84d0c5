"""Checks of a launcher's arguments: attribute comparisons only, so they are cheap and never touch the device.

Each raises ``ValueError`` that names the argument.
"""

from __future__ import annotations

import torch

INTS = (torch.int32, torch.int64)
"""What the definitions call an "int" tensor."""

I32 = (torch.int32,)
I64 = (torch.int64,)


def check_batch(name: str, value: torch.Tensor) -> tuple[int, torch.device]:
    """``value`` is an int vector with one element a request; return how many, and the device that all others share."""
    device = device_of(name, value)
    check_tensor(name, value, (None,), INTS, device)
    return value.shape[0], device


def device_of(name: str, value: torch.Tensor) -> torch.device:
    """The device of the first tensor, which all others share."""
    if not isinstance(value, torch.Tensor):
        raise ValueError(f"{name} must be a tensor, got {type(value).__name__}")
    return value.device


def check_tensor(
    name: str,
    value: torch.Tensor,
    shape: tuple[int | None, ...],
    dtypes: tuple[torch.dtype, ...],
    device: torch.device,
    *,
    packed: bool = False,
) -> None:
    """``value`` has this shape (None: any size), one of these dtypes, and lies on this device.

    Its last dimension is contiguous; the strides of the others are free, unless it must be ``packed`` (contiguous).
    """
    if not isinstance(value, torch.Tensor):
        raise ValueError(f"{name} must be a tensor, got {type(value).__name__}")
    actual = tuple(value.shape)
    if actual != shape and not _matches(actual, shape):
        raise ValueError(f"{name} must have shape {_shape_text(shape)}, got {_shape_text(actual)}")
    if value.dtype not in dtypes:
        raise ValueError(f"{name} must be {' or '.join(map(str, dtypes))}, got {value.dtype}")
    if value.device != device:
        raise ValueError(f"{name} must be on {device} like the first argument, got {value.device}")
    if packed and not value.is_contiguous():
        raise ValueError(f"{name} must be contiguous, got strides {value.stride()}")
    if actual[-1] > 1 and value.stride(-1) != 1:
        raise ValueError(f"{name} must be contiguous in its last dimension, got strides {value.stride()}")


def check_width(name: str, value: torch.Tensor, least: int) -> None:
    """The last dimension of ``value``, checked already, has at least ``least`` columns."""
    if value.shape[-1] < least:
        raise ValueError(f"{name} must have at least {least} columns, got {value.shape[-1]}")


def check_at_least(name: str, value: int, least: int) -> None:
    """``value`` is an int ≥ ``least``."""
    if not isinstance(value, int) or value < least:
        raise ValueError(f"{name} must be an int of at least {least}, got {value!r}")


def _matches(actual: tuple[int, ...], shape: tuple[int | None, ...]) -> bool:
    return len(actual) == len(shape) and all(
        want is None or want == have for want, have in zip(shape, actual, strict=True)
    )


def _shape_text(shape: tuple[int | None, ...]) -> str:
    return f"[{', '.join('any' if size is None else str(size) for size in shape)}]"
