"""`jitaudit scan --prune`: what this toolchain can't hit goes, and nothing else does."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from made_entries import Made, write_entry
from rich.console import Console

from jitaudit.errors import RequestError
from jitaudit.jit.environment import Package
from jitaudit.report.scan import markdown, summary, text
from jitaudit.scanning import Pruning, prune, pruning

HERE = "3.7.1"


@pytest.fixture(autouse=True)
def toolchain(monkeypatch: pytest.MonkeyPatch):
    """Triton 3.7.1 and no GPU; ``toolchain(version, *gpus)`` makes it another."""

    def have(version: str | None, *gpus: str) -> None:
        monkeypatch.setattr(pruning, "package", lambda _: Package(version, ()))
        monkeypatch.setattr(pruning, "gpus", lambda: gpus)
        monkeypatch.setattr(pruning.shutil, "which", lambda _: None)

    have(HERE)
    return have


@pytest.fixture
def cache(tmp_path: Path) -> dict[str, Path]:
    """One entry of each kind, all of them old."""
    root = tmp_path / "cache"
    folders = {
        "good": write_entry(root, Made()),
        "other Triton": write_entry(root, Made(triton="3.6.0")),
        "other target": write_entry(root, Made(target=("hip", "gfx942"))),
        "torn": write_entry(root, Made(salt="torn")),
        "empty": root / ("E" * 52),
        "unpublished": write_entry(root, Made(salt="unpublished")),
        "host build": root / ("H" * 52),
        "unknown backend": write_entry(root, Made(salt="xpu")),
        "not an entry": root / "notes",
    }
    next(folders["torn"].glob("*.cubin")).write_bytes(b"")
    next(folders["unpublished"].glob("__grp__*")).unlink()
    folders["empty"].mkdir()
    folders["host build"].mkdir()
    (folders["host build"] / "cuda_utils.so").write_bytes(b"so")
    metadata = folders["unknown backend"] / "scale_kernel.json"
    metadata.write_text(metadata.read_text().replace('"cuda"', '"xpu"'))
    folders["not an entry"].mkdir()
    (folders["not an entry"] / "__grp__mine.json").write_text("")
    for folder in folders.values():
        age(folder, hours=2)
    return folders


def age(folder: Path, *, hours: float) -> None:
    moment = time.time() - hours * 3600
    for path in (*folder.rglob("*"), folder):
        os.utime(path, (moment, moment), follow_symlinks=False)


def left(cache: dict[str, Path]) -> set[str]:
    return {name for name, folder in cache.items() if folder.exists()}


def reasons(result: Pruning, cache: dict[str, Path]) -> dict[str, str]:
    names = {folder.name: name for name, folder in cache.items()}
    return {names[removal.path]: removal.reason for removal in result.removals}


def printed(result: Pruning) -> str:
    console = Console(width=160, color_system=None)
    with console.capture() as capture:
        console.print(text(result))
    return capture.get()


def test_a_dry_run_names_what_would_go_and_touches_nothing(cache: dict[str, Path], tmp_path: Path):
    result = prune([tmp_path / "cache"], "cuda:90", remove=False)
    assert reasons(result, cache) == {
        "other Triton": "made by Triton 3.6.0, not 3.7.1",
        "other target": "for hip:gfx942, not cuda:90",
        "torn": "broken: scale_kernel.cubin is empty",
        "empty": "broken: empty",
        "unpublished": "broken: no group file: it was never published",
    }
    assert left(cache) == set(cache)
    assert (result.kept, result.young, result.done) == (4, 0, False)
    assert result.freed == sum(removal.bytes for removal in result.removals) > 0
    assert summary(result).endswith("nothing was removed, add --yes")
    assert "made by Triton 3.6.0" in printed(result)
    assert markdown(result).count("| ") >= 5


def test_what_cannot_be_hit_goes_and_everything_else_stays(cache: dict[str, Path], tmp_path: Path):
    dry = prune([tmp_path / "cache"], "cuda:90", remove=False)
    result = prune([tmp_path / "cache"], "cuda:90", remove=True)
    assert left(cache) == {"good", "host build", "unknown backend", "not an entry"}
    assert all(removal.removed for removal in result.removals)
    assert result.freed == dry.freed
    assert summary(result).startswith("freed: 5 entries")
    assert prune([tmp_path / "cache"], "cuda:90", remove=True).removals == ()


def test_what_is_not_known_here_decides_nothing(cache: dict[str, Path], tmp_path: Path, toolchain):
    toolchain(None)
    result = prune([tmp_path / "cache"], None, remove=False)
    assert reasons(result, cache).keys() == {"torn", "empty", "unpublished"}
    shown = printed(result)
    assert "no Triton is installed here" in shown
    assert "no GPU here tells the target" in shown


def test_the_gpus_here_tell_the_target(cache: dict[str, Path], tmp_path: Path, toolchain):
    toolchain(HERE, "AMD gfx942", "AMD gfx942")
    result = prune([tmp_path / "cache"], None, remove=False)
    assert "other target" not in reasons(result, cache)
    assert reasons(result, cache)["good"] == "for cuda:90, not hip:gfx942"
    toolchain(HERE, "AMD gfx942", "AMD gfx1100")
    assert "good" not in reasons(prune([tmp_path / "cache"], None, remove=False), cache)


def test_nvidias_tool_tells_the_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho 9.0\necho 9.0\n")
    tool.chmod(0o755)
    write_entry(tmp_path / "cache", Made(target=("cuda", 80)))
    age(tmp_path / "cache", hours=2)
    monkeypatch.setattr(pruning.shutil, "which", lambda _: str(tool))
    (removal,) = prune([tmp_path / "cache"], None, remove=False).removals
    assert removal.reason == "for cuda:80, not cuda:90"


@pytest.mark.parametrize("file", ["scale_kernel.cubin", "__grp__scale_kernel.json"])
def test_an_entry_younger_than_an_hour_is_left(cache: dict[str, Path], tmp_path: Path, file: str):
    (cache["other Triton"] / file).touch()
    result = prune([tmp_path / "cache"], "cuda:90", remove=True)
    assert result.young == 1
    assert cache["other Triton"].is_dir()
    assert "too young to touch: 1" in summary(result)


def test_an_entry_that_is_being_written_is_left(cache: dict[str, Path], tmp_path: Path):
    (cache["torn"] / "tmp.pid_17_0123").mkdir()
    age(cache["torn"], hours=2)
    result = prune([tmp_path / "cache"], "cuda:90", remove=True)
    assert result.young == 1
    assert cache["torn"].is_dir()


def test_an_entry_that_was_written_since_it_was_listed_is_left(cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    found = list(pruning.entries(tmp_path / "cache"))
    monkeypatch.setattr(pruning, "entries", lambda path: found)
    (cache["other Triton"] / "scale_kernel.ttir").touch()
    result = prune([tmp_path / "cache"], "cuda:90", remove=True)
    kept = [removal.path for removal in result.removals if not removal.removed]
    assert kept == [cache["other Triton"].name]
    assert len(list(cache["other Triton"].iterdir())) == 4
    assert "NOT REMOVED" in printed(result)


def test_an_entry_that_became_a_link_is_not_followed(cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    found = list(pruning.entries(tmp_path / "cache"))
    monkeypatch.setattr(pruning, "entries", lambda path: found)
    outside = tmp_path / "outside"
    cache["torn"].rename(outside)
    cache["torn"].symlink_to(outside)
    prune([tmp_path / "cache"], "cuda:90", remove=True)
    assert len(list(outside.iterdir())) == 4


def test_the_group_file_goes_first(cache: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A reader meets a whole entry or a miss: never a group whose files are gone."""
    gone = []
    unlink = os.unlink
    monkeypatch.setattr(pruning.os, "unlink", lambda name, **at: gone.append(name) or unlink(name, **at))
    prune([tmp_path / "cache"], "cuda:90", remove=True)
    assert gone.index("__grp__scale_kernel.json") < gone.index("scale_kernel.cubin")
    assert len(gone) == 4 * 3 + 3


def test_a_failed_removal_is_told(cache: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(name: str, **at: int) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(pruning.os, "unlink", refuse)
    result = prune([tmp_path / "cache"], "cuda:90", remove=True)
    assert {removal.path for removal in result.removals if removal.removed} == {cache["empty"].name}
    assert result.freed == 0


def test_a_log_is_no_directory_to_prune(tmp_path: Path):
    (tmp_path / "server.log").write_text("x")
    with pytest.raises(RequestError, match="takes cache directories only"):
        prune([tmp_path / "server.log"], None, remove=True)
