"""What is read from a file, and what only helps, costs no import of torch or Triton."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hand_made import manifest_of

from jitaudit.manifest import write

HEAVY = ("torch", "triton", "numpy")


def imported_by(code: str) -> set[str]:
    """The heavy packages that a fresh process has imported once `code` has run; `code` may exit."""
    script = (
        "import atexit, json, sys\n"
        f"atexit.register(lambda: print('\\n' + json.dumps([n for n in {HEAVY!r} if n in sys.modules])))\n{code}"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


def command(*arguments: str) -> str:
    return f"sys.argv = {['jitaudit', *arguments]!r}\nfrom jitaudit.cli import main\nmain()"


def test_the_check_sees_an_import():
    assert "torch" in imported_by("import torch")


@pytest.mark.parametrize("module", ["jitaudit", "jitaudit.cli", "jitaudit.sweeping", "jitaudit.judging"])
def test_importing(module: str):
    assert imported_by(f"import {module}") == set()


def test_making_a_sweep():
    code = "import jitaudit\n@jitaudit.sweep(bs=jitaudit.ints(1, 4))\ndef sweep(bs): ..."
    assert imported_by(code) == set()


@pytest.mark.parametrize("arguments", [["--help"], ["probe", "--help"], ["doctor", "--help"]])
def test_help(arguments: list[str]):
    assert imported_by(command(*arguments)) == set()


def test_probing_a_manifest(tmp_path: Path):
    write(manifest_of({"i32 any": {(0, 0)}}), tmp_path / "m.json")
    assert imported_by(command("probe", str(tmp_path / "m.json"))) == set()
