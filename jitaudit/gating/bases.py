"""The manifest of a base: another revision of this repository, or a release of a library, under the current sweeps."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import PathFinder
from pathlib import Path

import msgspec

from jitaudit.configuration import project_root
from jitaudit.errors import RequestError, SetupError
from jitaudit.manifest import union
from jitaudit.model import Manifest
from jitaudit.sweeping import Narrowing, Progress
from jitaudit.sweeping.process import Place
from jitaudit.sweeping.relocating import Relocation
from jitaudit.sweeping.running import run_at
from jitaudit.sweeping.targets import Target, read_target


class Attempt(msgspec.Struct, frozen=True):
    """One way to run a target on a base."""

    target: str
    place: Place


class Base(msgspec.Struct, frozen=True):
    """Something to compare with, laid out to be run. `attempts` tries a target's current sweeps first."""

    name: str
    """``origin/main (1a2b3c4)``, ``liger-kernel 0.8.4``."""
    here: Path | None = None
    """The checkout that a revision stands in for; None for a release."""
    there: Path | None = None
    python: str = sys.executable

    def manifest(
        self, targets: Sequence[str], current: Manifest, narrowing: Narrowing, progress: Progress
    ) -> Manifest | None:
        """What the base reaches under the sweeps that run on it; None where none does.

        `current` is the manifest of the same targets here: it tells which files hold sweeps and which hold kernels.
        """
        found = [self._run(target, current, narrowing, progress) for target in targets]
        manifests = [manifest for manifest in found if manifest is not None]
        return union(manifests) if manifests else None

    def _run(self, target: str, current: Manifest, narrowing: Narrowing, progress: Progress) -> Manifest | None:
        for attempt in self._attempts(read_target(target), current):
            try:
                return run_at(attempt.place, attempt.target, current.target, narrowing, progress)
            except RequestError:
                continue
        return None

    def _attempts(self, target: Target, current: Manifest) -> Iterator[Attempt]:
        if self.here is None or self.there is None:
            yield Attempt(target.text, Place(python=self.python))
            return
        kernels = {kernel.id for kernel in current.kernels} | {f.kernel for f in current.findings if f.kernel}
        holders = {kernel.rpartition(":")[0] for kernel in kernels}
        if target.file is not None:
            yield from self._file_attempts(target, Path(target.file), holders)
        else:
            sweepers = {run.name.rpartition(":")[0] for run in current.sweeps} - holders
            kept = {module: str(file) for module in sweepers if (file := self._file_of(module)) is not None}
            yield Attempt(target.text, self._place(kept))
            if kept:
                yield Attempt(target.text, self._place({}))

    def _file_attempts(self, target: Target, file: Path, holders: set[str]) -> Iterator[Attempt]:
        """The current file over the base's code, unless it holds kernels too; then the base's own file."""
        assert self.here is not None
        assert self.there is not None
        if not file.is_relative_to(self.here):
            yield Attempt(target.text, self._place({}))
            return
        root = project_root(file.parent)
        name = (file.relative_to(root) if file.is_relative_to(root) else file).as_posix()
        if name not in holders:
            yield Attempt(_text(target, file), self._place({_module_name(file): str(file)}))
        moved = self.there / file.relative_to(self.here)
        if moved.is_file():
            yield Attempt(_text(target, moved), self._place({}))

    def _place(self, kept: dict[str, str]) -> Place:
        assert self.here is not None
        assert self.there is not None
        folder = self.there / Path.cwd().relative_to(self.here)
        relocation = Relocation(here=str(self.here), there=str(self.there), kept=kept)
        return Place(folder=str(folder if folder.is_dir() else self.there), relocation=relocation)

    def _file_of(self, module: str) -> Path | None:
        """The file of one of the repository's own modules, found without importing it."""
        top, *parts = module.split(".")
        spec = PathFinder.find_spec(top, [str(Path.cwd())]) or importlib.util.find_spec(top)
        folders = list(spec.submodule_search_locations or ()) if spec is not None else []
        if not parts or not folders or self.here is None:
            return None
        stem = Path(folders[0], *parts)
        files = (stem.with_suffix(".py"), stem / "__init__.py")
        return next((file for file in files if file.is_file() and file.is_relative_to(self.here)), None)


