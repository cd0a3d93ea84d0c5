"""The process of `benchmarks.crosscheck` that really launches: it sees each key, and then launches it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from jitaudit.sweeping import child
from jitaudit.sweeping.process import serve
from jitaudit.sweeping.running import Request


def main(progress: int, private: str) -> None:
    """The launching process."""
    seeing = child.capturing_on_gpu

    @contextmanager
    def launching() -> Iterator[Any]:
        from triton.runtime.jit import JITFunction

        from jitaudit.jit.patching import patched
        from jitaudit.jit.settling import zeroed

        launch = JITFunction.run
        with seeing() as capture:
            see = JITFunction.run

            def see_and_launch(function: Any, *args: Any, **kwargs: Any) -> Any:
                see(function, *args, **kwargs)
                return launch(function, *args, **kwargs)

            with patched([(JITFunction, "run", see_and_launch)]), zeroed():
                yield capture

    child.capturing_on_gpu = launching
    serve(child._run, Request, progress, private)
