"""Mutants of the kernels: one per masked store without its mask, and one per block halved.

None is equivalent to the kernel: one that can't be told apart would be a mask or half a block that is not needed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import jitaudit_kernels

PACKAGE = Path(jitaudit_kernels.__file__).parent


@dataclass(frozen=True)
class Mutant:
    """One change to one source file."""

    path: str
    """Relative to the package."""
    line: int
    column: int
    kind: str
    """``mask`` or ``block``"""

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.kind}"

    @property
    def module(self) -> str:
        """The kernel module, and so the cases, that the file belongs to."""
        return self.path.removesuffix(".py").partition("/")[0]

    def source(self) -> str:
        """The file with the change."""
        tree = ast.parse((PACKAGE / self.path).read_text())
        for call, kind in _sites(tree):
            if (call.lineno, call.col_offset, kind) == (self.line, self.column, self.kind):
                _mutate(call, kind)
        return ast.unparse(tree)


def all_mutants() -> list[Mutant]:
    return [
        Mutant(path.relative_to(PACKAGE).as_posix(), call.lineno, call.col_offset, kind)
        for path in sorted(PACKAGE.rglob("*.py"))
        for call, kind in _sites(ast.parse(path.read_text()))
    ]


def sample(mutants: list[Mutant]) -> list[Mutant]:
    """The first of each kind in each file: what every push can afford."""
    first: dict[tuple[str, str], Mutant] = {}
    for mutant in mutants:
        first.setdefault((mutant.path, mutant.kind), mutant)
    return list(first.values())


def _sites(tree: ast.Module) -> Iterator[tuple[ast.Call, str]]:
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name("tl"), attr="store"), keywords=keywords):
                if any(keyword.arg == "mask" for keyword in keywords):
                    yield node, "mask"
            case ast.Call(func=ast.Attribute(value=ast.Name("tl"), attr="arange")):
                yield node, "block"


def _mutate(call: ast.Call, kind: str) -> None:
    if kind == "mask":
        call.keywords = [keyword for keyword in call.keywords if keyword.arg != "mask"]
    else:
        # A block of 1 stays: an empty one would crash, which says nothing about the cases.
        call.args[1] = ast.parse(f"max({ast.unparse(call.args[1])} // 2, 1)", mode="eval").body
