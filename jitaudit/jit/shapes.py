"""The shapes of operations' results, remembered: torch works out most of them in Python, slower than a launch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

_Shape = tuple[Any, Any, Any]
"""Size, stride and dtype."""

_shapes: dict[object, list[_Shape | None] | _Shape | None] = {}
"""Operation and arguments → its results' shapes; None where they can't be made from their shapes alone."""


def run_on_meta(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`func(*args, **kwargs)` over meta tensors; where only shapes matter, they are worked out once."""
    import torch

    if func._schema.is_mutable or any(result.alias_info is not None for result in func._schema.returns):
        return func(*args, **kwargs)
    try:
        described = sorted((name, _described(value)) for name, value in kwargs.items())
        key = (func, torch.get_default_dtype(), _described(args), *described)
        known = _shapes.get(key, _shapes)
    except TypeError:  # an argument that can't be described or hashed
        return func(*args, **kwargs)
    if known is _shapes:
        out = func(*args, **kwargs)
        _shapes[key] = _remembered(out, args)
        return out
    if known is None:
        return func(*args, **kwargs)
    if isinstance(known, list):
        return tuple(None if shape is None else _made(shape) for shape in known)
    return _made(known)


def _made(shape: Any) -> torch.Tensor:
    import torch

    size, stride, dtype = shape
    return torch.empty_strided(size, stride, dtype=dtype, device="meta")


def _remembered(out: Any, args: tuple[Any, ...]) -> list[_Shape | None] | _Shape | None:
    import torch

    results = out if isinstance(out, tuple) else (out,)
    if not all(result is None or _is_fresh(result, args) for result in results):
        return None
    shapes = [(r.size(), r.stride(), r.dtype) if isinstance(r, torch.Tensor) else None for r in results]
    return shapes if isinstance(out, tuple) else shapes[0]


def _is_fresh(result: Any, args: tuple[Any, ...]) -> bool:
    """Whether a result is a plain tensor on meta that shares no storage with an argument, as an unsafe view does."""
    import torch

    if type(result) is not torch.Tensor or not result.is_meta or result.is_conj() or result.is_neg():
        return False
    storage = result.untyped_storage()._cdata
    return not any(isinstance(arg, torch.Tensor) and arg.untyped_storage()._cdata == storage for arg in args)


def _described(value: Any) -> Any:
    """What of an argument decides the result's shape, hashable; equal numbers of different types stay apart."""
    import torch

    if isinstance(value, torch.Tensor):
        if value.layout is not torch.strided:
            raise TypeError("only strided tensors are described by size and stride")
        if value.dim() and not value.is_meta:
            raise TypeError("a result's shape may depend on what a tensor on the host holds, as a mask")
        flags = (value.is_meta, value.is_conj(), value.is_neg())
        return (type(value), value.dtype, tuple(value.size()), value.stride(), flags)
    if isinstance(value, list | tuple):
        return tuple(map(_described, value))
    return (type(value), value)
