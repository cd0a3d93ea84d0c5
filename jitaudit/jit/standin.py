"""Stand-in tensors: torch tensors over meta storage that say they are on `cuda:0`.

While `standing_in` is active every meta tensor is a stand-in. Its type is plain `torch.Tensor`, so launchers that look
at the type see what they would see on a GPU; `device`, `is_cuda` and `data_ptr()` are answered by patches of the class.
A dispatch mode maps `cuda` to `meta` for every operation, those made in C++ (autograd) too.

Addresses: each storage gets a base that is a multiple of 256 bytes, as CUDA's caching allocator gives; `data_ptr()`
adds the tensor's storage offset, so alignment is exact. A tensor of no elements is at 0, as in torch.
Values: what is known of a stand-in's content follows torch's operations; see `jitaudit.jit.values`.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from jitaudit.jit import values
from jitaudit.jit.patching import patched

if TYPE_CHECKING:
    import torch

_ALIGNMENT = 256
_FIRST_ADDRESS = 0x7F00_0000_0000


class _InTorch(threading.local):
    """Above 0 while torch's own kernels run: they see a stand-in as the meta tensor that it is."""

    depth = 0


_in_torch = _InTorch()


@contextmanager
def standing_in() -> Iterator[None]:
    """Make every meta tensor a stand-in on `cuda:0` until the end of the block."""
    import torch

    torch._C._ensureCUDADeviceGuardSet()
    lifted = torch._C._only_lift_cpu_tensors()
    torch._C._set_only_lift_cpu_tensors(True)
    try:
        mode = _dispatch_mode()
        with patched([*_tensor_patches(), (threading.Thread, "start", _starting_under(mode))]), mode:
            yield
    finally:
        torch._C._set_only_lift_cpu_tensors(lifted)


def _starting_under(mode: Any) -> Callable[[threading.Thread], None]:
    """`Thread.start`: torch keeps modes by thread, and a launcher's threads work on stand-ins too."""
    true_start = threading.Thread.start

    def start(self: threading.Thread) -> None:
        run = self.run

        def run_under_mode() -> None:
            with type(mode)():
                run()

        vars(self)["run"] = run_under_mode
        true_start(self)

    return start


def preload() -> None:
    """Have torch and Triton load what they would at the first operation and launch: a second, in each fork again."""
    import torch
    import triton.compiler.code_generator  # noqa: F401

    torch.empty(2, 2, device="cuda").softmax(-1)


