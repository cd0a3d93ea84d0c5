"""What is known of stand-ins' content.

A stand-in's storage may carry a *twin*: CPU storage of the same layout that holds its values. Views share it, torch's
operations on known values keep it up, and it is dropped when an operation mixes in something unknown or when a kernel
may have written the tensor. An operation that needs an unknown value stops the case with HostRead.

Small tensors that are built from data are known, and so is what torch computes from known ones alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from jitaudit.jit.addresses import FIRST_ADDRESS, lies_in
from jitaudit.jit.answers import answer
from jitaudit.jit.shapes import run_on_meta
from jitaudit.jit.stops import HostRead, launcher_line

if TYPE_CHECKING:
    import torch

LARGEST_KNOWN = 1 << 16
"""Elements of the largest tensor whose values are kept."""

_LARGEST_FLOAT = 1 << 10
"""The same for floating point that is built from data: scalars and small tables, not weights."""

_known: WeakSet[Any] = WeakSet()
"""The storages that had known values: while there are none, launches need not look."""

_recorded: WeakSet[Any] | None = None
"""The storages written since a CUDA graph's capture began."""

_FILLS = {"zeros_like", "ones_like", "full_like", "new_zeros", "new_ones", "new_full", "fill_", "zero_"}
"""Operations whose result does not depend on what their tensor held."""
_FACTORIES = {"arange", "zeros", "ones", "full", "eye", "scalar_tensor", "tril_indices", "triu_indices"}
_READS = {"_local_scalar_dense": ".item()", "_to_copy": ".cpu()", "copy_": "copy to the host", "equal": "torch.equal"}


def known(tensor: torch.Tensor, values: object) -> torch.Tensor:
    """Say what a tensor holds, for launchers that read it on the host; returns `tensor`.

    `values`: anything `torch.as_tensor` takes that broadcasts to the tensor's shape. On a real tensor the values are
    written, so that a sweep means the same with and without a GPU.
    """
    import torch

    tensor.copy_(torch.as_tensor(values, dtype=tensor.dtype, device="cpu").expand(tensor.shape))
    return tensor


def forget_written(arguments: Iterable[object]) -> None:
    """Make unknown what a kernel may have written: every stand-in among `arguments`."""
    import torch

    if _known or _recorded is not None:
        for value in _flat(list(arguments)):
            tensor = getattr(value, "base", None) if hasattr(value, "block_shape") else value  # a tensor descriptor
            if isinstance(tensor, torch.Tensor) and is_stand_in(tensor):
                _forget(tensor)


def forget_addressed(arguments: Iterable[object]) -> None:
    """Make unknown what lies at the addresses among `arguments`: integers, and known tensors of them.

    A kernel may cast any of them to a pointer, and write there.
    """
    if _known:
        addresses = [number for value in _flat(list(arguments)) for number in _addresses(value)]
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


