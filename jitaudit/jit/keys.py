"""From what Triton's own binder says of a launch to a key in design words.

Nothing here decides a class: the binder and the backend did. The letters they use: an int's class is ``1`` (as a
constexpr), ``D`` (divisible by 16) or nothing; a pointer's is ``D`` (aligned) and, on AMD, ``S`` (storage under 2 GB).
"""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import json
from typing import Any

from jitaudit.jit.stops import Stub
from jitaudit.model import Scalar, VariantKey

_INTS = {"i1", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"}


class Opaque:
    """Numbers, in order of appearance, the values that have no stable text, so that they stay apart and comparable."""

    def __init__(self) -> None:
        self.numbers: dict[int, int] = {}
        """`id` → number."""
        self._alive: list[object] = []

    def __call__(self, value: object) -> str:
        if isinstance(value, Stub):
            value.stop()
        if id(value) not in self.numbers:
            self.numbers[id(value)] = len(self.numbers) + 1
            self._alive.append(value)
        return f"opaque {_type_name(type(value))} #{self.numbers[id(value)]}"

    def adopt(self, numbers: dict[int, int]) -> None:
        """Go on from the numbers that a fork of this process gave: what was there before it has the same id in both."""
        self.numbers |= numbers


def variant_key(
    names: list[str],
    constexprs: set[str],
    specialization: list[tuple[Any, Any]],
    options: dict[str, Scalar],
    opaque: Opaque,
) -> VariantKey:
    """The key of a launch: `specialization` as Triton's binder returned it, `options` as `changed_options` does."""
    arguments = {}
    for name, (kind, key) in zip(names, specialization, strict=False):
        arguments[name] = (
            f"constexpr {value_text(key, opaque)}" if name in constexprs else _class_text(kind, key, opaque)
        )
    for extra in specialization[len(names) :]:  # a pass pipeline of the user's own is part of the key
        arguments["<stages>"] = str(extra)
    return VariantKey(arguments=arguments, options=options)


def changed_options(parsed: Any, default: Any, opaque: Opaque) -> dict[str, Scalar]:
    """The options, after the backend's `parse_options`, that differ from the target's defaults, sorted by name."""
    changed: dict[str, Scalar] = {}
    for name, value in sorted(vars(parsed).items()):
        if value != vars(default)[name]:
            simple = value is None or type(value) in (bool, int, float, str)
            changed[name] = value if simple else value_text(value, opaque)
    return changed


def _class_text(kind: Any, key: Any, opaque: Opaque) -> str:
    if isinstance(kind, tuple):
        keys = key if isinstance(key, tuple | list) else (key,) * len(kind)
        name = "" if type(kind) is tuple else _type_name(type(kind))  # a named tuple's type is in Triton's hash
        return f"{name}({', '.join(_class_text(k, v, opaque) for k, v in zip(kind, keys, strict=True))})"
    if kind == "constexpr":
        if key is None:
            return "none"
        return "i32 =1" if type(key) is int and key == 1 else f"constexpr {value_text(key, opaque)}"
    if kind.startswith("*"):
        letters = key or ""
        return f"{kind} {'aligned' if 'D' in letters else 'unaligned'}{' <2GB' if 'S' in letters else ''}"
    if kind in _INTS:
        return f"{kind} {'=1' if key == 1 else '%16' if key == 'D' else 'any'}"
    return str(kind)


def value_text(value: Any, opaque: Opaque) -> str:
    """A constexpr value with its exact type: values that Python calls equal (True, 1, 1.0) keep apart."""
    kind = type(value)
    if value is None:
        return "none"
    if kind in (bool, int, float):
        return f"{kind.__name__} {value!r}"
    if kind is str:
        return f"str {json.dumps(value)}"
    if isinstance(value, enum.Enum):
        return f"enum {_type_name(kind)}.{value.name}"
    if isinstance(value, tuple | list):
        return f"{_tuple_name(kind)}({', '.join(value_text(item, opaque) for item in value)})"
    if isinstance(value, frozenset | set):
        return f"{kind.__name__}({', '.join(sorted(value_text(item, opaque) for item in value))})"
    if dataclasses.is_dataclass(value):
        fields = ", ".join(f"{f.name}={value_text(getattr(value, f.name), opaque)}" for f in dataclasses.fields(value))
        return f"{_type_name(kind)}({fields})"
    if isinstance(value, int | float):  # a subclass, such as numpy's
        return f"{_type_name(kind)} {kind.__mro__[-2](value)!r}"
    return _triton_text(value, opaque)


def _triton_text(value: Any, opaque: Opaque) -> str:
    import torch
    import triton.language as tl
    from triton.runtime.jit import JITCallable

    if isinstance(value, tl.constexpr):  # another hash on disk than the bare value
        return f"constexpr({value_text(value.value, opaque)})"
    if isinstance(value, tl.dtype):
        return f"dtype {value}"
    if isinstance(value, torch.dtype):
        return f"dtype {value}"
    function = value.fn if isinstance(value, JITCallable) else value
    qualname = getattr(function, "__qualname__", None)
    if qualname is None or not callable(function):
        return opaque(value)
    name = f"function {function.__module__}:{qualname}"
    if "<locals>" not in qualname:
        return name
    return (
        f"{name} {hashlib.sha256(value.cache_key.encode()).hexdigest()[:12]}"
        if hasattr(value, "cache_key")
        else opaque(value)
    )


def _tuple_name(kind: type) -> str:
    return kind.__name__ if kind in (tuple, list) else _type_name(kind)


def _type_name(kind: type) -> str:
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}:{kind.__qualname__}"
