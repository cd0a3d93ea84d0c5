"""The text of an argument in a key, taken apart by what can split it. Pure."""

from __future__ import annotations

import re
from functools import lru_cache

from jitaudit.model import CauseKind

Facets = tuple[tuple[CauseKind, str], ...]
"""What an argument contributes to the key: (kind, class) each, such as ``(("width", "i32"), ("int_class", "%16"))``."""

_SCALAR = re.compile(r"([iu]\d+) (=1|%16|any|=1\|any|opaque)")
_POINTER = re.compile(r"(\*\S+(?: \S+)*?) (aligned|unaligned|opaque)( <2GB)?")


@lru_cache(maxsize=1 << 16)
def facets(text: str, *, tuned: bool = False) -> Facets:
    """Take apart one argument's text. `tuned`: an autotuner sets this argument."""
    if text in ("none", "folded"):
        return (("none", text),)
    if text.startswith(("constexpr ", "opaque ")):
        return (("autotune" if tuned else "constexpr", text.removeprefix("constexpr ")),)
    if text.startswith("("):
        return _of_tuple([facets(item) for item in split_tuple(text)])
    given: tuple[CauseKind, str] = ("none", "given")
    if match := _SCALAR.fullmatch(text):
        return given, ("dtype", "int"), ("width", match[1]), ("int_class", match[2])
    if match := _POINTER.fullmatch(text):
        return given, ("dtype", match[1]), ("alignment", match[2]), ("address_range", match[3] or "2GB+")
    scalar = "bool" if text in ("u1", "i1") else "float" if re.fullmatch(r"(fp|bf)\d+", text) else text
    return given, ("dtype", scalar)


def split_tuple(text: str) -> list[str]:
    """The elements of a tuple's text ``(a, (b, c))``: ``a`` and ``(b, c)``."""
    items, depth, start, quoted = [], 0, 1, False
    for position, letter in enumerate(text):
        if letter == '"' and text[position - 1] != "\\":
            quoted = not quoted
        if quoted:
            continue
        if letter in "([":
            depth += 1
        elif letter in ")]":
            depth -= 1
        if (letter == "," and depth == 1) or (depth == 0 and position):
            items.append(text[start:position].strip())
            start = position + 1
    return [item for item in items if item]


def _of_tuple(elements: list[Facets]) -> Facets:
    kinds = dict.fromkeys(kind for element in elements for kind, _ in element)
    return tuple((kind, f"({', '.join(dict(element).get(kind, '-') for element in elements)})") for kind in kinds)
