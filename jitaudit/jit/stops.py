"""What stops a case. Both derive from BaseException, so that a launcher's own `except Exception` can't divert it."""

from __future__ import annotations

import functools
import sys
import sysconfig
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NoReturn


class CaseStopped(BaseException):
    """The launcher needs something that is not known offline. `line` is the launcher's own FILE:LINE.

    `alike` is equal for stops of one reason, whatever the sizes.
    """

    def __init__(self, message: str, alike: str | None = None) -> None:
        self.line = launcher_line()
        self.alike = f"{self.line}: {alike or message}"
        super().__init__(f"{self.line}: {message}")
        if _stops is not None:
            _stops.append(self)


_stops: list[CaseStopped] | None = None


@contextmanager
def remembering_stops() -> Iterator[list[CaseStopped]]:
    """Yields the stops raised inside, among them those that a launcher's `except:` or `finally: return` swallows."""
    global _stops
    stops: list[CaseStopped] = []
    before, _stops = _stops, stops
    try:
        yield stops
    finally:
        _stops = before


class HostRead(CaseStopped):
    """The launcher read a value that nobody knows."""

    def __init__(self, operation: str, tensor: str) -> None:
        super().__init__(f"{operation} reads an unknown {tensor} on the host", operation)


class Unsupported(CaseStopped):
    """The launcher asked a question that the device profile can't answer."""

    def __init__(self, question: str) -> None:
        super().__init__(f"{question} has no answer offline")


class Stub:
    """What stands for a part, `name`, of a package that can't be imported here: nothing may depend on its value."""

    def __init__(self, name: str) -> None:
        self._name = name

    def stop(self, *args: object, **kwargs: object) -> NoReturn:
        """Stop the case. Raises Unsupported."""
        raise Unsupported(f"{self._name}, a --stub,")


def launcher_line() -> str:
    """FILE:LINE of the innermost frame outside torch, Triton, the standard library and jitaudit itself."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not _is_machinery(frame.f_code.co_filename):
            return f"{frame.f_code.co_filename}:{frame.f_lineno}"
        frame = frame.f_back
    return "<unknown>"


def last_own_frame(error: BaseException) -> traceback.FrameSummary:
    """The last frame of what was raised that `launcher_line` would name; the last of all where there is none."""
    frames = traceback.extract_tb(error.__traceback__)
    return next((frame for frame in reversed(frames) if not _is_machinery(frame.filename)), frames[-1])


def raised(error: BaseException) -> tuple[str, str]:
    """Where the user's code raised what, and the message."""
    frame = last_own_frame(error)
    message = str(error).strip().partition("\n")[0]
    return f"{frame.filename}:{frame.lineno}: {type(error).__name__}: ", message


@functools.cache
def _is_machinery(filename: str) -> bool:
    if filename.startswith("<"):
        return True
    path = Path(filename)
    if path.is_relative_to(Path(__file__).parent.parent):
        return True
    for package in ("torch", "triton"):
        module = sys.modules.get(package)
        if module is not None and module.__file__ and path.is_relative_to(Path(module.__file__).parent):
            return True
    installed = any(part in ("site-packages", "dist-packages") for part in path.parts)
    return not installed and path.is_relative_to(sysconfig.get_paths()["stdlib"])
