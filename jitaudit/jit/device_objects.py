"""Streams, events, graphs and generators of a device that does nothing: they keep the calls of torch's own."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

from jitaudit.jit.stops import Unsupported


class DeviceObjects(NamedTuple):
    """The classes that stand for torch's."""

    Stream: type
    Event: type
    CUDAGraph: type
    graph: type
    Generator: type


def device_objects() -> DeviceObjects:
    """The classes; made anew each time, since they derive from torch's.

    None derives from a class of `torch.cuda`: in a CUDA build of torch those start CUDA when they are made.
    """
    return DeviceObjects(*_streams(), *_graphs(), _generator())


def _streams() -> tuple[type, type]:
    import torch

    class Stream(torch.Stream):
        cuda_stream = 0
        priority = 0

        def __new__(cls, *args: object, **kwargs: object) -> Any:
            return super().__new__(cls, stream_id=0, device_index=0, device_type=1)

        def __init__(self, *args: object, **kwargs: object) -> None: ...

        def wait_event(self, event: object) -> None: ...
        def wait_stream(self, stream: object) -> None: ...
        def synchronize(self) -> None: ...
        def query(self) -> bool:
            return True

        def record_event(self, event: Any = None) -> Any:
            return event or Event()

        def __enter__(self) -> Stream:
            return self

        def __exit__(self, *raised: object) -> None: ...
        def __eq__(self, other: object) -> bool:
            return self is other

        def __hash__(self) -> int:
            return id(self)

        def __repr__(self) -> str:
            return "<torch.cuda.Stream offline>"

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

    return Stream, Event


def _graphs() -> tuple[type, type]:
    class CUDAGraph:
        def __init__(self, *args: object, **kwargs: object) -> None: ...
        def capture_begin(self, *args: object, **kwargs: object) -> None: ...
        def capture_end(self) -> None: ...
        def replay(self) -> None: ...
        def reset(self) -> None: ...
        def pool(self) -> tuple[int, int]:
            return (0, 0)

    class graph:
        def __init__(self, cuda_graph: object, *args: object, **kwargs: object) -> None: ...
        def __enter__(self) -> None: ...
        def __exit__(self, *raised: object) -> None: ...

    return CUDAGraph, graph


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
