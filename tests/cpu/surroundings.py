"""What the tests of the doctor set up around it, and how they read it."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from rich.console import Console

from jitaudit.doctor import Diagnosis
from jitaudit.report.doctor import text

REPOSITORY = Path(__file__).parents[2]


def empty_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home directory, a C compiler, and none of the variables that this machine may have set."""
    for name in os.environ:
        if name.startswith(("TRITON_", "TORCH", "VLLM_", "FLASHINFER_", "DG_", "TILELANG_", "XDG_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("CC", "/bin/sh")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def subjects(diagnosis: Diagnosis) -> list[str]:
    """What is warned of, but for the file system: the one that the tests run on is no matter."""
    return [caution.subject for caution in diagnosis.warnings if caution.subject != "file system"]


def printed(diagnosis: Diagnosis) -> str:
    console = Console(width=200, color_system=None)
    with console.capture() as capture:
        console.print(text(diagnosis))
    return "".join(f"{line.rstrip()}\n" for line in capture.get().splitlines())


def run(code: str, environ: Mapping[str, str] = os.environ, *, path: tuple[Path, ...] = ()) -> str:
    """The output of Python code in a process of its own, with ``path`` first among its modules."""
    found = (*map(str, path), str(REPOSITORY), environ.get("PYTHONPATH", ""))
    answer = subprocess.run(
        [sys.executable, "-c", code],
        env={**environ, "PYTHONPATH": os.pathsep.join(found)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


DIAGNOSE = "import msgspec, jitaudit.doctor as d; print(msgspec.json.encode(d.diagnose()).decode())"

BLOCKED = """
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "triton"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Blocker())
"""


def executable(file: Path, script: str = "#!/bin/sh\n") -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(script)
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return file


def entry(directory: Path, *sizes: int) -> None:
    directory.mkdir(parents=True)
    for number, size in enumerate(sizes):
        (directory / f"{number}.json").write_bytes(b"x" * size)


@contextmanager
def unprivileged() -> Iterator[None]:
    """As a user whom permissions hold: root passes every one of them."""
    if os.getuid() != 0:
        yield
        return
    os.setresuid(65534, 65534, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)
