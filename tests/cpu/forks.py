"""Run the processes of warm and check as forks of the test's own, which has imported torch and Triton already."""

from __future__ import annotations

import os
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec
import warm_kernels  # noqa: F401  so that no fork imports it again
from triton.runtime.cache import triton_key

from jitaudit.checking import Checked
from jitaudit.checking import nouns as checking
from jitaudit.checking.server import check_directory
from jitaudit.errors import JitauditError, RequestError, SetupError
from jitaudit.model import Manifest
from jitaudit.planning import Cache, Sources
from jitaudit.warming import Settings, Warming
from jitaudit.warming import nouns as warming
from jitaudit.warming.server import warm_directory

T = TypeVar("T", bound=msgspec.Struct)

triton_key()  # nor hashes the installation


def in_fork(work: Callable[[], T], answer: type[T], **environ: str) -> T:
    """What `work` returns in a fork of this process, under other variables; what it raises is raised here."""
    with tempfile.TemporaryDirectory() as private:
        result = Path(private, "answer")
        pid = os.fork()
        if pid == 0:
            _answer(work, result, environ, private)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if not result.is_file():
            raise ChildProcessError(f"ended with {status} and no answer")
        kind, data = msgspec.msgpack.decode(result.read_bytes())
    match kind:
        case "request":
            raise RequestError(data)
        case "setup":
            raise SetupError(data)
        case "bug":
            raise AssertionError(data)
    return msgspec.json.decode(data, type=answer)


def warm_here(manifest: Manifest, directory: Path, **settings: object) -> Warming:
    """What the process of `jitaudit warm` does, by two workers; for a fork."""
    chosen = msgspec.structs.replace(Settings(jobs=2), **settings)
    request = warming.Request(manifest, Sources(), Cache(str(directory), "test"), chosen)
    return warm_directory(request, lambda *progress: None)


def warmed(manifest: Manifest, directory: Path, environ: dict[str, str] | None = None, **settings: object) -> Warming:
    """`jitaudit warm` of a manifest."""
    return in_fork(lambda: warm_here(manifest, directory, **settings), Warming, **(environ or {}))


def checked(manifest: Manifest, directory: Path, **environ: str) -> Checked:
    """`jitaudit check` of a manifest."""
    request = checking.Request(manifest, Sources(), Cache(str(directory), "test"))
    return in_fork(lambda: check_directory(request, lambda *progress: None), Checked, **environ)


def _answer(work: Callable[[], msgspec.Struct], result: Path, environ: dict[str, str], private: str) -> None:
    try:
        os.environ.update(environ)
        tempfile.tempdir = private
        try:
            said: tuple[str, object] = ("answer", msgspec.json.encode(work()))
        except JitauditError as error:
            said = ("setup" if isinstance(error, SetupError) else "request", str(error))
        except BaseException:
            said = ("bug", traceback.format_exc())
        result.write_bytes(msgspec.msgpack.encode(said))
    finally:
        os._exit(0)
