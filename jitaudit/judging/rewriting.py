"""What a remedy does to the text of an argument in a key. Pure; `jitaudit.jit.remedying` does the same to launches."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import get_args

from jitaudit.model import Remedy, RemedyKind

_SCALAR = re.compile(r"([iu]\d+) (=1|%16|any|opaque)")
_POINTER = re.compile(r"\*(\S+) (aligned|unaligned|opaque)( <2GB)?")
_TYPES: dict[str, type[bool] | type[int] | type[float]] = {"bool": bool, "int": int, "float": float}

ORDER: tuple[RemedyKind, ...] = get_args(RemedyKind)
"""The order in which the remedies of one argument act: the call site's first, as at a launch."""


def rewritten(text: str | None, remedies: Iterable[Remedy]) -> str | None:
    """The text of an argument after all of `remedies` for it, in the order in which they act."""
    for remedy in sorted(remedies, key=lambda remedy: ORDER.index(remedy.kind)):
        text = _one(text, remedy) if text is not None else None
    return text


def number_of(text: str | None) -> bool | int | float | None:
    """The value of a constexpr that is a bool, an int or a float; None for any other."""
    kind, _, value = (text or "").removeprefix("constexpr ").partition(" ")
    if text is None or kind not in _TYPES or not text.startswith("constexpr "):
        return None
    return value == "True" if kind == "bool" else _TYPES[kind](value)


def _one(text: str, remedy: Remedy) -> str | None:
    match remedy.kind:
        case "drop" | "option":
            return None
        case "retype":
            return _retyped(text, str(remedy.setting))
        case "cast":
            return _cast(text, str(remedy.setting))
        case "align":
            return re.sub(r"^(\*\S+) unaligned", r"\1 aligned", text)
        case "floor":
            value = number_of(text)
            return f"constexpr int {max(value, int(str(remedy.setting)))}" if type(value) is int else text
        case "runtime":
            return _at_runtime(text, specialized=remedy.setting is None)
        case "annotate":
            return re.sub(r"^[iu]\d+ ", f"{remedy.setting} ", text)
        case "do_not_specialize_on_alignment":
            return re.sub(r"^(\*\S+) aligned", r"\1 unaligned", re.sub(r"^([iu]\d+) %16$", r"\1 any", text))
        case "do_not_specialize":
            return _unspecialized(text)
        case "bucket":
            return text


def _unspecialized(text: str) -> str:
    """Tuples keep their classes: Triton's lists do not reach into them."""
    if match := _SCALAR.fullmatch(text):
        return f"{match[1]} any"
    match = _POINTER.fullmatch(text)
    return f"*{match[1]} unaligned" if match else text


def _at_runtime(text: str, *, specialized: bool) -> str:
    """A number has the class of a runtime argument. Any other constexpr has none: Triton would refuse it."""
    value = number_of(text)
    if value is None:
        return "none" if text == "constexpr none" else text
    if type(value) is not int:
        return "u1" if type(value) is bool else "fp32"
    width = "i32" if -(2**31) <= value < 2**31 else "i64" if -(2**63) <= value < 2**63 else "u64"
    if not specialized:
        return f"{width} any"
    return f"{width} {'=1' if value == 1 else '%16' if value % 16 == 0 else 'any'}"


def _retyped(text: str, kind: str) -> str:
    value = number_of(text)
    if value is not None:
        return f"constexpr {kind} {_TYPES[kind](value)!r}"
    if _SCALAR.fullmatch(text) or text in ("u1", "i1") or re.fullmatch(r"(fp|bf)\d+", text):
        return {"bool": "u1", "int": "i32 any", "float": "fp32"}[kind]
    return text


def _cast(text: str, element: str) -> str:
    """A tensor that has the type already is passed as it is; a copy is aligned."""
    match = _POINTER.fullmatch(text)
    if match is None or match[1] == element:
        return text
    return f"*{element} aligned{match[3] or ''}"
