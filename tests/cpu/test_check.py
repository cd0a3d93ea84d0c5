"""Check: every miss has its reason, with both values of each part that differs, and no reason is unknown."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import msgspec
import pytest
from forks import checked, warmed
from test_warm import launches, run

from jitaudit.checking import RULES, Checked, Miss
from jitaudit.checking.rules import Code
from jitaudit.jit.marker import read_markers
from jitaudit.manifest import encode
from jitaudit.model import Manifest
from jitaudit.probing import Probe
from jitaudit.report import check as check_report
from jitaudit.sweeping import Narrowing

pytestmark = pytest.mark.matrix
QUICK = Path(__file__).parent / "warm_kernels.py"


@pytest.fixture(scope="module")
def wanted(probe_here: Callable[..., Probe]) -> Manifest:
    """One kernel, six variants."""
    return Narrowing(kernels=("copy_kernel",)).of(probe_here("warm_kernels").manifest)


@pytest.fixture(scope="module")
def warm_cache(wanted: Manifest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache directory with all six; to be read only."""
    directory = tmp_path_factory.mktemp("warm")
    assert warmed(wanted, directory).compiled == 6
    return directory


@pytest.fixture
def cache(warm_cache: Path, tmp_path: Path) -> Path:
    """The same at the same place, to be changed: what stood there is put back afterwards."""
    kept = tmp_path / "kept"
    shutil.copytree(warm_cache, kept)
    yield warm_cache
    shutil.rmtree(warm_cache)
    shutil.move(kept, warm_cache)


def misses(found: Checked) -> set[str]:
    """The codes of all misses; each has words, a name and a kernel, and counts add up."""
    for miss in found.misses:
        assert miss.name == RULES[miss.code]
        assert miss.message
        assert miss.kernel
    assert found.hits + found.missed == 6
    return {miss.code for miss in found.misses}


def parts(miss: Miss) -> dict[str, tuple[str | None, str | None]]:
    return {difference.part: (difference.was, difference.now) for difference in miss.differences}


def edit_marker(cache: Path, change: Callable[[dict[str, object]], None]) -> None:
    """Change what the marker says its variants were made of, as if they had been warmed elsewhere."""
    (path,) = (cache / "jitaudit").glob("*.json")
    marker = json.loads(path.read_bytes())
    change(marker)
    path.write_text(json.dumps(marker))


def rehash(marker: dict[str, object]) -> None:
    """Give each variant another hash, which is what any other part would do."""
    for variant in marker["variants"]:
        variant["hash"] = variant["hash"][::-1]


def test_every_code_has_a_name() -> None:
    assert set(get_args(Code)) == set(RULES)
    assert len(set(RULES.values())) == len(RULES)


def test_all_hit(wanted: Manifest, warm_cache: Path) -> None:
    found = checked(wanted, warm_cache)
    assert (misses(found), found.hits, found.passes) == (set(), 6, True)
    assert check_report.text(found).startswith(f"HIT  cuda:90 in {warm_cache} (test): 6 of 6 variants are there\n")


def test_nothing_there(wanted: Manifest, tmp_path: Path) -> None:
    found = checked(wanted, tmp_path / "none")
    assert misses(found) == {"JA210"}
    assert not (tmp_path / "none").exists()  # looking makes nothing
    assert found.misses[0].next == "jitaudit warm"
    told = check_report.text(found, ["m.json", "--cache-dir", "my cache"])
    assert told.endswith("next: jitaudit warm m.json --cache-dir 'my cache'\n")


def checked_afresh(manifest: Manifest, cache: Path, scratch: Path, **environ: str) -> Checked:
    """By the command, in a process that imports Triton under these variables: some it reads only then."""
    (scratch / "m.json").write_bytes(encode(manifest))
    told = run("check", scratch / "m.json", "--format", "json", code=1, TRITON_CACHE_DIR=str(cache), **environ)
    return msgspec.json.decode(told, type=Checked)


