"""`jitaudit explain`, `--diff` and `rule` as commands: what they read, what they refuse, and how they end."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import msgspec
import pytest
import torch
from hand_made import manifest_of
from sample import Answer, jitaudit, run

from jitaudit.manifest import decode, write
from jitaudit.model import Manifest

HERE = Path(__file__).parent

SWEEPS = """
import torch
import triton
import triton.language as tl

import jitaudit


@triton.jit
def scale_kernel(x_ptr, n, LENGTH: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, tl.load(x_ptr + offsets) * LENGTH, mask=offsets < n)


@jitaudit.sweep(n=jitaudit.ints(1, 16))
def scale(n):
    scale_kernel[(1,)](torch.empty(64, device="cuda"), n, LENGTH=n, BLOCK=64)
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a sweep file, and the manifest `m.json` of it."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "sweeps.py").write_text(SWEEPS)
    (folder / "pyproject.toml").write_text("")
    assert jitaudit(folder, "probe", "sweeps.py", "-o", "m.json").code == 0
    return folder


def explain(folder: Path, *arguments: str, **environment: str) -> Answer:
    return jitaudit(folder, "explain", *arguments, **environment)


def test_a_manifest_is_explained_without_torch_or_triton(project: Path):
    blocked = "import sys; sys.modules.update(torch=None, triton=None); from jitaudit.cli import main; main()"
    answer = run(project, sys.executable, "-c", blocked, "explain", "m.json")
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.splitlines()[0] == "sweeps.py:scale_kernel: 16 variants, 1 intended; growth linear"


def test_a_target_is_probed_first(project: Path):
    answer = explain(project, "sweeps.py", "--axis", "n=1..3", "--format", "json")
    assert answer.code == 0
    (one,) = json.loads(answer.out)["kernels"]
    assert (one["variants"], one["intended"]) == (3, 1)


def test_the_result_is_written_once(project: Path):
    assert explain(project, "m.json", "-o", "e.json").code == 0
    again = explain(project, "m.json", "-o", "e.json")
    assert (again.code, again.out) == (2, "")
    assert json.loads((project / "e.json").read_text())["target"] == "cuda:90"


def test_two_runs_give_the_same_bytes(project: Path):
    for form in ("json", "text", "markdown"):
        outputs = {explain(project, "m.json", "-v", "--format", form, PYTHONHASHSEED=seed).out for seed in "017"}
        assert len(outputs) == 1


def test_compiling_needs_the_file_of_a_files_sweeps(project: Path):
    answer = explain(project, "m.json", "--compile")
    assert answer.code == 0
    assert "NOTE sweeps.py:scale: not compiled: it lives in a file; say which with --sweeps sweeps.py" in answer.out
    assert "confirmed" not in answer.out


def test_a_gpu_that_is_not_here_ends_with_the_static_price(project: Path):
    if torch.cuda.is_available():
        pytest.skip("a GPU is here")
    answer = explain(project, "m.json", "--gpu", "--sweeps", "sweeps.py")
    assert answer.code == 3
    assert "--gpu: torch sees no GPU here" in answer.err
    assert "16 → 3, confirmed; " in answer.out.replace("\n", " ")


def test_a_kernel_that_can_no_longer_be_imported(project: Path, tmp_path: Path):
    (tmp_path / "sweeps.py").write_text(SWEEPS.replace("def scale_kernel", "def renamed_kernel"))
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "m.json").write_bytes((project / "m.json").read_bytes())
    answer = explain(tmp_path, "m.json", "--compile", "--sweeps", "sweeps.py")
    assert answer.code == 0
    assert "NOTE sweeps.py:scale_kernel: not compiled: no case launches it any more" in answer.out
    (tmp_path / "sweeps.py").write_text("import nowhere_to_be_found\n")
    answer = explain(tmp_path, "m.json", "--compile", "--sweeps", "sweeps.py")
    assert answer.code == 0
    assert "NOTE not compiled: sweeps.py: raised on import at" in answer.out
    assert "plan (kernel) make LENGTH a runtime argument" in answer.out


