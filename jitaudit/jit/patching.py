"""Attribute patches that are always taken back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_ABSENT = object()


@contextmanager
def patched(patches: list[tuple[Any, str, Any]]) -> Iterator[None]:
    """Set each (owner, name, value); on leaving put back what each owner itself held, the last first."""
    undo: list[tuple[Any, str, Any]] = []
    try:
        for owner, name, value in patches:
            undo.append((owner, name, vars(owner).get(name, _ABSENT)))
            setattr(owner, name, value)
        yield
    finally:
        for owner, name, value in reversed(undo):
            if value is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, value)
