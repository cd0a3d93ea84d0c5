"""`jitaudit doctor`: file systems and caches as they are, and nothing that it finds makes it fail."""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import msgspec
import pytest
from surroundings import BLOCKED, empty_home, entry, printed, run, unprivileged

from jitaudit import doctor
from jitaudit.doctor import Diagnosis, Usage, diagnose, measure


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return empty_home(tmp_path, monkeypatch)


# --- file systems ---------------------------------------------------------------------------------------------------


def machine(tmp_path: Path, mounts: list[tuple[Path | str, str]]) -> Path:
    """A root whose /proc tells of these mounts, in this order."""
    root = tmp_path / "machine"
    (root / "proc").mkdir(parents=True, exist_ok=True)
    lines = [f"device {str(point).replace(' ', chr(92) + '040')} {kind} rw 0 0\n" for point, kind in mounts]
    (root / "proc" / "mounts").write_text("".join(lines))
    return root


@pytest.mark.parametrize(
    ("kind", "remedy"),
    [
        ("ext4", None),
        ("xfs", None),
        ("nfs4", "local disk"),
        ("lustre", "local disk"),
        ("fuse.s3fs", "local disk"),
        ("overlay", "volume"),
        ("tmpfs", "volume"),
    ],
)
def test_file_systems_that_hurt(kind: str, remedy: str | None, home: Path, tmp_path: Path) -> None:
    diagnosis = diagnose(machine(tmp_path, [("/", "btrfs"), (home, kind)]))
    assert (diagnosis.cache.file_system, diagnosis.cache.mount_point) == (kind, str(home))
    found = [caution.remedy for caution in diagnosis.warnings]
    assert found == ([f"set TRITON_CACHE_DIR to a directory on a {remedy}"] if remedy else [])
    assert f"{'WARN' if remedy else 'PASS'}  file system  {kind} on {home}\n" in printed(diagnosis)