def test_another_target_than_the_manifests(project: Path):
    answer = explain(project, "m.json", "--target", "hip:gfx942")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err == ("jitaudit: --target hip:gfx942: m.json is for cuda:90; probe again for another target\n")
    assert explain(project, "m.json", "--target", "cuda:90").code == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("m.json", "sweeps.py"), "m.json: a manifest is read as it is: no TARGET or --axis beside it"),
        (("m.json", "--axis", "n=1"), "m.json: a manifest is read as it is: no TARGET or --axis beside it"),
        (("nowhere.json",), "nowhere.json: no such file"),
        (("nowhere.py",), "nowhere.py: no such file"),
        (("m.json", "--kernel", "missing"), "--kernel missing: no kernel matches; there are sweeps.py:scale_kernel"),
        (("m.json", "--diff"), "--diff: takes two manifests or targets, got 1"),
    ],
)
def test_bad_requests(project: Path, arguments: tuple[str, ...], words: str):
    answer = explain(project, *arguments)
    assert (answer.code, answer.out, answer.err) == (2, "", f"jitaudit: {words}\n")


def test_no_variants(tmp_path: Path):
    write(msgspec.structs.replace(manifest_of({}), kernels=()), tmp_path / "m.json")
    answer = explain(tmp_path, "m.json")
    assert (answer.code, answer.out) == (0, "no variants: no case launched a kernel\n")


def test_what_a_warm_up_missed(tmp_path: Path):
    """Rows 21 and 24: the flag and the stride's class are named, with the nearest variant that was warmed."""
    probe = ("probe", f"{HERE}/explain_kernels.py::chunk_scan")
    assert jitaudit(tmp_path, *probe, "-o", "warmed.json").code == 0
    wider = ("--axis", "sequences=1..3", "--axis", "continued=false,true", "--axis", "columns=64,65")
    assert jitaudit(tmp_path, *probe, *wider, "-o", "traffic.json").code == 0
    answer = explain(tmp_path, "--diff", "warmed.json", "traffic.json")
    assert answer.code == 1
    head, *lines = answer.out.splitlines()
    assert head.endswith("explain_kernels.py:scan_kernel: 3 variants beside the 1 known")
    assert lines == [
        "  constexpr HAS_INITIAL_STATE=True was never warmed (2 of them)",
        "  stride neither 1 nor divisible by 16 was never warmed (2 of them)",
    ]
    everything = explain(tmp_path, "--diff", "warmed.json", "traffic.json", "-v").out
    assert "    nearest: HAS_INITIAL_STATE was bool False, is bool True; stride was i32 %16, is i32 any\n" in everything
    assert explain(tmp_path, "--diff", "traffic.json", "warmed.json").code == 0
    found = json.loads(explain(tmp_path, "--diff", "warmed.json", "traffic.json", "--format", "json").out)
    assert [len(new["parts"]) for new in found["kernels"][0]["new"]] == [1, 1, 2]


def test_known_classes_in_a_new_combination(tmp_path: Path):
    first = manifest_of({"i32 =1": {(0, 0)}, "i32 any": {(1, 0)}})
    known = first.kernels[0].variants
    first = _with(first, known[0], _keyed(known[1], n="i32 =1"))
    second = _with(first, *first.kernels[0].variants, _keyed(known[1], n="i32 any"))
    write(first, tmp_path / "a.json")
    write(second, tmp_path / "b.json")
    answer = explain(tmp_path, "--diff", "a.json", "b.json")
    assert answer.code == 1
    assert answer.out.splitlines() == [
        "NEW s.py:k: 1 variant beside the 2 known",
        "  known classes in a new combination (1): nearest: x was i32 =1, is i32 any",
    ]


def test_a_kernel_that_the_first_never_launched(tmp_path: Path):
    second = manifest_of({"i32 any": {(0, 0)}})
    write(msgspec.structs.replace(second, kernels=()), tmp_path / "a.json")
    write(second, tmp_path / "b.json")
    answer = explain(tmp_path, "--diff", "a.json", "b.json")
    assert (answer.code, answer.out) == (1, "NEW s.py:k: 1 variant; the first never launched this kernel\n")


def test_rule_is_a_command(tmp_path: Path):
    answer = jitaudit(tmp_path, "rule", "JA008")
    assert (answer.code, answer.out.splitlines()[0]) == (0, "# JA008 linear-growth")
    assert jitaudit(tmp_path, "rule").out.splitlines()[0] == "JA001 constexpr-in-dns"
    assert jitaudit(tmp_path, "rule", "JA9").code == 2


def _with(manifest: Manifest, *variants: object) -> Manifest:
    kernel = msgspec.structs.replace(manifest.kernels[0], variants=variants)
    return decode(msgspec.json.encode(msgspec.structs.replace(manifest, kernels=(kernel,))), "made by hand")


def _keyed(variant: object, **arguments: str) -> object:
    key = msgspec.structs.replace(variant.key, arguments=variant.key.arguments | arguments)
    return msgspec.structs.replace(variant, key=key)
