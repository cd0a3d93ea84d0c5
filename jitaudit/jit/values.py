"""What is known of stand-ins' content.

Small tensors that are built from data are known, and so is what torch computes from known ones alone; their values are
kept in twins, see `jitaudit.jit.twins`. An operation that needs an unknown value stops the case with HostRead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from jitaudit.jit.answers import answer
from jitaudit.jit.shapes import run_on_meta
from jitaudit.jit.stops import HostRead, launcher_line
from jitaudit.jit.twins import LARGEST_KNOWN, flat, forget, is_known, is_stand_in, keep, record_write, twin_of, write

if TYPE_CHECKING:
    import torch

_LARGEST_FLOAT = 1 << 10
"""Elements of the largest floating-point tensor that is kept when it is built from data: small tables, not weights."""

_FILLS = {"zeros_like", "ones_like", "full_like", "new_zeros", "new_ones", "new_full", "fill_", "zero_"}
"""Operations whose result does not depend on what their tensor held."""
_FACTORIES = {
    "arange", "linspace", "logspace", "zeros", "ones", "full", "eye", "scalar_tensor", "tril_indices", "triu_indices",
}  # fmt: skip
_READS = {"_local_scalar_dense": ".item()", "_to_copy": ".cpu()", "copy_": "copy to the host", "equal": "torch.equal"}


def known(tensor: torch.Tensor, values: object) -> torch.Tensor:
    """Say what a tensor holds, for launchers that read it on the host; returns `tensor`.

    `values`: anything `torch.as_tensor` takes that broadcasts to the tensor's shape. On a real tensor the values are
    written, so that a sweep means the same with and without a GPU.
    """
    import torch

    tensor.copy_(torch.as_tensor(values, dtype=tensor.dtype, device="cpu").expand(tensor.shape))
    return tensor


def reaches_stand_ins(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether an operation is the device's: it takes a stand-in, or is told to make one, or takes no tensor at all."""
    if tensors := _tensors(args, kwargs):
        return any(map(is_stand_in, tensors))
    if all(argument.name != "device" for argument in func._schema.arguments):
        return True
    device = kwargs.get("device")
    return device is not None and device.type in ("cuda", "meta")


def makes_stand_ins(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether an operation's results are: it takes one, or is told to make one."""
    device = kwargs.get("device")
    return (device is not None and device.type == "meta") or any(map(is_stand_in, _tensors(args, kwargs)))


def run(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run one operation on stand-ins, and on their twins where all its inputs are known."""
    import torch

    tensors = _tensors(args, kwargs)
    if not any(tensor.is_meta for tensor in tensors):
        out = func(*args, **kwargs)
        if isinstance(out, torch.Tensor) and out.is_meta and func._opname in _FACTORIES and _keeps_values(out):
            keep(out, func(*args, **{**kwargs, "device": torch.device("cpu")}))
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
            keep(out, func(twin, **{**kwargs, "device": torch.device("cpu")}))
    return out


def _copy(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    target, source = args[:2]
    if not target.is_meta:
        return func(target, *_twins_or_stop(func, (source,)), *args[2:], **kwargs)
    out = func(*args, **kwargs)
    values = twin_of(source) if source.is_meta else source
    write(target, values.expand(target.shape) if values is not None else None)
    return out


def _index(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`x[mask]` of a known mask, or one on the host, is `x[mask.nonzero()]`: its shape is known although x is not."""
    import torch

    if not args[0].is_meta:
        return run(func, args, kwargs)
    indices: list[Any] = []
    for index in args[1]:
        if index is not None and index.dtype in (torch.bool, torch.uint8):
            indices += _positions(func, index)
        else:
            indices.append(index)
    args = (args[0], indices)
    return _run_and_follow(func, args, kwargs, _tensors(args, kwargs))


def _masked_select(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    import torch

    if not args[0].is_meta and not args[1].is_meta:
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
        write(args[0], _filled(*args))
        return
    results = [result for result in flat(out) if isinstance(result, torch.Tensor)]
    if not func._schema.is_mutable and all(_is_view(result, tensors) for result in results):
        return
    written = _mutated(func, args, kwargs) if func._schema.is_mutable else []
    values = _values_of(func, args, kwargs, results, tensors)
    for tensor in written:
        forget(tensor) if values is None else record_write(tensor)
    for result, value in zip(results, values or (), strict=False):
        if result.is_meta and twin_of(result) is None:
            write(result, value) if written else keep(result, value)


def _filled(target: torch.Tensor, value: Any = 0) -> torch.Tensor | None:
    import torch

    if isinstance(value, torch.Tensor):
        twin = twin_of(value) if value.is_meta else value
        return None if twin is None else twin.to(target.dtype).expand(target.shape)
    return torch.full((), value, dtype=target.dtype, device="cpu").expand(target.shape)


def _values_of(
    func: Any, args: Any, kwargs: Any, results: list[torch.Tensor], tensors: list[torch.Tensor]
) -> list[torch.Tensor] | None:
    """What `func` makes of known values; None where it can't be told, or would be too large to keep."""
    import torch

    if any(result.numel() > LARGEST_KNOWN for result in results):
        return None
    name = func._opname
    overwritten = [kwargs[a.name] for a in func._schema.arguments if a.is_out and a.name in kwargs]
    if name in _FILLS:
        twins = _twins((args, kwargs), _any_values)
    elif (
        all(not t.is_meta or is_known(t) or any(t is o for o in overwritten) for t in tensors)
        and torch.Tag.nondeterministic_seeded not in func.tags
        and not name.startswith(("empty", "new_empty"))
    ):
        twins = _twins((args, kwargs), _any_values if overwritten else lambda tensor: None)
    else:
        return None
    if twins is None:
        return None
    if "device" in twins[1]:
        twins[1]["device"] = torch.device("cpu")
    try:
        made = func(*twins[0], **twins[1])
    except Exception:  # an operation that the host lacks, or for other dtypes
        return None
    return [value for value in flat(made) if isinstance(value, torch.Tensor)]


def _mutated(func: Any, args: Any, kwargs: Any) -> list[torch.Tensor]:
    import torch

    written = []
    for position, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = args[position] if position < len(args) else kwargs.get(argument.name)
            written += [t for t in flat(value) if isinstance(t, torch.Tensor) and t.is_meta]
    return written


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
    keep(stand_in, value)
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
