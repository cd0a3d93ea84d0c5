"""jitaudit: audit Triton kernels for JIT variants, and warm them ahead of serving."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jitaudit.jit.values import known
    from jitaudit.sweeping import ints, sweep
    from jitaudit.warming import warm

__all__ = ["ints", "known", "sweep", "warm"]

_HOMES = {
    "ints": "jitaudit.sweeping",
    "sweep": "jitaudit.sweeping",
    "known": "jitaudit.jit.values",
    "warm": "jitaudit.warming",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'jitaudit' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