def reaches_stand_ins(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether an operation is the device's: it takes a stand-in, or no tensor at all."""
    tensors = _tensors(args, kwargs)
    return not tensors or any(map(is_stand_in, tensors))


def makes_stand_ins(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether an operation's results are: it takes one, or is told to make one."""
    device = kwargs.get("device")
    return (device is not None and device.type == "meta") or any(map(is_stand_in, _tensors(args, kwargs)))


def _forget(tensor: torch.Tensor) -> None:
    _record(tensor)
    _forget_storage(tensor.untyped_storage())


def _forget_storage(storage: Any) -> None:
    vars(storage).pop("jitaudit_twin", None)


def _record(tensor: torch.Tensor) -> None:
    if _recorded is not None:
        _recorded.add(tensor.untyped_storage())


def run(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run one operation on stand-ins, and on their twins where all its inputs are known."""
    import torch

    tensors = _tensors(args, kwargs)
    if not any(tensor.is_meta for tensor in tensors):
        out = func(*args, **kwargs)
        if isinstance(out, torch.Tensor) and out.is_meta and func._opname in _FACTORIES and _keeps_values(out):
            _keep(out, func(*args, **{**kwargs, "device": torch.device("cpu")}))
        return out
    needs_values = torch.Tag.dynamic_output_shape in func.tags or torch.Tag.data_dependent_output in func.tags
    if needs_values:
        return _on_meta(func(*_twins_or_stop(func, args), **_twins_or_stop(func, kwargs)))
    return _run_and_follow(func, args, kwargs, tensors)


def special_operations() -> dict[Any, Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]]:
    """The operations that `run` can't serve by its rule, with what serves them."""
    import torch

    aten = torch.ops.aten
    return {
        aten._local_scalar_dense.default: _read,
        aten.equal.default: _read,
        aten._to_copy.default: _to_copy,
        aten.copy_.default: _copy,
        aten.index.Tensor: _index,
        aten.masked_select.default: _masked_select,
        aten.repeat_interleave.Tensor: _repeat_interleave,
        aten.record_stream.default: lambda func, args, kwargs: None,
    }


def _read(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return func(*_twins_or_stop(func, args), **kwargs)


def _to_copy(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    import torch

    source = args[0]
    device = kwargs.get("device")
    if source.is_meta and device is not None and device.type == "cpu":
        return _read(func, args, kwargs)
    out = func(*args, **kwargs)
    if out.is_meta and (source.is_meta or _keeps_values(out)):
        twin = twin_of(source) if source.is_meta else source
        if twin is not None:
            _keep(out, func(twin, **{**kwargs, "device": torch.device("cpu")}))
    return out


def _copy(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    target, source = args[:2]
    if not target.is_meta:
        return func(target, *_twins_or_stop(func, (source,)), *args[2:], **kwargs)
    out = func(*args, **kwargs)
    values = twin_of(source) if source.is_meta else source
    _write(target, values.expand(target.shape) if values is not None else None)
    return out


def _index(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`x[mask]` of a known mask is `x[mask.nonzero()]`: its shape is known although x is not."""
    import torch

    indices: list[Any] = []
    for index in args[1]:
        if index is not None and index.dtype in (torch.bool, torch.uint8) and index.is_meta:
            indices += _positions(func, index)
        else:
            indices.append(index)
    args = (args[0], indices)
    return _run_and_follow(func, args, kwargs, _tensors(args, kwargs))


def _masked_select(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    import torch

    if not args[1].is_meta:
        return run(func, args, kwargs)
    source, mask = torch.broadcast_tensors(*args)  # type: ignore[no-untyped-call]
    args = (source, _positions(func, mask))
    return _run_and_follow(torch.ops.aten.index.Tensor, args, {}, _tensors(args, {}))


def _positions(func: Any, mask: torch.Tensor) -> list[Any]:
    """Where a known mask is true, dimension by dimension."""
    return [_on_meta(position) for position in _twins_or_stop(func, (mask,))[0].nonzero(as_tuple=True)]


def _repeat_interleave(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if kwargs.get("output_size") is not None or not args[0].is_meta:
        return run(func, args, kwargs)
    return _on_meta(_read(func, args, kwargs))


def _run_and_follow(func: Any, args: Any, kwargs: Any, tensors: list[torch.Tensor]) -> Any:
    out = run_on_meta(func, args, kwargs)
    _follow(func, args, kwargs, out, tensors)
    return out


def _follow(func: Any, args: Any, kwargs: Any, out: Any, tensors: list[torch.Tensor]) -> None:
    """Bring the twins up to date after `func` ran on the stand-ins."""
    import torch

    name = func._opname
    if name == "set_":  # the storage brings its values along
        return
    if name in ("fill_", "zero_"):
        _write(args[0], torch.full(args[0].shape, args[1] if name == "fill_" else 0, dtype=args[0].dtype))
        return
    if not func._schema.is_mutable and all(not isinstance(o, torch.Tensor) or _is_view(o, tensors) for o in _flat(out)):
        return
    twins = None
    if name in _FILLS:
        twins = _twins((args, kwargs), _any_values)
    elif (
        all(not tensor.is_meta or _is_known(tensor) for tensor in tensors)
        and torch.Tag.nondeterministic_seeded not in func.tags
        and not name.startswith(("empty", "new_empty"))
    ):
        twins = _twins((args, kwargs))
    written = _mutated(func, args, kwargs) if func._schema.is_mutable else []
    for tensor in written:
        _record(tensor) if twins else _forget(tensor)
    if twins is None:
        return
    if "device" in twins[1]:
        twins[1]["device"] = torch.device("cpu")
    for stand_in, value in zip(_flat(out), _flat(func(*twins[0], **twins[1])), strict=False):
        if isinstance(stand_in, torch.Tensor) and stand_in.is_meta and twin_of(stand_in) is None:
            _keep(stand_in, value)


def _mutated(func: Any, args: Any, kwargs: Any) -> list[torch.Tensor]:
    import torch

    written = []
    for position, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = args[position] if position < len(args) else kwargs.get(argument.name)
            written += [t for t in _flat(value) if isinstance(t, torch.Tensor) and t.is_meta]
    return written


def _is_known(tensor: torch.Tensor) -> bool:
    return hasattr(tensor.untyped_storage(), "jitaudit_twin")


def twin_of(tensor: torch.Tensor) -> torch.Tensor | None:
    """The known values of a stand-in, as a CPU view of its twin; None where they are unknown."""
    import torch

    storage: torch.UntypedStorage | None = getattr(tensor.untyped_storage(), "jitaudit_twin", None)
    if storage is None:
        return None
    empty = torch.empty(0, dtype=tensor.dtype, device="cpu")
    return empty.set_(storage, tensor.storage_offset(), tensor.size(), tensor.stride())


def _keep(stand_in: torch.Tensor, value: torch.Tensor) -> None:
    import torch

    _record(stand_in)
    if stand_in.numel() > LARGEST_KNOWN:
        return
    _known.add(stand_in.untyped_storage())
    size = stand_in.untyped_storage().nbytes() // stand_in.element_size()
    storage = torch.zeros(size, dtype=stand_in.dtype, device="cpu").untyped_storage()
    vars(stand_in.untyped_storage())["jitaudit_twin"] = storage
    twin = twin_of(stand_in)
    assert twin is not None
    twin.copy_(value)


def _write(target: torch.Tensor, value: torch.Tensor | None) -> None:
    """`target` now holds `value`. A part of an unknown storage stays unknown."""
    twin = twin_of(target)
    if value is None:
        _forget(target)
    elif twin is not None:
        _record(target)
        twin.copy_(value)
    elif target.numel() * target.element_size() == target.untyped_storage().nbytes():
        _keep(target, value)


def _keeps_values(tensor: torch.Tensor) -> bool:
    floating = tensor.is_floating_point() or tensor.is_complex()
    return tensor.numel() <= (_LARGEST_FLOAT if floating else LARGEST_KNOWN)


def _on_meta(value: Any) -> Any:
    """Known results as stand-ins that carry them."""
    import torch

    if isinstance(value, tuple | list):
        return type(value)(_on_meta(item) for item in value)
    if not isinstance(value, torch.Tensor):
        return value
    stand_in = torch.empty_strided(value.size(), value.stride(), dtype=value.dtype, device="meta")
    _keep(stand_in, value)
    return stand_in


def _twins_or_stop(func: Any, tree: Any) -> Any:
    """`tree` with twins for stand-ins; where the values are unknown, what the user says that the line reads."""
    import torch

    def missing(tensor: torch.Tensor) -> torch.Tensor:
        kind = str(tensor.dtype).removeprefix("torch.")
        value = answer(launcher_line(), kind)
        if value is None:
            operation = _READS.get(func._opname, f"torch.{func._opname}")
            raise HostRead(operation, f"{kind} tensor of shape {tuple(tensor.shape)}")
        return torch.full(tensor.size(), value, dtype=tensor.dtype, device="cpu")

    return _twins(tree, missing)


def _any_values(tensor: torch.Tensor) -> torch.Tensor | None:
    """For operations whose result does not depend on their inputs' values."""
    import torch

    if tensor.numel() > LARGEST_KNOWN:
        return None
    return torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype, device="cpu")


def _twins(tree: Any, missing: Callable[[torch.Tensor], torch.Tensor | None] = lambda tensor: None) -> Any:
    """`tree` with each stand-in replaced by its twin, or by `missing` where it has none; None if one is None."""
    import torch

    if isinstance(tree, torch.Tensor):
        if not tree.is_meta:
            return tree
        twin = twin_of(tree)
        return missing(tree) if twin is None else twin
    if isinstance(tree, tuple | list):
        items = [_twins(item, missing) for item in tree]
        lost = any(item is None and was is not None for item, was in zip(items, tree, strict=True))
        return None if lost else type(tree)(items)
    if isinstance(tree, dict):
        values = _twins(list(tree.values()), missing)
        return None if values is None else dict(zip(tree, values, strict=True))
    return tree


def _is_view(tensor: torch.Tensor, inputs: list[torch.Tensor]) -> bool:
    storage = tensor.untyped_storage()._cdata
    return any(storage == source.untyped_storage()._cdata for source in inputs)


def _tensors(args: Any, kwargs: Any) -> list[torch.Tensor]:
    import torch

    found = [value for value in args if isinstance(value, torch.Tensor)]
    for value in (*args, *kwargs.values()):
        if isinstance(value, tuple | list):
            found += [item for item in value if isinstance(item, torch.Tensor)]
    found += [value for value in kwargs.values() if isinstance(value, torch.Tensor)]
    return found


def _flat(tree: Any) -> list[Any]:
    if isinstance(tree, dict):
        return [leaf for item in tree.values() for leaf in _flat(item)]
    if isinstance(tree, tuple | list):
        return [leaf for item in tree for leaf in _flat(item)]
    return [tree]
