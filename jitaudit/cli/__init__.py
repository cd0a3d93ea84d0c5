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
    try:
        app()
    except JitauditError as error:
        note(f"jitaudit: {error}")
        sys.exit(error.exit_code)
    except BrokenPipeError:  # the reader of our output has left
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
