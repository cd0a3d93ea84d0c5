"""Give a kernel another policy without touching its source.

What Triton specializes on is decided by a function's annotations and by the lists passed to ``triton.jit``, so a copy
of the function object with another ``__signature__`` and other lists is the same kernel under another policy. Works on
Triton 3.6 to 3.9. Under ``TRITON_INTERPRET=1`` the interpreter re-reads the source and ignores the copied annotations.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from types import FunctionType, MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from triton.runtime.jit import JITFunction


def respecialize(
    fn: FunctionType | JITFunction[Callable[..., object]],
    *,
    constexpr: Iterable[str] = (),
    runtime: Iterable[str] = (),
    do_not_specialize: Iterable[str] = (),
    do_not_specialize_on_alignment: Iterable[str] = (),
    specialize: Iterable[str] = (),
    annotate: Mapping[str, str] = MappingProxyType({}),
) -> JITFunction[Callable[..., object]]:
    """Return a new ``JITFunction`` of ``fn``'s source under the given policy; ``fn`` itself is left as it is.

    ``fn`` is a plain function or a ``JITFunction``. The names in ``constexpr`` become ``tl.constexpr`` and those in
    ``runtime`` stop being it; ``annotate`` gives a parameter a type (``i64``). The two lists are added to a
    ``JITFunction``'s own, less the names in ``specialize``; its other options are kept. Module, qualified name, source
    and line stay the same, so the copy has the same identity and the same cache key.

    Raises ``ValueError`` for a name that the kernel does not have, and for one that is asked to be both.
    """
    import triton
    from triton.runtime.jit import JITFunction

    source = fn if isinstance(fn, FunctionType) else fn.fn
    to_constexpr, to_runtime, unlisted = frozenset(constexpr), frozenset(runtime), frozenset(specialize)
    lists = {
        "do_not_specialize": tuple(do_not_specialize),
        "do_not_specialize_on_alignment": tuple(do_not_specialize_on_alignment),
    }
    _check_names(source, to_constexpr, to_runtime, *lists.values(), tuple(unlisted), tuple(annotate))
    copy = _copy_function(source)
    copy.__signature__ = _signature(source, to_constexpr, to_runtime, annotate)  # type: ignore[attr-defined]
    if not isinstance(fn, JITFunction):
        return triton.jit(copy, **lists)
    return type(fn)(
        copy,
        version=fn.version,
        repr=fn._repr,
        launch_metadata=fn.launch_metadata,
        debug=fn.debug,
        noinline=fn.noinline,
        **{name: [*_kept(fn, getattr(fn, name), unlisted), *added] for name, added in lists.items()},
    )


def _kept(
    fn: JITFunction[Callable[..., object]], listed: Iterable[str | int], unlisted: frozenset[str]
) -> list[str | int]:
    """What stays of a list, which may name parameters by position too."""
    positions = {fn.arg_names.index(name) for name in unlisted}
    return [item for item in listed if item not in unlisted and item not in positions]


def _check_names(
    source: FunctionType, constexpr: frozenset[str], runtime: frozenset[str], *lists: tuple[str, ...]
) -> None:
    known = inspect.signature(source).parameters
    unknown = {name for names in (constexpr, runtime, *lists) for name in names if name not in known}
    if unknown:
        raise ValueError(
            f"{source.__qualname__} has no parameter {', '.join(sorted(unknown))}; it has {', '.join(known)}"
        )
    if both := constexpr & runtime:
        raise ValueError(f"{source.__qualname__}: {', '.join(sorted(both))} can't be both constexpr and runtime")


def _copy_function(source: FunctionType) -> FunctionType:
    copy = FunctionType(source.__code__, source.__globals__, source.__name__, source.__defaults__, source.__closure__)
    copy.__kwdefaults__ = source.__kwdefaults__
    copy.__module__, copy.__qualname__, copy.__doc__ = source.__module__, source.__qualname__, source.__doc__
    copy.__annotations__ = dict(source.__annotations__)
    copy.__dict__.update(source.__dict__)
    return copy


def _signature(
    source: FunctionType, constexpr: frozenset[str], runtime: frozenset[str], annotate: Mapping[str, str]
) -> inspect.Signature:
    signature = inspect.signature(source)
    return signature.replace(
        parameters=[
            parameter.replace(annotation=annotate.get(parameter.name) or _annotation(parameter, constexpr, runtime))
            for parameter in signature.parameters.values()
        ]
    )


def _annotation(parameter: inspect.Parameter, constexpr: frozenset[str], runtime: frozenset[str]) -> object:
    """A constexpr annotation is a string here, as under ``from __future__ import annotations``: Triton reads both."""
    if parameter.name in constexpr:
        return "tl.constexpr"
    if parameter.name in runtime and "constexpr" in str(parameter.annotation):
        return inspect.Parameter.empty
    return parameter.annotation
