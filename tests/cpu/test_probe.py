"""``jitaudit probe`` as a user meets it: what it prints, what it refuses, and with which exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
from hand_made import manifest_of

from jitaudit import cli
from jitaudit.manifest import decode, write

SWEEPS = '''\
"""Two sweeps over one launcher."""

import torch
import triton
import triton.language as tl

import jitaudit


@triton.jit
def fill_kernel(x_ptr, bs, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), 1.0, mask=tl.arange(0, BLOCK) < bs)


def fill(bs):
    fill_kernel[(1,)](torch.empty(64, device="cuda"), bs, BLOCK=64)


@jitaudit.sweep(bs=jitaudit.ints(1, 32))
def ints(bs):
    fill(bs)


@jitaudit.sweep(bs=jitaudit.ints(1, 4), policy=["old", "new"], compare="policy")
def compared(bs, policy):
    fill(bs if policy == "old" else 16)


@jitaudit.sweep(bs=jitaudit.ints(1, 32))
def raises_at_seven(bs):
    if bs == 7:
        raise ValueError("seven is too many")
    fill(bs)


@jitaudit.sweep(bs=[1, 2])
def reads(bs):
    fill(int(torch.empty(1, dtype=torch.int32, device="cuda")))


@jitaudit.sweep(bs=[1, 2])
def asks(bs):
    fill(len(torch.cuda.get_device_properties(0).uuid))


@jitaudit.sweep(bs=[1, 2])
def launches_nothing(bs):
    torch.empty(bs, device="cuda")
'''

BROKEN = {
    "raises.py": "import torch\n\n\ndef helper():\n    raise RuntimeError('no weights here')\n\n\nhelper()\n",
    "syntax.py": "def sweep(:\n    pass\n",
    "leaves.py": "raise SystemExit('gone')\n",
    "needs.py": "import a_package_that_is_not_here\n",
    "empty.py": "import jitaudit\n",
    "skips.py": "import pytest\n\npytest.skip('no card', allow_module_level=True)\n",
    "wrong.py": "import jitaudit\n\n\n@jitaudit.sweep(size=[1])\ndef sweep(bs): ...\n",
}


class Run(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of its own, the working directory."""
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'sample'\n")
    (tmp_path / "sweeps.py").write_text(SWEEPS)
    for name, text in BROKEN.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "400")  # no path is wrapped
    return tmp_path


@pytest.fixture
def jitaudit(project: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., Run]:
    """The command line, in this process."""

    def run(*arguments: str) -> Run:
        monkeypatch.setattr(sys, "argv", ["jitaudit", *arguments])
        try:
            cli.main()
            code = 0
        except SystemExit as left:
            code = left.code if isinstance(left.code, int) else int(left.code is not None)
        return Run(code, *capfd.readouterr())

    return run


NEWER = '{"schema_version": 99}'

