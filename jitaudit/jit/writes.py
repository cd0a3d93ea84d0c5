"""Which of its arguments a kernel may write, from its source.

Conservative: an argument is only read where the body does nothing with it, or with names that it is assigned to, but
load from it, move it and compare it. Whatever else happens to a pointer (a store, an atomic, a call of another
function, a container) may write.
"""

from __future__ import annotations

import ast
from typing import Any


def may_write(function: Any) -> frozenset[str]:
    """The parameters of a `JITFunction` that may be written through."""
    definition = ast.parse(function.src).body[0]
    assert isinstance(definition, ast.FunctionDef)
    uses = _Uses({param.name for param in function.params}, _load_calls(function))
    for statement in definition.body:
        uses.visit(statement)
    return uses.written()


def _load_calls(function: Any) -> frozenset[str]:
    """How the kernel's module calls `triton.language.load`: ``tl.load``, or an imported ``load``."""
    import triton.language as tl

    names = function.fn.__globals__
    modules = {f"{name}.load" for name, value in names.items() if value is tl}
    return frozenset(modules | {name for name, value in names.items() if value is tl.load})


class _Uses(ast.NodeVisitor):
    """Sorts each mention of a pointer, or of a name assigned from one, into harmless and possibly written."""

    def __init__(self, parameters: set[str], loads: frozenset[str]) -> None:
        self._parameters, self._loads = parameters, loads
        self._aliases: dict[str, set[str]] = {}
        """Name → the names that its assignments mention."""
        self._escaped: set[str] = set()

    def written(self) -> frozenset[str]:
        reached, pending = set(self._escaped), list(self._escaped)
        while pending:
            fresh = self._aliases.get(pending.pop(), set()) - reached
            reached |= fresh
            pending += fresh
        return frozenset(reached & self._parameters)

    def visit_Name(self, node: ast.Name) -> None:
        self._escaped.add(node.id)

    def visit_Call(self, node: ast.Call) -> None:
        if ast.unparse(node.func) not in self._loads:
            self.generic_visit(node)
            return
        for position, argument in enumerate(node.args):
            if position == 0:
                self._move(argument)
            else:
                self.visit(argument)
        for keyword in node.keywords:
            if keyword.arg == "pointer":
                self._move(keyword.value)
            else:
                self.visit(keyword.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        if len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            self._assign(node.targets[0].id, node.value)
        else:
            self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if isinstance(node.target, ast.Name) and node.value is not None:
            self._assign(node.target.id, node.value)
        else:
            self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self._assign(node.target.id, node.value)
        else:
            self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        for operand in (node.left, *node.comparators):
            if not isinstance(operand, ast.Name):
                self.visit(operand)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if node.attr != "dtype":
            self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):  # else a docstring
            self.visit(node.value)

    def _assign(self, target: str, value: ast.expr) -> None:
        self._aliases.setdefault(target, set()).update(self._move(value))

    def _move(self, value: ast.expr) -> set[str]:
        """The names that arithmetic in `value` may move; anything else in it is visited."""
        match value:
            case ast.Name(id=name):
                return {name}
            case ast.BinOp(left=left, right=right):
                return self._move(left) | self._move(right)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                self.visit(test)
                return self._move(body) | self._move(orelse)
            case ast.Constant():
                return set()
        self.visit(value)
        return set()
