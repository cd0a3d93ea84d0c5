"""Which of its arguments a kernel may write, from its source.

Conservative: an argument is only read where the body does nothing with it, or with names that it is assigned to, but
load from it, move it, compare it, and pass it to other kernels' functions that only read it. Whatever else happens to a
pointer (a store, an atomic, another call, a container) may write.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, NamedTuple


def may_write(function: Any) -> frozenset[str]:
    """The parameters of a `JITFunction` that may be written through."""
    return _look_at(function, ()).written


class _Callee(NamedTuple):
    """A function by its parameters: all, those that it may write, and those that its result may be made of."""

    parameters: list[str]
    written: frozenset[str]
    returned: frozenset[str]


def _look_at(function: Any, callers: tuple[Any, ...]) -> _Callee:
    definition = ast.parse(function.src).body[0]
    assert isinstance(definition, ast.FunctionDef)
    parameters = [param.name for param in function.params]
    if function in callers:
        return _Callee(parameters, frozenset(parameters), frozenset(parameters))
    uses = _Uses(_load_calls(function), _called(function, (*callers, function)))
    for statement in definition.body:
        uses.visit(statement)
    written, returned = (uses.reached(names) & set(parameters) for names in (uses.escaped, uses.returned))
    return _Callee(parameters, written, returned)


def _load_calls(function: Any) -> frozenset[str]:
    """How the kernel's module calls `triton.language.load`: ``tl.load``, or an imported ``load``."""
    import triton.language as tl

    names = function.fn.__globals__
    modules = {f"{name}.load" for name, value in names.items() if value is tl}
    return frozenset(modules | {name for name, value in names.items() if value is tl.load})


def _called(function: Any, callers: tuple[Any, ...]) -> Callable[[str], _Callee | None]:
    """The functions of the kernel's module by their names there."""
    from triton.runtime.jit import JITFunction

    def called(name: str) -> _Callee | None:
        callee = function.fn.__globals__.get(name)
        if not isinstance(callee, JITFunction):
            return None
        return _look_at(callee, callers)

    return called


class _Uses(ast.NodeVisitor):
    """Sorts each mention of a pointer, or of a name assigned from one, into harmless and possibly written."""

    def __init__(self, loads: frozenset[str], called: Callable[[str], _Callee | None]) -> None:
        self._loads, self._called = loads, called
        self._aliases: dict[str, set[str]] = {}
        """Name → the names that its assignments mention."""
        self.escaped: set[str] = set()
        self.returned: set[str] = set()

    def reached(self, names: set[str]) -> frozenset[str]:
        """The names that these may be made of."""
        reached, pending = set(names), list(names)
        while pending:
            fresh = self._aliases.get(pending.pop(), set()) - reached
            reached |= fresh
            pending += fresh
        return frozenset(reached)

    def visit_Name(self, node: ast.Name) -> None:
        self.escaped.add(node.id)

    def visit_Call(self, node: ast.Call) -> None:
        if ast.unparse(node.func) not in self._loads:
            passed = self._pass_on(node)
            if passed is None:
                self.generic_visit(node)
            else:
                self.escaped |= passed
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

    def _pass_on(self, node: ast.Call) -> set[str] | None:
        """The names that the result of another function may be made of; None where it is no such call."""
        callee = self._called(node.func.id) if isinstance(node.func, ast.Name) else None
        if callee is None or any(isinstance(argument, ast.Starred) for argument in node.args):
            return None
        passed = list(zip(callee.parameters, node.args, strict=False))
        passed += [(keyword.arg or "", keyword.value) for keyword in node.keywords]
        names: set[str] = set()
        for parameter, value in passed:
            if parameter in callee.written or parameter not in callee.parameters:
                self.visit(value)
            else:
                moved = self._move(value)
                names |= moved if parameter in callee.returned else set()
        return names

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None:
            self.returned |= self._move(node.value)

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
            case ast.Call() if (passed := self._pass_on(value)) is not None:
                return passed
        self.visit(value)
        return set()