REFUSED = [
    # arguments, exit code, what the one line says
    (["gone.py"], 2, "gone.py: no such file"),
    (["gone.module"], 2, "gone.module: no such file or module"),
    (["sweeps.py::gone"], 2, "sweeps.py::gone: no sweep gone there; it has ints, compared"),
    (["empty.py"], 2, "empty.py: no sweeps there; decorate a function with @jitaudit.sweep"),
    (["raises.py"], 2, "raises.py:5: raise RuntimeError('no weights here'): RuntimeError: no weights here"),
    (["syntax.py"], 2, "syntax.py:1: def sweep(:: SyntaxError"),
    (["leaves.py"], 2, "leaves.py:1: raise SystemExit('gone'): SystemExit: gone"),
    (["needs.py"], 2, "needs.py:1: import a_package_that_is_not_here: ModuleNotFoundError"),
    (["skips.py"], 2, "Skipped: no card"),
    (["wrong.py"], 2, "wrong.py:4: @jitaudit.sweep(size=[1]): ValueError: sweep sweep: axis size is no"),
    (["sweeps.py", "--axis", "batch=1..4"], 2, "--axis batch: no sweep has this axis; there are bs, policy"),
    (["sweeps.py", "--axis", "bs=4..1"], 2, "--axis bs=4..1: an empty range"),
    (["sweeps.py", "--axis", "bs"], 2, "--axis bs: write NAME=VALUES"),
    (["sweeps.py", "--axis", "bs=many"], 2, "--axis bs=many: neither a number nor a range"),
    (["sweeps.py", "--group", "newest"], 2, "--group newest: no sweep compares it; there are new, old"),
    (["sweeps.py::ints", "--kernel", "other*"], 2, "no kernel matches; there are sweeps.py:fill_kernel"),
    (["sweeps.py", "--target", "cuda:ninety"], 2, "--target cuda:ninety: not a target; write cuda:ARCH"),
    (["sweeps.py", "--target", "cuda:10"], 3, "--target cuda:10: this Triton can't compile for it"),
    (["sweeps.py", "--gpu"], 3, "--gpu: torch sees no GPU here"),
    (["broken.json"], 2, "broken.json: not a manifest"),
    (["newer.json"], 2, "newer.json: schema version 99, this jitaudit reads"),
    (["gone.json"], 2, "gone.json: no such file"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "code", "words"), REFUSED, ids=[" ".join(a) for a, _, _ in REFUSED])
def test_what_is_refused_is_one_line_and_writes_nothing(
    jitaudit: Callable[..., Run], project: Path, arguments: list[str], code: int, words: str
):
    (project / "broken.json").write_text("{")
    (project / "newer.json").write_text(NEWER)
    before = files(project)
    run = jitaudit("probe", *arguments, "-o", "m.json")
    assert (run.code, run.out) == (code, "")
    assert words in run.err
    assert run.err.startswith("jitaudit: ")
    assert run.err.count("\n") == 1
    assert files(project) == before


def test_manifests_of_two_targets_are_not_one(jitaudit: Callable[..., Run], project: Path):
    one = manifest_of({"i32 any": {(0, 0)}})
    write(one, project / "one.json")
    write(msgspec.structs.replace(one, target="hip:gfx942"), project / "other.json")
    run = jitaudit("probe", "one.json", "other.json")
    assert (run.code, run.out, run.err.count("\n")) == (2, "", 1)
    assert "one target and one configuration at a time" in run.err


def test_manifests_of_one_target_are_united(jitaudit: Callable[..., Run], project: Path):
    write(manifest_of({"i32 =1": {(0, 0)}}), project / "one.json")
    write(manifest_of({"i32 =1": {(0, 0)}, "i32 any": {(1, 0)}}), project / "other.json")
    document = json.loads(jitaudit("probe", "one.json", "other.json", "--format", "json").out)
    assert [(kernel["launches"], kernel["variants"]) for kernel in document["kernels"]] == [(3, 2)]


OUTPUTS = [
    ("sweeps.py", "sweeps.py: exists; give another -o, or --force to replace it"),
    (".", "is a directory"),
    ("no/m.json", "no such directory: no"),
]


@pytest.mark.parametrize(("output", "words"), OUTPUTS)
def test_an_output_that_can_not_be_written_is_refused(
    jitaudit: Callable[..., Run], project: Path, output: str, words: str
):
    run = jitaudit("probe", "sweeps.py", "-o", output)
    assert (run.code, run.out, run.err.count("\n")) == (2, "", 1)
    assert words in run.err
    assert (project / "sweeps.py").read_text() == SWEEPS


TRITONS = [
    # what lies in the way, the environment, what the one line says
    ({"triton.py": "raise ImportError('nothing here')\n"}, {}, "Triton can't be imported (nothing here)"),
    (
        {"triton/__init__.py": "__version__ = '3.5.1'\n"},
        {},
        "Triton 3.5.1 is not supported; jitaudit knows 3.6",
    ),
    ({}, {"TRITON_INTERPRET": "1"}, "TRITON_INTERPRET is set"),
]  # fmt: skip


