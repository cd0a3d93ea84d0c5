"""What `benchmarks.pools` has the fork server import: torch, Triton, the kernels, and the installation's hash."""

import pkgutil

import torch  # noqa: F401
from triton.runtime.cache import triton_key

import jitaudit_kernels

for module in pkgutil.walk_packages(jitaudit_kernels.__path__, "jitaudit_kernels."):
    __import__(module.name)
triton_key()
