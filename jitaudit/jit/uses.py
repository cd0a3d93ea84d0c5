"""What a kernel's body does with each parameter, told from its source.

An estimate that errs on the dear side: a parameter that might reach the address or the mask of a vector access counts
as one that does, through every helper that the kernel calls. A compile has the last word.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from jitaudit.model import ParameterUse

_ACCESSES = {"load", "store", "gather", "scatter"}
_BLOCK_POINTERS = {"make_block_ptr", "make_tensor_descriptor", "advance"}
_BLOCKS = {"arange", "zeros", "full"}
_NEEDED_FROM = {
    "arange": 0, "static_range": 0, "zeros": 0, "full": 0, "static_assert": 0, "pointer_type": 0, "to": 0, "cast": 1,
    "reshape": 1, "view": 1, "broadcast_to": 1, "permute": 1, "trans": 1, "expand_dims": 1,
}  # fmt: skip
"""Functions that need their arguments at compile time, from this position on."""
_NEEDED_KEYWORDS = {
    "shape", "block_shape", "axis", "dim", "dtype", "num_stages", "loop_unroll_factor", "cache_modifier",
    "eviction_policy", "input_precision", "order", "boundary_check", "layout", "keep_dims",
}  # fmt: skip
_VECTOR = "<vector>"

Tags = frozenset[str]
"""The parameters that a value depends on, and `_VECTOR` where it is one a lane."""


def parameter_uses(function: Any) -> dict[str, ParameterUse]:
    """The use of each parameter of a `JITFunction`, by name."""
    names = [param.name for param in function.params]
    body = function_body(function)
    reading = _Reading()
    reading.read(function, {name: frozenset((name,)) for name in names})
    named = {node.id for node in ast.walk(body) if isinstance(node, ast.Name)}

    found: dict[str, ParameterUse] = dict.fromkeys(names, "scalar")
    found |= dict.fromkeys(reading.vector & found.keys(), "vector")
    found |= dict.fromkeys(reading.static & found.keys(), "static")
    found |= dict.fromkeys(reading.block & found.keys(), "block")
    return found | dict.fromkeys(found.keys() - named, "unread")


def function_body(function: Any) -> ast.Module:
    """The statements of a `JITFunction`, without its signature."""
    definition = ast.parse(function.src).body[0]
    assert isinstance(definition, ast.FunctionDef)
    return ast.Module(body=definition.body, type_ignores=[])


class _Reading:
    """What has been read of a kernel and its helpers: which parameters go where."""

    def __init__(self) -> None:
        self.block: set[str] = set()
        self.static: set[str] = set()
        self.vector: set[str] = set()
        self._results: dict[tuple[int, tuple[tuple[str, Tags], ...]], Tags] = {}

    def read(self, function: Any, given: dict[str, Tags]) -> Tags:
        """Read a function whose parameters carry these tags; what it returns carries the result."""
        seen = (id(function), tuple(sorted(given.items())))
        if seen not in self._results:
            self._results[seen] = frozenset()  # the answer for a recursive call
            self._results[seen] = _Scope(self, function, given).read()
        return self._results[seen]


class _Scope:
    """One function's local names with the tags that they carry."""

    def __init__(self, reading: _Reading, function: Any, given: dict[str, Tags]) -> None:
        self._reading = reading
        self._function = function
        self._tags = dict(given)
        self._returned: Tags = frozenset()

    def read(self) -> Tags:
        body = function_body(self._function)
        before: dict[str, Tags] = {}
        while before != self._tags:  # tags only grow: loops carry them round
            before = dict(self._tags)
            for node in ast.walk(body):
                self._statement(node)
        for node in ast.walk(body):
            if isinstance(node, ast.Compare):
                self._comparison(node)
        return self._returned

    def _statement(self, node: ast.AST) -> None:
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self._assign(target, self._of(value))
            case ast.AugAssign(target=target, value=value) | ast.NamedExpr(target=target, value=value):
                self._assign(target, self._of(value))
            case ast.AnnAssign(target=target, annotation=annotation, value=ast.expr() as value):
                self._assign(target, self._of(value))
                if "constexpr" in ast.unparse(annotation):
                    self._needs(value)
            case ast.For(target=target, iter=iterated):
                self._assign(target, self._of(iterated))
            case ast.Return(value=ast.expr() as value):
                self._returned |= self._of(value)
            case ast.Expr(value=value) | ast.If(test=value) | ast.While(test=value):
                self._of(value)
            case _:
                pass

    def _comparison(self, node: ast.Compare) -> None:
        sides = [node.left, *node.comparators]
        if any(isinstance(side, ast.Constant) and isinstance(side.value, str) for side in sides):
            for side in sides:
                self._needs(side)

    def _assign(self, target: ast.expr, tags: Tags) -> None:
        for node in ast.walk(target):
            if isinstance(node, ast.Name):
                self._tags[node.id] = self._tags.get(node.id, frozenset()) | tags

    def _needs(self, node: ast.expr) -> None:
        """The compiler needs this value."""
        self._reading.static |= self._of(node)

    def _of(self, node: ast.expr | None) -> Tags:
        match node:
            case None:
                return frozenset()
            case ast.Name(id=name):
                return self._tags.get(name, frozenset())
            case ast.Call():
                return self._call(node)
            case ast.Attribute(value=value, attr=attribute):
                if attribute == "value":  # of a constexpr
                    self._needs(value)
                return frozenset()  # of a tensor: a fact about its type
            case _:
                children = (child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr))
                return frozenset[str]().union(*map(self._of, children))

    def _call(self, node: ast.Call) -> Tags:
        arguments = [argument.value if isinstance(argument, ast.Starred) else argument for argument in node.args]
        keywords = {keyword.arg or "**": keyword.value for keyword in node.keywords}
        helper = self._resolve(node.func)
        if hasattr(helper, "params") and hasattr(helper, "src"):
            return self._helper(helper, arguments, keywords)
        if isinstance(node.func, ast.Name):  # a parameter that is called
            self._needs(node.func)
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        receiver = self._of(node.func.value) if isinstance(node.func, ast.Attribute) else frozenset[str]()
        method = isinstance(node.func, ast.Attribute) and self._resolve(node.func.value) is None
        start = _NEEDED_FROM.get(name, len(arguments) + 1)
        for argument in arguments[max(start - method, 0) :]:
            self._needs(argument)
            if name in _BLOCKS:
                self._reading.block |= self._of(argument)
        for keyword, value in keywords.items():
            if keyword in _NEEDED_KEYWORDS:
                self._needs(value)
        tags = receiver.union(*map(self._of, [*arguments, *keywords.values()]))
        if name in _ACCESSES or name.startswith("atomic_"):
            return self._access(name, receiver, arguments, keywords)
        if name in _BLOCK_POINTERS:
            self._reading.vector |= tags
        return tags | {_VECTOR} if name == "arange" or name in _BLOCK_POINTERS else tags

    def _access(self, name: str, receiver: Tags, arguments: list[ast.expr], keywords: dict[str, ast.expr]) -> Tags:
        """A load, a store or an atomic: what a vector one has in its address or its mask; a load's value is new."""
        positional = arguments[1:2] if name == "load" else arguments[2:3]
        decisive = [*arguments[:1], *positional, *(keywords[word] for word in ("pointer", "mask") if word in keywords)]
        tags = receiver.union(*map(self._of, decisive))
        if _VECTOR in tags:
            self._reading.vector |= tags
        return tags & {_VECTOR}

    def _helper(self, helper: Any, arguments: list[ast.expr], keywords: dict[str, ast.expr]) -> Tags:
        names = [param.name for param in helper.params]
        passed = dict(zip(names, arguments, strict=False)) | {k: v for k, v in keywords.items() if k in names}
        for param in helper.params:
            if param.is_constexpr and param.name in passed:
                self._needs(passed[param.name])
        return self._reading.read(helper, {name: self._of(passed.get(name)) for name in names})

    def _resolve(self, node: ast.expr) -> Any:
        """The object that a call names, where it is a global of the function or an attribute of one."""
        if isinstance(node, ast.Attribute):
            owner = self._resolve(node.value)
            return getattr(owner, node.attr, None) if owner is not None else None
        if not isinstance(node, ast.Name) or node.id in self._tags:
            return None
        return dict(_globals(self._function)).get(node.id)


def _globals(function: Any) -> Iterator[tuple[str, Any]]:
    code = function.fn.__code__
    yield from function.fn.__globals__.items()
    for name, cell in zip(code.co_freevars, function.fn.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # the cell is still empty
            continue
