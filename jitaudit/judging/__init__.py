"""Judgement: why a kernel has its variants, how they grow, and what a reader should know. Pure over a manifest."""

from jitaudit.judging.findings import judge
from jitaudit.judging.reach import Reach, count

__all__ = ["Reach", "count", "judge"]
