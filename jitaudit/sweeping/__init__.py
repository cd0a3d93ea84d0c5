"""From launchers to a manifest: sweeps, targets, and the one way to run them."""

from jitaudit.sweeping.axes import Sweep, ints, sweep
from jitaudit.sweeping.process import Progress
from jitaudit.sweeping.running import Narrowing, run

__all__ = ["Narrowing", "Progress", "Sweep", "ints", "run", "sweep"]
