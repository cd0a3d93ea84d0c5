"""Launchers run with their Triton launches left out: only what torch itself pays at first use is paid."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from jitaudit.jit.patching import patched


@contextmanager
def without_launches() -> Iterator[None]:
    """Leave out every launch inside the block. Fresh tensors are zero: a legal index where no kernel wrote one."""
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.jit import JITFunction

    def leave_out(function: Any, *args: Any, **kwargs: Any) -> None:
        return None

    with patched([(JITFunction, "run", leave_out), (Autotuner, "run", leave_out)]), zeroing():
        yield


def zeroing() -> AbstractContextManager[Any]:
    """A mode in which what `torch.empty` and its kin give is zero."""
    import torch
    from torch.overrides import TorchFunctionMode

    fresh: dict[Any, Any] = {
        torch.empty: torch.zeros,
        torch.empty_like: torch.zeros_like,
        torch.Tensor.new_empty: torch.Tensor.new_zeros,
    }

    class Zeroing(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            made = fresh.get(func, func)(*args, **(kwargs or {}))
            return made.zero_() if func is torch.empty_strided else made

    mode: AbstractContextManager[Any] = Zeroing()
    return mode
