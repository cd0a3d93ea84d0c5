"""Device questions: `torch.cuda.*` and `torch.accelerator.*`, answered from one profile while nothing is there.

A question without an answer raises Unsupported with its name. What can only be asked of a device that did something
(memory in use, elapsed time) is answered as of one that did nothing.
"""

from __future__ import annotations

import functools
import types
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from jitaudit.jit.device_objects import DeviceObjects, device_objects
from jitaudit.jit.patching import patched
from jitaudit.jit.stops import Unsupported
from jitaudit.jit.target import DeviceProfile

Asked = Callable[[str], object]


@contextmanager
def answering(profile: DeviceProfile, asked: Asked) -> Iterator[None]:
    """Answer device questions from `profile`; `asked` gets the name of each property that was used."""
    import torch

    answers = _answers(profile, asked)
    unanswered = [
        (module, name, _unanswered(f"{module.__name__}.{name}", value))
        for module in (torch.cuda, torch.accelerator)
        for name, value in vars(module).items()
        if isinstance(value, types.FunctionType | types.BuiltinFunctionType)
        and not name.startswith("_")
        and name not in _HARMLESS
        and (value.__module__ or "").startswith(module.__name__)
    ]
    with patched(unanswered), patched(answers):
        yield


_HARMLESS = {"check_error", "stream", "make_graphed_callables"}
"""Functions of torch that only call others."""


def _unanswered(question: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)  # torch's compiler looks at what some of them wrap, when it is imported
    def ask(*args: object, **kwargs: object) -> Any:
        raise Unsupported(question)

    return ask


def _answers(profile: DeviceProfile, asked: Asked) -> list[tuple[Any, str, Any]]:
    import torch

    hip = profile.backend == "hip"
    objects = device_objects(profile)
    cuda = _cuda_answers(profile, asked, objects)
    shared = {name: cuda[like] for name, like in _ACCELERATOR_LIKE_CUDA.items()}
    accelerator = _constants(_ACCELERATOR_CONSTANTS) | shared | {"current_accelerator": _always(torch.device("cuda"))}
    return [
        *((torch.cuda, name, _own(answer)) for name, answer in cuda.items()),
        *((torch.accelerator, n, _own(answer)) for n, answer in accelerator.items() if hasattr(torch.accelerator, n)),
        *((torch._C, name, answer) for name, answer in _constants(_LIBRARY_CONSTANTS).items()),
        (torch._C, "_cuda_isCurrentStreamCapturing", objects.state.is_capturing),
        (torch.cuda.graphs, "graph_pool_handle", cuda["graph_pool_handle"]),
        (torch.cuda.nvtx, "_nvtx", types.SimpleNamespace(**_constants(_NVTX_CONSTANTS))),
        (torch, "Stream", objects.Stream),
        (torch, "Event", objects.Event),
        (torch, "Generator", objects.Generator),
        (torch.autocast, "__enter__", _refuse_autocast(torch.autocast.__enter__)),
        (torch, "set_autocast_enabled", _refuse_autocast_calls(torch.set_autocast_enabled)),
        (torch.backends.cuda, "is_built", _always(True)),
        (torch.backends.cudnn, "is_available", _always(not hip)),
        (torch, "get_device_module", _device_module(torch.get_device_module)),
        (torch.version, "cuda", None if hip else torch.version.cuda or "13.0"),
        (torch.version, "hip", (torch.version.hip or "7.0") if hip else None),
    ]


def _cuda_answers(profile: DeviceProfile, asked: Asked, objects: DeviceObjects) -> dict[str, Any]:
    stream, generator = objects.Stream, objects.Generator("cuda")
    state, default = objects.state, objects.state.stream

    def told(name: str, value: Any) -> Callable[..., Any]:
        def answer(*args: object, **kwargs: object) -> Any:
            if value is None:
                raise Unsupported(f"torch.cuda.{name}")
            asked(name)
            return value

        return answer

    def since_ampere() -> bool:
        asked("capability")
        return profile.backend == "hip" or profile.capability >= (8, 0)

    def set_stream(new: Any) -> None:
        state.stream = new or state.stream

    architecture = profile.gcnArchName or f"sm_{profile.capability[0]}{profile.capability[1]}"
    return _constants(_CUDA_CONSTANTS) | {
        "get_device_properties": lambda device=None: _Properties(profile, asked),
        "get_device_name": told("name", profile.name),
        "get_device_capability": told("capability", profile.capability),
        "is_bf16_supported": lambda including_emulation=True: including_emulation or since_ampere(),
        "is_tf32_supported": since_ampere,
        "get_arch_list": told("arch_list", [architecture]),
        "mem_get_info": told("total_memory", profile.total_memory and (profile.total_memory, profile.total_memory)),
        "current_stream": lambda device=None: state.stream,
        "default_stream": _always(default),
        "is_current_stream_capturing": state.is_capturing,
        "set_stream": set_stream,
        "get_stream_from_external": lambda pointer, device=None: stream(handle=pointer),
        "get_rng_state": lambda device=None: generator.get_state(),
        "get_rng_state_all": lambda: [generator.get_state()],
        "set_rng_state": lambda new_state, device=None: generator.set_state(new_state) and None,
        "set_rng_state_all": lambda new_states: generator.set_state(new_states[0]) and None,
        "manual_seed": lambda seed: generator.manual_seed(seed) and None,
        "manual_seed_all": lambda seed: generator.manual_seed(seed) and None,
        "seed": lambda: generator.seed() and None,
        "seed_all": lambda: generator.seed() and None,
        "memory_stats": lambda device=None: defaultdict(int),
        "memory_snapshot": lambda *args: [],
        "initial_seed": lambda: generator.initial_seed(),
        "Stream": stream,
        "ExternalStream": objects.ExternalStream,
        "Event": objects.Event,
        "CUDAGraph": objects.CUDAGraph,
        "graph": objects.graph,
        "MemPool": objects.MemPool,
        "use_mem_pool": lambda pool, device=None: nullcontext(),
        "default_generators": (generator,),
    }


