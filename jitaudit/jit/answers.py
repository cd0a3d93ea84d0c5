"""What the user says a launcher reads on the host, by the line that reads it.

A line is named ``FILE:LINE``; FILE may be the end of the path.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

Answer = bool | int | float

_given: Mapping[str, Answer] = {}
_used: set[str] = set()


@contextmanager
def answering_reads(given: Mapping[str, Answer]) -> Iterator[set[str]]:
    """Answer reads of unknown values on the lines in `given`; yields the lines that asked."""
    global _given, _used
    before = _given, _used
    _given, _used = given, set()
    try:
        yield _used
    finally:
        _given, _used = before


def answer(line: str) -> Answer | None:
    """The value that is read on `line`; None where nobody said."""
    for named, value in _given.items():
        if line == named or line.endswith("/" + named):
            _used.add(named)
            return value
    return None
