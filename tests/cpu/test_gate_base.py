"""``--base``: what a branch gained and lost against another revision, or one release against another."""

from __future__ import annotations

from pathlib import Path

import pytest
from sample import ROWS_CONSTEXPR, Answer, Edit, apply, committed, copied, git, jitaudit

NO_DNS = Edit("rowscale/kernels.py", '@triton.jit(do_not_specialize=["rows"])\ndef gather', "@triton.jit\ndef gather")
NEW_LAUNCHER = (
    Edit(
        "rowscale/launchers.py",
        "def gather_rows",
        'def double_rows(x: torch.Tensor) -> None:\n    """Double x[rows, columns] in place."""\n'
        "    scale_rows(x, torch.full((x.shape[0],), 2.0, device=x.device))\n\n\ndef gather_rows",
    ),
    Edit("rowscale/__init__.py", "from rowscale.launchers import", "from rowscale.launchers import double_rows,"),
    Edit("sweeps.py", "from rowscale import", "from rowscale import double_rows,"),
)
NEW_SWEEP = (
    "\n\n@jitaudit.sweep(rows=[1, 2])\ndef double(rows):\n    double_rows(torch.empty(rows, 64, device='cuda'))\n"
)

LIGER = """
import torch
from liger_kernel.transformers import functional as F

import jitaudit


def bf16(*shape):
    return torch.empty(shape, dtype=torch.bfloat16, device="cuda", requires_grad=True)


@jitaudit.sweep(tokens=[1, 2, 16])
def rms_norm(tokens):
    out = F.liger_rms_norm(bf16(tokens, 2048), bf16(2048), 1e-6, in_place=False)
    torch.autograd.backward([out], [torch.empty_like(out)])


@jitaudit.sweep(tokens=[1, 2, 16])
def swiglu(tokens):
    F.liger_swiglu(bf16(tokens, 2048), bf16(tokens, 2048))
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """The sample without its lock, committed on main, with the branch `edit` checked out."""
    folder = copied(tmp_path / "repository")
    (folder / "jitaudit.lock.json").unlink()
    committed(folder)
    git(folder, "switch", "--quiet", "--create", "edit")
    return folder


def gate(folder: Path, *arguments: str) -> Answer:
    return jitaudit(folder, "gate", *arguments)


def test_a_branch_is_held_against_what_it_left(repository: Path):
    git(repository, "switch", "--quiet", "main")
    apply(repository, NO_DNS)
    git(repository, "commit", "--quiet", "--all", "--message=main moves on")
    git(repository, "switch", "--quiet", "edit")
    apply(repository, ROWS_CONSTEXPR)
    answer = gate(repository, "--base", "main")
    assert answer.code == 1
    assert "OVER  rowscale.kernels:scale_kernel: 96 variants, budget 3" in answer.out
    assert "also    NEW: 96 variants of 96 not allowed yet, 3 gone" in answer.out
    assert "gather_kernel" not in answer.out, "what main did since is not this branch's"
    assert f"against main ({git(repository, 'rev-parse', '--short=7', 'edit')})" in answer.err
    assert git(repository, "worktree", "list").count("\n") == 0
    assert git(repository, "status", "--porcelain") == "M rowscale/kernels.py", "nothing is left behind"


def test_a_sweep_that_the_base_cannot_run_hides_no_other(repository: Path):
    for edit in (*NEW_LAUNCHER, NO_DNS):
        apply(repository, edit)
    sweeps = repository / "sweeps.py"
    sweeps.write_text(sweeps.read_text() + NEW_SWEEP)
    answer = gate(repository, "--base", "main")
    assert answer.code == 1
    assert "NEW SWEEP  sweeps.py:double: it does not run on main" in answer.out
    assert "NEW  rowscale.kernels:gather_kernel: 2 variants of 3 not allowed yet\n" in answer.out
    assert "rowscale.kernels:scale_kernel" not in answer.out


def test_the_sweeps_of_today_run_on_the_base(repository: Path):
    apply(repository, Edit("sweeps.py", "columns=[64, 128, 256]", "columns=[64, 128, 256, 512]"))
    apply(repository, Edit("pyproject.toml", "= 3", "= 4"))
    answer = gate(repository, "--base", "main")
    assert (answer.code, answer.out) == (0, "PASS  2 kernels, 5 variants\n"), answer.err


def test_kernels_beside_their_sweeps_come_from_the_base(repository: Path):
    file = repository / "sweeps.py"
    both = file.read_text().replace("from rowscale import gather_rows, scale_rows\n", "import triton\n")
    for name in ("kernels", "launchers"):
        source = (repository / "rowscale" / f"{name}.py").read_text()
        both += source.partition("import triton.language as tl\n" if name == "kernels" else "scale_kernel\n")[2]
    file.write_text(both.replace("import triton\n", "import triton\nimport triton.language as tl\n"))
    apply(repository, Edit("pyproject.toml", '"rowscale.kernels:scale_kernel" = 3', ""))
    git(repository, "commit", "--quiet", "--all", "--message=one file")
    apply(repository, NO_DNS._replace(file="sweeps.py"))
    answer = gate(repository, "--base", "HEAD")
    assert answer.code == 1
    assert "NEW  sweeps.py:gather_kernel: 2 variants of 3 not allowed yet\n" in answer.out


def test_sweeps_inside_the_package_run_on_the_base(repository: Path):
    git(repository, "mv", "sweeps.py", "rowscale/sweeps.py")
    apply(repository, Edit("pyproject.toml", '"sweeps.py"', '"rowscale.sweeps"'))
    git(repository, "commit", "--quiet", "--all", "--message=inside")
    apply(repository, NO_DNS)
    apply(
        repository,
        Edit("rowscale/sweeps.py", "@jitaudit.sweep(rows=jitaudit.ints(1, 32))", "@jitaudit.sweep(rows=[1, 3])"),
    )
    answer = gate(repository, "--base", "HEAD")
    assert answer.code == 1
    assert "NEW  rowscale.kernels:gather_kernel: 1 variant of 2 not allowed yet\n" in answer.out


def test_one_release_against_another(tmp_path: Path):
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "liger.py").write_text(LIGER)
    answer = gate(tmp_path, "liger.py", "--base", "pypi:liger-kernel==0.8.4")
    assert answer.code == 1, answer.err
    assert "against liger-kernel 0.8.4" in answer.err
    assert (
        "NEW  liger_kernel.ops.rms_norm:_rms_norm_backward_kernel: 3 variants of 3 not allowed yet, 3 gone"
        in answer.out
    )
    assert "COMPUTE_DW: absent → constexpr bool True" in answer.out
    assert "PASS  2 kernels" in answer.out


@pytest.mark.parametrize(
    ("base", "words"),
    [
        ("nowhere", "git knows no such revision; fetch it first"),
        ("--upload-pack=x", "git knows no such revision"),
        ("pypi:liger-kernel", "write pypi:NAME==VERSION"),
        ("pypi:liger-kernel==0.0.0.dev1", "there is no such release; the newest are"),
    ],
)  # fmt: skip
def test_a_base_that_is_not_there_is_refused(repository: Path, base: str, words: str):
    answer = gate(repository, f"--base={base}")
    assert (answer.code, words in answer.err) == (2, True), answer.err


def test_without_a_repository_there_is_no_revision(tmp_path: Path):
    answer = gate(copied(tmp_path / "alone"), "--base", "main")
    assert (answer.code, "is in no git repository" in answer.err) == (2, True), answer.err
