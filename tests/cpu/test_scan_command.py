"""The `jitaudit scan` command: options, exit codes, and that it loads neither torch nor Triton."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from made_entries import BOOT, Made, write_entry
from surroundings import BLOCKED, REPOSITORY, unprivileged

from jitaudit.errors import SetupError
from jitaudit.manifest import read
from jitaudit.scanning import scan

LINE = (
    "(EngineCore_0 pid=7) WARNING 01-01 10:00:00 [jit_monitor.py:153] "
    "Triton kernel JIT compilation during inference: _rope. This causes a latency spike"
)


def jitaudit(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """The command, in a process where importing torch or Triton raises."""
    code = BLOCKED + "from jitaudit.cli import main; main()"
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "NO_COLOR": "1"}
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, cwd=cwd, check=False)


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    write_entry(tmp_path / "cache", Made())
    write_entry(tmp_path / "cache", Made(arguments=("x_ptr: *fp32 aligned", "n: i32 %16"), written=BOOT + 100))
    return tmp_path / "cache"


def test_the_table_is_on_stdout_and_the_summary_on_stderr(cache: Path):
    run = jitaudit("scan", cache)
    assert run.returncode == 0
    assert re.fullmatch(r"kernels: 1, entries: 2, \d\.\d KiB, skipped: 0\n", run.stderr)
    assert "server.kernels:scale_kernel" in run.stdout
    assert "n %16/any" in run.stdout


def test_json_and_markdown(cache: Path):
    document = json.loads(jitaudit("scan", cache, "--format", "json").stdout)
    assert [(kernel["kernel"], kernel["entries"]) for kernel in document["kernels"]] == [
        ("server.kernels:scale_kernel", 2)
    ]
    assert jitaudit("scan", cache, "--format", "markdown").stdout.startswith("| kernel ")


def test_late_compiles_and_comparisons(cache: Path, tmp_path: Path):
    since = jitaudit("scan", cache, "--since", "2026-01-01T00:00:30", "--format", "json")
    assert json.loads(since.stdout)["kernels"][0]["differences"][0]["argument"] == "n"
    write_entry(tmp_path / "other", Made())
    against = jitaudit("scan", cache, "--against", tmp_path / "other", "--format", "json")
    assert json.loads(against.stdout)["kernels"][0]["only_here"]["entries"] == 1


def test_the_manifest_is_written_whatever_the_format(cache: Path, tmp_path: Path):
    output = tmp_path / "scan.json"
    assert jitaudit("scan", cache, "-o", output, "--format", "json").returncode == 0
    assert read([output]) == scan([cache]).manifest
    again = jitaudit("scan", cache, "-o", output)
    assert (again.returncode, again.stdout) == (2, "")
    assert "exists" in again.stderr
    assert jitaudit("scan", cache, "-o", output, "--force").returncode == 0


def test_a_log_is_scanned_and_written_too(tmp_path: Path):
    (tmp_path / "server.log").write_text(LINE)
    run = jitaudit("scan", "server.log", "-o", "log.json", cwd=tmp_path)
    assert (run.returncode, run.stderr) == (0, "kernels: 1, lines: 1, skipped: 0\n")
    manifest = read([tmp_path / "log.json"])
    assert (manifest.target, manifest.kernels[0].variants[0].origin) == ("unknown", "log")
    jitaudit("scan", "server.log", "-o", "known.json", "--target", "cuda:90", cwd=tmp_path)
    assert read([tmp_path / "known.json"]).target == "cuda:90"


def test_prune_is_a_dry_run_unless_told(cache: Path):
    dry = jitaudit("scan", cache, "--prune", "--target", "cuda:100")
    assert dry.returncode == 0
    assert "to free: 2 entries" in dry.stderr
    assert len(list(cache.iterdir())) == 2
    done = jitaudit("scan", cache, "--prune", "--target", "cuda:100", "--yes")
    assert "freed: 2 entries" in done.stderr
    assert list(cache.iterdir()) == []


BAD = {
    "no such path": (["missing"], "missing: no such file or directory"),
    "an empty directory": (["empty"], "empty: is empty; jitaudit doctor"),
    "a directory that is no cache": (["plain"], "plain: no Triton cache: no entry below it"),
    "a log of neither engine": (["other.log"], "other.log: a log of neither vLLM nor SGLang"),
    "a time that cannot be read": (["cache", "--since", "soon"], "--since soon: no such file, and no time"),
    "no marker": (["cache", "--since", "/run/ready"], "--since /run/ready: no such file, and no time"),
    "a cache among logs": (["server.log", "cache"], "cache: a directory among logs"),
    "a cache against a log": (["cache", "--against", "server.log"], "server.log: a cache and a log can't be compared"),
    "nothing to compare with": (["cache", "--against", "missing"], "missing: no such file or directory"),
    "no such target": (["cache", "--target", "cuda:100"], "--target cuda:100: no entry is for it; there are cuda:90"),
    "no such kernel": (["cache", "--kernel", "nothing*"], "--kernel nothing*: no kernel matches"),
    "two questions": (["cache", "--since", "2026-01-01", "--against", "cache"], "--since and --against: one at a time"),
    "prune and since": (["cache", "--prune", "--since", "2026-01-01"], "--prune and --since: one at a time"),
    "yes to nothing": (["cache", "--yes"], "--yes: only --prune removes anything"),
    "prune by kernel": (["cache", "--prune", "--kernel", "a"], "--kernel: --prune looks at every entry"),
    "prune a log": (["server.log", "--prune"], "server.log: no directory; --prune takes cache directories only"),
    "prune nothing": (["missing", "--prune"], "missing: no directory"),
    "prune no cache": (["plain", "--prune", "--yes"], "plain: no Triton cache"),
    "prune to a manifest": (["cache", "--prune", "-o", "m.json"], "-o: --prune makes no manifest"),
    "output in no directory": (["cache", "-o", "nowhere/m.json"], "no such directory"),
    "no path": ([], "Missing argument"),
    "unknown format": (["cache", "--format", "yaml"], "yaml"),
}


@pytest.mark.parametrize(("arguments", "message"), BAD.values(), ids=BAD)
def test_a_bad_request_exits_2_with_a_line_that_names_it(cache: Path, tmp_path: Path, arguments, message: str):
    (tmp_path / "empty").mkdir()
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "readme.md").write_text("no cache")
    (tmp_path / "other.log").write_text("hello\n")
    (tmp_path / "server.log").write_text(LINE)
    run = jitaudit("scan", *arguments, cwd=tmp_path)
    assert (run.returncode, run.stdout) == (2, ""), run.stderr
    assert message in run.stderr
    assert "Traceback" not in run.stderr
    assert len(list(cache.iterdir())) == 2


def test_a_directory_that_may_not_be_read_is_the_environments_fault():
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        closed = Path(name) / "cache"
        write_entry(closed, Made())
        closed.chmod(0)
        with unprivileged(), pytest.raises(SetupError, match="cache: can't be read: Permission denied"):
            scan([closed])
        closed.chmod(0o755)


def test_help_names_the_command_and_every_option():
    shown = jitaudit("scan", "--help").stdout
    for option in ("--since", "--against", "--target", "--kernel", "--format", "--output", "--prune", "--yes"):
        assert option in shown