@pytest.mark.parametrize(("packages", "variables", "words"), TRITONS, ids=["missing", "unsupported", "interpreting"])
def test_without_a_triton_that_compiles_it_is_exit_3(
    jitaudit: Callable[..., Run],
    project: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    packages: dict[str, str],
    variables: dict[str, str],
    words: str,
):
    elsewhere = tmp_path_factory.mktemp("packages")
    for name, text in packages.items():
        (elsewhere / name).parent.mkdir(exist_ok=True)
        (elsewhere / name).write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(elsewhere), prepend=os.pathsep)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    run = jitaudit("probe", "sweeps.py", "-o", "m.json")
    assert (run.code, run.out, run.err.count("\n")) == (3, "", 1)
    assert words in run.err
    assert not (project / "m.json").exists()


STOPPED = [
    # sweep, code, the line that stopped it, what is said of it, cases counted, the first case that stopped
    ("raises_at_seven", "JA013", "raise ValueError(", "ValueError: seven is too many", 31, "bs=7"),
    (
        "reads",
        "JA009",
        "int(torch.empty(1",
        ".item() reads an unknown int32 tensor of shape (1,) on the host",
        0,
        "bs=1",
    ),
    ("asks", "JA014", ".uuid", "torch.cuda.get_device_properties().uuid has no answer offline", 0, "bs=1"),
]


@pytest.mark.parametrize(("sweep", "code", "source", "words", "counted", "case"), STOPPED)
def test_a_case_that_can_not_be_counted_is_told_and_the_others_count(
    jitaudit: Callable[..., Run],
    project: Path,
    sweep: str,
    code: str,
    source: str,
    words: str,
    counted: int,
    case: str,
):
    run = jitaudit("probe", f"sweeps.py::{sweep}", "-o", "m.json")
    assert run.code == 1
    assert f"sweeps.py:{line_of(source)}: {words}" in run.out
    assert "Traceback" not in run.out + run.err
    manifest = decode((project / "m.json").read_bytes(), "m.json")
    assert manifest.sweeps[0].counted == sum(kernel.launches for kernel in manifest.kernels) == counted
    (finding,) = [finding for finding in manifest.findings if finding.code == code]
    assert (finding.sweep, finding.case) == (f"sweeps.py:{sweep}", case)


def test_a_sweep_that_launched_nothing_is_never_a_pass(jitaudit: Callable[..., Run], project: Path):
    run = jitaudit("probe", "sweeps.py::launches_nothing", "-o", "m.json")
    assert run.code == 1
    assert "JA007" in run.out
    manifest = decode((project / "m.json").read_bytes(), "m.json")
    assert (manifest.sweeps[0].verdict, manifest.sweeps[0].counted) == ("launched nothing", 2)


def test_the_table_says_how_many_and_why(jitaudit: Callable[..., Run]):
    run = jitaudit("probe", "sweeps.py::ints")
    assert run.code == 0
    (row,) = [line for line in run.out.splitlines() if "fill_kernel" in line]
    assert row.split() == ["sweeps.py:fill_kernel", "32", "3", "bs", "int_class", "=1/any/%16", "by", "bs"]
    assert "variants: 3" in run.err
    assert "\x1b" not in run.out + run.err


def test_each_compared_value_is_a_column(jitaudit: Callable[..., Run]):
    lines = jitaudit("probe", "sweeps.py::compared").out.splitlines()
    (heading,) = [line for line in lines if "kernel" in line and "launches" in line]
    (row,) = [line for line in lines if "fill_kernel" in line]
    assert heading.index("new") != heading.index("old")
    counts = row.split()[1:4]
    assert sorted(counts) == ["1", "2", "8"]


