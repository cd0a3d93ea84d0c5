"""What the first launch on a GPU builds with the system's C compiler, and which of it is in the cache already.

Triton itself is asked for the path of each build: its own code runs up to the look-up in the cache, and is stopped
there. 3.6 builds a launcher for each argument list, and AMD's does on 3.6 too; every version builds its utilities.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import msgspec

from jitaudit.jit.patching import patched
from jitaudit.jit.rebuild import Rebuilt
from jitaudit.jit.stops import CaseStopped


class HostBuild(msgspec.Struct, frozen=True):
    """A shared library that Triton builds on the host."""

    kind: Literal["utilities", "launcher"]
    path: str
    """Where Triton looks for it."""

    @property
    def is_there(self) -> bool:
        """Whether it is built."""
        return Path(self.path).is_file()


def host_builds(variants: Iterable[Rebuilt], target: str, directory: Path) -> tuple[HostBuild, ...]:
    """Every build that launching `variants` needs, each once, in Triton's cache `directory`."""
    cuda = target.startswith("cuda")
    driver = importlib.import_module(f"triton.backends.{'nvidia' if cuda else 'amd'}.driver")
    utilities, launcher = (driver.CudaUtils, driver.CudaLauncher) if cuda else (driver.HIPUtils, driver.HIPLauncher)
    launchers: dict[str, str | None] = {}
    for variant in variants:
        shape = str((variant.source.signature, sorted(variant.source.constants)))
        if shape not in launchers:
            metadata = SimpleNamespace(warp_size=variant.options.get("warp_size"))
            launchers[shape] = _looked_up(driver, launcher, variant.source, metadata)
    paths = sorted({path for path in launchers.values() if path is not None})
    return (
        # Where the runtime library that they are built for is not here, neither are they.
        HostBuild("utilities", str(directory / (_looked_up(driver, utilities) or "unknown"))),
        *(HostBuild("launcher", str(directory / path)) for path in paths),
    )


class _LookedUp(BaseException):
    """Stops Triton at a look-up in its cache. No Exception, which Triton may catch."""


class _Recorder:
    """Stands for the cache manager."""

    def __init__(self, key: str) -> None:
        self._key = key

    def get_file(self, filename: str) -> None:
        from triton.runtime.cache import _base32

        raise _LookedUp(f"{_base32(self._key)}/{filename}")


def _looked_up(driver: Any, kind: Any, *args: object) -> str | None:
    """The path below the cache directory that making a `kind` looks for; None where it looks for nothing."""
    from triton.runtime import build

    patches: list[tuple[Any, str, Any]] = [(build, "get_cache_manager", _Recorder)]
    if hasattr(driver, "library_dirs"):  # it asks where libcuda is before it looks
        patches.append((driver, "library_dirs", list))
    try:
        with patched(patches):
            kind.__init__(SimpleNamespace(), *args)
    except _LookedUp as looked:
        return str(looked)
    except (Exception, CaseStopped):  # it went on to the driver, or there is no such runtime here
        return None
    return None
