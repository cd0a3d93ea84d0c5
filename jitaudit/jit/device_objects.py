"""Streams, events, graphs and generators of a device that does nothing: they keep the calls of torch's own."""

from __future__ import annotations

import itertools
import random
import threading
from typing import Any, NamedTuple

from jitaudit.jit import twins
from jitaudit.jit.stops import Unsupported


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


def device_objects() -> DeviceObjects:
    """The classes; made anew each time, since they derive from torch's.

    None derives from a class of `torch.cuda`: in a CUDA build of torch those start CUDA when they are made.
    """
    stream, external, event, state = _streams()
    return DeviceObjects(stream, external, event, *_graphs(stream, state), _generator(), _MemPool, state)


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


def _generator() -> type:
    import torch

    class Generator(torch.Generator):
        """On `cuda` its state is a GPU's: a seed and an offset, which launchers take apart and pass to kernels."""

        def __new__(cls, device: Any = "cpu") -> Any:
            if torch.device(device).type != "cuda":
                return torch._C.Generator(device)
            return super().__new__(cls, "cpu")  # type: ignore[call-arg]

        def __init__(self, device: object = "cpu") -> None:
            self._seed, self._offset = 0, 0

        @property
        def device(self) -> torch.device:  # type: ignore[override]
            return torch.device("cuda", 0)

        def get_state(self) -> torch.Tensor:
            return torch.tensor([self._seed, self._offset], dtype=torch.int64, device="cpu").view(torch.uint8)

        def set_state(self, new_state: torch.Tensor) -> Generator:
            self._seed, self._offset = new_state.view(torch.int64).tolist()
            return self

        def manual_seed(self, seed: int) -> Generator:
            self._seed, self._offset = seed, 0
            return self

        def seed(self) -> int:
            self.manual_seed(random.getrandbits(53))
            return self._seed

        def initial_seed(self) -> int:
            return self._seed

        def get_offset(self) -> int:
            return self._offset

        def set_offset(self, offset: int) -> Generator:
            self._offset = offset
            return self

    return Generator
