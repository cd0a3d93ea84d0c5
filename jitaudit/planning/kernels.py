"""Finds the kernels of a manifest again, in installed modules and in the files that the user gives."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping
from functools import cache
from types import ModuleType
from typing import Any

from jitaudit.jit import identity
from jitaudit.jit.capture import importing
from jitaudit.jit.rebuild import NotWarmable
from jitaudit.model import Kernel, Manifest
from jitaudit.planning.nouns import Cache, Sources
from jitaudit.sweeping.targets import load_file, raised_on_import


def find_kernels(manifest: Manifest, sources: Sources) -> tuple[Any, ...]:
    """For each kernel of the manifest its `JITFunction`, or the NotWarmable that says why there is none.

    Imports their modules. Raises RequestError where a file that the user gave can't be loaded.
    """
    with importing(manifest.target):
        files = dict(map(load_file, sources.files))
        return tuple(_found(kernel, files) for kernel in manifest.kernels)


def use_cache(cache: Cache) -> str | None:
    """Have Triton use this directory. Where something has set another one meanwhile, such as an import: that one."""
    moved = os.environ.get("TRITON_CACHE_DIR")
    os.environ["TRITON_CACHE_DIR"] = cache.path
    return None if moved is None or os.path.abspath(moved) == cache.path else moved


def forget_working_directory(sources: Sources) -> None:
    """Leave only installed modules to import, unless the user named one here. For a process of `sweeping.process`."""
    if sys.path[:1] == [""] and not sources.here:
        del sys.path[0]  # where `python -c` puts the working directory


def _found(kernel: Kernel, files: Mapping[str, ModuleType]) -> Any:
    home, _, qualname = kernel.id.partition(":")
    try:
        if kernel.object is None:
            raise NotWarmable("its module holds no such kernel (a closure or generated code)")
        if home not in files and (home.endswith(".py") or "/" in home):
            raise NotWarmable(f"it lives in the file {home}: give that file with --sweeps")
        function = _functions(files.get(home) or _import(home)).get(kernel.object)
        if function is None or identity.qualname(function) != identity.without_source(qualname):
            raise NotWarmable(f"{home} no longer holds the kernel {qualname} at {kernel.object}")
    except NotWarmable as why:
        return why
    return function


@cache
def _functions(module: ModuleType) -> dict[str, Any]:
    return dict(identity.jit_functions(module))


@cache
def _import(name: str) -> ModuleType:
    if not all(part.isidentifier() for part in name.split(".")):
        raise NotWarmable(f"{name!r} is no module's name")
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and f"{name}.".startswith(f"{error.name}."):
            raise NotWarmable(f"no module {name} is installed; give its file with --sweeps") from None
        raise NotWarmable(raised_on_import(name, error)) from None
    except (Exception, SystemExit) as error:  # whatever a module raises when it runs
        raise NotWarmable(raised_on_import(name, error)) from None
