"""Targets (`cuda:90`, `hip:gfx942`), and the device profile that answers for each when no GPU is there.

The numbers of a profile are what the vendor's runtime reports for the part named; bytes unless said otherwise.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jitaudit.errors import RequestError, SetupError

if TYPE_CHECKING:
    from triton.backends.compiler import GPUTarget

DEFAULT_TARGET = "cuda:90"


@dataclass(frozen=True)
class DeviceProfile:
    """What a device of the target says of itself. None: not known, so asking stops the case."""

    target: str
    warp_size: int
    capability: tuple[int, int]
    name: str | None = None
    multi_processor_count: int | None = None
    shared_memory_per_block: int | None = None
    shared_memory_per_block_optin: int | None = None
    shared_memory_per_multiprocessor: int | None = None
    regs_per_multiprocessor: int | None = None
    max_threads_per_multi_processor: int | None = None
    L2_cache_size: int | None = None
    total_memory: int | None = None
    gcnArchName: str | None = None

    @property
    def backend(self) -> str:
        """Triton's backend name: ``cuda`` or ``hip``."""
        return self.target.partition(":")[0]


_PROFILES = {
    profile.target: profile
    for profile in (
        DeviceProfile(
            target="cuda:80",
            warp_size=32,
            capability=(8, 0),
            name="NVIDIA A100-SXM4-80GB",
            multi_processor_count=108,
            shared_memory_per_block=49152,
            shared_memory_per_block_optin=166912,
            shared_memory_per_multiprocessor=167936,
            regs_per_multiprocessor=65536,
            max_threads_per_multi_processor=2048,
            L2_cache_size=41943040,
            total_memory=85095874560,
        ),
        DeviceProfile(
            target="cuda:90",
            warp_size=32,
            capability=(9, 0),
            name="NVIDIA H200",
            multi_processor_count=132,
            shared_memory_per_block=49152,
            shared_memory_per_block_optin=232448,
            shared_memory_per_multiprocessor=233472,
            regs_per_multiprocessor=65536,
            max_threads_per_multi_processor=2048,
            L2_cache_size=62914560,
            total_memory=150110011392,
        ),
        DeviceProfile(
            target="cuda:100",
            warp_size=32,
            capability=(10, 0),
            name="NVIDIA B200",
            multi_processor_count=148,
            shared_memory_per_block=49152,
            shared_memory_per_block_optin=232448,
            shared_memory_per_multiprocessor=233472,
            regs_per_multiprocessor=65536,
            max_threads_per_multi_processor=2048,
            L2_cache_size=132644864,
            total_memory=191503007744,
        ),
        DeviceProfile(
            target="cuda:120",
            warp_size=32,
            capability=(12, 0),
            name="NVIDIA GeForce RTX 5090",
            multi_processor_count=170,
            shared_memory_per_block=49152,
            shared_memory_per_block_optin=101376,
            shared_memory_per_multiprocessor=102400,
            regs_per_multiprocessor=65536,
            max_threads_per_multi_processor=1536,
            L2_cache_size=100663296,
            total_memory=33667743744,
        ),
        DeviceProfile(
            target="hip:gfx942",
            warp_size=64,
            capability=(9, 4),
            name="AMD Instinct MI300X",
            multi_processor_count=304,
            shared_memory_per_block=65536,
            shared_memory_per_block_optin=65536,
            shared_memory_per_multiprocessor=65536,
            regs_per_multiprocessor=65536,
            max_threads_per_multi_processor=2048,
            L2_cache_size=4194304,
            total_memory=206141652992,
            gcnArchName="gfx942:sramecc+:xnack-",
        ),
        DeviceProfile(
            target="hip:gfx950",
            warp_size=64,
            capability=(9, 5),
            name="AMD Instinct MI355X",
            multi_processor_count=256,
            shared_memory_per_block=163840,
            shared_memory_per_block_optin=163840,
            shared_memory_per_multiprocessor=163840,
            regs_per_multiprocessor=131072,
            max_threads_per_multi_processor=2048,
            L2_cache_size=4194304,
            total_memory=309220868096,
            gcnArchName="gfx950:sramecc+:xnack-",
        ),
    )
}


def device_profile(target: str) -> DeviceProfile:
    """The profile of `target`; for an architecture without one of its own, a generic one that knows little.

    Raises RequestError when `target` is no target at all.
    """
    if target in _PROFILES:
        return _PROFILES[target]
    if match := re.fullmatch(r"cuda:(\d{2,3})", target):
        major, minor = divmod(int(match[1]), 10)
        return DeviceProfile(target=target, warp_size=32, capability=(major, minor))
    if match := re.fullmatch(r"hip:gfx(\d{1,2})(\d)[0-9a-f]", target):
        return DeviceProfile(
            target=target,
            warp_size=64 if match[1] == "9" else 32,
            capability=(int(match[1]), int(match[2])),
            gcnArchName=target.partition(":")[2],
        )
    known = ", ".join(_PROFILES)
    raise RequestError(f"--target {target}: not a target; write cuda:ARCH or hip:ARCH, such as {known}")


def gpu_target(target: str) -> GPUTarget:
    """Triton's own `GPUTarget` for `target`."""
    from triton.backends.compiler import GPUTarget

    profile = device_profile(target)
    arch = target.partition(":")[2]
    return GPUTarget(profile.backend, int(arch) if profile.backend == "cuda" else arch, profile.warp_size)


def require_target(target: str) -> None:
    """Raise SetupError unless the installed Triton compiles for `target`.

    An architecture without a profile is tried by compiling an empty kernel, since only the bundled assembler knows.
    """
    from triton.backends import backends

    profile = device_profile(target)
    wanted = "nvidia" if profile.backend == "cuda" else "amd"
    if wanted not in backends:
        raise SetupError(f"--target {target}: this Triton has no {wanted} backend; it has {', '.join(backends)}")
    if target not in _PROFILES:
        _try_compile(target)


@contextmanager
def _quiet_stderr() -> Iterator[None]:
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _try_compile(target: str) -> None:
    import tempfile
    from pathlib import Path

    import triton
    from triton.compiler import ASTSource
    from triton.runtime.driver import driver as active

    from jitaudit.jit.driver import offline_driver

    def jitaudit_empty() -> None:
        pass

    knobs, previous = triton.knobs, active._active
    with tempfile.TemporaryDirectory() as cache, knobs.cache.scope():
        knobs.cache.dir = str(Path(cache))
        active.set_active(offline_driver(target))
        try:
            source = ASTSource(triton.jit(jitaudit_empty), signature={})
            # The compilers print pages about an architecture that they don't know.
            with _quiet_stderr(), redirect_stdout(io.StringIO()):
                triton.compile(source, target=gpu_target(target))
        except Exception as error:  # whatever the toolchain raises means that it can't
            lines = str(error).strip().splitlines() or [type(error).__name__]
            reason = next((line for line in lines if "fatal" in line), lines[0])
            raise SetupError(f"--target {target}: this Triton can't compile for it: {reason}") from error
        finally:
            active._active = previous
