"""One kernel source, two policies; and which of them a launch takes.

An explicit ``policy=`` wins over ``JITAUDIT_POLICY_<MODULE>``, which wins over ``JITAUDIT_POLICY``; else ``floored``.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from jitaudit.jit.respecialize import respecialize

from .blocks import floored_block, next_power_of_2

if TYPE_CHECKING:
    from triton.runtime.jit import JITFunction

PolicyName = Literal["baseline", "floored"]

POLICIES: tuple[PolicyName, ...] = ("baseline", "floored")


@dataclass(frozen=True)
class Policy:
    """What the JIT is told about parameters, by name, on top of the annotations in the source."""

    constexpr: tuple[str, ...] = ()
    do_not_specialize: tuple[str, ...] = ()
    do_not_specialize_on_alignment: tuple[str, ...] = ()


@dataclass(frozen=True)
class PolicyKernel:
    """One kernel as two ``JITFunction``\\ s; index it with a policy's name to launch."""

    baseline: JITFunction[Callable[..., None]]
    floored: JITFunction[Callable[..., None]]

    def __getitem__(self, policy: PolicyName) -> JITFunction[Callable[..., None]]:
        return self.floored if policy == "floored" else self.baseline


def policies(
    *, baseline: Policy = Policy(), floored: Policy = Policy()
) -> Callable[[Callable[..., None]], PolicyKernel]:
    """Decorate a kernel's source function to make it once for each policy."""

    def make(source: Callable[..., None], policy: Policy) -> JITFunction[Callable[..., None]]:
        return respecialize(
            source,
            constexpr=policy.constexpr,
            do_not_specialize=policy.do_not_specialize,
            do_not_specialize_on_alignment=policy.do_not_specialize_on_alignment,
        )

    return lambda source: PolicyKernel(make(source, baseline), make(source, floored))


def resolve_policy(policy: PolicyName | None, module: str) -> PolicyName:
    """The policy of one launch of ``module``'s kernels (its name, such as ``dsa_metadata``).

    Raises ``ValueError`` naming the argument or the variable that holds an unknown one.
    """
    if policy is not None:
        return _known(policy, "policy")
    for variable in (f"JITAUDIT_POLICY_{module.upper()}", "JITAUDIT_POLICY"):
        if value := os.environ.get(variable):
            return _known(value, variable)
    return "floored"


def batch_block(n: int, floor: int, policy: PolicyName) -> int:
    """The block over an axis of ``n`` elements that grows with the batch."""
    return floored_block(n, floor) if policy == "floored" else next_power_of_2(n)


def _known(value: str, source: str) -> PolicyName:
    for policy in POLICIES:
        if value == policy:
            return policy
    raise ValueError(f"{source} must be one of {', '.join(POLICIES)}, got {value!r}")
