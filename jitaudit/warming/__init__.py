"""warm: compile a manifest's variants ahead of serving."""

from jitaudit.warming.nouns import Settings, Warming
from jitaudit.warming.running import warm_cache

__all__ = ["Settings", "Warming", "warm_cache"]
