"""Findings that stand in the sources: what kernels' declarations get wrong, and kernels that nothing launches."""

from __future__ import annotations

from collections.abc import Iterator, Set
from typing import Any

from jitaudit.jit import identity
from jitaudit.jit.keys import Opaque, value_text
from jitaudit.model import Finding, Manifest, Parameter
from jitaudit.sweeping.targets import Loaded


def source_findings(function: Any, kernel: str, parameters: tuple[Parameter, ...]) -> Iterator[Finding]:
    """What a kernel's declaration gets wrong: JA001, JA002, JA003."""
    policies = {parameter.name: parameter.policy for parameter in parameters}
    names = list(policies)
    for option in ("do_not_specialize", "do_not_specialize_on_alignment"):
        for listed in getattr(function, option):
            argument = names[listed] if isinstance(listed, int) and 0 <= listed < len(names) else str(listed)
            if argument not in policies:
                message = (
                    f"{option} names {argument}, which is no parameter: Triton accepts it silently, and it does nothing"
                )
                yield Finding(
                    code="JA002", name="unknown-name-in-dns", message=message, kernel=kernel, argument=argument
                )
            elif policies[argument] == "constexpr":
                message = (
                    f"{argument} is a constexpr, so listing it in {option} has no effect on the key: every value is a "
                    "variant, and Triton refuses to compile each of them; drop it from the list"
                )
                yield Finding(code="JA001", name="constexpr-in-dns", message=message, kernel=kernel, argument=argument)
    for parameter in parameters:
        if parameter.use == "unread" and parameter.policy in ("constexpr", "specialized"):
            message = f"the body never reads {parameter.name}, and its class is in the key; drop it"
            yield Finding(code="JA003", name="unread-argument", message=message, kernel=kernel, argument=parameter.name)


def never_launched(loaded: Loaded, manifest: Manifest, uncounted: Set[str]) -> Iterator[Finding]:
    """JA006: the kernels of the target's own modules that no case launched or passed on, and no kernel calls.

    Those in `uncounted` were launched by cases that stopped.
    """
    launched = {kernel.id for kernel in manifest.kernels} | uncounted
    passed = {
        text for k in manifest.kernels for v in k.variants for text in v.key.arguments.values() if "function" in text
    }
    functions = {module: dict(identity.jit_functions(module)) for module in loaded.modules}
    called = {name for held in functions.values() for f in held.values() for name in identity.called_names(f)}
    for module, held in functions.items():
        for function in held.values():
            kernel = identity.kernel_id(function, loaded.root, loaded.files)
            if function.fn.__module__ != module.__name__ or kernel in launched or function.__name__ in called:
                continue
            launched.add(kernel)
            if not any(value_text(function, Opaque()) in text for text in passed):
                message = "no case of the sweeps launches it: its variants are not counted"
                yield Finding(code="JA006", name="never-launched", message=message, kernel=kernel)
