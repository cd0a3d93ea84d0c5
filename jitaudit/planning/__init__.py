"""From a manifest to what Triton would look up: each variant's disk hash here, or why it has none.

Kernels are found by importing their modules, so it runs in a process of its own (`sweeping.process`). A manifest is
data: it names installed modules, never files. A file is loaded only when the user gives it.
"""

from jitaudit.planning.kernels import find_kernels, forget_working_directory, use_cache
from jitaudit.planning.nouns import Cache, Plan, Planned, Sources, Unplanned, Untuned
from jitaudit.planning.plans import brief, plan, survey
from jitaudit.planning.requests import NO_THREADS, cache_here, uncounted, wanted
from jitaudit.planning.tuned import surviving, tuners_of, untuned

__all__ = [
    "NO_THREADS",
    "Cache",
    "Plan",
    "Planned",
    "Sources",
    "Unplanned",
    "Untuned",
    "brief",
    "cache_here",
    "find_kernels",
    "forget_working_directory",
    "plan",
    "survey",
    "surviving",
    "tuners_of",
    "uncounted",
    "untuned",
    "use_cache",
    "wanted",
]
