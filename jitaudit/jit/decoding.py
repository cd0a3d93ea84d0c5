"""The reverse of `keys`: from a class in design words to an argument that Triton's binder puts into that class.

A manifest is data. Reading one may import an installed module by its dotted name (for an enum, a dataclass, a
function); it never calls what it finds there, except a number's own type.
"""

from __future__ import annotations

import dataclasses
import enum
import importlib
import json
import re
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class Undecodable(Exception):
    """The text stands for no value that can be made again; the message says why."""


def argument(text: str) -> Any:
    """An argument of the class `text` (``i32 %16``, ``*i64 aligned``, ``constexpr int 64``). Raises Undecodable."""
    return _whole(text, lambda reader: reader.argument())


def value(text: str) -> Any:
    """The constexpr of exactly the type and value that `text` says (``bool True``). Raises Undecodable."""
    return _whole(text, lambda reader: reader.value())


@dataclasses.dataclass(frozen=True)
class _Dtype:
    """What a pointer points to, by Triton's name; only a tensor descriptor asks for the size."""

    name: str
    itemsize: int = 16
    is_floating_point: bool = True

    def __str__(self) -> str:
        return self.name


@dataclasses.dataclass(frozen=True)
class _Pointer:
    """What the binder asks of a tensor."""

    dtype: _Dtype
    address: int
    size: int

    def data_ptr(self) -> int:
        return self.address

    def ptr_range(self) -> int:
        """AMD's question: the bytes of its storage."""
        return self.size


_SCALAR = re.compile(r"([iu]\d+) (=1|%16|any)")
_POINTER = re.compile(r"\*(k?)([\w]+) (aligned|unaligned)( <2GB)?")
_DESCRIPTOR = re.compile(r"tensordesc<(\w+)\[([\d, ]+)\]>")
_FLOATING = re.compile(r"(?:fp|bf)\d+\w*")
_WORD = re.compile(r"[^\s(),=\"]+")
_SIMPLE = re.compile(r"[^(),]+")
_BASES = {"i64": 1 << 32, "u64": 1 << 63}
"""An int from which on the binder takes this width; 0 for those narrower."""


def _whole(text: str, read: Callable[[_Reader], T]) -> T:
    reader = _Reader(text)
    result = read(reader)
    if reader.rest:
        raise Undecodable(f"{text!r}: can't be read from {reader.rest!r} on")
    return result


