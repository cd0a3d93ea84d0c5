"""Real compiles of captured variants, with no GPU: Triton's own compiler, for the capture's target."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jitaudit.jit.binaries import code_of
from jitaudit.jit.patching import patched
from jitaudit.jit.target import gpu_target
from jitaudit.jit.timing import stage_seconds
from jitaudit.model import Compile

if TYPE_CHECKING:
    from jitaudit.jit.capture import SeenVariant


@dataclass(frozen=True, slots=True)
class CompileFailed:
    """The compiler's own last word on a variant that does not compile."""

    message: str


def compile_variant(function: Any, variant: SeenVariant, target: str) -> Compile | CompileFailed:
    """Compile the variant's first launch for `target` as `JITFunction.run` would, from a key memo of its own."""
    import triton
    from triton import knobs

    seconds: dict[str, float] = {}
    try:
        source, options = source_of(function, variant)
        with patched([(knobs.compilation, "listener", _stage_listener(seconds, knobs.compilation.listener))]):
            kernel = triton.compile(source, target=gpu_target(target), options=options)
    except Exception as error:  # a compiler may raise anything; its message is the finding
        return CompileFailed(last_word(error))
    binary = kernel.asm["cubin" if target.startswith("cuda") else "hsaco"]
    digest = "sha256:" + hashlib.sha256(binary).hexdigest()
    return Compile(binary=digest, seconds=seconds, code=code_of(kernel, target))


def source_of(function: Any, variant: SeenVariant) -> tuple[Any, dict[str, Any]]:
    """Triton's `ASTSource` of a variant, and the options to compile it with."""
    _, _, _, backend, _ = function.create_binder()
    bound, specialization, kwargs = variant.launch
    options, signature, constexprs, attributes = function._pack_args(
        backend, dict(kwargs), dict(bound), list(specialization), dict(kwargs)
    )
    return function.ASTSource(function, signature, constexprs, attributes), dict(vars(options))


def last_word(error: BaseException, diagnostics: str = "") -> str:
    """What a compile died of, in the compiler's or the assembler's own words, in one line.

    `diagnostics`: what it printed on standard error meanwhile; a pass that fails says only there why.
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if type(error).__name__ == "PTXASError":
        said = lines[: next((at for at, line in enumerate(lines) if line.startswith("Repro command")), len(lines))]
        lines = [" ".join(said)]
    elif printed := next((line for line in diagnostics.splitlines() if " error: " in line), None):
        lines.append(f"{lines[-1] if lines else ''} ({printed.strip()})")
    return f"{type(error).__name__}: {lines[-1] if lines else 'no message'}"


def _stage_listener(seconds: dict[str, float], previous: Callable[..., Any] | None) -> Callable[..., None]:
    """A compilation listener that notes the seconds by stage, after the listener that was there."""

    def listen(**event: Any) -> None:
        if previous is not None:
            previous(**event)
        seconds.update(stage_seconds(event["times"]))

    return listen