Constants = tuple[tuple[Any, tuple[str, ...]], ...]
"""Answers that no profile changes, each with the questions that get it."""

_CUDA_CONSTANTS: Constants = (
    (True, ("is_available", "is_initialized", "_is_compiled")),
    (False, ("_is_in_bad_fork",)),
    (1, ("device_count",)),
    (0, ("current_device", "_exchange_device", "_maybe_exchange_device", "_get_device")),
    (0, ("memory_allocated", "memory_reserved", "memory_cached")),
    (0, ("max_memory_allocated", "max_memory_reserved", "max_memory_cached")),
    (None, ("_lazy_init", "_lazy_call", "init", "synchronize", "set_device", "empty_cache", "ipc_collect")),
    (None, ("reset_peak_memory_stats", "reset_accumulated_memory_stats", "reset_max_memory_allocated")),
    (None, ("reset_max_memory_cached", "set_per_process_memory_fraction", "set_sync_debug_mode")),
    ("", ("memory_summary",)),
    ("native", ("get_allocator_backend",)),
    ((0, 0), ("graph_pool_handle",)),
)

_ACCELERATOR_CONSTANTS: Constants = (
    (True, ("is_available",)),
    (1, ("device_count",)),
    (0, ("current_device_index", "current_device_idx")),
    (0, ("memory_allocated", "memory_reserved", "max_memory_allocated", "max_memory_reserved")),
    (None, ("set_device_index", "set_device_idx", "synchronize", "empty_cache", "empty_host_cache")),
    (None, ("reset_peak_memory_stats", "reset_accumulated_memory_stats")),
)

_ACCELERATOR_LIKE_CUDA = {
    "get_device_capability": "get_device_capability",
    "current_stream": "current_stream",
    "set_stream": "set_stream",
    "get_memory_info": "mem_get_info",
    "memory_stats": "memory_stats",
}

_LIBRARY_CONSTANTS: Constants = (
    (0, ("_cuda_getCurrentRawStream", "_cuda_getDevice")),
    (1, ("_cuda_getDeviceCount",)),
    (None, ("_cuda_setDevice", "_cuda_synchronize")),
)


_NVTX_CONSTANTS: Constants = (
    (0, ("rangePushA", "rangePop", "rangeStartA")),
    (None, ("rangeEnd", "markA", "deviceRangeStart", "deviceRangeEnd")),
)


def _constants(constants: Constants) -> dict[str, Any]:
    return {question: _always(answer) for answer, questions in constants for question in questions}


def _always(value: Any) -> Callable[..., Any]:
    return lambda *args, **kwargs: value


def _refuse_autocast(enter: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Autocast goes by a tensor's true device, so on stand-ins it would cast nothing, and keys would be wrong."""

    def refuse(context: Any) -> Any:
        if context.device == "cuda" and context._enabled:
            raise Unsupported('torch.autocast("cuda")')
        return enter(context)

    return refuse


def _refuse_autocast_calls(enable: Callable[..., None]) -> Callable[..., None]:
    def refuse(*args: Any) -> None:
        device, enabled = args if len(args) == 2 else ("cuda", *args)
        if device == "cuda" and enabled:
            raise Unsupported('torch.set_autocast_enabled("cuda", True)')
        enable(*args)

    return refuse


def _device_module(true: Callable[..., Any]) -> Callable[..., Any]:
    import torch

    return lambda device=None: torch.cuda if device is None or "cuda" in str(device) else true(device)


def _own(answer: Any) -> Any:
    """A function object of each attribute's own: torch's compiler refuses to see one under two names."""
    return answer if not isinstance(answer, types.FunctionType) else lambda *args, **kwargs: answer(*args, **kwargs)


_PROPERTIES = {
    "name", "major", "minor", "is_multi_gpu_board", "is_integrated", "multi_processor_count", "total_memory", "uuid",
    "max_threads_per_multi_processor", "max_threads_per_block", "warp_size", "regs_per_multiprocessor", "clock_rate",
    "shared_memory_per_block", "shared_memory_per_block_optin", "shared_memory_per_multiprocessor", "L2_cache_size",
    "gcnArchName", "memory_clock_rate", "memory_bus_width", "pci_bus_id", "pci_device_id", "pci_domain_id",
}  # fmt: skip
"""What torch's properties have. A name that is none of them is the launcher's to miss, as on a GPU."""


class _Properties:
    """`torch.cuda.get_device_properties()`."""

    def __init__(self, profile: DeviceProfile, asked: Asked) -> None:
        self._profile = profile
        self._asked = asked

    def __getattr__(self, name: str) -> Any:
        profile = self._profile
        if name in ("major", "minor"):
            self._asked("capability")
            return profile.capability[name == "minor"]
        if name not in _PROPERTIES:
            raise AttributeError(f"'torch._C._CudaDeviceProperties' object has no attribute '{name}'")
        value = getattr(profile, name, None)
        if value is None:
            raise Unsupported(f"torch.cuda.get_device_properties().{name}")
        self._asked(name)
        return value
