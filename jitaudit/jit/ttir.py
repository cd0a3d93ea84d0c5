"""What a kernel's TTIR says of its arguments, read as text: names, types and classes, in design words.

An argument that Triton folded into the code (a constexpr, an int equal to 1, None) is not in the TTIR. MLIR's ints
carry no sign, so ``i32`` stands for ``u32`` too, and ``*i8`` for ``*u8``; and an annotated int (``n: tl.int64``) that
is 1 stays an argument, and looks like ``any``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

import msgspec

SIGNATURE_LIMIT = 1 << 16
"""Characters of a kernel's argument list that are read. Real ones have some thousand."""


class Signature(msgspec.Struct, frozen=True):
    """A kernel's argument list and where its source starts."""

    arguments: dict[str, str]
    """Name → class text, as `jitaudit.model` has it; in order. Without names in the TTIR they are ``#0``, ``#1``, …"""
    file: str
    """The source file as the compiling process knew it; empty where line information was disabled."""
    line: int


def read_signature(text: str) -> Signature:
    """Read the public function's arguments. Raises ValueError for text that is no whole TTIR module."""
    if not re.search(r"^}", text, re.MULTILINE):
        raise ValueError("its module does not end")
    start = re.search(r'^  tt\.func public @(?:"(?:[^"\\\n]|\\.)*"|[^\s("]+)\(', text, re.MULTILINE)
    if start is None:
        raise ValueError("it holds no public function")
    items = [_argument(item) for item in _split(text[start.end() : start.end() + SIGNATURE_LIMIT])]
    file, line = _location(text, next((alias for _, _, alias in items if alias), "#loc"))
    return Signature(arguments=dict(_joined([(name, words) for name, words, _ in items])), file=file, line=line)


def printable(text: str) -> str:
    """`text` with everything that could move a terminal's cursor written as an escape."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in text)


def _split(text: str) -> Iterator[str]:
    """The items between here and the closing bracket."""
    depth, start = 0, 0
    for match in re.finditer(r'"(?:[^"\\]|\\.)*"|->|["<({\[,\])}>]', text):
        token = match[0]
        if token == '"':
            break
        if token in "<({[":
            depth += 1
        elif token in ">)}]":
            depth -= 1
        if depth < 0 or (token == "," and depth == 0):
            if item := text[start : match.start()].strip():
                yield item
            start = match.end()
        if depth < 0:
            return
    raise ValueError("its argument list does not end")


@lru_cache(maxsize=1 << 14)
def _argument(item: str) -> tuple[str, str, str]:
    """Name, class text and location alias of one argument: ``%n: i32 {attributes} loc("n"(#loc))``."""
    ssa, colon, rest = item.partition(": ")
    declared, _, location = rest.partition(" loc(")
    kind, _, attributes = declared.partition(" {")
    if not (colon and ssa.startswith("%")):
        raise ValueError("an argument can't be read")
    named = re.match(r'"((?:[^"\\]|\\.)*)"(?:\((#loc\d*)\))?', location)
    name = _unescape(named[1]) if named else re.sub(r"^arg(?=\d)", "#", printable(ssa[1:]))
    return name, _class_text(printable(kind), attributes), (named and named[2]) or ""


def _class_text(kind: str, attributes: str) -> str:
    divisible = "tt.divisibility = 16 " in attributes
    if pointer := re.fullmatch(r"!tt\.ptr<(.+?)(?:, \d+)?>", kind):
        element = _FLOATS.get(pointer[1], pointer[1])
        small = " <2GB" if "tt.pointer_range = 32 " in attributes else ""
        return f"*{element} {'aligned' if divisible else 'unaligned'}{small}"
    if descriptor := re.fullmatch(r"!tt\.tensordesc<(?:tensor<)?((?:\d+x)+)([^,>]+).*>", kind):
        shape = descriptor[1].rstrip("x").replace("x", ", ")
        return f"tensordesc<{_FLOATS.get(descriptor[2], descriptor[2])}[{shape}]>"
    if kind == "i1":
        return "u1"
    if re.fullmatch(r"i\d+", kind):
        return f"{kind} {'%16' if divisible else 'any'}"
    return _FLOATS.get(kind, kind)


_FLOATS = {
    "f16": "fp16",
    "f32": "fp32",
    "f64": "fp64",
    "f8E4M3FN": "fp8e4nv",
    "f8E5M2": "fp8e5",
    "f8E4M3FNUZ": "fp8e4b8",
    "f8E5M2FNUZ": "fp8e5b16",
    "f8E4M3B11FNUZ": "fp8e4b15",
}


def _joined(items: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Elements of one tuple argument (``t, t`` until Triton 3.8, ``t.0, t.1`` since) under its name."""
    elements: dict[str, list[str]] = {}
    for name, words in items:
        elements.setdefault(name.partition(".")[0], []).append(words)
    for name, texts in elements.items():
        if texts[0].startswith("tensordesc<"):  # its shape and strides follow from it
            texts = texts[:1]
        yield name, texts[0] if len(texts) == 1 else f"({', '.join(texts)})"


def _location(text: str, alias: str) -> tuple[str, int]:
    found = re.search(rf'^{re.escape(alias)} = loc\("((?:[^"\\\n]|\\.)*)":(\d{{1,9}}):\d+\)', text, re.MULTILINE)
    return (_unescape(found[1]), int(found[2])) if found else ("", 0)


def _unescape(text: str) -> str:
    """MLIR writes what is no printable ASCII, and quotes and backslashes, as ``\\XX`` in hexadecimal."""
    parts = re.split(r"\\([0-9A-F]{2})", text)
    data = b"".join(bytes.fromhex(part) if at % 2 else part.encode() for at, part in enumerate(parts))
    return printable(data.decode(errors="backslashreplace").replace("\\\\", "\\"))
