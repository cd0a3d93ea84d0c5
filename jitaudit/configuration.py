"""What a project asks of jitaudit: `[tool.jitaudit]` of its pyproject.toml, or a jitaudit.toml with the same keys.

.. code:: toml

    [tool.jitaudit]
    sweeps = ["sweeps.py"]              # the targets of a command that is given none
    targets = ["cuda:90", "hip:gfx942"] # what `gate` counts for
    drift = "fail"                      # "new": variants that are gone are told, not failed; "allow": neither fails

    [tool.jitaudit.budget]              # kernel glob → most variants; the first glob that matches decides
    "my_server.*:decode_kernel" = 8
    "my_server.*@baseline" = 512        # only this value of the compared axis
    default = 4

    [[tool.jitaudit.ignore]]
    code = "JA302"
    kernel = "my_server.*:decode_kernel"
    reason = "the flag is being rolled out"
    until = 2027-01-31
"""

from __future__ import annotations

import tomllib
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

import msgspec

from jitaudit.errors import RequestError

SHIPPED = "jitaudit_kernels"
"""The target of a command that is given none, in a project without sweeps of its own."""

DEFAULT_BUDGET = "default"
"""The budget of the kernels that no glob matches."""

Drift = Literal["fail", "new", "allow"]


class Ignore(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A suppression: the gate's failures of one code and kernel do not count, until a day."""

    code: str
    kernel: str
    """A glob."""
    reason: str
    until: date | None = None
    """The last day on which it holds."""


class Configuration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The keys of `[tool.jitaudit]`."""

    sweeps: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    budget: dict[str, int] = {}
    drift: Drift = "fail"
    ignore: tuple[Ignore, ...] = ()

    def budget_of(self, kernel: str, group: str | None) -> tuple[str, int] | None:
        """The glob that decides for a kernel, and its budget."""
        globs = [glob for glob in self.budget if glob != DEFAULT_BUDGET and matches(kernel, group, glob)]
        chosen = [*globs, *({DEFAULT_BUDGET} & self.budget.keys())]
        return (chosen[0], self.budget[chosen[0]]) if chosen else None


class Project(msgspec.Struct, frozen=True):
    """Where a project is, and what it asks."""

    root: Path
    file: Path | None
    """What was read; None where there is no configuration."""
    configuration: Configuration

    @property
    def targets(self) -> tuple[str, ...]:
        """The targets of a command that is given none: the configured sweeps, files relative to the root."""
        sweeps = self.configuration.sweeps or (SHIPPED,)
        return tuple(str(self.root / text) if ".py" in text else text for text in sweeps)


def read(start: Path) -> Project:
    """The project that `start` lies in. Raises RequestError where its configuration makes no sense."""
    root = project_root(start)
    for file, path in ((root / "jitaudit.toml", ()), (root / "pyproject.toml", ("tool", "jitaudit"))):
        data = _table(file, path)
        if data is not None:
            return Project(root, file, _checked(data, file))
    return Project(root, None, Configuration())


def project_root(start: Path) -> Path:
    """The nearest folder at or above `start` with a pyproject.toml or a jitaudit.toml; else the working directory."""
    for folder in (start, *start.parents):
        if (folder / "pyproject.toml").is_file() or (folder / "jitaudit.toml").is_file():
            return folder
    return Path.cwd()


def kernel_name(kernel: str, group: str | None) -> str:
    """A kernel as the gate writes it: its id, then ``@group`` where an axis is compared."""
    return kernel if group is None else f"{kernel}@{group}"


def matches(kernel: str, group: str | None, glob: str) -> bool:
    """Whether a glob means this kernel: its id or what follows the colon, in every group unless ``@`` names one."""
    name, at, of_group = glob.partition("@")
    return (not at or fnmatchcase(group or "", of_group)) and (
        fnmatchcase(kernel, name) or fnmatchcase(kernel.rpartition(":")[2], name)
    )


def _table(file: Path, path: tuple[str, ...]) -> dict[str, Any] | None:
    """The table at `path` in a TOML file; None where file or table are not there."""
    try:
        table: Any = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RequestError(f"{file}: not TOML: {error}") from None
    except OSError as error:
        raise RequestError(f"{file}: can't be read: {error.strerror}") from None
    for name in path:
        table = table.get(name)
        if not isinstance(table, dict):
            return None
    return dict(table)


def _checked(data: dict[str, Any], file: Path) -> Configuration:
    where = f"{file}: [tool.jitaudit]" if file.name == "pyproject.toml" else f"{file}:"
    try:
        read = msgspec.convert(data, Configuration)
    except msgspec.ValidationError as error:
        keys = f"; the keys are {', '.join(Configuration.__struct_fields__)}" if "unknown field" in str(error) else ""
        raise RequestError(f"{where} {error}{keys}") from None
    for glob, most in read.budget.items():
        if most < 0:
            raise RequestError(f"{where} budget {glob!r} = {most}: a budget is a number of variants, 0 or more")
    for ignore in read.ignore:
        if not ignore.reason.strip():
            raise RequestError(f"{where} ignore {ignore.code} {ignore.kernel!r}: say why in reason")
    return read
