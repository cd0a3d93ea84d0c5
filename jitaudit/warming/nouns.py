"""What is asked of a warm run, and what it answers."""

from __future__ import annotations

import msgspec

from jitaudit.jit.marker import Launched, Winner
from jitaudit.model import Manifest, VariantKey
from jitaudit.planning import Cache, Sources, Unplanned


class Settings(msgspec.Struct, frozen=True):
    """How to warm."""

    jobs: int
    timeout: float = 600.0
    """Seconds for one variant."""
    budget: float | None = None
    """Seconds for all compiles together, from the first on."""
    generic: bool = False
    repair: bool = False
    gpu: bool = False
    """Afterwards launch the sweeps on the GPU that is here, so that autotuners measure and host builds are made."""


class Request(msgspec.Struct, frozen=True):
    """What the process that compiles is asked."""

    manifest: Manifest
    sources: Sources
    cache: Cache
    settings: Settings


class Tuned(msgspec.Struct, frozen=True):
    """What launching on a GPU added."""

    device: str
    winners: tuple[Winner, ...]
    raised: tuple[str, ...]
    """Cases whose launcher raised, a line each."""
    host_builds: int
    """What is still not built."""
    launched: tuple[Launched, ...] = ()


class Failed(msgspec.Struct, frozen=True):
    """A variant that did not compile."""

    kernel: str
    group: str | None
    key: VariantKey
    brief: str
    """What sets its key apart from the kernel's others."""
    reason: str


class Timed(msgspec.Struct, frozen=True):
    """A compile and its seconds."""

    kernel: str
    group: str | None
    key: VariantKey
    brief: str
    seconds: float


class Damage(msgspec.Struct, frozen=True):
    """An entry that Triton would take, or that is in its way, and that is not what it should be."""

    kernel: str
    file: str
    detail: str
    aside: str | None = None
    """Where it was set aside."""
    restored: bool = False
    """Whether it was compiled again; byte for byte what a marker lists, where `identical`."""
    identical: bool = False


class Warming(msgspec.Struct, frozen=True):
    """What a warm run did. Counts are of disk hashes: variants that share one are compiled once."""

    target: str
    cache: Cache
    variants: int
    """How many the manifest has, and `--generic` added."""
    compiled: int
    present: int
    failed: tuple[Failed, ...]
    left: tuple[Failed, ...]
    """What the budget or a failing directory left, with the reason."""
    unplanned: tuple[Unplanned, ...]
    damaged: tuple[Damage, ...]
    slowest: tuple[Timed, ...]
    start_seconds: float
    """Imports, and hashing the Triton installation."""
    look_seconds: float
    """Hashing the variants and looking at what is there."""
    compile_seconds: float
    """From the first compile to the last."""
    cpu_seconds: float
    """What the compiles used of the CPU, assembler and all: divided by the cores, the least that they could take."""
    marker: str | None
    """None where it could not be written."""
    stopped: str | None = None
    """Why the cache directory could not be used any longer."""
    unknown_winners: int = 0
    """Tuning keys whose winner only a GPU can tell; all their configs are compiled."""
    host_builds: int = 0
    """C launchers and utilities that the first launch on a GPU builds."""
    compiler: str | None = None
    """The C compiler that would build them; None where there is none."""
    tuned: Tuned | None = None
    """None without `--gpu`."""
    notes: tuple[str, ...] = ()
    uncounted: tuple[str, ...] = ()
    """Sweeps that reach more than was warmed, a line each."""

    @property
    def nothing_to_do(self) -> bool:
        """Whether everything was there and listed already."""
        return not (self.compiled or self.failed or self.left or self.unplanned or self.damaged)

    @property
    def complete(self) -> bool:
        """Whether all that the sweeps reach was counted and nothing failed; what the budget left did not."""
        raised = self.tuned.raised if self.tuned else ()
        unrestored = any(not damage.restored for damage in self.damaged)
        return not (self.failed or raised or self.unplanned or self.uncounted or unrestored)
