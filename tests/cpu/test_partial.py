"""What was not counted can't be warm: check and warm say so, as probe does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SWEEPS = """
import torch, triton, triton.language as tl, jitaudit

@triton.jit
def fill_kernel(out_ptr, n):
    tl.store(out_ptr, n)

@jitaudit.sweep(n=[1, 2, 16])
def raises_at_two(n):
    if n == 2:
        raise ValueError("no two")
    fill_kernel[(1,)](torch.empty(1, device="cuda"), n)

@jitaudit.sweep(n=[1])
def launches_nothing(n):
    pass

@jitaudit.sweep(n=[1])
def whole(n):
    fill_kernel[(1,)](torch.empty(1, device="cuda"), n)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("partial")
    (path / "sweeps.py").write_text(SWEEPS)
    return path


def run(folder: Path, *arguments: str) -> tuple[int, str]:
    command = [sys.executable, "-c", "from jitaudit.cli import main; main()", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("sweep", "line"),
    [
        ("raises_at_two", "PARTIAL  sweeps.py:raises_at_two: 2 of 3 cases were counted"),
        ("launches_nothing", "PARTIAL  sweeps.py:launches_nothing launched nothing"),
    ],
)
def test_warm_and_check_say_what_was_not_counted(folder: Path, sweep: str, line: str) -> None:
    for command in ("warm", "check"):
        code, said = run(folder, command, f"sweeps.py::{sweep}", "--cache-dir", sweep)
        assert code == 1
        assert line in said
    assert said.startswith("PARTIAL")


def test_a_target_beside_a_manifest_for_another(folder: Path) -> None:
    run(folder, "probe", "sweeps.py::whole", "-o", "m.json", "--force")
    code, said = run(folder, "check", "m.json", "--sweeps", "sweeps.py", "--target", "cuda:80")
    assert (code, "m.json is for cuda:90: no --target cuda:80 beside it" in said) == (2, True)


def test_cache_directories_that_are_none(folder: Path) -> None:
    code, said = run(folder, "warm", "sweeps.py::whole", "--cache-dir", "")
    assert (code, "it is empty" in said) == (2, True)
    code, said = run(folder, "check", "sweeps.py::whole", "--cache-dir", "sweeps.py")
    assert (code, "--cache-dir sweeps.py is no directory" in said) == (3, True)


def test_two_results_in_one_file(folder: Path) -> None:
    code, said = run(folder, "stall", "sweeps.py::whole", "--trace", "one.json", "-o", "one.json")
    assert (code, "--output and --trace are both one.json" in said) == (2, True)
    assert not (folder / "one.json").exists()


def test_an_interrupt_while_it_starts(folder: Path) -> None:
    command = [sys.executable, "-c", "from jitaudit.cli import main; main()", "warm", "sweeps.py::whole"]
    child = subprocess.Popen(
        [*command, "--cache-dir", "early"], cwd=folder, start_new_session=True, stderr=subprocess.PIPE, text=True
    )
    time.sleep(1)
    os.killpg(child.pid, signal.SIGINT)
    said = child.communicate()[1]
    assert child.returncode in (130, -signal.SIGINT)  # the second before Python itself listens
    assert "jitaudit: its process" not in said
    assert not (folder / "early" / "jitaudit").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["warm", "."], ".: a directory is no target"),
        (["check", "/etc"], "/etc: a directory is no target"),
        (["stall", "m.json"], "m.json: a manifest is no target here"),
    ],
)
def test_targets_that_are_none(folder: Path, arguments: list[str], words: str) -> None:
    code, said = run(folder, *arguments)
    assert (code, words in said) == (2, True)


@pytest.mark.parametrize("closed", ["<&-", "2>&-", ">&-", "<&- >&- 2>&-"])
def test_standard_streams_that_are_closed(folder: Path, closed: str) -> None:
    """As a service or cron may start it: what is opened instead must not take their places."""
    command = f"{sys.executable} -c 'from jitaudit.cli import main; main()' probe sweeps.py::whole -o m.json --force"
    done = subprocess.run(["sh", "-c", f"{command} {closed}"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert ("fill_kernel" in done.stdout) is (" >&-" not in closed and closed != ">&-")
    assert '"fill_kernel"' in (folder / "m.json").read_text()
    (folder / "m.json").unlink()