class _Reader:
    """Reads one text from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    @property
    def rest(self) -> str:
        return self._text[self._at :]

    def argument(self) -> Any:
        if self._skip("constexpr "):
            return self.value()
        if self.rest.startswith("("):
            return tuple(self._items(self.argument))
        if (match := self._take(_SCALAR)) is not None:
            width, number = match.groups()
            return 1 if number == "=1" else _BASES.get(width, 0) + (16 if number == "%16" else 3)
        if (match := self._take(_POINTER)) is not None:
            address = 16 if match[3] == "aligned" else 8
            return _Pointer(_Dtype(match[2]), address, size=1 if match[4] else 1 << 40)
        if (match := self._take(_DESCRIPTOR)) is not None:
            return _descriptor(match[1], [int(size) for size in match[2].split(",")])
        word = self._word()
        if self.rest.startswith("("):
            return _named_tuple(word)._make(self._items(self.argument))
        if word == "none":
            return None
        if word == "u1":
            return True
        if _FLOATING.fullmatch(word):
            return 0.5
        raise Undecodable(f"{self._text!r}: {word} is no class that can be made again")

    def value(self) -> Any:
        word = self._word()
        if self.rest.startswith("("):
            return self._composite(word)
        if word == "none":
            return None
        if not self._skip(" "):
            raise Undecodable(f"{self._text!r}: nothing follows {word}")
        if word == "str":
            return self._string()
        match = self._take(_SIMPLE)
        text = match[0] if match else ""
        match word:
            case "bool":
                return self._literal({"True": True, "False": False}.__getitem__, text)
            case "int":
                return self._literal(int, text)
            case "float":
                return self._literal(float, text)
            case "dtype":
                return _dtype(text)
            case "enum":
                kind, _, name = text.rpartition(".")
                return self._literal(_class(kind, enum.Enum).__getitem__, name)
            case "function":
                return _found(text.partition(" ")[0])
            case "opaque":
                raise Undecodable(f"a value of {text.partition(' ')[0]} has no stable text")
        kind = _class(word, (int, float))
        return self._literal(kind, text)

    def _composite(self, word: str) -> Any:
        match word:
            case "tuple":
                return tuple(self._items(self.value))
            case "list":
                return self._items(self.value)
            case "set" | "frozenset":
                items = self._items(self.value)
                if len(items) > 1:
                    raise Undecodable(
                        f"the order of a {word}, whose text Triton hashes, changes from process to process"
                    )
                return set(items) if word == "set" else frozenset(items)
            case "constexpr":
                import triton.language as tl

                return tl.constexpr(*self._items(self.value))
        kind = _class(word, object)
        if isinstance(kind, type) and dataclasses.is_dataclass(kind):
            return _dataclass(kind, dict(self._items(self._field)))
        return _named_tuple(word)._make(self._items(self.value))

    def _field(self) -> tuple[str, Any]:
        name = self._word()
        self._expect("=")
        return name, self.value()

    def _items(self, read: Callable[[], T]) -> list[T]:
        """What stands between parentheses, commas between."""
        self._expect("(")
        items: list[T] = []
        while not self._skip(")"):
            if items:
                self._expect(", ")
            items.append(read())
        return items

    def _string(self) -> str:
        try:
            text, end = json.JSONDecoder().raw_decode(self._text, self._at)
        except ValueError as error:
            raise Undecodable(f"{self._text!r}: {error}") from None
        if not isinstance(text, str):
            raise Undecodable(f"{self._text!r}: {text!r} is no string")
        self._at = end
        return text

    def _literal(self, make: Callable[[str], Any], text: str) -> Any:
        try:
            return make(text)
        except (ValueError, KeyError, OverflowError):
            raise Undecodable(f"{self._text!r}: {text!r} is no such value") from None

    def _word(self) -> str:
        match = self._take(_WORD)
        if match is None:
            raise Undecodable(f"{self._text!r}: ends where a class or value is expected")
        return match[0]

    def _take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        match = pattern.match(self._text, self._at)
        if match is not None:
            self._at = match.end()
        return match

    def _skip(self, text: str) -> bool:
        found = self._text.startswith(text, self._at)
        self._at += len(text) if found else 0
        return found

    def _expect(self, text: str) -> None:
        if not self._skip(text):
            raise Undecodable(f"{self._text!r}: {text!r} is missing before {self.rest!r}")


def _descriptor(dtype: str, block: list[int]) -> Any:
    from triton.tools.tensor_descriptor import TensorDescriptor

    base = _Pointer(_Dtype(dtype), address=16, size=1)
    strides = [16] * (len(block) - 1) + [1]
    return TensorDescriptor(base, [1] * len(block), strides, block)


def _dtype(name: str) -> Any:
    import torch
    import triton.language as tl

    if name.startswith("torch."):
        found = getattr(torch, name.removeprefix("torch."), None)
        if isinstance(found, torch.dtype):
            return found
    elif tl.dtype.is_dtype(name):
        return tl.dtype(name)
    elif name.startswith("pointer<") and name.endswith(">"):
        return tl.pointer_type(_dtype(name.removeprefix("pointer<").removesuffix(">")))
    raise Undecodable(f"{name} is no dtype here")


def _dataclass(kind: type, fields: dict[str, Any]) -> Any:
    """The instance with exactly these fields; nothing of the class's own runs."""
    if set(fields) != {field.name for field in dataclasses.fields(kind)}:
        raise Undecodable(f"{kind.__qualname__} no longer has the fields {', '.join(fields)}")
    made: Any = object.__new__(kind)
    for name, item in fields.items():
        object.__setattr__(made, name, item)
    return made


def _named_tuple(text: str) -> Any:
    kind = _class(text, tuple)
    if not hasattr(kind, "_make"):
        raise Undecodable(f"{text} is no named tuple")
    return kind


def _class(text: str, base: type | tuple[type, ...]) -> Any:
    found = _found(text)
    if not (isinstance(found, type) and issubclass(found, base)):
        raise Undecodable(f"{text} is no longer such a class")
    return found


def _found(text: str) -> Any:
    """What ``module:qualname`` names. Imports the module."""
    module, colon, qualname = text.partition(":")
    names = [*module.split("."), *qualname.split(".")]
    if not colon or not all(name.isidentifier() for name in names):
        raise Undecodable(f"{text} can't be found again")
    try:
        found: Any = importlib.import_module(module)
        for name in qualname.split("."):
            found = getattr(found, name)
    except (Exception, SystemExit) as error:  # an import runs the module
        raise Undecodable(f"{text} can't be found again: {type(error).__name__}: {error}") from None
    return found
