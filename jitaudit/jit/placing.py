"""The calls in which torch asks the CUDA library for a device before it dispatches: they place things on meta instead.

Among them those that take a device as a number, and `torch.device` itself where torch was built without CUDA.
"""

from __future__ import annotations

import copyreg
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from jitaudit.jit import twins

if TYPE_CHECKING:
    import torch


def placing_patches() -> list[tuple[Any, str, Any]]:
    """The patches, as `patched` takes them."""
    import torch

    true_to, true_tensor, true_as_tensor = torch._C.TensorBase.to, torch.tensor, torch.as_tensor
    true_parse_to: Any = torch._C._nn._parse_to
    true_getitem, true_setitem = torch._C.TensorBase.__getitem__, torch._C.TensorBase.__setitem__

    dlpack: Any = torch.utils.dlpack
    true_type, true_from_dlpack, true_to_dlpack = torch._C.TensorBase.type, dlpack.from_dlpack, dlpack.to_dlpack

    def is_gpu(device: object) -> bool:
        return (isinstance(device, torch.device) and device.type == "cuda") or (
            type(device) is str and device.startswith("cuda")
        )

    def to(self: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        if "device" in kwargs:
            args, kwargs = (kwargs["device"], *args), {k: v for k, v in kwargs.items() if k != "device"}
        first = args[0] if args else None
        return (
            true_to(self, "meta", *args[1:], **kwargs)
            if is_gpu(first) or type(first) is int
            else true_to(self, *args, **kwargs)
        )

    def cuda(self: torch.Tensor, device: object = None, non_blocking: bool = False, **kwargs: Any) -> torch.Tensor:
        return true_to(self, "meta", non_blocking=non_blocking, **kwargs)

    def from_data(make: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
        def construct(data: Any, *args: Any, device: Any = None, **kwargs: Any) -> torch.Tensor:
            if kwargs.pop("pin_memory", False):
                return pin(make(data, *args, device=device, **kwargs))
            if device is None and make is true_as_tensor and isinstance(data, torch.Tensor):
                return make(data, *args, **kwargs)
            if isinstance(data, list | tuple):
                data = _on_host(data)
            device = torch.get_default_device() if device is None else device
            if not (is_gpu(device) or type(device) is int):
                return make(data, *args, device=device, **kwargs)
            if isinstance(data, torch.Tensor) and twins.is_stand_in(data):
                return make(data, *args, **kwargs)
            requires_grad = kwargs.pop("requires_grad", False)
            made = true_to(make(data, *args, device="cpu", **kwargs), "meta")
            return made.requires_grad_() if requires_grad else made

        return construct

    def new_tensor(self: torch.Tensor, data: Any, *, dtype: Any = None, device: Any = None, **kwargs: Any) -> Any:
        return torch.tensor(data, dtype=dtype or self.dtype, device=self.device if device is None else device, **kwargs)

    def getitem(self: torch.Tensor, index: Any) -> Any:
        return true_getitem(self, _tensors_for_lists(index) if twins.is_stand_in(self) else index)

    def setitem(self: torch.Tensor, index: Any, value: Any) -> None:
        true_setitem(self, _tensors_for_lists(index) if twins.is_stand_in(self) else index, value)

    def parse_to(*args: Any, **kwargs: Any) -> Any:
        """`Module.to`."""
        if args and type(args[0]) is int:
            args = ("cuda", *args[1:])
        return true_parse_to(*args, **_by_type(kwargs))

    def type_(self: torch.Tensor, dtype: Any = None, **kwargs: Any) -> Any:
        """Without a dtype, what torch called its tensors' types before they had a device."""
        if dtype is None and twins.is_stand_in(self):
            return true_type(torch.empty(0, dtype=self.dtype, device="cpu")).replace("torch.", "torch.cuda.")
        return true_type(self, dtype, **kwargs)

    def to_dlpack(tensor: torch.Tensor) -> Any:
        return tensor if twins.is_stand_in(tensor) else true_to_dlpack(tensor)

    def from_dlpack(ext_tensor: Any, **kwargs: Any) -> Any:
        is_tensor = isinstance(ext_tensor, torch.Tensor) and twins.is_stand_in(ext_tensor)
        return ext_tensor.detach() if is_tensor else true_from_dlpack(ext_tensor, **kwargs)

    def pin_memory(self: torch.Tensor, device: object = None) -> torch.Tensor:
        return self if is_pinned(self) else pin(self.clone())

    def is_pinned(self: torch.Tensor, device: object = None) -> bool:
        return hasattr(self.untyped_storage(), "jitaudit_pinned")

    return [
        (torch.Tensor, "pin_memory", pin_memory),
        (torch.Tensor, "is_pinned", is_pinned),
        (torch.Tensor, "to", to),
        (torch.Tensor, "cuda", cuda),
        (torch.Tensor, "new_tensor", new_tensor),
        (torch.Tensor, "__getitem__", getitem),
        (torch.Tensor, "__setitem__", setitem),
        (torch.Tensor, "type", type_),
        (torch._C._nn, "_parse_to", parse_to),
        *_device_patches(),
        *_storage_patches(),
        *_factory_patches(),
        (torch, "tensor", from_data(true_tensor)),
        (torch, "as_tensor", from_data(true_as_tensor)),
        (torch, "asarray", from_data(torch.asarray)),
        *((module, "to_dlpack", to_dlpack) for module in (torch, dlpack)),
        *((module, "from_dlpack", from_dlpack) for module in (torch, dlpack)),
    ]


def _tensors_for_lists(index: Any) -> Any:
    """An index whose lists are tensors: those that torch makes of lists on a meta tensor's device hold nothing."""
    import torch

    if type(index) is list:
        return torch.tensor(index, device="cuda")
    if type(index) is tuple and any(type(part) is list for part in index):
        return tuple(_tensors_for_lists(part) if type(part) is list else part for part in index)
    return index


def _on_host(data: Any) -> Any:
    """Data for a tensor, with the values of the stand-ins in it: torch reads them one by one."""
    import torch

    if isinstance(data, list | tuple):
        return data if _is_plain(data) else [_on_host(item) for item in data]
    return data.tolist() if isinstance(data, torch.Tensor) and twins.is_stand_in(data) else data


def _is_plain(data: Any) -> bool:
    return all(type(item) in (int, float, bool) for item in data)


def _device_patches() -> list[tuple[Any, str, Any]]:
    """`torch.device(0)` where torch was built without CUDA and knows no device for a number."""
    import torch

    true_device: Any = torch.device
    try:
        true_device(0)
    except RuntimeError:
        return [
            (torch, "device", _device_class(true_device)),
            (copyreg, "dispatch_table", _pickled_as_torchs(true_device)),
        ]
    return []


def _device_class(true_device: Any) -> type:
    """What makes devices and says that each is an instance of itself."""

    class OfEveryDevice(type):
        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            number = args[0] if args else kwargs.get("index", kwargs.get("device"))
            if type(number) is int and len(args) + len(kwargs) == 1:
                return true_device("cuda", number)
            return true_device(*args, **kwargs)

        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, true_device)

        def __eq__(cls, other: object) -> bool:
            return other is cls or other is true_device

        def __hash__(cls) -> int:
            return hash(true_device)

    return OfEveryDevice("device", (), {"__module__": "torch", "__doc__": true_device.__doc__})


def _pickled_as_torchs(true_device: Any) -> dict[Any, Any]:
    """How devices are pickled: as a call of whatever `torch.device` is where they are read."""
    import torch

    def reduce(device: Any) -> tuple[Any, ...]:
        return torch.device, (device.type,) if device.index is None else (device.type, device.index)

    return {**copyreg.dispatch_table, true_device: reduce}


def _storage_patches() -> list[tuple[Any, str, Any]]:
    """Storages that are made on a device, as those that torch reads from a file."""
    import torch

    storage: Any = torch.UntypedStorage
    true_new, true_share = storage.__new__, storage.share_memory_

    def new(cls: Any, *args: Any, device: Any = None, **kwargs: Any) -> Any:
        if device is None:
            return true_new(cls, *args, **kwargs)
        return true_new(cls, *args, device="meta" if torch.device(device).type == "cuda" else device, **kwargs)

    def share_memory_(self: Any) -> Any:
        return self if self.device.type == "meta" else true_share(self)

    return [(storage, "__new__", new), (storage, "share_memory_", share_memory_)]


def _factory_patches() -> list[tuple[Any, str, Any]]:
    """Factories whose device may be a number, for which torch asks the CUDA library too."""
    import torch
    from torch.utils._device import _device_constructors

    def by_type(make: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
        @functools.wraps(make)
        def construct(*args: Any, **kwargs: Any) -> torch.Tensor:
            return make(*args, **_by_type(kwargs))

        return construct

    # torch keeps what this returns, so it is asked before anything is patched
    constructors = {make.__name__ for make in _device_constructors()}
    likes = {name for name in vars(torch) if name.endswith("_like") and not name.startswith("_")}
    news = ("new_empty", "new_empty_strided", "new_zeros", "new_ones", "new_full")
    return [
        *((torch, name, by_type(vars(torch)[name])) for name in constructors | likes if name in vars(torch)),
        *((torch.Tensor, name, by_type(getattr(torch._C.TensorBase, name))) for name in news),
    ]


def _by_type(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Keywords whose device, if it is a number, is `cuda`."""
    return {**kwargs, "device": "cuda"} if type(kwargs.get("device")) is int else kwargs


def pin(tensor: torch.Tensor) -> torch.Tensor:
    """Mark host memory as pinned."""
    tensor.untyped_storage().jitaudit_pinned = True  # type: ignore[attr-defined]
    return tensor
