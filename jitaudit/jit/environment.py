"""What surrounds Triton here: versions, GPUs, the C compiler, the cache directory, the variables in its keys.

Read without importing torch or Triton, so it answers at once, and also where either of them is broken. The names and
defaults are those of Triton 3.6 to 3.9.
"""

from __future__ import annotations

import getpass
import os
import platform
import re
import shutil
import subprocess
import tempfile
from importlib.metadata import packages_distributions
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import msgspec

from jitaudit.errors import SetupError
from jitaudit.model import Environment

SUPPORTED_TRITON = ("3.6", "3.7", "3.8", "3.9")


class Package(msgspec.Struct, frozen=True):
    """An import package, as the files on disk have it."""

    version: str | None
    """None where it isn't installed."""
    distributions: tuple[str, ...]
    """What installed it; with more than one, the last one has overwritten files of the others."""


class CacheSetting(msgspec.Struct, frozen=True):
    """Where Triton's compiles go."""

    path: str
    """As Triton joins it: relative where the variable or the home directory is."""
    decided_by: Literal["TRITON_CACHE_DIR", "TRITON_HOME", "default"]
    manager: str | None
    """The class in ``TRITON_CACHE_MANAGER``, which replaces the directory by what it likes."""
    remote: str | None
    """The class in ``TRITON_REMOTE_CACHE_BACKEND``, which only Triton's RemoteCacheManager asks."""


class Compiler(msgspec.Struct, frozen=True):
    """The C compiler that Triton's host builds run."""

    command: str | None
    path: str | None
    """None where the command can't be run."""
    decided_by: Literal["CC", "PATH"]


def environment() -> Environment:
    """Where a manifest is made. Raises SetupError where Triton or torch is missing."""
    triton, torch = package("triton").version, package("torch").version
    if triton is None or torch is None:
        missing = "Triton" if triton is None else "torch"
        raise SetupError(f"{missing} is not installed; install jitaudit[triton], or {missing} for your GPU")
    return Environment(triton=triton, torch=torch, python=platform.python_version(), variables=variables(triton))


def package(name: Literal["triton", "torch"]) -> Package:
    """The version that ``import name`` would bring, whichever distribution it comes from."""
    try:
        spec = find_spec(name)
    except (ImportError, ValueError):
        spec = None
    if spec is None or spec.origin is None:
        return Package(version=None, distributions=())
    return Package(
        version=_written_version(Path(spec.origin)),
        distributions=tuple(sorted(set(packages_distributions().get(name, ())))),
    )


def is_supported(triton: str) -> bool:
    """Whether jitaudit knows this version of Triton."""
    return triton.startswith(tuple(f"{minor}." for minor in SUPPORTED_TRITON))


def variables(triton: str | None = None) -> dict[str, str | None]:
    """The environment variables that enter the disk hash of this Triton (else: of the newest known), None where unset.

    An unset variable and one set to 0 give different hashes.
    """
    release = tuple(int(part) for part in re.findall(r"\d+", triton)[:2]) if triton else _NEWEST
    return {name: os.environ.get(name) for name in sorted(_known(_LISTED, release) + _known(_THROUGH_OPTIONS, release))}


def cache_setting() -> CacheSetting:
    """The cache directory that a Triton process started here would use, and the variable that decides it."""
    manager, remote = os.environ.get("TRITON_CACHE_MANAGER"), os.environ.get("TRITON_REMOTE_CACHE_BACKEND")
    path = os.environ.get("TRITON_CACHE_DIR")
    if path is not None:
        return CacheSetting(path, "TRITON_CACHE_DIR", manager, remote)
    home = os.environ.get("TRITON_HOME")
    path = os.path.join(os.path.expanduser("~/") if home is None else home, ".triton", "cache")
    return CacheSetting(path, "default" if home is None else "TRITON_HOME", manager, remote)


def is_hashed_as_text(variable: str) -> bool:
    """Whether a variable's own text is in the disk hash; the others are there only through what they change."""
    return any(variable in names for names in _LISTED.values())


def inductor_directory() -> str:
    """Where Inductor keeps its cache. At a process's first graph it moves Triton's to ``triton/<device>`` below it,
    unless TRITON_CACHE_DIR is set."""
    if given := os.environ.get("TORCHINDUCTOR_CACHE_DIR"):
        return given
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a uid with no name, as containers have
        user = f"uid_{os.getuid()}"
    try:
        temporary = tempfile.gettempdir()
    except OSError:  # no directory here can be written
        temporary = "/tmp"
    return os.path.join(temporary, "torchinductor_" + re.sub(r'[\\/:*?"<>|]', "_", user))


def c_compiler() -> Compiler:
    """The compiler that Triton picks: ``CC`` whatever it says, else gcc, else clang."""
    if (command := os.environ.get("CC")) is not None:
        return Compiler(command, shutil.which(command), "CC")
    command = next((name for name in ("gcc", "clang") if shutil.which(name)), None)
    return Compiler(command, command and shutil.which(command), "PATH")