def test_json_has_the_fields_that_tools_read(jitaudit: Callable[..., Run]):
    document = json.loads(jitaudit("probe", "sweeps.py::compared", "--format", "json").out)
    assert {"schema_version", "target", "kernels", "findings"} <= document.keys()
    assert (document["schema_version"], document["target"]) == (1, "cuda:90")
    new, old = sorted(document["kernels"], key=lambda kernel: kernel["group"])
    expected = {"kernel": "sweeps.py:fill_kernel", "sweep": "sweeps.py:compared", "cases": 4, "launches": 4}
    for kernel, group, variants, causes in ((new, "new", 1, 0), (old, "old", 2, 1)):
        assert {name: kernel[name] for name in expected} == expected
        assert (kernel["group"], kernel["variants"], kernel["autotune_variants"]) == (group, variants, 0)
        assert len(kernel["causes"]) == causes
    cause = {"argument": "bs", "kind": "int_class", "axis": ["bs"], "classes": ["=1", "any"], "without": 1}
    assert {name: old["causes"][0][name] for name in cause} == cause


def test_narrowing(jitaudit: Callable[..., Run], project: Path):
    run = jitaudit("probe", "sweeps.py::compared", "--axis", "bs=1,16..48:16", "--group", "old", "-o", "m.json")
    assert run.code == 0
    manifest = decode((project / "m.json").read_bytes(), "m.json")
    assert manifest.sweeps[0].axes["bs"] == ("1", "16..48:16")
    assert [(kernel.group, len(kernel.variants)) for kernel in manifest.kernels] == [("old", 2)]


def test_really_compiling_shows_binaries_that_are_the_same(jitaudit: Callable[..., Run], project: Path):
    """The body only compares `bs`, so that %16 buys nothing."""
    run = jitaudit("probe", "sweeps.py::ints", "--compile", "-o", "m.json")
    assert run.code == 0
    manifest = decode((project / "m.json").read_bytes(), "m.json")
    compiles = [variant.compile for variant in manifest.kernels[0].variants]
    assert all(compile is not None and compile.seconds["ttir"] > 0 for compile in compiles)
    assert len({compile.binary for compile in compiles if compile}) == 2
    assert "JA011" in {finding.code for finding in manifest.findings}


def test_a_launchers_own_output_is_no_data(jitaudit: Callable[..., Run], project: Path):
    (project / "loud.py").write_text(SWEEPS.replace("def fill(bs):\n", "def fill(bs):\n    print('loud')\n"))
    run = jitaudit("probe", "loud.py::compared", "--format", "json")
    assert json.loads(run.out)["kernels"]
    assert "loud" in run.err


def test_nothing_is_written_where_libraries_keep_their_caches(
    jitaudit: Callable[..., Run],
    project: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
):
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("TRITON_CACHE_DIR", str(home / "triton"))
    writes = "import pathlib\n(pathlib.Path.home() / 'tuned.json').write_text('1')\n"
    (project / "writes.py").write_text(SWEEPS + writes)
    assert jitaudit("probe", "writes.py::ints", "--compile").code == 0
    assert list(home.iterdir()) == []


def test_the_bytes_do_not_depend_on_the_hash_seed(project: Path):
    """A command of its own each time, as in CI, over all the sweeps: those that stop, too."""
    for seed in ("0", "1", "random"):
        subprocess.run(
            [Path(sys.executable).with_name("jitaudit"), "probe", "sweeps.py", "-o", f"{seed}.json"],
            env=os.environ | {"PYTHONHASHSEED": seed},
            check=False,
            capture_output=True,
        )
    assert len({(project / f"{seed}.json").read_bytes() for seed in ("0", "1", "random")}) == 1


def line_of(source: str) -> int:
    return next(number for number, line in enumerate(SWEEPS.splitlines(), 1) if source in line)


def files(folder: Path) -> set[str]:
    """Every file below, but what Python itself caches."""
    return {str(path) for path in folder.rglob("*") if "__pycache__" not in path.parts}
