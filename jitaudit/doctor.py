"""What is here, where the JIT caches really are, and what about them will hurt.

Only reads: nothing is created, no module of torch or Triton is loaded, no driver is started.
"""

from __future__ import annotations

import os
import platform
import re
import time
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec

from jitaudit.jit.environment import (
    SUPPORTED_TRITON,
    CacheSetting,
    Compiler,
    Package,
    c_compiler,
    cache_setting,
    gpus,
    inductor_directory,
    is_supported,
    package,
    variables,
)

COUNTING_SECONDS = 1.5
"""How long all caches together may be counted; what is left then is reported as a lower bound."""


class Usage(msgspec.Struct, frozen=True):
    """What a directory tree holds."""

    entries: int
    """Directories that hold a file; writers' leftovers (``tmp.pid_…``) are none."""
    bytes: int
    complete: bool
    """False where time ran out, or this user may not read all of it: then both counts are lower bounds."""


class TritonCache(msgspec.Struct, frozen=True):
    """The directory where Triton looks kernels up."""

    setting: CacheSetting
    file_system: str
    """The type as the kernel names it (``ext4``, ``nfs4``, ``overlay``); empty where it tells nothing."""
    mount_point: str
    obstacle: str | None
    """Why this user can't write there; None where they can."""
    usage: Usage | None
    """None where there is no such directory yet."""
    inductor_moves_to: str | None
    """Where Inductor's first compiled graph would move Triton's cache in its process; None where it would not."""


class JitCache(msgspec.Struct, frozen=True):
    """Another tool's cache of generated code."""

    tool: str
    path: str
    decided_by: str
    """The variable, or ``default``."""
    usage: Usage


class Caution(msgspec.Struct, frozen=True):
    """Something that will hurt, and the next step."""

    subject: str
    message: str
    remedy: str


class Diagnosis(msgspec.Struct, frozen=True):
    """All that `jitaudit doctor` says."""

    jitaudit: str | None
    """None where it runs from a checkout that isn't installed."""
    python: str
    triton: Package
    torch: Package
    gpus: tuple[str, ...]
    compiler: Compiler
    cache: TritonCache
    other_caches: tuple[JitCache, ...]
    variables: dict[str, str | None]
    """Those that enter Triton's disk hash; None where unset."""
    warnings: tuple[Caution, ...]


def diagnose(root: Path = Path("/"), counting_seconds: float = COUNTING_SECONDS) -> Diagnosis:
    """Look around. Never raises for what it finds. ``root`` holds the proc and sys that tell of mounts and GPUs."""
    deadline = time.monotonic() + counting_seconds
    triton, torch, compiler = package("triton"), package("torch"), c_compiler()
    cache = _triton_cache(root, deadline, has_torch=torch.version is not None)
    return Diagnosis(
        jitaudit=_own_version(),
        python=platform.python_version(),
        triton=triton,
        torch=torch,
        gpus=gpus(root),
        compiler=compiler,
        cache=cache,
        other_caches=tuple(_other_caches(deadline)),
        variables=variables(triton.version),
        warnings=(
            *_package_warnings(triton, torch),
            *_compiler_warnings(compiler),
            *_cache_warnings(cache),
            *_file_system_warnings(cache),
            *_switch_warnings(),
        ),
    )


def measure(directory: str, deadline: float) -> Usage | None:
    """Count what lies under a directory until ``deadline`` (of ``time.monotonic``); None where it is no directory.

    Symbolic links below it are not followed, and files that vanish meanwhile are left out.
    """
    if not os.path.isdir(directory):
        return None
    entries = size = 0
    complete = True
    pending = [directory]
    while pending:
        if time.monotonic() > deadline:
            return Usage(entries, size, complete=False)
        here = pending.pop()
        try:
            below, sizes = _listed(here)
        except FileNotFoundError:
            continue
        except OSError:
            complete = False
            continue
        pending += below
        size += sum(sizes)
        entries += bool(sizes) and not os.path.basename(here).startswith("tmp.pid_")
    return Usage(entries, size, complete)


def _own_version() -> str | None:
    try:
        return version("jitaudit")
    except PackageNotFoundError:
        return None


def _listed(directory: str) -> tuple[list[str], list[int]]:
    """The directories in a directory, and the sizes of its files."""
    directories, sizes = [], []
    with os.scandir(directory) as found:
        for item in found:
            if item.is_dir(follow_symlinks=False):
                directories.append(item.path)
                continue
            try:
                sizes.append(item.stat(follow_symlinks=False).st_size)
            except FileNotFoundError:
                continue
    return directories, sizes


def _triton_cache(root: Path, deadline: float, *, has_torch: bool) -> TritonCache:
    setting = cache_setting()
    standing = _nearest_existing(setting.path)
    mount_point, file_system = _mount_of(os.path.realpath(standing), root)
    moves = has_torch and setting.decided_by != "TRITON_CACHE_DIR"
    return TritonCache(
        setting=setting,
        file_system=file_system,
        mount_point=mount_point,
        obstacle=_obstacle(setting.path, standing),
        usage=measure(setting.path, deadline),
        inductor_moves_to=os.path.join(inductor_directory(), "triton", "<device>") if moves else None,
    )


