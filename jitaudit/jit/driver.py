"""A Triton driver for a target that is not here: it answers from the device profile and launches nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from jitaudit.jit.stops import Unsupported
from jitaudit.jit.target import device_profile, gpu_target

if TYPE_CHECKING:
    import torch
    from triton.backends.compiler import GPUTarget

    from jitaudit.jit.target import DeviceProfile


def offline_driver(
    target: str, asked: Callable[[str], object] = lambda name: None, benchmark: Callable[..., Any] | None = None
) -> OfflineDriver:
    """A driver for `target`; `asked` gets the name of each device question, `benchmark` is its benchmarker."""
    return OfflineDriver(gpu_target(target), device_profile(target), asked, benchmark)


class OfflineDriver:
    """What Triton and launchers ask of `triton.runtime.driver.active`."""

    def __init__(
        self,
        target: GPUTarget,
        profile: DeviceProfile,
        asked: Callable[[str], object],
        benchmark: Callable[..., Any] | None,
    ) -> None:
        self._target = target
        self._benchmark = benchmark
        self.utils = _Utils(profile, asked)

    def get_current_target(self) -> GPUTarget:
        return self._target

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, device: int) -> None:
        pass

    def get_current_stream(self, device: int | None = None) -> int:
        return 0

    def get_device_capability(self, device: int = 0) -> tuple[int, int]:
        return self.utils.profile.capability

    def get_active_torch_device(self) -> torch.device:
        import torch

        return torch.device("cuda", 0)

    def get_device_interface(self) -> Any:
        import torch

        return torch.cuda

    def get_benchmarker(self) -> Callable[..., Any]:
        if self._benchmark is None:
            raise Unsupported("triton.runtime.driver.active.get_benchmarker")
        return self._benchmark

    def get_empty_cache_for_benchmark(self) -> torch.Tensor:
        import torch

        return torch.empty(0, dtype=torch.int8, device="cuda")

    def clear_cache(self, cache: torch.Tensor) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise Unsupported(f"triton.runtime.driver.active.{name}")


class _Utils:
    """`driver.active.utils`: the part that launchers read."""

    def __init__(self, profile: DeviceProfile, asked: Callable[[str], object]) -> None:
        self.profile = profile
        self._asked = asked

    def get_device_properties(self, device: int = 0) -> _TritonProperties:
        return _TritonProperties(self.profile, self._asked)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise Unsupported(f"triton.runtime.driver.active.utils.{name}")


_TRITON_NAMES = {
    "max_shared_mem": "shared_memory_per_block_optin",
    "max_num_regs": "regs_per_multiprocessor",
    "multiprocessor_count": "multi_processor_count",
    "warpSize": "warp_size",
}


class _TritonProperties(dict[str, int]):
    """The properties under Triton's names, each known only once it is asked for."""

    def __init__(self, profile: DeviceProfile, asked: Callable[[str], object]) -> None:
        super().__init__(dict.fromkeys(_TRITON_NAMES, 0))
        self._profile = profile
        self._asked = asked

    def __getitem__(self, name: str) -> int:
        value = getattr(self._profile, _TRITON_NAMES.get(name, ""), None)
        if value is None:
            raise Unsupported(f"triton.runtime.driver.active.utils.get_device_properties()[{name!r}]")
        self._asked(_TRITON_NAMES[name])
        return int(value)

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in _TRITON_NAMES else default
