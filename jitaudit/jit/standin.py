"""Stand-in tensors: torch tensors over meta storage that say they are on `cuda:0`.

While `standing_in` is active every meta tensor is a stand-in. Its type is plain `torch.Tensor`, so launchers that look
at the type see what they would see on a GPU; `device`, `is_cuda` and `data_ptr()` are answered by patches of the class.
A dispatch mode maps `cuda` to `meta` for every operation, those made in C++ (autograd) too.

Addresses: `data_ptr()` is the storage's base, see `jitaudit.jit.addresses`, plus the tensor's storage offset, so
alignment is exact. A tensor of no elements is at 0, as in torch.
Values: what is known of a stand-in's content follows torch's operations; see `jitaudit.jit.values`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from jitaudit.jit import operators, values
from jitaudit.jit.addresses import address
from jitaudit.jit.patching import patched
from jitaudit.jit.placing import pin, placing_patches
from jitaudit.jit.twins import is_stand_in

if TYPE_CHECKING:
    import torch


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
        threads = (threading.Thread, "start", _starting_under(mode))
        with patched([*_tensor_patches(), *placing_patches(), *operators.patches(), threads]), mode:
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
        return address(self) if self.device.type == "meta" else int(true_storage_data_ptr(self))

    def data_ptr(self: torch.Tensor) -> int:
        if not is_meta(self):
            return int(true_data_ptr(self))
        if not numel(self):
            return 0
        return address(untyped_storage(self)) + int(storage_offset(self)) * int(element_size(self))

    return [
        (tensor, "device", property(device)),
        (tensor, "is_cuda", property(is_cuda)),
        (tensor, "is_meta", property(says_meta)),
        (tensor, "get_device", get_device),
        (tensor, "__repr__", shown),
        (tensor, "data_ptr", data_ptr),
        (torch.UntypedStorage, "data_ptr", storage_data_ptr),
        (torch.nn.init, "_no_grad_trunc_normal_", _truncate_nothing(torch.nn.init._no_grad_trunc_normal_)),
    ]


def _truncate_nothing(truncate: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """torch draws again, and reads on the host, until no number lies outside: of numbers that nobody knows."""

    def trunc_normal(tensor: torch.Tensor, mean: float, std: float, *bounds: Any, **more: Any) -> torch.Tensor:
        if not is_stand_in(tensor):
            return truncate(tensor, mean, std, *bounds, **more)
        tensor.detach().normal_(mean, std)
        return tensor

    return trunc_normal


def _dispatch_mode() -> Any:
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    mode: Any = TorchDispatchMode  # torch leaves it untyped
    meta, plain = torch.device("meta"), torch.Tensor.__torch_dispatch__
    special = values.special_operations()

    class StandInMode(mode):  # type: ignore[misc]
        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            return False  # else torch imports its compiler, 2 s, to keep it away from this mode

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if any(kind.__torch_dispatch__ is not plain for kind in types):
                return NotImplemented  # a tensor class of the user's: what it makes of the operation comes here again
            kwargs = kwargs or {}
            if (key := operators.implementation(func)) and values.reaches_stand_ins(func, args, kwargs):
                with self:
                    return func._op_dk(key, *args, **kwargs)
            device = kwargs.get("device")
            if device is not None and device.type == "cuda":
                kwargs = {**kwargs, "device": meta}
            if torch.Tag.nondeterministic_seeded in func.tags and values.makes_stand_ins(args, kwargs):
                return self.draw(func, args, kwargs)
            if kwargs.get("pin_memory"):
                return pin(func(*args, **{**kwargs, "pin_memory": False}))
            return self.run(func, args, kwargs)

        def draw(self, func: Any, args: Any, kwargs: Any) -> Any:
            """A random operation: its generator is a stand-in too, which no implementation can ask."""
            given = kwargs.get("generator")
            generator: Any = torch.cuda.default_generators[0] if given is None else torch.Generator.behind(given)  # type: ignore[attr-defined]
            out = self.run(func, args, {**kwargs, "generator": None} if given is not None else kwargs)
            drawn = out[0] if isinstance(out, tuple) else out
            if generator is not None:
                generator.move(func._opname, drawn.numel(), drawn.element_size())
            return out

        def run(self, func: Any, args: Any, kwargs: Any) -> Any:
            _in_torch.depth += 1
            try:
                handler: Callable[..., Any] = special.get(func, values.run)
                return handler(func, args, kwargs)
            finally:
                _in_torch.depth -= 1

    return StandInMode()
