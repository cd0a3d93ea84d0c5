"""A target's own process: fresh, with private cache directories, asked one question in JSON."""

from __future__ import annotations

import faulthandler
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec

from jitaudit.errors import Interrupted, JitauditError, RequestError, error_of
from jitaudit.sweeping.relocating import Relocation

A = TypeVar("A")
R = TypeVar("R")

Progress = Callable[[str, int, int], object]
"""Called with a sweep's name, the cases done, and all of them."""

_PROGRESS_SECONDS = 0.1


class Place(msgspec.Struct, frozen=True):
    """Where a target's process runs: another interpreter, another folder, the code of another revision."""

    python: str = sys.executable
    folder: str | None = None
    """The working directory; None: this process's."""
    relocation: Relocation | None = None


HERE = Place()


def ask(
    module: str,
    request: msgspec.Struct,
    answer_type: type[A],
    name: str,
    progress: Progress,
    environment: Mapping[str, str] = MappingProxyType({}),
    place: Place = HERE,
) -> A:
    """Have `module.main` answer `request` in a process of its own, and return what it answers.

    `name` is what an error is about; `environment` comes after the private caches. Raises what the child raised, and
    RequestError where it died. An interrupt reaches the child too; what it still answers is returned.
    """
    with tempfile.TemporaryDirectory(prefix="jitaudit-") as private:
        reader, writer = os.pipe()
        child = subprocess.Popen(
            [place.python, "-c", f"{_DIE_SILENTLY}; from {module} import main; main({writer}, {private!r})"],
            stdin=subprocess.PIPE,
            stdout=sys.stderr.fileno() if _has_descriptor() else subprocess.DEVNULL,
            pass_fds=(writer,),
            env=_private_environment(Path(private), place) | dict(environment),
            cwd=place.folder,
        )
        os.close(writer)
        assert child.stdin is not None
        interrupted = False
        try:
            child.stdin.write(msgspec.json.encode(request))
            child.stdin.close()
            _relay(reader, progress)
            child.wait()
        except KeyboardInterrupt:
            interrupted = True
            child.wait(timeout=30)
        finally:
            child.kill()
            child.wait()
        interrupted |= child.returncode == -signal.SIGINT  # or only the child heard of it
        if interrupted and not any(Path(private, file).is_file() for file in (_ANSWER, _FAILURE)):
            raise Interrupted(f"{name}: interrupted")
        return _answer(Path(private), answer_type, name, child.returncode)


def serve(work: Callable[[R, Progress], msgspec.Struct], request_type: type[R], progress: int, private: str) -> None:
    """The child's side: read the request from standard input, do the work, leave the answer in `private`."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if sys.stderr is not None:
        faulthandler.enable()  # a launcher may take the process with it: where, stands on standard error
    request = msgspec.json.decode(sys.stdin.buffer.read(), type=request_type)
    sys.stdin.close()
    with os.fdopen(progress, "w", buffering=1) as messages:
        try:
            answer: msgspec.Struct = work(request, _Throttled(messages))
        except JitauditError as error:
            answer = Failure(error=str(error), exit_code=error.exit_code)
        except KeyboardInterrupt:
            answer = Failure(error="interrupted", exit_code=Interrupted.exit_code)
    name = _FAILURE if isinstance(answer, Failure) else _ANSWER
    Path(private, name).write_bytes(msgspec.json.encode(answer))


class Failure(msgspec.Struct, frozen=True):
    """The error that the child met."""

    error: str
    exit_code: int


_ANSWER, _FAILURE = "answer.json", "failure.json"


_DIE_SILENTLY = "import signal; signal.getsignal(2) is signal.default_int_handler and signal.signal(2, signal.SIG_DFL)"
"""What a child does with an interrupt (2) while it imports: no traceback tells a user anything then."""


class _Throttled:
    """Sends progress to the parent as ``sweep done cases`` lines, ten a second at most."""

    def __init__(self, messages: Any) -> None:
        self._messages = messages
        self._last = 0.0

    def __call__(self, sweep: str, done: int, cases: int) -> None:
        now = time.monotonic()
        if now - self._last >= _PROGRESS_SECONDS:
            self._last = now
            self._messages.write(f"{sweep} {done} {cases}\n")


def _relay(reader: int, progress: Progress) -> None:
    with os.fdopen(reader) as messages:
        for message in messages:
            sweep, done, cases = message.rstrip("\n").rsplit(" ", 2)
            progress(sweep, int(done), int(cases))


def _answer(private: Path, answer_type: type[A], name: str, code: int) -> A:
    if (private / _FAILURE).is_file():
        failure = msgspec.json.decode((private / _FAILURE).read_bytes(), type=Failure)
        raise error_of(failure.exit_code)(failure.error)
    if not (private / _ANSWER).is_file():
        raise RequestError(f"{name}: its process ended with code {code} and no answer; what it printed stands above")
    return msgspec.json.decode((private / _ANSWER).read_bytes(), type=answer_type)


_CACHES = {
    "TRITON_HOME": "", "TRITON_CACHE_DIR": "triton", "TORCHINDUCTOR_CACHE_DIR": "inductor", "XDG_CACHE_HOME": "cache",
    "TORCH_EXTENSIONS_DIR": "extensions",
}  # fmt: skip


def _private_environment(private: Path, place: Place) -> dict[str, str]:
    """The environment with HOME and every cache inside `private`; torch.compile runs eagerly."""
    home = private / "home"
    home.mkdir()
    environment = dict(os.environ)
    environment.setdefault("PYTHONUSERBASE", str(Path("~/.local").expanduser()))
    environment |= {name: str(home / folder) for name, folder in _CACHES.items()}
    environment |= {"HOME": str(home), "TORCHDYNAMO_DISABLE": "1"}
    if place.python != sys.executable:  # it finds jitaudit by itself; our site-packages must not come before its own
        return environment
    package = str(Path(__file__).parent.parent.parent)
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, (environment.get("PYTHONPATH"), package)))
    return environment


def _has_descriptor() -> bool:
    try:
        sys.stderr.fileno()
    except (OSError, AttributeError, ValueError):
        return False
    return True