def test_a_variable_with_both_values(wanted: Manifest, warm_cache: Path, tmp_path: Path) -> None:
    found = checked_afresh(wanted, warm_cache, tmp_path, TRITON_DEBUG="1")
    assert misses(found) == {"JA206"}
    assert parts(found.misses[0]) == {"TRITON_DEBUG": (None, "1"), "default debug": ("False", "True")}
    assert "TRITON_DEBUG: not set when it was warmed, 1 here" in check_report.text(found)


def test_an_unset_variable_is_not_zero(wanted: Manifest, warm_cache: Path) -> None:
    found = checked(wanted, warm_cache, DISABLE_LLVM_OPT="0")
    assert misses(found) == {"JA206"}
    assert parts(found.misses[0]) == {"DISABLE_LLVM_OPT": (None, "0")}


def test_a_variable_that_changes_nothing_is_no_miss(wanted: Manifest, warm_cache: Path) -> None:
    assert checked(wanted, warm_cache, TRITON_DEBUG="0").hits == 6


def test_told_to_compile_always(wanted: Manifest, warm_cache: Path) -> None:
    found = checked(wanted, warm_cache, TRITON_ALWAYS_COMPILE="1")
    assert misses(found) == {"JA206"}
    assert "unset TRITON_ALWAYS_COMPILE" in found.misses[0].message


def test_another_assembler(wanted: Manifest, warm_cache: Path, tmp_path: Path) -> None:
    ptxas = tmp_path / "ptxas"
    ptxas.write_text("#!/bin/sh\necho 'Cuda compilation tools, release 12.1, V12.1.105'\n")
    ptxas.chmod(0o755)
    variables = ("TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH")  # 3.9 takes the latter for cuda:90 too
    found = checked_afresh(wanted, warm_cache, tmp_path, **dict.fromkeys(variables, str(ptxas)))
    assert misses(found) == {"JA202"}
    assert [parts(found.misses[0])[variable] for variable in variables] == [(None, str(ptxas))] * 2
    assert (
        parts(found.misses[0])["assembler and architecture"][1]
        != parts(found.misses[0])["assembler and architecture"][0]
    )


def test_another_target(wanted: Manifest, warm_cache: Path) -> None:
    found = checked(msgspec.structs.replace(wanted, target="cuda:100"), warm_cache)
    assert misses(found) == {"JA203"}
    assert parts(found.misses[0])["target"] == ("cuda:90", "cuda:100")


@pytest.mark.parametrize(
    ("change", "code", "part"),
    [
        (lambda m: m["parts"].update(triton="3.5.1", build="sha256:" + "0" * 64), "JA201", "Triton"),
        (lambda m: m["parts"].update(build="sha256:" + "0" * 64), "JA201", "Triton"),
        (lambda m: [v.update(line=v["line"] - 2) for v in m["variants"]], "JA205", "first line"),
        (lambda m: [v.update(source="sha256:" + "0" * 64) for v in m["variants"]], "JA204", "source"),
        (lambda m: [v.update(code="0" * 64) for v in m["variants"]], "JA204", "what it calls or reads"),
        (lambda m: m["parts"]["options"].update(sanitize_overflow="False"), "JA218", "default sanitize_overflow"),
        (lambda m: None, "JA217", None),
    ],
)
def test_what_the_marker_says_it_was_made_of(
    change: Callable[[dict[str, object]], object], code: str, part: str | None, wanted: Manifest, cache: Path
) -> None:
    def changed(marker: dict[str, object]) -> None:
        change(marker)
        rehash(marker)

    edit_marker(cache, changed)
    for entry in cache.glob("*/__grp__*"):
        shutil.rmtree(entry.parent)
    found = checked(wanted, cache)
    assert misses(found) == {code}
    assert list(parts(found.misses[0])) == ([part] if part else [])
    assert found.misses[0].nearest == (found.misses[0].key,)


