"""Import another revision of a repository in place of the one that is installed, or on the path."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

import msgspec


class Relocation(msgspec.Struct, frozen=True):
    """A checkout that stands in for another one."""

    here: str
    """The checkout that would be imported."""
    there: str
    """The checkout that is imported instead."""
    kept: dict[str, str] = {}
    """Module → its file, for modules that are taken from `here` all the same: the current sweeps."""


def relocate(relocation: Relocation) -> None:
    """From now on, import from `there` what would come from `here`.

    The environment that holds this Python may lie inside `here`, and jitaudit too: neither is moved. What git ignores
    in `here` (a built extension, a generated version file) is not in a checkout and still comes from `here`.
    """
    finder = _Relocator(Path(relocation.here), Path(relocation.there), relocation.kept)
    sys.meta_path.insert(0, finder)
    sys.path += [str(moved) for entry in sys.path if (moved := finder.moved(entry)) is not None]


class _Relocator(MetaPathFinder):
    def __init__(self, here: Path, there: Path, kept: dict[str, str]) -> None:
        self._here, self._there, self._kept = here, there, kept

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name.partition(".")[0] == "jitaudit":
            return None
        if name in self._kept:
            return importlib.util.spec_from_file_location(name, self._kept[name])
        spec = self._elsewhere_found(name, path) or self._built(name, path)
        if spec is None:
            return None
        if spec.origin is None or not spec.has_location:
            return self._namespace(spec)
        moved = self.moved(spec.origin)
        if moved is None or (not moved.exists() and self._ignored(spec.origin)):
            return spec
        if not moved.exists():
            raise ModuleNotFoundError(f"No module named {name!r} in {self._there}", name=name)
        return importlib.util.spec_from_file_location(name, moved)

    def moved(self, place: str) -> Path | None:
        """Where `place` is in the other checkout; None if it is not of this one."""
        path = Path(place or ".").absolute()
        installed = any(path.is_relative_to(prefix) for prefix in {sys.prefix, sys.base_prefix})
        return None if installed or not path.is_relative_to(self._here) else self._there / path.relative_to(self._here)

    def _elsewhere_found(self, name: str, path: Sequence[str] | None) -> ModuleSpec | None:
        for finder in sys.meta_path:
            if finder is not self and (spec := finder.find_spec(name, path, None)) is not None:
                return spec
        return None

    def _built(self, name: str, path: Sequence[str] | None) -> ModuleSpec | None:
        """A submodule of a moved package that only `here` has, if git ignores it."""
        folders = [Path(entry) for entry in path or () if Path(entry).is_relative_to(self._there)]
        spec = PathFinder.find_spec(name, [str(self._here / f.relative_to(self._there)) for f in folders])
        return spec if spec is not None and spec.origin is not None and self._ignored(spec.origin) else None

    def _namespace(self, spec: ModuleSpec) -> ModuleSpec:
        """A package with no file of its own, its folders moved; anything else without a file as it is."""
        folders = [(self.moved(entry), entry) for entry in spec.submodule_search_locations or ()]
        if all(moved is None for moved, _ in folders):
            return spec
        namespace = ModuleSpec(spec.name, None, is_package=True)
        namespace.submodule_search_locations = [str(moved or entry) for moved, entry in folders]
        return namespace

    def _ignored(self, file: str) -> bool:
        answer = subprocess.run(["git", "check-ignore", "-q", file], cwd=self._here, check=False, capture_output=True)
        return answer.returncode == 0
