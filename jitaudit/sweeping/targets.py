"""Targets: what the user names, and the sweeps found there."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import TypeVar

import msgspec

from jitaudit.configuration import project_root
from jitaudit.errors import RequestError
from jitaudit.jit import identity
from jitaudit.jit.stops import last_own_frame
from jitaudit.sweeping.axes import Sweep

T = TypeVar("T")


class Target(msgspec.Struct, frozen=True):
    """``file.py``, ``file.py::sweep``, ``package.module`` or ``package.module:sweep``."""

    text: str
    file: str | None
    module: str | None
    sweep: str | None


class Loaded(msgspec.Struct, frozen=True):
    """A target's modules, and its sweeps by name."""

    root: Path
    modules: tuple[ModuleType, ...]
    files: dict[str, Path]
    """Module name → path, for the modules that were loaded from a file target."""
    sweeps: dict[str, Sweep]


def read_target(text: str) -> Target:
    """Parse a TARGET. Raises RequestError where a file is named that is not there."""
    file, _, sweep = text.partition("::")
    if Path(file).is_dir() and (file.startswith(".") or "/" in file):
        raise RequestError(f"{file}: a directory is no target; name a file with sweeps, or a module")
    if file.endswith(".json"):
        raise RequestError(f"{file}: a manifest is no target here; name a file with sweeps, or a module")
    if file.endswith(".py") or "/" in file:
        if not Path(file).is_file():
            raise RequestError(f"{file}: no such file")
        return Target(text=text, file=str(Path(file).resolve()), module=None, sweep=sweep or None)
    module, _, sweep = text.partition(":")
    return Target(text=text, file=None, module=module, sweep=sweep.lstrip(":") or None)


def split_arguments(arguments: Sequence[str]) -> tuple[list[Path], list[str]]:
    """The manifests among a command's arguments (those that end in ``.json``), and its targets."""
    return [Path(a) for a in arguments if a.endswith(".json")], [a for a in arguments if not a.endswith(".json")]


def load(target: Target) -> Loaded:
    """Import a target and collect its sweeps. Imports the user's code.

    Raises RequestError where it can't be imported (with the last frame of its own traceback) or has no such sweep.
    """
    if target.file is not None:
        path = Path(target.file)
        root = project_root(path.parent)
        modules: tuple[ModuleType, ...] = (_guarded(target, lambda: _load_file(path, root)),)
        files = {modules[0].__name__: path}
        names = {modules[0].__name__: identity.file_name(path, root)}
    else:
        assert target.module is not None
        name, root, files = target.module, project_root(Path.cwd()), {}
        sys.path.insert(0, str(Path.cwd()))
        modules = _guarded(target, lambda: _load_package(name))
        names = {module.__name__: module.__name__ for module in modules}
    sweeps = {
        f"{names[module.__name__]}:{attribute}": value
        for module in modules
        for attribute, value in vars(module).items()
        if isinstance(value, Sweep) and value.function.__module__ == module.__name__
    }
    if target.sweep is not None:
        chosen = {name: sweep for name, sweep in sweeps.items() if name.rpartition(":")[2] == target.sweep}
        if not chosen:
            known = ", ".join(name.rpartition(":")[2] for name in sweeps) or "none"
            raise RequestError(f"{target.text}: no sweep {target.sweep} there; it has {known}")
        sweeps = chosen
    if not sweeps:
        raise RequestError(
            f"{target.text}: no sweeps there; decorate a function with @jitaudit.sweep(bs=jitaudit.ints(1, 64))"
        )
    return Loaded(root=root, modules=modules, files=files, sweeps=sweeps)


def load_file(text: str) -> tuple[str, ModuleType]:
    """Import one file: its path as ids have it, and its module. Raises RequestError where it can't be imported."""
    target = read_target(str(Path(text).resolve()))
    path = Path(text).resolve()
    root = project_root(path.parent)
    return identity.file_name(path, root), _guarded(target, lambda: _load_file(path, root))


def raised_on_import(name: str, error: BaseException) -> str:
    """What an import of `name` died of, with the last line of its own that was run."""
    message = str(error).strip().partition("\n")[0]
    if isinstance(error, SyntaxError):  # its frames are the import system's
        where = f"{error.filename}:{error.lineno}: {(error.text or '').strip()}"
        return f"{name}: can't be read at {where}: {type(error).__name__}: {error.msg}"
    frame = last_own_frame(error)
    where = f"{frame.filename}:{frame.lineno}: {frame.line}" if frame.line else f"{frame.filename}:{frame.lineno}"
    return f"{name}: raised on import at {where}: {type(error).__name__}: {message}"


def _load_file(path: Path, root: Path) -> ModuleType:
    folder = path.parent
    while (folder / "__init__.py").is_file():
        folder = folder.parent
    sys.path[:0] = [str(folder), str(root)]
    if folder != path.parent:  # a module of a package: its relative imports need its name
        return importlib.import_module(".".join(path.relative_to(folder).with_suffix("").parts))
    name = path.stem if path.stem not in sys.modules else f"{path.stem}_target"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _load_package(name: str) -> tuple[ModuleType, ...]:
    module = importlib.import_module(name)
    parts = pkgutil.walk_packages(getattr(module, "__path__", ()), f"{name}.")
    return (module, *(importlib.import_module(part.name) for part in parts))


def _guarded(target: Target, load: Callable[[], T]) -> T:
    try:
        return load()
    except ModuleNotFoundError as error:
        if target.module is not None and error.name and f"{target.module}.".startswith(f"{error.name}."):
            raise RequestError(f"{target.text}: no such file or module") from None
        raise RequestError(raised_on_import(target.text, error)) from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise RequestError(raised_on_import(target.text, error)) from error
