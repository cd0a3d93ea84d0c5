"""warm: compile a manifest's variants ahead of serving, into a cache directory or into this process."""

from jitaudit.warming.inside import Warmth, warm
from jitaudit.warming.nouns import Settings, Warming
from jitaudit.warming.running import warm_cache

__all__ = ["Settings", "Warming", "Warmth", "warm", "warm_cache"]
