"""The command line: read, one verb, emit. The only package that prints or exits."""

from __future__ import annotations

import os
import sys

# The commands register themselves; the help shows their groups in the order of these imports.
from jitaudit.cli import see  # noqa: F401

# isort: split
from jitaudit.cli import judge  # noqa: F401

# isort: split
from jitaudit.cli import act  # noqa: F401

# isort: split
from jitaudit.cli.application import app
from jitaudit.cli.output import note
from jitaudit.errors import JitauditError

__all__ = ["app", "main"]


def main() -> None:
    """Run the command line. An error is one line on stderr and its exit code."""
    _open_closed_streams()
    try:
        app()
    except JitauditError as error:
        note(f"jitaudit: {error}")
        sys.exit(error.exit_code)
    except BrokenPipeError:  # the reader of our output has left
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)


def _open_closed_streams() -> None:
    """A service may start us without standard streams: what is opened next must not take their places."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) < 3:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)
