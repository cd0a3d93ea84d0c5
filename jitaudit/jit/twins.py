"""The values that stand-ins carry.

A stand-in's storage may carry a *twin*: CPU storage of the same layout that holds its values. Views share it; it is
dropped when something unknown, or a kernel, may have written it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from jitaudit.jit.addresses import FIRST_ADDRESS, lies_in

if TYPE_CHECKING:
    import torch

LARGEST_KNOWN = 1 << 16
"""Elements of the largest tensor whose values are kept."""

_known: WeakSet[Any] = WeakSet()
"""The storages that had known values: while there are none, launches need not look."""

_recorded: WeakSet[Any] | None = None
"""The storages written since a CUDA graph's capture began."""


def forget_written(arguments: Iterable[object]) -> None:
    """Make unknown what a kernel may have written: every stand-in among `arguments`."""
    import torch

    if _known or _recorded is not None:
        for value in flat(list(arguments)):
            tensor = getattr(value, "base", None) if hasattr(value, "block_shape") else value  # a tensor descriptor
            if isinstance(tensor, torch.Tensor):
                if is_stand_in(tensor):
                    forget(tensor)
            elif (data_ptr := getattr(tensor, "data_ptr", None)) is not None:
                _forget_at([data_ptr()])  # something that Triton takes for a tensor


def forget_addressed(arguments: Iterable[object]) -> None:
    """Make unknown what lies at the addresses among `arguments`: integers, and known tensors of them.

    A kernel may cast any of them to a pointer, and write there.
    """
    if _known:
        _forget_at([number for value in flat(list(arguments)) for number in _addresses(value)])


def _forget_at(addresses: list[int]) -> None:
    for storage in [storage for storage in _known if any(lies_in(number, storage) for number in addresses)]:
        _forget_storage(storage)


def _addresses(value: object) -> list[int]:
    import torch

    if type(value) is int:
        return [value] if value >= FIRST_ADDRESS else []
    wide = (torch.int64, torch.uint64)
    if not isinstance(value, torch.Tensor) or value.dtype not in wide or not is_stand_in(value):
        return []
    twin = twin_of(value)
    if twin is None:
        return []
    with torch._C._DisableTorchDispatch():
        numbers = twin.view(torch.int64)
        return [int(number) for number in numbers[numbers >= FIRST_ADDRESS].tolist()]


def record_writes() -> None:
    """A CUDA graph's capture begins."""
    global _recorded
    _recorded = WeakSet()


def recorded_writes() -> WeakSet[Any]:
    """The storages that were written since `record_writes`: what a replay of the graph writes again."""
    global _recorded
    written, _recorded = _recorded, None
    return WeakSet() if written is None else written


def forget_storages(storages: WeakSet[Any]) -> None:
    """Make unknown what a replay has written."""
    for storage in storages:
        _forget_storage(storage)


def is_stand_in(tensor: torch.Tensor) -> bool:
    """Whether a tensor is one, although it says that it is not."""
    import torch

    return bool(torch._C.TensorBase.is_meta.__get__(tensor))  # type: ignore[attr-defined]


def forget(tensor: torch.Tensor) -> None:
    record_write(tensor)
    _forget_storage(tensor.untyped_storage())


def _forget_storage(storage: Any) -> None:
    vars(storage).pop("jitaudit_twin", None)
    vars(storage).pop("jitaudit_parts", None)


def record_write(tensor: torch.Tensor) -> None:
    if _recorded is not None:
        _recorded.add(tensor.untyped_storage())


def is_known(tensor: torch.Tensor) -> bool:
    return hasattr(tensor.untyped_storage(), "jitaudit_twin")


def twin_of(tensor: torch.Tensor) -> torch.Tensor | None:
    """The known values of a stand-in, as a CPU view of its twin; None where they are unknown."""

    storage: torch.UntypedStorage | None = getattr(tensor.untyped_storage(), "jitaudit_twin", None)
    if storage is None:
        return None
    return _through(tensor, storage)


def _through(tensor: torch.Tensor, storage: torch.UntypedStorage) -> torch.Tensor:
    """Another storage, seen as a tensor sees its own."""
    import torch

    empty = torch.empty(0, dtype=tensor.dtype, device="cpu")
    view = empty.set_(storage, tensor.storage_offset(), tensor.size(), tensor.stride())
    view = view.conj() if tensor.is_conj() else view
    return torch._neg_view(view) if tensor.is_neg() else view


def keep(stand_in: torch.Tensor, value: torch.Tensor) -> None:
    import torch

    record_write(stand_in)
    if stand_in.numel() > LARGEST_KNOWN:
        return
    _known.add(stand_in.untyped_storage())
    size = stand_in.untyped_storage().nbytes() // stand_in.element_size()
    storage = torch.zeros(size, dtype=stand_in.dtype, device="cpu").untyped_storage()
    vars(stand_in.untyped_storage())["jitaudit_twin"] = storage
    twin = twin_of(stand_in)
    assert twin is not None
    twin.copy_(value)


def write(target: torch.Tensor, value: torch.Tensor | None) -> None:
    """`target` now holds `value`. An unknown storage is known once every part of it was written."""
    twin = twin_of(target)
    if value is None:
        forget(target)
    elif twin is not None:
        record_write(target)
        twin.copy_(value)
    elif target.numel() * target.element_size() == target.untyped_storage().nbytes():
        keep(target, value)
    elif target.untyped_storage().nbytes() <= LARGEST_KNOWN * 8:
        _write_part(target, value)


def _write_part(target: torch.Tensor, value: torch.Tensor) -> None:
    """Keep a part of an unknown storage; it is known once no element is missing."""
    import torch

    storage = target.untyped_storage()
    size = target.element_size()
    width, twin, written = vars(storage).get("jitaudit_parts", (None, None, None))
    if width != size:
        twin = torch.zeros(storage.nbytes(), dtype=torch.uint8, device="cpu").untyped_storage()
        written = torch.zeros(storage.nbytes() // size, dtype=torch.bool, device="cpu")
        vars(storage)["jitaudit_parts"] = (size, twin, written)
    _through(target, twin).copy_(value)
    written.as_strided(target.size(), target.stride(), target.storage_offset()).fill_(True)
    record_write(target)
    if written.all():
        vars(storage)["jitaudit_twin"] = twin
        _known.add(storage)


def flat(tree: Any) -> list[Any]:
    if isinstance(tree, dict):
        return [leaf for item in tree.values() for leaf in flat(item)]
    if isinstance(tree, tuple | list):
        return [leaf for item in tree for leaf in flat(item)]
    return [tree]