def _tensor_patches() -> list[tuple[Any, str, Any]]:
    import torch

    tensor: Any = torch.Tensor
    base: Any = torch._C.TensorBase
    is_meta = base.is_meta.__get__
    true_device, true_is_cuda = base.device.__get__, base.is_cuda.__get__
    true_data_ptr, true_get_device, true_repr = base.data_ptr, base.get_device, tensor.__repr__
    true_storage_data_ptr: Any = torch.UntypedStorage.data_ptr
    storage_offset, element_size, numel = base.storage_offset, base.element_size, base.numel
    untyped_storage = tensor.untyped_storage
    cuda = torch.device("cuda", 0)
    next_address = _FIRST_ADDRESS

    def device(self: torch.Tensor) -> Any:
        return cuda if is_meta(self) and not _in_torch.depth else true_device(self)

    def is_cuda(self: torch.Tensor) -> bool:
        return (is_meta(self) and not _in_torch.depth) or true_is_cuda(self)

    def get_device(self: torch.Tensor) -> int:
        return 0 if is_meta(self) and not _in_torch.depth else true_get_device(self)

    def says_meta(self: torch.Tensor) -> bool:
        return bool(is_meta(self) and _in_torch.depth)

    def shown(self: torch.Tensor, **kwargs: Any) -> str:
        """What a launcher logs of a stand-in is no host read: its values are left out."""
        if not is_meta(self):
            return str(true_repr(self, **kwargs))
        _in_torch.depth += 1
        try:
            return str(true_repr(self, **kwargs)).replace("device='meta'", f"device='{cuda}'")
        finally:
            _in_torch.depth -= 1

    def storage_data_ptr(self: Any) -> int:
        nonlocal next_address
        if self.device.type != "meta":
            return int(true_storage_data_ptr(self))
        if not self.nbytes():
            return 0
        address = getattr(self, "jitaudit_address", None)
        if address is None:
            address = next_address
            self.jitaudit_address = address
            next_address += -(-self.nbytes() // _ALIGNMENT) * _ALIGNMENT
        return int(address)

    def data_ptr(self: torch.Tensor) -> int:
        if not is_meta(self):
            return int(true_data_ptr(self))
        if not numel(self):
            return 0
        return storage_data_ptr(untyped_storage(self)) + int(storage_offset(self)) * int(element_size(self))

    return [
        (tensor, "device", property(device)),
        (tensor, "is_cuda", property(is_cuda)),
        (tensor, "is_meta", property(says_meta)),
        (tensor, "get_device", get_device),
        (tensor, "__repr__", shown),
        (tensor, "data_ptr", data_ptr),
        (torch.UntypedStorage, "data_ptr", storage_data_ptr),
        *_move_patches(),
    ]


def _move_patches() -> list[tuple[Any, str, Any]]:
    """The calls in which torch asks the CUDA library for a device before it dispatches: they move to meta instead."""
    import torch

    true_to, true_tensor, true_as_tensor = torch._C.TensorBase.to, torch.tensor, torch.as_tensor
    true_parse_to: Any = torch._C._nn._parse_to

    def is_gpu(device: object) -> bool:
        return (type(device) is torch.device and device.type == "cuda") or (
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
                return _pin(make(data, *args, device=device, **kwargs))
            if device is None and make is true_as_tensor and isinstance(data, torch.Tensor):
                return make(data, *args, **kwargs)
            device = torch.get_default_device() if device is None else device
            if not (is_gpu(device) or type(device) is int):
                return make(data, *args, device=device, **kwargs)
            if isinstance(data, torch.Tensor) and values.is_stand_in(data):
                return make(data, *args, **kwargs)
            requires_grad = kwargs.pop("requires_grad", False)
            made = true_to(make(data, *args, device="cpu", **kwargs), "meta")
            return made.requires_grad_() if requires_grad else made

        return construct

    def new_tensor(self: torch.Tensor, data: Any, *, dtype: Any = None, device: Any = None, **kwargs: Any) -> Any:
        return torch.tensor(data, dtype=dtype or self.dtype, device=self.device if device is None else device, **kwargs)

    def parse_to(*args: Any, **kwargs: Any) -> Any:
        """`Module.to`."""
        if args and type(args[0]) is int:
            args = ("cuda", *args[1:])
        return true_parse_to(*args, **_by_type(kwargs))

    def pin_memory(self: torch.Tensor, device: object = None) -> torch.Tensor:
        return self if is_pinned(self) else _pin(self.clone())

    def is_pinned(self: torch.Tensor, device: object = None) -> bool:
        return hasattr(self.untyped_storage(), "jitaudit_pinned")

    return [
        (torch.Tensor, "pin_memory", pin_memory),
        (torch.Tensor, "is_pinned", is_pinned),
        (torch.Tensor, "to", to),
        (torch.Tensor, "cuda", cuda),
        (torch.Tensor, "new_tensor", new_tensor),
        (torch._C._nn, "_parse_to", parse_to),
        *_factory_patches(),
        (torch, "tensor", from_data(true_tensor)),
        (torch, "as_tensor", from_data(true_as_tensor)),
        (torch, "asarray", from_data(torch.asarray)),
    ]


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


def _pin(tensor: torch.Tensor) -> torch.Tensor:
    """Mark host memory as pinned."""
    tensor.untyped_storage().jitaudit_pinned = True  # type: ignore[attr-defined]
    return tensor


def _dispatch_mode() -> Any:
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    mode: Any = TorchDispatchMode  # torch leaves it untyped
    meta = torch.device("meta")
    special = values.special_operations()

    class StandInMode(mode):  # type: ignore[misc]
        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            return False  # else torch imports its compiler, 2 s, to keep it away from this mode

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            device = kwargs.get("device")
            if device is not None and device.type == "cuda":
                kwargs = {**kwargs, "device": meta}
            if kwargs.get("pin_memory"):
                return _pin(func(*args, **{**kwargs, "pin_memory": False}))
            if (key := _implementation(func)) and values.reaches_stand_ins(args, kwargs):
                with self:
                    return func._op_dk(key, *args, **kwargs)
            _in_torch.depth += 1
            try:
                handler: Callable[..., Any] = special.get(func, values.run)
                return handler(func, args, kwargs)
            finally:
                _in_torch.depth -= 1

    return StandInMode()


_TORCH_NAMESPACES = {
    "aten",
    "prims",
    "prim",
    "profiler",
    "inductor",
    "_c10d_functional",
    "c10d",
    "debugprims",
    "rngprims",
}


def _implementation(func: Any) -> Any:
    """The key of an operator's own implementation in Python, which a meta tensor would not reach.

    A custom operator has one, and so has an operator of torch whose CUDA implementation a library replaced.
    """
    import torch

    if func.namespace in _TORCH_NAMESPACES:
        replaced = f"{func.namespace}/{func.name().partition('::')[2]}/CUDA" in torch.library._impls
        return torch._C.DispatchKey.CUDA if replaced else None
    for name in ("CUDA", "CompositeExplicitAutograd"):
        if torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), name):
            return getattr(torch._C.DispatchKey, name)
    return None
