"""Streams, events, graphs and generators of a device that does nothing: they keep the calls of torch's own."""

from __future__ import annotations

import itertools
import random
import threading
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from jitaudit.jit import twins
from jitaudit.jit.stops import Unsupported
from jitaudit.jit.target import DeviceProfile


class DeviceObjects(NamedTuple):
    """The classes that stand for torch's, and the state they share."""

    Stream: type
    ExternalStream: type
    Event: type
    CUDAGraph: type
    graph: type
    Generator: type
    MemPool: type
    state: ThreadState


class ThreadState(threading.local):
    """What torch keeps by thread: the current stream, and how many graph captures are under way."""

    def __init__(self, default: Any) -> None:
        self.stream = default
        self.captures = 0

    def is_capturing(self) -> bool:
        return self.captures > 0


def device_objects(profile: DeviceProfile) -> DeviceObjects:
    """The classes; made anew each time, since they derive from torch's.

    None derives from a class of `torch.cuda`: in a CUDA build of torch those start CUDA when they are made.
    """
    stream, external, event, state = _streams()
    return DeviceObjects(stream, external, event, *_graphs(stream, state), _generator(profile), _MemPool, state)


def _streams() -> tuple[type, type, type, ThreadState]:
    import torch

    handles = itertools.count(0, 256)  # the first is the default stream

    class Stream(torch.Stream):
        def __new__(cls, device: object = None, priority: int = 0, handle: int | None = None, **_: object) -> Any:
            identity = next(handles) if handle is None else handle  # torch compares streams by it
            return super().__new__(cls, stream_id=identity, device_index=0, device_type=1)

        def __init__(self, device: object = None, priority: int = 0, *_: object, **__: object) -> None:
            self.cuda_stream, self.priority = self.stream_id, priority
            self._before: list[Any] = []

        def wait_event(self, event: object) -> None: ...
        def wait_stream(self, stream: object) -> None: ...
        def synchronize(self) -> None: ...
        def query(self) -> bool:
            return True

        def is_capturing(self) -> bool:
            return state.is_capturing()

        def record_event(self, event: Any = None) -> Any:
            return event or Event()

        def __enter__(self) -> Stream:
            self._before.append(state.stream)
            state.stream = self
            return self

        def __exit__(self, *raised: object) -> None:
            state.stream = self._before.pop()

        def __repr__(self) -> str:
            return "<torch.cuda.Stream offline>"

    class ExternalStream(Stream):
        def __new__(cls, stream_ptr: int, device: object = None, **_: object) -> Any:
            return super().__new__(cls, handle=stream_ptr)

    class Event:
        def __init__(self, *args: object, **kwargs: object) -> None: ...
        def record(self, stream: object = None) -> None: ...
        def wait(self, stream: object = None) -> None: ...
        def synchronize(self) -> None: ...
        def query(self) -> bool:
            return True

        def elapsed_time(self, end_event: object) -> float:
            raise Unsupported("torch.cuda.Event.elapsed_time")

        def __repr__(self) -> str:
            return "<torch.cuda.Event offline>"

    state = ThreadState(Stream())
    return Stream, ExternalStream, Event, state


def _graphs(stream_class: type, state: ThreadState) -> tuple[type, type]:
    class CUDAGraph:
        """A replay launches what the capture counted already, and writes what it wrote, from inputs of its own time."""

        def __init__(self, *args: object, **kwargs: object) -> None:
            self._writes: Any = ()

        def capture_begin(self, *args: object, **kwargs: object) -> None:
            state.captures += 1
            twins.record_writes()

        def capture_end(self) -> None:
            state.captures -= 1
            self._writes = twins.recorded_writes()

        def replay(self) -> None:
            twins.forget_storages(self._writes)

        def reset(self) -> None: ...
        def pool(self) -> tuple[int, int]:
            return (0, 0)

    class graph:
        def __init__(self, cuda_graph: Any, pool: object = None, stream: Any = None, *_: object, **__: object) -> None:
            self._graph, self._stream = cuda_graph, stream or stream_class()

        def __enter__(self) -> None:
            self._stream.__enter__()
            self._graph.capture_begin()

        def __exit__(self, *raised: object) -> None:
            self._graph.capture_end()
            self._stream.__exit__()

    return CUDAGraph, graph


