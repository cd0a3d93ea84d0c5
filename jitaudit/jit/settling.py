"""Real launches of what was written to be counted: fresh tensors are zero, and launches can be left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from jitaudit.jit.patching import patched


@contextmanager
def zeroed() -> Iterator[None]:
    """Fill with zeros what torch would leave uninitialised: an index that no sweep sets then points at something.

    `torch.empty` and its kin are replaced, which costs a launch nothing but the fill.
    """
    import torch

    def zeroing(make: Callable[..., Any]) -> Callable[..., Any]:
        def make_zeros(*args: Any, **kwargs: Any) -> Any:
            made = make(*args, **kwargs)
            made.detach().zero_()
            return made

        return make_zeros

    homes: list[tuple[Any, str]] = [(torch, name) for name in ("empty", "empty_like", "empty_strided")]
    homes += [(torch.Tensor, name) for name in ("new_empty", "new_empty_strided")]
    with patched([(home, name, zeroing(getattr(home, name))) for home, name in homes]):
        yield


@contextmanager
def without_launches() -> Iterator[None]:
    """Leave out every Triton launch inside the block: only what torch itself pays at first use is paid."""
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.jit import JITFunction

    def leave_out(function: Any, *args: Any, **kwargs: Any) -> None:
        return None

    with patched([(JITFunction, "run", leave_out), (Autotuner, "run", leave_out)]):
        yield