def gpus(root: Path = Path("/")) -> tuple[str, ...]:
    """The names of the GPUs here, from the kernel's files under ``root``; no driver library is loaded."""
    nvidia = (_field(file, "Model:") for file in sorted(root.glob("proc/driver/nvidia/gpus/*/information")))
    nodes = sorted(root.glob("sys/class/kfd/kfd/topology/nodes/*/properties"))
    amd = (_gfx(_field(file, "gfx_target_version")) for file in nodes)
    return tuple(name for name in (*nvidia, *amd) if name) or _nvidia_smi()


# By the Triton that brought them: those that libtriton itself reads for the hash, …
_LISTED: dict[tuple[int, ...], tuple[str, ...]] = {
    (3, 6): (
        "ALLOW_LHS_TMEM_LAYOUT_CONVERSION",
        "AMDGCN_ENABLE_DUMP",
        "AMDGCN_USE_BUFFER_ATOMICS",
        "AMDGCN_USE_BUFFER_OPS",
        "DISABLE_LLVM_OPT",
        "DISABLE_MMA_V3",
        "DISABLE_MMA_V5",
        "DISABLE_PTXAS_OPT",
        "LLVM_ENABLE_TIMING",
        "LLVM_EXTRACT_DI_LOCAL_VARIABLES",
        "LLVM_IR_ENABLE_DUMP",
        "LLVM_PASS_PLUGIN_PATH",
        "MLIR_DISABLE_MULTITHREADING",
        "MLIR_DUMP_PATH",
        "MLIR_ENABLE_DIAGNOSTICS",
        "MLIR_ENABLE_DUMP",
        "MLIR_ENABLE_TIMING",
        "NVPTX_ENABLE_DUMP",
        "TRITON_DEFAULT_FP_FUSION",
        "TRITON_DISABLE_LINE_INFO",
        "TRITON_DUMP_MIR",
        "TRITON_ENABLE_ASAN",
        "TRITON_ENABLE_EXPERIMENTAL_CONSAN",
        "TRITON_ENABLE_LLVM_DEBUG",
        "TRITON_F32_DEFAULT",
        "TRITON_HIP_USE_ASYNC_COPY",
        "TRITON_HIP_USE_BLOCK_PINGPONG",
        "TRITON_HIP_USE_IN_THREAD_TRANSPOSE",
        "TRITON_LLVM_DEBUG_ONLY",
        "TRITON_OVERRIDE_ARCH",
        "USE_IR_LOC",
    ),
    (3, 7): (
        "TRITON_PARTITION_SCHEDULING_DUMP_DATA_ONLY",
        "TRITON_PARTITION_SCHEDULING_DUMP_LOOP_ONLY",
        "TRITON_PARTITION_SCHEDULING_ENABLE_DUMP_DOT",
        "TRITON_PLUGIN_PATHS",
        "TRITON_PLUGIN_VERSION_CHECK",
    ),
    (3, 8): (
        "TRITON_CONSAN_INIT_ALLOCATIONS",
        "TRITON_HIP_USE_COEXEC_SCHEDULER",
        "TRITON_HIP_USE_EXPERT_SCHEDULING",
    ),
    (3, 9): ("TRITON_FORCE_DISABLE_FP_FUSION",),
}

# … and those that enter through the launch options and the backend's own hash.
_THROUGH_OPTIONS: dict[tuple[int, ...], tuple[str, ...]] = {
    (3, 6): (
        "PTXAS_OPTIONS",
        "TRITON_DEBUG",
        "TRITON_INSTRUMENTATION_MODE",
        "TRITON_LIBDEVICE_PATH",
        "TRITON_MOCK_PTX_VERSION",
        "TRITON_PTXAS_BLACKWELL_PATH",
        "TRITON_PTXAS_PATH",
    ),
    (3, 9): ("TRITON_AMD_CODEGEN_PATH", "TRITON_FPSAN_HOMOMORPHIC_CASTS"),
}

_NEWEST = max(_LISTED)


def _known(names: dict[tuple[int, ...], tuple[str, ...]], release: tuple[int, ...]) -> list[str]:
    return [name for since, added in names.items() if since <= release for name in added]


def _written_version(init: Path) -> str | None:
    """``__version__`` as torch's version.py, or else the package's ``__init__``, assigns it."""
    for file in (init.with_name("version.py"), init):
        try:
            text = file.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        if found := re.search(r"""^__version__\s*(?::.*?)?=\s*["'](.+?)["']""", text, re.MULTILINE):
            return found[1]
    return None


def _field(file: Path, name: str) -> str:
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    found = re.search(rf"^{re.escape(name)}\s+(.+)$", text, re.MULTILINE)
    return found[1].strip() if found else ""


def _gfx(version: str) -> str:
    """``90402`` → ``AMD gfx942``; nothing for a CPU, which has version 0."""
    number = int(version) if version.isdecimal() else 0
    return f"AMD gfx{number // 10000}{number // 100 % 100:x}{number % 100:x}" if number else ""


def _nvidia_smi() -> tuple[str, ...]:
    """Where /proc tells nothing (WSL, sandboxes). A driver that hangs must not hang the caller."""
    if (command := shutil.which("nvidia-smi")) is None:
        return ()
    try:
        query = (command, "--query-gpu=name", "--format=csv,noheader")
        answer = subprocess.run(query, capture_output=True, text=True, timeout=5, check=True)
    except (OSError, subprocess.SubprocessError):
        return ()
    return tuple(line.strip() for line in answer.stdout.splitlines() if line.strip())
