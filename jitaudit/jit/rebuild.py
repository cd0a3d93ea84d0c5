"""From a variant of a manifest back to what Triton compiles: its source, its options, and its hash on disk.

An argument of each class is made, and Triton's own binder says what it makes of it. Only a key that comes out as it
stands in the manifest is used.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jitaudit.jit import decoding
from jitaudit.jit.capture import run_options
from jitaudit.jit.driver import offline_driver
from jitaudit.jit.environment import variables
from jitaudit.jit.keys import Opaque, changed_options, variant_key
from jitaudit.jit.marker import Parts
from jitaudit.jit.patching import patched
from jitaudit.model import VariantKey


class NotWarmable(Exception):
    """A variant can't be made again from its key; the message says why."""


@dataclass(frozen=True)
class Rebuilt:
    """A variant as Triton compiles it."""

    source: Any
    """Triton's `ASTSource`."""
    options: dict[str, Any]
    """All options, as the backend parsed them."""
    hash: str
    """What Triton's cache on disk files it under: 64 hexadecimal digits."""
    parsed: Any
    """The options as the backend's own object."""
    specialization: list[tuple[Any, Any]]
    """What the binder said of the arguments."""
    given: dict[str, Any]
    """The options as a launch gives them that sets only what differs from the default."""

    @property
    def name(self) -> str:
        """What the entry's files are named after: Triton takes that many letters of the function's name."""
        return str(self.source.name)[:150]


@contextmanager
def compiling_for(target: str) -> Iterator[None]:
    """Make Triton compile for `target` inside the block, with no GPU."""
    from triton.runtime.driver import driver as active

    with patched([(active, "_active", offline_driver(target))]):
        yield


class Rebuilder:
    """Rebuilds the variants of one `JITFunction` for the target that Triton compiles for now."""

    def __init__(self, function: Any) -> None:
        self._function = function
        _, _, _, self._backend, self._bind = function.create_binder()
        self._names = [param.name for param in function.params]
        self._constexprs = {param.name for param in function.params if param.is_constexpr}
        self._defaults = self._backend.parse_options(run_options())

    def rebuild(self, key: VariantKey) -> Rebuilt:
        """The variant of `key`. Raises NotWarmable where this function, on this Triton, has no such variant."""
        self._check_names(key)
        try:
            arguments = {name: decoding.argument(text) for name, text in key.arguments.items()}
            options = {name: self._option(name, value) for name, value in key.options.items()}
        except decoding.Undecodable as error:
            raise NotWarmable(str(error)) from None
        try:
            bound, specialization, given = self._bind(**arguments, **(options | run_options() | options))
            parsed, signature, constexprs, attributes = self._function._pack_args(
                self._backend, dict(given), dict(bound), list(specialization), dict(given)
            )
        except Exception as error:  # whatever a backend raises for options or arguments that it does not know
            raise NotWarmable(f"{type(error).__name__}: {error}") from None
        self._check_key(key, self.key_of(specialization, parsed))
        source = self._function.ASTSource(self._function, signature, constexprs, attributes)
        return Rebuilt(
            source, dict(vars(parsed)), _disk_hash(source, self._backend, parsed), parsed, specialization, dict(given)
        )

    def parse(self, options: dict[str, Any]) -> Any:
        """A launch's options as the backend's own object."""
        return self._backend.parse_options(dict(options))

    def key_of(self, specialization: list[tuple[Any, Any]], parsed: Any) -> VariantKey:
        """The key of what the binder and the backend's `parse_options` say of a launch."""
        opaque = Opaque()
        changed = changed_options(parsed, self._defaults, opaque)
        return variant_key(self._names, self._constexprs, specialization, changed, opaque)

    def _option(self, name: str, value: Any) -> Any:
        """An option as the launch had it: one that JSON can't hold is text in a manifest."""
        encoded = isinstance(value, str) and not isinstance(vars(self._defaults).get(name), str | None)
        return decoding.value(value) if encoded else value

    def _check_names(self, key: VariantKey) -> None:
        if gone := [name for name in key.arguments if name not in self._names]:
            raise NotWarmable(f"the kernel has no parameter {', '.join(gone)} any more")
        if new := [name for name in self._names if name not in key.arguments]:
            raise NotWarmable(f"the kernel has gained the parameter {', '.join(new)}")
        if unknown := [name for name in key.options if name not in vars(self._defaults)]:
            raise NotWarmable(f"this Triton has no option {', '.join(unknown)}")

    def _check_key(self, key: VariantKey, found: VariantKey) -> None:
        if found.text == key.text:
            return
        differing = [
            f"{name}: {was!r} became {found.arguments[name]!r}"
            for name, was in key.arguments.items()
            if found.arguments[name] != was
        ]
        differing += [
            f"{name}={key.options.get(name)!r} became {found.options.get(name)!r}"
            for name in sorted({*key.options, *found.options})
            if found.options.get(name) != key.options.get(name)
        ]
        raise NotWarmable(f"the kernel no longer has this variant: {'; '.join(differing)}")


def always_compiles() -> bool:
    """Whether Triton is told to compile every variant again in every process (``TRITON_ALWAYS_COMPILE``)."""
    from triton import knobs

    return bool(knobs.compilation.always_compile)


def hashed_parts() -> Parts:
    """What enters every disk hash for the target that Triton compiles for now."""
    import triton
    from triton.compiler import make_backend
    from triton.runtime.cache import triton_key
    from triton.runtime.driver import driver

    backend = make_backend(driver.active.get_current_target())
    options = vars(backend.parse_options(run_options()))
    return Parts(
        triton=triton.__version__,
        build="sha256:" + hashlib.sha256(triton_key().encode()).hexdigest(),
        backend=str(backend.hash()),
        options={name: _option_text(name, value) for name, value in sorted(options.items())},
        variables=variables(triton.__version__),
    )


def _option_text(name: str, value: Any) -> str:
    """An option as text; a library, which Triton hashes by its content, by its digest."""
    if name != "extern_libs":
        return repr(value)
    return repr([(library, hashlib.sha256(Path(path).read_bytes()).hexdigest()) for library, path in value])


def _disk_hash(source: Any, backend: Any, options: Any) -> str:
    from triton import knobs
    from triton._C.libtriton import get_cache_invalidating_env_vars
    from triton.runtime.cache import get_cache_key

    text = get_cache_key(source, backend, options, env_vars=get_cache_invalidating_env_vars())
    hook = getattr(knobs.runtime, "add_stages_inspection_hook", None)
    if hook is not None:
        text += hook()[0]
    return hashlib.sha256(text.encode()).hexdigest()
