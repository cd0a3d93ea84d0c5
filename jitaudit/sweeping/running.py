"""Run targets, each in a process of its own with private cache directories, into one manifest."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec

from jitaudit import manifest as manifests
from jitaudit.errors import JitauditError, RequestError, SetupError
from jitaudit.model import Manifest
from jitaudit.sweeping.targets import Target, read_target

Progress = Callable[[str, int, int], object]
"""Called with a sweep's name, the cases done, and all of them."""


class Narrowing(msgspec.Struct, frozen=True):
    """What of the targets' sweeps to run, and how."""

    axes: dict[str, str] = {}
    """Axis name → its values as text."""
    groups: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()
    """Globs over kernel ids."""
    compile: bool = False
    gpu: bool = False

    def of(self, manifest: Manifest) -> Manifest:
        """The manifest with only the groups and kernels that are wanted. Raises RequestError where one is unknown."""
        groups = {kernel.group for kernel in manifest.kernels if kernel.group is not None}
        _require_known("--group", self.groups, groups, "no kernel has it")
        kernels = [kernel for kernel in manifest.kernels if not self.groups or kernel.group in self.groups]
        for glob in self.kernels:
            if not any(_matches(kernel.id, glob) for kernel in kernels):
                known = ", ".join(sorted({kernel.id for kernel in kernels}))
                raise RequestError(f"--kernel {glob}: no kernel matches; there are {known or 'none'}")
        chosen = tuple(k for k in kernels if not self.kernels or any(_matches(k.id, glob) for glob in self.kernels))
        ids = {kernel.id for kernel in chosen}
        findings = tuple(f for f in manifest.findings if not self.kernels or f.kernel is None or f.kernel in ids)
        return msgspec.structs.replace(manifest, kernels=chosen, findings=findings)


class Request(msgspec.Struct, frozen=True):
    """What the child process is asked."""

    target: Target
    architecture: str
    narrowing: Narrowing
    result: str
    """The path to write the answer to."""


class Answer(msgspec.Struct, frozen=True):
    """What the child process found, or the error it met."""

    manifest: Manifest | None = None
    axes: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    error: str | None = None
    exit_code: int = 0


def run(
    targets: Sequence[str],
    architecture: str,
    narrowing: Narrowing,
    progress: Progress = lambda sweep, done, cases: None,
) -> Manifest:
    """Run the sweeps of `targets` for `architecture` (`cuda:90`) and return what they reach.

    Raises RequestError for what the request gets wrong and SetupError for what this machine lacks.
    """
    read = [read_target(text) for text in targets]
    answers = [_run_target(target, architecture, narrowing, progress) for target in read]
    _require_known(
        "--axis", narrowing.axes, {axis for answer in answers for axis in answer.axes}, "no sweep has this axis"
    )
    _require_known(
        "--group", narrowing.groups, {g for answer in answers for g in answer.groups}, "no sweep compares it"
    )
    united = manifests.union([answer.manifest for answer in answers if answer.manifest])
    return msgspec.structs.replace(narrowing, groups=()).of(united)


def _run_target(target: Target, architecture: str, narrowing: Narrowing, progress: Progress) -> Answer:
    with tempfile.TemporaryDirectory(prefix="jitaudit-") as private:
        result = Path(private, "answer.json")
        request = Request(target=target, architecture=architecture, narrowing=narrowing, result=str(result))
        reader, writer = os.pipe()
        child = subprocess.Popen(
            [sys.executable, "-c", f"from jitaudit.sweeping.child import main; main({writer})"],
            stdin=subprocess.PIPE,
            stdout=sys.stderr.fileno() if _has_descriptor() else subprocess.DEVNULL,
            pass_fds=(writer,),
            env=_private_environment(Path(private)),
        )
        os.close(writer)
        assert child.stdin is not None
        try:
            child.stdin.write(msgspec.json.encode(request))
            child.stdin.close()
            with os.fdopen(reader) as messages:
                for message in messages:
                    sweep, done, cases = message.rstrip("\n").rsplit(" ", 2)
                    progress(sweep, int(done), int(cases))
            child.wait()
        finally:
            child.kill()
            child.wait()
        if not result.is_file():
            raise RequestError(f"{target.text}: its process ended with code {child.returncode} and no answer")
        answer = msgspec.json.decode(result.read_bytes(), type=Answer)
    if answer.error is not None:
        raise _error(answer.exit_code, answer.error)
    return answer


def _error(exit_code: int, message: str) -> JitauditError:
    return SetupError(message) if exit_code == SetupError.exit_code else RequestError(message)


_CACHES = {
    "TRITON_HOME": "", "TRITON_CACHE_DIR": "triton", "TORCHINDUCTOR_CACHE_DIR": "inductor", "XDG_CACHE_HOME": "cache",
    "TORCH_EXTENSIONS_DIR": "extensions",
}  # fmt: skip


def _private_environment(private: Path) -> dict[str, str]:
    """The environment with HOME and every cache inside `private`; torch.compile runs eagerly."""
    home = private / "home"
    home.mkdir()
    environment = dict(os.environ)
    environment.setdefault("PYTHONUSERBASE", str(Path("~/.local").expanduser()))
    environment |= {name: str(home / folder) for name, folder in _CACHES.items()}
    environment |= {"HOME": str(home), "TORCHDYNAMO_DISABLE": "1"}
    package = str(Path(__file__).parent.parent.parent)
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, (environment.get("PYTHONPATH"), package)))
    return environment


def _has_descriptor() -> bool:
    try:
        sys.stderr.fileno()
    except (OSError, AttributeError, ValueError):
        return False
    return True


def _require_known(option: str, given: Sequence[str] | dict[str, str], known: set[str], wrong: str) -> None:
    for name in given:
        if name not in known:
            there = f"there are {', '.join(sorted(known))}" if known else "there are none"
            raise RequestError(f"{option} {name}: {wrong}; {there}")


def _matches(kernel: str, glob: str) -> bool:
    return fnmatchcase(kernel, glob) or fnmatchcase(kernel.rpartition(":")[2], glob)
