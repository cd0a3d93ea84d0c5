"""What a kernel's source file says of it: its qualified name and its parameters. Parsed, never imported."""

from __future__ import annotations

import ast
import os
import re
import stat
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from jitaudit.model import Parameter, ParameterPolicy

SOURCE_LIMIT = 1 << 23
"""Bytes from which a source file is left unread."""


class Definition(msgspec.Struct, frozen=True):
    """A kernel as its source defines it."""

    qualname: str
    parameters: tuple[Parameter, ...]
    decorators: int
    """Lines of decorators above the ``def``, which compiled code counts as its line."""
    annotated: frozenset[str]
    """Specialized parameters with a type of their own: a 1 is keyed apart, yet stays an argument of the code."""


class Sources:
    """Source files, each read once."""

    def __init__(self) -> None:
        self._functions: dict[str, list[_Function]] = {}
        self._modules: dict[str, str] = {}
        self._definitions: dict[tuple[str, int, str, tuple[str, ...]], Definition | None] = {}

    def definition(self, file: str, line: int, kernel: str, arguments: Iterable[str]) -> Definition | None:
        """The function of that name at that line; None where the file is gone or is another one by now.

        `arguments` are those that the compiled code has: all of them must be parameters, in this order.
        """
        asked = (file, line, kernel, tuple(arguments))
        if asked not in self._definitions:
            self._definitions[asked] = self._define(*asked)
        return self._definitions[asked]

    def module(self, file: str) -> str:
        """The module of a file by where it lies: in site-packages, in a package, else its path below the project.

        A file that lies nowhere here keeps its path, unless that names site-packages.
        """
        if file not in self._modules:
            self._modules[file] = _module(Path(file))
        return self._modules[file]

    def _define(self, file: str, line: int, kernel: str, arguments: tuple[str, ...]) -> Definition | None:
        if file not in self._functions:
            self._functions[file] = list(_functions(file))
        named = [function for function in self._functions[file] if function.node.name[:150] == kernel]
        at_line = [function for function in named if function.lines[0] <= line <= function.lines[1]]
        for function in at_line or (named if len(named) == 1 else []):
            names = iter(parameter.arg for parameter in function.arguments)
            if all(argument in names for argument in arguments):
                decorators = function.node.lineno - function.lines[0]
                parameters = tuple(_parameters(function, set(arguments)))
                return Definition(function.qualname, parameters, decorators, _annotated(function, parameters))
        return None


class _Function(msgspec.Struct, frozen=True):
    qualname: str
    node: ast.FunctionDef

    @property
    def lines(self) -> tuple[int, int]:
        first = min([self.node.lineno, *(decorator.lineno for decorator in self.node.decorator_list)])
        return first, self.node.end_lineno or self.node.lineno

    @property
    def arguments(self) -> list[ast.arg]:
        given = self.node.args
        return [*given.posonlyargs, *given.args, *given.kwonlyargs]


def _functions(file: str) -> Iterator[_Function]:
    try:
        tree = ast.parse(_read(file))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return
    pending: list[tuple[str, ast.AST]] = [("", tree)]
    while pending:
        prefix, node = pending.pop()
        for child in ast.iter_child_nodes(node):
            inner = prefix
            if isinstance(child, ast.FunctionDef):
                yield _Function(prefix + child.name, child)
                inner = f"{prefix}{child.name}.<locals>."
            elif isinstance(child, ast.AsyncFunctionDef):
                inner = f"{prefix}{child.name}.<locals>."
            elif isinstance(child, ast.ClassDef):
                inner = f"{prefix}{child.name}."
            pending.append((inner, child))


def _read(file: str) -> bytes:
    """A regular file's content: a path out of a cache may name a pipe or a device. Raises OSError."""
    if not (file.endswith(".py") and os.path.isabs(file)):
        raise OSError("no Python file, or one of the compiling process's working directory")
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as stream:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > SOURCE_LIMIT:
            raise OSError("no regular file of a source's size")
        return stream.read(SOURCE_LIMIT)


def _parameters(function: _Function, present: set[str]) -> Iterator[Parameter]:
    names = [argument.arg for argument in function.arguments]
    listed = {option: _listed(function.node, option, names) for option in _LISTS}
    for argument in function.arguments:
        declared = argument.annotation is not None and re.search(r"\bconstexpr\b", ast.unparse(argument.annotation))
        policy: ParameterPolicy = "specialized"
        if declared and argument.arg not in present:
            policy = "constexpr"
        else:
            policy = next((option for option in _LISTS if argument.arg in listed[option]), policy)
        yield Parameter(name=argument.arg, policy=policy)


def _annotated(function: _Function, parameters: tuple[Parameter, ...]) -> frozenset[str]:
    typed = {argument.arg for argument in function.arguments if argument.annotation is not None}
    unlisted = ("specialized", "do_not_specialize_on_alignment")
    return frozenset(p.name for p in parameters if p.policy in unlisted and p.name in typed)


_LISTS: tuple[ParameterPolicy, ...] = ("do_not_specialize", "do_not_specialize_on_alignment")


def _listed(node: ast.FunctionDef, option: str, names: list[str]) -> set[str]:
    """The parameters that a decorator's list names, where it is written out."""
    found = set()
    for keyword in (k for d in node.decorator_list if isinstance(d, ast.Call) for k in d.keywords if k.arg == option):
        items = keyword.value.elts if isinstance(keyword.value, ast.List | ast.Tuple) else []
        for value in (item.value for item in items if isinstance(item, ast.Constant)):
            if isinstance(value, str):
                found.add(value)
            elif isinstance(value, int) and 0 <= value < len(names):
                found.add(names[value])
    return found


def _module(file: Path) -> str:
    parts = file.parts
    site = max((at for at, part in enumerate(parts) if part in ("site-packages", "dist-packages")), default=None)
    if site is not None:
        return _dotted(parts[site + 1 :])
    project = next((folder for folder in file.parents if (folder / "pyproject.toml").is_file()), None)
    if project is not None:
        inside = file.relative_to(project)
        for folder, package in sorted(_package_folders(project).items(), key=lambda item: -len(item[0])):
            if inside.is_relative_to(folder) and (file.parent / "__init__.py").is_file():
                below = inside.relative_to(folder).parts
                return _dotted((*package.split("."), *below) if package else below)
    packages: list[str] = []
    for parent in file.parents:
        if parent == project or not (parent / "__init__.py").is_file():
            break
        packages.insert(0, parent.name)
    if packages:
        return _dotted((*packages, file.name))
    return file.relative_to(project).as_posix() if project else file.as_posix()


def _dotted(parts: tuple[str, ...]) -> str:
    names = [*parts[:-1], parts[-1].removesuffix(".py")]
    return ".".join(names[:-1] if names[-1] == "__init__" and len(names) > 1 else names)


def _package_folders(project: Path) -> dict[str, str]:
    """Folder → package where setuptools is told so (``jitaudit_kernels = "kernels"``)."""
    try:
        document: object = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))
        folders = msgspec.convert(document, _Pyproject).tool.setuptools.package_dir
    except (OSError, ValueError, RecursionError):
        return {}
    return {folder: package for package, folder in folders.items() if folder not in ("", ".")}


class _Setuptools(msgspec.Struct, rename={"package_dir": "package-dir"}):
    package_dir: dict[str, str] = {}


class _Tool(msgspec.Struct):
    setuptools: _Setuptools = msgspec.field(default_factory=_Setuptools)


class _Pyproject(msgspec.Struct):
    tool: _Tool = msgspec.field(default_factory=_Tool)