class _MemPool:
    """A pool that nothing is taken from."""

    allocator = None
    id = (0, 0)

    def __init__(self, *args: object, **kwargs: object) -> None: ...
    def use_count(self) -> int:
        return 1

    def snapshot(self, *args: object) -> list[object]:
        return []


def _generator(profile: DeviceProfile) -> type:
    import torch

    known: WeakValueDictionary[int, Any] = WeakValueDictionary()

    class Generator(torch.Generator):
        """On `cuda` its state is a GPU's: a seed and an offset, which launchers take apart and pass to kernels."""

        def __new__(cls, device: Any = "cpu") -> Any:
            if torch.device(device).type != "cuda":
                return torch._C.Generator(device)
            return super().__new__(cls, "cpu")  # type: ignore[call-arg]

        def __init__(self, device: object = "cpu") -> None:
            self._seed, self._offset = 0, 0
            self._moved_by: str | None = None
            known[self._cdata] = self  # type: ignore[attr-defined]

        @staticmethod
        def behind(generator: Any) -> Any:
            """The stand-in that torch hands on as a generator of its own."""
            return known.get(generator._cdata)

        def move(self, operation: str, elements: int, element_size: int) -> None:
            """Count the numbers that an operation of torch draws; those of one that is not known make it unknown."""
            drawn = philox_numbers(profile, elements, element_size) if operation in _DRAWING else None
            if drawn is None:
                self._moved_by = operation
            else:
                self._offset += drawn

        @property
        def device(self) -> torch.device:  # type: ignore[override]
            return torch.device("cuda", 0)

        def get_state(self) -> torch.Tensor:
            state = [self._seed, self.get_offset()]
            return torch.tensor(state, dtype=torch.int64, device="cpu").view(torch.uint8)

        def set_state(self, new_state: torch.Tensor) -> Generator:
            seed, offset = new_state.view(torch.int64).tolist()
            return self._set(seed, offset)

        def manual_seed(self, seed: int) -> Generator:
            return self._set(seed, 0)

        def seed(self) -> int:
            self.manual_seed(random.getrandbits(53))
            return self._seed

        def initial_seed(self) -> int:
            return self._seed

        def get_offset(self) -> int:
            if self._moved_by is not None:
                raise Unsupported(f"the offset of a torch.Generator after torch.{self._moved_by}")
            return self._offset

        def set_offset(self, offset: int) -> Generator:
            return self._set(self._seed, offset)

        def _set(self, seed: int, offset: int) -> Generator:
            self._seed, self._offset, self._moved_by = seed, offset, None
            return self

    return Generator


_DRAWING = {
    "rand", "rand_like", "uniform_", "randn", "randn_like", "normal_", "randint", "randint_like", "random_",
    "exponential_", "cauchy_", "log_normal_", "geometric_", "bernoulli", "bernoulli_", "native_dropout",
}  # fmt: skip
"""Operations that draw as ATen's distribution kernels do."""


def philox_numbers(profile: DeviceProfile, elements: int, element_size: int) -> int | None:
    """How far a distribution of torch moves a CUDA generator's offset; None where the profile doesn't tell.

    The rule of ATen/native/cuda/DistributionTemplates.h: blocks of 256 threads, as many as fit on the device at once,
    draw four numbers a call, which make four elements, or two of 8 bytes.
    """
    if not elements:
        return 0
    blocks = -(-elements // 256)
    if blocks > 1:
        processors, threads = profile.multi_processor_count, profile.max_threads_per_multi_processor
        if processors is None or threads is None:
            return None
        blocks = min(blocks, processors * (threads // 256))
    a_call = 2 if element_size == 8 else 4
    return 4 * ((elements - 1) // (256 * blocks * a_call) + 1)
