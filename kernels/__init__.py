"""The Triton kernels of one speculative-decoding round, each made in two policies from one source.

``baseline`` is how servers first wrote it; ``floored`` keeps the batch out of the key. Modules load on first use, so
that importing the package costs neither torch nor Triton.
"""

from __future__ import annotations

import importlib
from types import ModuleType

__all__ = [
    "blocks",
    "chain_accept",
    "compact_draft",
    "draft_seqlens",
    "draft_topk",
    "dsa_metadata",
    "mamba_replay",
    "policy",
    "round",
    "tree_build",
    "verify_commit",
    "vocab_shard",
]


def __getattr__(name: str) -> ModuleType:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(f"{__name__}.{name}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
