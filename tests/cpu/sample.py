"""The sample repository: a copy of it to edit, and jitaudit's command line run in it."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from jitaudit.cli import main

SAMPLE = Path(__file__).parents[1] / "samples" / "rowscale"


class Answer(NamedTuple):
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str


class Edit(NamedTuple):
    """A replacement of text in a file of the sample."""

    file: str
    old: str
    new: str


ROWS_CONSTEXPR = Edit("rowscale/kernels.py", "    rows,\n    columns,", "    rows: tl.constexpr,\n    columns,")


def copied(folder: Path, *edits: Edit) -> Path:
    """A copy of the sample in `folder`, edited."""
    shutil.copytree(SAMPLE, folder, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
    for edit in edits:
        apply(folder, edit)
    return folder


def apply(folder: Path, edit: Edit) -> None:
    """Edit one file of a copy; the text must be there."""
    file = folder / edit.file
    text = file.read_text()
    assert edit.old in text, f"{edit.old!r} is not in {edit.file}"
    file.write_text(text.replace(edit.old, edit.new, 1))


def jitaudit(folder: Path, *arguments: str, **environment: str) -> Answer:
    """Run the command line in a folder."""
    return run(folder, sys.executable, "-c", "from jitaudit.cli import main; main()", *arguments, **environment)


def jitaudit_here(folder: Path, *arguments: str) -> Answer:
    """The same in this process: for what is refused before anything is run."""
    out, err = io.StringIO(), io.StringIO()
    with chdir(folder), redirect_stdout(out), redirect_stderr(err), patch.object(sys, "argv", ["jitaudit", *arguments]):
        try:
            main()
        except SystemExit as stop:
            return Answer(int(stop.code or 0), out.getvalue(), err.getvalue())
    raise AssertionError("a command exits")


def run(folder: Path, *command: str, **environment: str) -> Answer:
    """Run a command in a folder, with jitaudit's own variables cleared."""
    inherited = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "PYTEST_ADDOPTS")}
    answer = subprocess.run(
        command, cwd=folder, env=inherited | environment, capture_output=True, text=True, check=False
    )
    return Answer(answer.returncode, answer.stdout, answer.stderr)


def git(folder: Path, *arguments: str) -> str:
    """Run git in a folder, as someone."""
    someone = ("-c", "user.name=someone", "-c", "user.email=someone@example.com", "-c", "commit.gpgsign=false")
    answer = run(folder, "git", *someone, *arguments)
    assert answer.code == 0, answer.err
    return answer.out.strip()


def committed(folder: Path) -> Path:
    """Make a folder a git repository with one commit, on the branch main."""
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message=base")
    return folder
