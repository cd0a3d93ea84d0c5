"""What the command line prints: data on stdout, progress and notes on stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from jitaudit.errors import RequestError
from jitaudit.sweeping import Progress as Report


def axis_texts(texts: list[str] | None) -> dict[str, str]:
    axes = {}
    for text in texts or ():
        name, equals, values = text.partition("=")
        if not (name and equals):
            raise RequestError(f"--axis {text}: write NAME=VALUES, such as bs=1..64")
        axes[name] = values
    return axes


def emit(result: msgspec.Struct | RenderableType) -> None:
    """Data on stdout: a noun as JSON, a string as it is, anything else as rich renders it."""
    if isinstance(result, msgspec.Struct):
        sys.stdout.write(as_json(result).decode())
    elif isinstance(result, str):
        sys.stdout.write(result)
    else:
        piped = not sys.stdout.isatty()
        Console(file=sys.stdout, width=160 if piped and "COLUMNS" not in os.environ else None).print(result)


def write_result(path: Path, data: bytes) -> None:
    """Write what took long to make. Raises RequestError where that can't be."""
    try:
        path.write_bytes(data)
    except OSError as error:
        raise RequestError(f"{path}: can't be written: {error.strerror or error}") from None


def as_json(noun: msgspec.Struct) -> bytes:
    return msgspec.json.format(msgspec.json.encode(noun), indent=2) + b"\n"


def note(line: str) -> None:
    print(line, file=sys.stderr)


@contextmanager
def progress_bar() -> Iterator[Report]:
    """A progress bar on stderr for sweeps that take over a second; nothing where stderr is no terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        tasks: dict[str, TaskID] = {}

        def show(sweep: str, done: int, cases: int) -> None:
            if sweep not in tasks:
                tasks[sweep] = bar.add_task(sweep, total=cases)
            bar.update(tasks[sweep], completed=done)

        yield show
