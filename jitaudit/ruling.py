"""rule: the page of a finding's code, offline."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable

from jitaudit.errors import RequestError


def page(code: str) -> str:
    """The page of a code (``JA008``) or name (``linear-growth``). Raises RequestError for one that does not exist."""
    for entry in _pages():
        text = entry.read_text(encoding="utf-8")
        if code.upper() == entry.name.removesuffix(".md") or code.lower() == _title(text).partition(" ")[2]:
            return text
    known = ", ".join(entry.name.removesuffix(".md") for entry in _pages())
    raise RequestError(f"rule {code}: no such code; there are {known}")


def contents() -> str:
    """Every code with its name, one a line."""
    return "".join(f"{_title(entry.read_text(encoding='utf-8'))}\n" for entry in _pages())


def _pages() -> list[Traversable]:
    entries = (entry for entry in files("jitaudit").joinpath("rules").iterdir() if entry.name.endswith(".md"))
    return sorted(entries, key=lambda entry: entry.name)


def _title(text: str) -> str:
    """``JA008 linear-growth``, from a page's heading."""
    return text.partition("\n")[0].removeprefix("# ")
