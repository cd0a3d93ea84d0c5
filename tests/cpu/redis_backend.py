"""Triton's Redis backend, which looks for its settings where Triton 3.6 to 3.9 do not keep them."""

from __future__ import annotations

from triton import knobs
from triton.runtime.cache import RedisRemoteCacheBackend


class Backend(RedisRemoteCacheBackend):
    def __init__(self, key: str) -> None:
        knobs.cache.redis = knobs.redis
        super().__init__(key)
