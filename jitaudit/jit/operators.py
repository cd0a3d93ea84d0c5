"""Operators whose CUDA implementation is in Python: custom ones, and those of torch that a library replaced."""

from __future__ import annotations

from typing import Any

_TORCH_NAMESPACES = {
    "aten", "prims", "prim", "profiler", "inductor", "_c10d_functional", "c10d", "debugprims", "rngprims",
}  # fmt: skip


def implementation(func: Any) -> Any:
    """The key of an operator's own implementation in Python, which a meta tensor would not reach.

    A custom operator has one, and so has an operator of torch whose CUDA implementation a library replaced.
    """
    import torch

    if func.namespace in _TORCH_NAMESPACES:
        replaced = f"{func.namespace}/{func.name().partition('::')[2]}/CUDA" in torch.library._impls
        return torch._C.DispatchKey.CUDA if replaced else None
    for name in ("CUDA", "CompositeExplicitAutograd"):
        if torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), name):
            return getattr(torch._C.DispatchKey, name)
    return None


def patches() -> list[tuple[Any, str, Any]]:
    """Have what a library registers for CUDA reached by stand-ins where torch would go another way for meta tensors.

    So with an operator that torch decomposes unless its backend has it, and with autograd's part of any operator.
    """
    import torch

    library: Any = torch.library.Library
    true_impl = library.impl

    def impl(self: Any, op_name: Any, fn: Any, dispatch_key: str = "", **options: Any) -> None:
        true_impl(self, op_name, fn, dispatch_key, **options)
        name = op_name if isinstance(op_name, str) else op_name.name()
        name = name if "::" in name else f"{self.ns}::{name}"
        match dispatch_key or self.dispatch_key:
            case "AutogradCUDA":
                self.m.impl(name, "AutogradMeta", fn, options.get("with_keyset", False))
            case "CUDA" if torch._C._dispatch_has_kernel_for_dispatch_key(name, "CompositeImplicitAutograd"):
                self.m.impl(name, "Meta", _decomposed(name), False)

    return [(library, "impl", impl)]


def _decomposed(name: str) -> Any:
    """What torch does with the operator anyway: only its own implementations on meta come this far."""

    def decompose(*args: Any, **kwargs: Any) -> Any:
        return _overload(name).decompose(*args, **kwargs)

    return decompose


def _overload(name: str) -> Any:
    import torch

    space, _, rest = name.partition("::")
    operator, _, overload = rest.partition(".")
    return getattr(getattr(getattr(torch.ops, space), operator), overload or "default")
