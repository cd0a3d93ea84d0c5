"""Where stand-ins' storages are said to lie.

Each gets a base that is a multiple of 256 bytes, as CUDA's caching allocator gives, when it is first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

FIRST_ADDRESS = 0x7F00_0000_0000
_ALIGNMENT = 256

_next = FIRST_ADDRESS


def address(storage: torch.UntypedStorage) -> int:
    """The base of a stand-in's storage; 0 for an empty one, as in torch."""
    global _next
    if not storage.nbytes():
        return 0
    given: int | None = getattr(storage, "jitaudit_address", None)
    if given is None:
        given = _next
        vars(storage)["jitaudit_address"] = given
        _next += -(-storage.nbytes() // _ALIGNMENT) * _ALIGNMENT
    return given


def lies_in(number: int, storage: torch.UntypedStorage) -> bool:
    """Whether a number is an address inside a storage, if that was ever given out."""
    base: int | None = getattr(storage, "jitaudit_address", None)
    return base is not None and base <= number < base + storage.nbytes()
