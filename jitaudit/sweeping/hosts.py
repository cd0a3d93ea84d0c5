"""``--host-value FILE:LINE=VALUE``: what launchers read on the host."""

from __future__ import annotations

import re

from jitaudit.boxes import read_range
from jitaudit.errors import RequestError
from jitaudit.jit.answers import Answer

_WORDS = {"true": True, "false": False}


def read_host_values(texts: tuple[str, ...]) -> dict[str, tuple[Answer, ...]]:
    """``FILE:LINE`` → the values that it reads there, each of which is a case.

    A value is an int, a range as in ``1..64``, a float, ``true`` or ``false``. Raises RequestError for anything else.
    """
    values: dict[str, tuple[Answer, ...]] = {}
    for text in texts:
        line, given = _read(text)
        if line in values:
            raise RequestError(f"--host-value {text}: {line} is given twice; write all its values once, as in 7,9")
        values[line] = given
    return values


def _read(text: str) -> tuple[str, tuple[Answer, ...]]:
    line, equals, written = text.rpartition("=")
    if not equals or not re.fullmatch(r".+:\d+", line):
        raise RequestError(f"--host-value {text}: write FILE:LINE=VALUE, such as launch.py:42=7 or launch.py:42=1..64")
    values = [value for item in written.split(",") for value in _values(item.strip())]
    if not values:
        raise RequestError(f"--host-value {text}: {written!r} is no int, range, float, true or false")
    return line, tuple(dict.fromkeys(values))


def _values(item: str) -> tuple[Answer, ...]:
    if (numbers := read_range(item)) is not None:
        return tuple(numbers)
    if item.lower() in _WORDS:
        return (_WORDS[item.lower()],)
    try:
        return (float(item),)
    except ValueError:
        return ()
