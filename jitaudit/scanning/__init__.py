"""scan: what a server's cache directory or its log tells of its kernels. Loads neither torch nor Triton."""

from jitaudit.scanning.pruning import Pruning, prune
from jitaudit.scanning.scans import Comparison, Scan, compare, scan

__all__ = ["Comparison", "Pruning", "Scan", "compare", "prune", "scan"]
