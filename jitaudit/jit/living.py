"""The kernels and autotuners that live in this process, and those that are made later."""

from __future__ import annotations

import gc
import importlib
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jitaudit.jit import identity
from jitaudit.model import Kernel


def is_kernel(function: Any, kernel: Kernel) -> bool:
    """Whether a `JITFunction` is the kernel of a manifest: its file or module, its name and its source."""
    home, _, qualname = kernel.id.partition(":")
    if identity.qualname(function) != identity.without_source(qualname):
        return False
    if identity.source_digest(function) != kernel.source:
        return False
    return bool(function.fn.__module__ == home) or _is_file(function.fn.__code__.co_filename, kernel.file)


def living_kernels() -> list[Any]:
    """Every `JITFunction` of this process."""
    from triton.runtime.jit import JITFunction

    return [found for found in gc.get_objects() if issubclass(type(found), JITFunction)]


def tuners_by_function() -> dict[Any, list[Any]]:
    """Every autotuner of this process, by the `JITFunction` that it tunes."""
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.jit import JITFunction

    tuners: dict[Any, list[Any]] = {}
    for tuner in [found for found in gc.get_objects() if issubclass(type(found), Autotuner)]:
        function = tuner.fn
        while function is not None and not isinstance(function, JITFunction):
            function = getattr(function, "fn", None)
        if function is not None:
            tuners.setdefault(function, []).append(tuner)
    return tuners


def follow_new_kernels(made: Callable[[Any], object]) -> Callable[[], None]:
    """Have `made` called with each `JITFunction` that is made from now on; what ends it again.

    At once, or from a thread when the import that makes it is done: before, what the kernel calls may not exist yet.
    A launch after the import waits for that thread.
    """
    from triton.runtime.jit import JITFunction

    original = JITFunction.__init__

    def init(function: Any, *args: Any, **kwargs: Any) -> None:
        original(function, *args, **kwargs)
        if type(function) is not JITFunction:
            return
        if _is_importing(function.fn.__module__):
            thread = threading.Thread(target=_after_import, args=(function, made))
            function.run = _waiting_for(thread, function)
            thread.start()
        else:
            made(function)

    def end() -> None:
        if JITFunction.__init__ is init:  # else someone has wrapped it since, and calls it
            JITFunction.__init__ = original

    JITFunction.__init__ = init
    return end


def _is_file(path: str, recorded: str) -> bool:
    parts = Path(recorded).parts
    return Path(path).parts[-len(parts) :] == parts


def _is_importing(module: str) -> bool:
    return bool(getattr(getattr(sys.modules.get(module), "__spec__", None), "_initializing", False))


def _waiting_for(thread: threading.Thread, function: Any) -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        if not _is_importing(function.fn.__module__):  # a launch by the import itself would wait for its own end
            thread.join()
            vars(function).pop("run", None)
        return type(function).run(function, *args, **kwargs)

    return run


def _after_import(function: Any, made: Callable[[Any], object]) -> None:
    importlib.import_module(function.fn.__module__)  # waits for the import that is under way
    made(function)