@contextmanager
def laid_out(text: str) -> Iterator[Base]:
    """The base that ``--base`` names, while the block lasts: ``pypi:NAME==VERSION`` or a git revision.

    A revision stands for the last commit that it shares with HEAD, so that what it gained since is not held against
    this branch. Raises RequestError for one that is not there, SetupError without git, pip or the network.
    """
    with tempfile.TemporaryDirectory(prefix="jitaudit-base-") as folder:
        if text.startswith("pypi:"):
            yield _release(text, Path(folder, "environment"))
        else:
            with _worktree(text, Path(folder, "checkout")) as base:
                yield base


@contextmanager
def _worktree(revision: str, folder: Path) -> Iterator[Base]:
    top = _git("rev-parse", "--show-toplevel")
    if top is None:
        raise RequestError(f"--base {revision}: {Path.cwd()} is in no git repository")
    commit = _git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    if commit is None:
        raise RequestError(
            f"--base {revision}: git knows no such revision; fetch it first (git fetch origin, or fetch-depth: 0 in CI)"
        )
    commit = _git("merge-base", "HEAD", commit) or commit
    if _git("worktree", "add", "--quiet", "--detach", str(folder), commit) is None:
        raise SetupError(f"--base {revision}: git can't make a worktree of {commit[:7]}; try git worktree prune")
    try:
        yield Base(name=f"{revision} ({commit[:7]})", here=Path(top), there=folder.resolve())
    finally:
        _git("worktree", "remove", "--force", str(folder))


def _release(text: str, folder: Path) -> Base:
    """An environment that holds one release and finds everything else where this one does."""
    match = re.fullmatch(r"pypi:([A-Za-z0-9][A-Za-z0-9._-]*)==([A-Za-z0-9.+!_-]+)", text)
    if match is None:
        raise RequestError(f"--base {text}: write pypi:NAME==VERSION, such as pypi:liger-kernel==0.8.4")
    requirement = f"{match[1]}=={match[2]}"
    _python(text, "-m", "venv", "--without-pip", str(folder))
    _python(text, "-m", "pip", "--python", str(folder), "install", "--quiet", "--no-deps", requirement)
    python = folder / "bin" / "python"
    (packages,) = folder.glob("lib/python*/site-packages")
    sites = [entry for entry in sys.path if Path(entry).name in ("site-packages", "dist-packages")]
    lines = [f"import site; site.addsitedir({entry!r})" for entry in sites]
    (packages / "base.pth").write_text("\n".join([*lines, str(Path(__file__).parents[2])]) + "\n")
    return Base(name=f"{match[1]} {match[2]}", python=str(python))


def _python(text: str, *arguments: str) -> None:
    answer = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        said = [line for line in answer.stderr.splitlines() if line.strip()] or ["no answer"]
        if versions := re.search(r"from versions: (?!none)([^)]*)", answer.stderr):
            newest = ", ".join(versions[1].split(", ")[-3:])
            raise RequestError(f"--base {text}: there is no such release; the newest are {newest}")
        raise SetupError(f"--base {text}: {arguments[1]} failed: {said[-1].removeprefix('ERROR: ')}")


def _git(*arguments: str) -> str | None:
    """What git prints; None where it fails. A hook's own variables would point it at another index."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        answer = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False, env=environment)
    except FileNotFoundError:
        raise SetupError("--base: git is not installed") from None
    return answer.stdout.strip() if answer.returncode == 0 else None


def _text(target: Target, file: Path) -> str:
    return f"{file}::{target.sweep}" if target.sweep else str(file)


def _module_name(file: Path) -> str:
    """The module that a file target is imported as: dotted for one that lies in a package."""
    parts, folder = [file.stem], file.parent
    while (folder / "__init__.py").is_file():
        parts, folder = [folder.name, *parts], folder.parent
    return ".".join(parts)
