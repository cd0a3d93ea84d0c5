"""Work in a fork of this process: what it changes in memory, and in a folder that is put back, is gone afterwards."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec

from jitaudit.errors import Interrupted, JitauditError, RequestError, error_of

A = TypeVar("A")


class Died(RequestError):
    """The fork ended without an answer; `how` it did, in words."""

    def __init__(self, name: str, code: int) -> None:
        self.how = f"died of {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        super().__init__(f"{name}: its process {self.how} and gave no answer; what it printed stands above")


def in_fork(work: Callable[[], msgspec.Struct], answer_type: type[A], name: str) -> A:
    """What `work` answers. Raises what it raises of jitaudit's errors, and Died naming `name` where it dies."""
    reader, writer = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _revive_executors()
        _answer_and_exit(work, writer)
    os.close(writer)
    with os.fdopen(reader, "rb") as messages:
        data = messages.read()
    _, status = os.waitpid(child, 0)
    if not data:
        raise Died(name, os.waitstatus_to_exitcode(status))
    if data[:1] == _ERROR:
        code, message = msgspec.json.decode(data[1:], type=tuple[int, str])
        raise error_of(code)(message)
    return msgspec.json.decode(data[1:], type=answer_type)


_ERROR, _ANSWER = b"E", b"A"


def _answer_and_exit(work: Callable[[], msgspec.Struct], writer: int) -> None:
    try:
        with os.fdopen(writer, "wb") as messages:
            try:
                messages.write(_ANSWER + msgspec.json.encode(work()))
            except JitauditError as error:
                messages.write(_ERROR + msgspec.json.encode((error.exit_code, str(error))))
            except KeyboardInterrupt:
                messages.write(_ERROR + msgspec.json.encode((Interrupted.exit_code, "interrupted")))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def _revive_executors() -> None:
    """Have the thread pools that were there before the fork start new threads: theirs are not in this process."""
    pools = sys.modules.get("concurrent.futures.thread")
    for pool in gc.get_objects() if pools is not None and len(pools._threads_queues) else ():
        if isinstance(pool, pools.ThreadPoolExecutor):  # type: ignore[union-attr]
            pool._threads, pool._idle_semaphore = set(), threading.Semaphore(0)


class KeptFolder:
    """A folder as it is now. Files are put back in place, since this process may hold them open."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._files = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
        self._folders = {path for path in root.rglob("*") if path.is_dir()}

    def put_back(self) -> None:
        """Undo what was made, changed and removed since."""
        for path in list(self._root.rglob("*")):
            if path.is_dir() and path not in self._folders:
                shutil.rmtree(path)
            elif path.is_file() and path not in self._files:
                path.unlink()
        for path, content in self._files.items():
            if not path.is_file() or path.read_bytes() != content:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