def test_a_line_added_above_a_kernel_is_told_from_a_changed_source(tmp_path: Path) -> None:
    """For real: the kernel's own file is edited between warm and check."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "pyproject.toml").touch()
    file = project / "mine.py"
    source = QUICK.read_text()
    arguments = ("--kernel", "copy_kernel", "--cache-dir", tmp_path / "cache")
    file.write_text(source)
    run("warm", file, *arguments)
    file.write_text(source.replace("@triton.jit\ndef copy_kernel", "# a comment\n@triton.jit\ndef copy_kernel"))
    assert "JA205 line-moved  mine.py:copy_kernel: 6 variants" in run("check", file, *arguments, code=1)
    file.write_text(source.replace("mask=element < n), mask=element < n)", "mask=element < n))"))
    assert "JA204 source-changed  mine.py:copy_kernel: 6 variants" in run("check", file, *arguments, code=1)


def test_a_directory_that_was_moved(wanted: Manifest, warm_cache: Path, tmp_path: Path) -> None:
    """While the first one stands, Triton reads its files there; without it nothing is a hit."""
    moved = tmp_path / "elsewhere"
    shutil.copytree(warm_cache, moved)
    away = warm_cache.rename(tmp_path / "away")
    found = checked(wanted, moved)
    away.rename(warm_cache)
    assert misses(found) == {"JA207"}
    assert str(warm_cache) in found.misses[0].message


@pytest.mark.parametrize(
    ("harm", "code"),
    [
        (lambda entry: next(entry.glob("__grp__*")).unlink(), "JA208"),
        (lambda entry: next(entry.glob("*.cubin")).unlink(), "JA208"),
        (lambda entry: next(entry.glob("*.cubin")).write_bytes(b""), "JA209"),
        (lambda entry: next(entry.glob("*.ttir")).write_bytes(b"#"), "JA209"),
        (lambda entry: next(entry.glob("__grp__*")).write_bytes(b'{"child_paths": {'), "JA209"),
        (lambda entry: next(entry.glob("__grp__*")).write_bytes(b'{"child_paths": {}}'), "JA208"),
        (shutil.rmtree, "JA216"),
        (lambda entry: (shutil.rmtree(entry), entry.write_bytes(b"x")), "JA209"),
    ],
)
def test_a_broken_entry_is_named_and_never_a_hit(
    harm: Callable[[Path], object], code: str, wanted: Manifest, cache: Path
) -> None:
    entry = next(path.parent for path in cache.glob("*/__grp__*"))
    harm(entry)
    found = checked(wanted, cache)
    assert misses(found) == {code}
    assert found.hits == 5
    assert code == "JA216" or entry.name in found.misses[0].message
    assert ("--repair" in found.misses[0].next) == (code == "JA209")


def test_a_key_that_was_never_warmed_and_the_nearest_ones(wanted: Manifest, warm_cache: Path) -> None:
    (kernel,) = wanted.kernels
    arguments = kernel.variants[0].key.arguments | {"BLOCK": "constexpr int 64"}
    key = msgspec.structs.replace(kernel.variants[0].key, arguments=arguments)
    variants = (*kernel.variants[:5], msgspec.structs.replace(kernel.variants[0], key=key))
    kernel = msgspec.structs.replace(kernel, variants=variants)
    found = checked(msgspec.structs.replace(wanted, kernels=(kernel,)), warm_cache)
    assert misses(found) == {"JA210"}
    assert parts(found.misses[0]) == {"BLOCK": ("constexpr int 16", "constexpr int 64")}
    assert found.misses[0].nearest == (wanted.kernels[0].variants[0].key,)
    assert "BLOCK: constexpr int 16 in the nearest key that is there" in check_report.text(found)


def test_entries_that_triton_wrote_are_hits_without_a_marker(wanted: Manifest, tmp_path: Path) -> None:
    assert launches(wanted, tmp_path) == (6, 6)
    assert checked(wanted, tmp_path).hits == 6
    found = checked(wanted, tmp_path, TRITON_F32_DEFAULT="ieee")
    assert misses(found) == {"JA206"}
    assert parts(found.misses[0]) == {"TRITON_F32_DEFAULT": (None, "ieee")}
    assert misses(checked(msgspec.structs.replace(wanted, target="cuda:100"), tmp_path)) == {"JA203"}
    for metadata in tmp_path.glob("*/copy_kernel.json"):
        metadata.write_text(metadata.read_text().replace('"triton_version": "3.', '"triton_version": "2.'))
    assert misses(checked(wanted, tmp_path, DISABLE_LLVM_OPT="1")) == {"JA201"}


def test_a_marker_that_can_not_be_read_is_said_and_ignored(wanted: Manifest, cache: Path) -> None:
    (path,) = (cache / "jitaudit").glob("*.json")
    path.write_bytes(path.read_bytes()[:-10])
    found = checked(wanted, cache)
    assert found.hits == 6
    assert any(str(path) in notice.message for notice in found.warnings)


def test_no_c_compiler_for_the_host_builds(wanted: Manifest, warm_cache: Path, tmp_path: Path) -> None:
    codes = {notice.code for notice in checked(wanted, warm_cache).warnings}
    assert "JA214" in codes
    assert "JA215" not in codes
    assert "JA215" in {notice.code for notice in checked(wanted, warm_cache, CC=str(tmp_path / "none")).warnings}


def test_where_the_cache_will_move_is_said_beforehand(
    wanted: Manifest, warm_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from jitaudit.checking.running import moves
    from jitaudit.planning import cache_here

    monkeypatch.delenv("TRITON_CACHE_DIR", raising=False)
    (notice,) = moves(cache_here(None))
    assert "Inductor's first graph moves Triton's cache" in notice.message
    (notice,) = moves(cache_here(warm_cache))
    assert f"set TRITON_CACHE_DIR={warm_cache}" in notice.message
    monkeypatch.setenv("TRITON_CACHE_DIR", str(warm_cache))
    assert list(moves(cache_here(None))) == []


def test_an_import_that_moves_the_cache_is_said(wanted: Manifest, warm_cache: Path, tmp_path: Path) -> None:
    """As engines do: what is here is right, and the server will look elsewhere."""
    moves = "import os\nos.environ['TRITON_CACHE_DIR'] = '/moved'\nimport torch\n"
    (tmp_path / "moving.py").write_text(QUICK.read_text().replace("import torch\n", moves))
    path = os.pathsep.join([str(tmp_path), str(QUICK.parent), os.environ.get("PYTHONPATH", "")])
    environ = {"TRITON_CACHE_DIR": str(warm_cache), "PYTHONPATH": path}
    (kernel,) = wanted.kernels
    moving = msgspec.structs.replace(kernel, id="moving:copy_kernel")
    (tmp_path / "m.json").write_bytes(encode(msgspec.structs.replace(wanted, kernels=(kernel, moving))))
    told = run("check", tmp_path / "m.json", code=1, **environ)
    assert "6 of 12 variants are there" in told
    assert "importing the kernels sets TRITON_CACHE_DIR=/moved" in told


def test_reading_needs_no_writing(wanted: Manifest, warm_cache: Path) -> None:
    modes = {path: path.stat().st_mode for path in warm_cache.rglob("*")}
    try:
        for path in modes:
            path.chmod(modes[path] & ~(stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH))
        before = sorted(warm_cache.rglob("*"))
        assert checked(wanted, warm_cache).hits == 6
        assert sorted(warm_cache.rglob("*")) == before
    finally:
        for path, mode in modes.items():
            path.chmod(mode)


def test_a_report_fits_a_screen(wanted: Manifest, tmp_path: Path) -> None:
    kernels = tuple(msgspec.structs.replace(wanted.kernels[0], id=f"warm_kernels_{n}:copy_kernel") for n in range(40))
    found = checked(msgspec.structs.replace(wanted, kernels=kernels), tmp_path)
    told = check_report.text(found)
    assert len(told.splitlines()) <= 20
    assert "more variants in 35 more kernels or reasons, use -v" in told
    assert len(check_report.text(found, verbose=True).splitlines()) > 40
    assert len(read_markers(tmp_path).readable) == 0
