"""What the user says a launcher reads on the host, by the line that reads it.

A line is named ``FILE:LINE``; FILE may be the end of the path.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from jitaudit.errors import RequestError

Answer = bool | int | float

_given: Mapping[str, Answer] = {}
_used: set[str] = set()
_misfits: list[str] = []


@contextmanager
def answering_reads(given: Mapping[str, Answer]) -> Iterator[set[str]]:
    """Answer reads of unknown values on the lines in `given`; yields the lines that asked.

    Raises RequestError at the end, where no launcher can catch it, if a line was given a value that it can't read.
    """
    global _given, _used, _misfits
    before = _given, _used, _misfits
    _given, _used, _misfits = given, set(), []
    try:
        yield _used
        if _misfits:
            raise RequestError(_misfits[0])
    finally:
        _given, _used, _misfits = before


def answer(line: str, dtype: str) -> Answer | None:
    """The value that is read on `line` from a tensor of that dtype; None where nobody said, or what can't be there."""
    for named, value in _given.items():
        if line == named or line.endswith("/" + named):
            _used.add(named)
            if _fits(value, dtype):
                return value
            _misfits.append(f"--host-value {named}={value}: the line reads {dtype}")
    return None


def _fits(value: Answer, dtype: str) -> bool:
    if dtype == "bool":
        return value in (0, 1)
    return dtype.startswith(("float", "bfloat", "complex")) or isinstance(value, int) or value.is_integer()