def test_the_innermost_and_latest_mount_counts(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spaced = home / "with space"
    spaced.mkdir()
    monkeypatch.setenv("TRITON_CACHE_DIR", str(spaced / "cache"))
    neighbour = f"{home}/with"  # a prefix of the text, not of the path
    mounts: list[tuple[Path | str, str]] = [(spaced, "ext4"), (spaced, "nfs"), (home, "xfs"), (neighbour, "lustre")]
    assert diagnose(machine(tmp_path, mounts)).cache.file_system == "nfs"


def test_a_link_is_followed_to_its_file_system(home: Path, tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (home / ".triton").symlink_to(tmp_path / "far")
    assert diagnose(machine(tmp_path, [("/", "ext4"), (tmp_path / "far", "lustre")])).cache.file_system == "lustre"


def test_without_proc(tmp_path: Path) -> None:
    diagnosis = diagnose(tmp_path / "nothing")
    assert (diagnosis.cache.file_system, diagnosis.gpus) == ("", ())
    assert "file system" not in printed(diagnosis)


# --- what a cache holds ---------------------------------------------------------------------------------------------


def later() -> float:
    return time.monotonic() + 60


def test_usage_counts_directories_with_files(tmp_path: Path) -> None:
    entry(tmp_path / "KEY1", 10, 20)
    entry(tmp_path / "KEY2", 5)
    entry(tmp_path / "KEY2" / "tmp.pid_1_x", 100)  # a writer that died
    entry(tmp_path / "EMPTY")
    entry(tmp_path / "triton" / "0" / "KEY3", 1)
    (tmp_path / "KEY1" / "loop").symlink_to(tmp_path)
    link = (tmp_path / "KEY1" / "loop").lstat().st_size
    assert measure(str(tmp_path), later()) == Usage(entries=3, bytes=136 + link, complete=True)


def test_usage_of_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert measure(str(tmp_path / "missing"), later()) is None
    assert measure(str(tmp_path / "file"), later()) is None


def test_usage_stops_in_time(home: Path) -> None:
    entry(home / ".triton" / "cache" / "KEY", 10)
    diagnosis = diagnose(counting_seconds=-1)
    assert diagnosis.cache.usage == Usage(entries=0, bytes=0, complete=False)
    assert "at least 0 entries" in printed(diagnosis)


def test_files_that_vanish_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry(tmp_path / "KEY1", 10)
    entry(tmp_path / "KEY2", 20)
    real = os.scandir

    def racing(path: str) -> nullcontext[Iterator[os.DirEntry[str]]]:
        with real(path) as found:
            items = list(found)
        for item in items:
            if item.name == "KEY2":
                for file in Path(item.path).iterdir():
                    file.unlink()
                Path(item.path).rmdir()
            elif item.is_file():
                os.unlink(item.path)
        return nullcontext(iter(items))

    monkeypatch.setattr(doctor.os, "scandir", racing)
    assert measure(str(tmp_path), later()) == Usage(entries=0, bytes=0, complete=True)


def test_what_may_not_be_read_makes_a_lower_bound() -> None:
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        entry(Path(directory) / "KEY1", 10)
        entry(Path(directory) / "KEY2", 20)
        os.chmod(Path(directory) / "KEY2", 0o000)
        with unprivileged():
            found = measure(directory, later())
        os.chmod(Path(directory) / "KEY2", 0o700)
    assert found == Usage(entries=1, bytes=10, complete=False)


@pytest.mark.parametrize(
    ("tool", "default", "variable", "given"),
    [
        ("vLLM", "home/.cache/vllm", "VLLM_CACHE_ROOT", "other"),
        ("FlashInfer", "home/.cache/flashinfer", "FLASHINFER_WORKSPACE_BASE", "other/.cache/flashinfer"),
        ("DeepGEMM", "home/.deep_gemm", "DG_JIT_CACHE_DIR", "other"),
        ("TileLang", "home/.tilelang", "TILELANG_CACHE_DIR", "other"),
        ("torch extensions", "home/.cache/torch_extensions", "TORCH_EXTENSIONS_DIR", "other"),
        ("Inductor", None, "TORCHINDUCTOR_CACHE_DIR", "other"),
    ],
)
def test_other_caches(
    tool: str, default: str | None, variable: str, given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path / "none"))
    assert diagnose().other_caches == ()
    if default is not None:
        entry(tmp_path / default / "KEY", 7)
        (cache,) = diagnose().other_caches
        assert (cache.tool, cache.path, cache.decided_by) == (tool, str(tmp_path / default), "default")
        assert cache.usage == Usage(entries=1, bytes=7, complete=True)
    entry(tmp_path / given / "KEY", 2048)
    monkeypatch.setenv(variable, str(tmp_path / "other"))
    (cache,) = diagnose().other_caches
    assert (cache.tool, cache.path, cache.decided_by) == (tool, str(tmp_path / given), variable)
    assert f"{cache.path} ({variable}): 1 entry, 2.0 KiB\n" in printed(diagnose())


# --- the report -----------------------------------------------------------------------------------------------------


def test_the_report_fits_a_screen_and_keeps_brackets(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", f"{home}/[bold]")
    entry(home / "[bold]" / "KEY", 10)
    shown = printed(diagnose(machine(tmp_path, [("/", "ext4")])))
    assert f"PASS  cache        {home}/[bold] (TRITON_CACHE_DIR): 1 entry, 10 B\n" in shown
    assert "WARN" not in shown
    assert len(shown.splitlines()) <= 20


def test_the_diagnosis_is_json_and_back() -> None:
    diagnosis = diagnose()
    assert msgspec.json.decode(msgspec.json.encode(diagnosis), type=Diagnosis) == diagnosis


def test_the_command_exits_0_where_everything_is_wrong(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    environ = {"HOME": "/", "PATH": "", "TRITON_CACHE_DIR": str(file / "cache"), "CC": "missing", "TMPDIR": str(file)}
    shown = run(BLOCKED + "sys.argv[1:] = ['doctor']; from jitaudit.cli import main; main()", environ)
    assert re.findall(r"^(PASS|WARN)  (\S.*?)  ", shown, re.MULTILINE)[:4] == [
        ("WARN", "Triton"),
        ("WARN", "torch"),
        ("WARN", "C compiler"),
        ("WARN", "cache"),
    ]