def _nearest_existing(path: str) -> str:
    """The path itself, or the closest of its parents that this user can see."""
    path = os.path.abspath(path)
    while not os.path.lexists(path) and path != os.path.dirname(path):
        path = os.path.dirname(path)
    return path


def _obstacle(path: str, standing: str) -> str | None:
    if not path:
        return "the path is empty, and Triton refuses to compile"
    if not os.path.isdir(standing):
        return f"{standing} is not a directory"
    if not os.access(standing, os.W_OK | os.X_OK):
        return f"this user can't write in {standing}"
    return None


def _mount_of(path: str, root: Path) -> tuple[str, str]:
    """The mount point and file system type of a real path; of two mounts on one point the later one is seen."""
    best = ("", "")
    try:
        mounts = (root / "proc/mounts").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return best
    for line in mounts.splitlines():
        _, point, kind, *_ = line.split()
        point = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), point)
        if os.path.commonpath((point, path)) == point and len(point) >= len(best[0]):
            best = (point, kind)
    return best


def _other_caches(deadline: float) -> Iterator[JitCache]:
    home = os.path.expanduser("~")
    dot_cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(home, ".cache")
    for tool, variable, default, below in (
        ("Inductor", "TORCHINDUCTOR_CACHE_DIR", inductor_directory(), ""),
        ("vLLM", "VLLM_CACHE_ROOT", os.path.join(dot_cache, "vllm"), ""),
        ("FlashInfer", "FLASHINFER_WORKSPACE_BASE", home, os.path.join(".cache", "flashinfer")),
        ("DeepGEMM", "DG_JIT_CACHE_DIR", os.path.join(home, ".deep_gemm"), ""),
        ("TileLang", "TILELANG_CACHE_DIR", os.path.join(home, ".tilelang"), ""),
        ("torch extensions", "TORCH_EXTENSIONS_DIR", os.path.join(dot_cache, "torch_extensions"), ""),
    ):
        given = os.environ.get(variable)
        path = os.path.join(given or default, below).rstrip(os.sep)
        if usage := measure(path, deadline):
            yield JitCache(tool, path, variable if given else "default", usage)


def _package_warnings(triton: Package, torch: Package) -> Iterator[Caution]:
    known = f"{SUPPORTED_TRITON[0]} to {SUPPORTED_TRITON[-1]}"
    for subject, found in (("Triton", triton), ("torch", torch)):
        if found.version is None:
            yield Caution(subject, "not installed", f"install jitaudit[triton], or {subject} for your GPU")
        if len(found.distributions) > 1:
            yield Caution(
                subject,
                f"installed twice over one another: {', '.join(found.distributions)}",
                "uninstall all of them, then install the one for your GPU",
            )
    if triton.version is not None and not is_supported(triton.version):
        yield Caution("Triton", f"{triton.version} is not supported", f"jitaudit knows {known}")


def _compiler_warnings(compiler: Compiler) -> Iterator[Caution]:
    if compiler.path is None:
        what = f"CC={compiler.command} can't be run" if compiler.command is not None else "none found"
        yield Caution("C compiler", f"{what}: the first launch on a GPU fails", "install gcc, or set CC to a compiler")


def _cache_warnings(cache: TritonCache) -> Iterator[Caution]:
    if cache.obstacle:
        yield Caution("cache", f"can't be written: {cache.obstacle}", "set TRITON_CACHE_DIR to a directory that can")
    if cache.setting.path and not os.path.isabs(cache.setting.path):
        yield Caution(
            "cache", "a relative path: it moves with the working directory", "set TRITON_CACHE_DIR to an absolute path"
        )
    if cache.setting.manager:
        yield Caution(
            "cache",
            f"TRITON_CACHE_MANAGER={cache.setting.manager} replaces the directory",
            "unset it, unless the kernels are meant to live there",
        )


def _file_system_warnings(cache: TritonCache) -> Iterator[Caution]:
    kind = cache.file_system
    if kind in _NETWORK_FILE_SYSTEMS or kind.startswith("fuse."):
        harm = "each look-up is a round trip, and two writers can mix one entry's files"
        yield Caution("file system", harm, "set TRITON_CACHE_DIR to a directory on a local disk")
    if kind in _PASSING_FILE_SYSTEMS:
        harm = f"what is compiled is lost with the {_PASSING_FILE_SYSTEMS[kind]}"
        yield Caution("file system", harm, "set TRITON_CACHE_DIR to a directory on a volume")


def _switch_warnings() -> Iterator[Caution]:
    for name, effect in (
        ("TRITON_INTERPRET", "kernels are interpreted, nothing is compiled, and there is no key to count"),
        ("TRITON_ALWAYS_COMPILE", "every process compiles every variant again, whatever the cache holds"),
    ):
        if os.environ.get(name, "").lower() in ("1", "true", "yes", "on", "y"):
            yield Caution(name, effect, f"unset {name}")


_NETWORK_FILE_SYSTEMS = {
    *("nfs", "nfs3", "nfs4", "lustre", "gpfs", "beegfs", "ceph", "cifs", "smb3", "9p", "afs", "glusterfs", "wekafs")
}

_PASSING_FILE_SYSTEMS = {"overlay": "container", "tmpfs": "next restart"}
