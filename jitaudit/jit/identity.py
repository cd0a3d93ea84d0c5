"""What a `JITFunction` is called, and where it can be found again."""

from __future__ import annotations

import ast
import hashlib
import inspect
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from jitaudit.jit.uses import function_body, parameter_uses
from jitaudit.model import Kernel, Parameter, ParameterPolicy, ParameterUse


def kernel_id(function: Any, root: Path, file_modules: dict[str, Path]) -> str:
    """``module:qualname``; for a module that was loaded from a file target, its posix path relative to `root`.

    Another kernel of the same name (of a factory's other branch, or generated) is told apart by its source: ``#…``.
    """
    module = function.fn.__module__
    path = file_modules.get(module)
    name = f"{module if path is None else file_name(path, root)}:{qualname(function)}"
    source = source_digest(function)
    return name if _first.setdefault(name, source) == source else f"{name}#{source[7:15]}"


_first: dict[str, str] = {}
"""Name → the source of the first kernel that had it in this process."""


def adopt(kernels: Iterable[Kernel]) -> None:
    """Go on from the names that a fork of this process gave."""
    for kernel in kernels:
        _first.setdefault(kernel.id, kernel.source)


def without_source(name: str) -> str:
    """A kernel's name without what tells it apart from others of it."""
    return re.sub(r"#[0-9a-f]{8}$", "", name)


def qualname(function: Any) -> str:
    """Its name, and for a closure what it captured: Triton compiles it again for another value of that.

    ``make.<locals>.scale_kernel(FACTOR=3)``. Values that are neither plain nor kernels are told by their type alone.
    """
    return _qualname(function.fn, _DEPTH)


_DEPTH = 3
"""Of closures that capture closures: one may capture itself."""

_LONGEST = 80


def _qualname(source: Any, depth: int) -> str:
    captured = _captured(source) if depth else {}
    if not captured:
        return str(source.__qualname__)
    text = ", ".join(f"{name}={_captured_text(value, depth)}" for name, value in sorted(captured.items()))
    if len(text) > _LONGEST:
        text = f"sha256:{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    return f"{source.__qualname__}({text})"


def _captured(source: Any) -> Mapping[str, Any]:
    return inspect.getclosurevars(source).nonlocals if source.__closure__ else {}


def _captured_text(value: Any, depth: int) -> str:
    import triton.language as tl
    from triton.runtime.jit import JITCallable

    if isinstance(value, tl.constexpr):
        value = value.value
    if isinstance(value, JITCallable):
        return _qualname(value.fn, depth - 1)
    if isinstance(value, tuple | list):
        return f"({', '.join(_captured_text(item, depth) for item in value)})"
    plain = value is None or isinstance(value, bool | int | float | str | tl.dtype)
    return repr(value) if plain else type(value).__name__


def file_name(path: Path, root: Path) -> str:
    """`path` in posix form: relative to the project root where it lies inside, to `~` where it was generated there."""
    if path.is_relative_to(root):
        return path.relative_to(root).as_posix()
    return f"~/{path.relative_to(Path.home()).as_posix()}" if path.is_relative_to(Path.home()) else path.as_posix()


def object_path(function: Any) -> str | None:
    """The attribute path at which the kernel's module holds it, autotuner and heuristics unwrapped; None if nowhere."""
    module = sys.modules.get(function.fn.__module__)
    if module is None:
        return None
    return next((path for path, found in jit_functions(module) if found is function), None)


def jit_functions(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """Each `JITFunction` that `module` holds, with its attribute path: its globals and their own attributes."""
    from triton.runtime.jit import JITFunction

    for name, value in list(vars(module).items()):
        if isinstance(function := _unwrap(value), JITFunction):
            yield name, function
        elif not isinstance(value, ModuleType) and not name.startswith("__"):
            for inner, attribute in list(getattr(value, "__dict__", {}).items()):
                if isinstance(function := _unwrap(attribute), JITFunction):
                    yield f"{name}.{inner}", function


def _unwrap(value: Any) -> Any:
    from triton.runtime.jit import JITFunction, KernelInterface

    while isinstance(value, KernelInterface) and not isinstance(value, JITFunction):
        value = getattr(value, "fn", None)
    return value


def parameters(function: Any, uses: dict[str, ParameterUse | None] | None = None) -> tuple[Parameter, ...]:
    """The kernel's parameters with their policies, as Triton reads them; `uses` where they were told before."""

    def policy(param: Any) -> ParameterPolicy:
        if param.is_constexpr:
            return "constexpr"
        if param.do_not_specialize:
            return "do_not_specialize"
        return "do_not_specialize_on_alignment" if param.do_not_specialize_on_alignment else "specialized"

    told = uses or parameter_uses(function)
    return tuple(Parameter(name=p.name, policy=policy(p), use=told[p.name]) for p in function.params)


def source_digest(function: Any) -> str:
    """``sha256:…`` of the function's source text."""
    return "sha256:" + hashlib.sha256(function.src.encode()).hexdigest()


def called_names(function: Any) -> set[str]:
    """Every name that the kernel's body mentions, attributes included: what it may call."""
    nodes = list(ast.walk(function_body(function)))
    names = {n.id for n in nodes if isinstance(n, ast.Name)} | {n.attr for n in nodes if isinstance(n, ast.Attribute)}
    return names | {getattr(value, "__name__", name) for name, value in _captured(function.fn).items()}
