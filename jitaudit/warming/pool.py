"""Compiles in worker processes, forked from one that has already imported and hashed everything.

The parent must not have touched a GPU. A worker that dies or takes too long loses only the task that it was at.
"""

from __future__ import annotations

import contextlib
import gc
import os
import selectors
import signal
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import msgspec


class Outcome(msgspec.Struct, frozen=True):
    """What became of one task."""

    task: int
    seconds: float
    cpu_seconds: float = 0.0
    """What this process and the assembler used."""
    files: dict[str, str] = {}
    failure: str | None = None
    errno: int | None = None
    """Set where the file system failed, and not the compiler: a second try may do."""


Work = Callable[[int], Outcome]
"""Does a task in a worker. What it raises is a failure."""


def outcomes(work: Work, next_task: Callable[[], int | None], jobs: int, timeout: float) -> Iterator[Outcome]:
    """Run the tasks that `next_task` hands out until it says None, `jobs` at once; each outcome as it comes.

    A task that was at work for `timeout` seconds is a failure, and so is one whose worker died.
    """
    gc.collect()
    gc.freeze()  # what is shared with the workers stays shared
    workers: dict[int, _Worker] = {}
    try:
        with selectors.DefaultSelector() as selector:
            while True:
                _hand_out(work, next_task, jobs, workers, selector)
                busy = [worker for worker in workers.values() if worker.task is not None]
                if not busy:
                    return
                deadline = min(worker.started for worker in busy) + timeout
                for key, _ in selector.select(max(0.0, deadline - time.monotonic())):
                    worker = workers[key.fd]
                    if (outcome := worker.read()) is not None:
                        yield outcome
                    elif worker.ended:
                        selector.unregister(workers.pop(key.fd).reader)
                        how = worker.reap()
                        if worker.task is not None:
                            yield _lost(worker, f"the compiler died of {how}")
                now = time.monotonic()
                for worker in [one for one in busy if one.task is not None and now - one.started >= timeout]:
                    selector.unregister(workers.pop(worker.reader).reader)
                    worker.kill()
                    yield _lost(worker, f"took longer than the timeout of {timeout:g} s")
    finally:
        for worker in workers.values():
            worker.kill()
        gc.unfreeze()


@dataclass(eq=False)
class _Worker:
    """A forked process: task numbers go down one pipe, outcomes come up the other, a line each."""

    pid: int
    reader: int
    writer: int
    task: int | None = None
    started: float = 0.0
    ended: bool = False
    _received: bytearray = field(default_factory=bytearray)

    def give(self, task: int) -> None:
        self.task, self.started = task, time.monotonic()
        with contextlib.suppress(BrokenPipeError):  # it died idle; the end of its outcomes says so
            os.write(self.writer, b"%d\n" % task)

    def read(self) -> Outcome | None:
        """The outcome that is complete now, if one is."""
        data = os.read(self.reader, 1 << 16)
        self.ended = not data
        self._received += data
        if not self._received.endswith(b"\n"):
            return None
        outcome = msgspec.json.decode(self._received, type=Outcome)
        self._received.clear()
        self.task = None
        return outcome

    def reap(self) -> str:
        """How the process ended."""
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        self._close()
        return f"exit code {status}" if status >= 0 else f"signal {signal.Signals(-status).name}"

    def kill(self) -> None:
        """End the process and what it started (an assembler)."""
        os.killpg(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        self._close()

    def _close(self) -> None:
        os.close(self.reader)
        os.close(self.writer)


def _hand_out(
    work: Work,
    next_task: Callable[[], int | None],
    jobs: int,
    workers: dict[int, _Worker],
    selector: selectors.BaseSelector,
) -> None:
    idle = [worker for worker in workers.values() if worker.task is None]
    while idle or len(workers) < jobs:
        task = next_task()
        if task is None:
            return
        if idle:
            worker = idle.pop()
        else:
            worker = _fork(work, [w.writer for w in workers.values()])
            workers[worker.reader] = worker
            selector.register(worker.reader, selectors.EVENT_READ)
        worker.give(task)


def _lost(worker: _Worker, why: str) -> Outcome:
    assert worker.task is not None
    return Outcome(worker.task, time.monotonic() - worker.started, failure=why)


def _fork(work: Work, other_writers: list[int]) -> _Worker:
    task_reader, task_writer = os.pipe()
    outcome_reader, outcome_writer = os.pipe()
    pid = os.fork()
    if pid:
        os.setpgid(pid, pid)
        os.close(task_reader)
        os.close(outcome_writer)
        return _Worker(pid, outcome_reader, task_writer)
    try:
        for descriptor in (task_writer, outcome_reader, *other_writers):  # so that a pipe ends when the parent does
            os.close(descriptor)
        _serve(work, task_reader, outcome_writer)
    except BrokenPipeError:  # the parent is gone
        pass
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(0)


def _serve(work: Work, tasks: int, results: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    with os.fdopen(tasks) as lines, os.fdopen(results, "wb") as answers:
        for line in lines:
            answers.write(msgspec.json.encode(work(int(line))) + b"\n")
            answers.flush()
