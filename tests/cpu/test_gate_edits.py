"""What the gate says of each edit of the sample repository: exit code and words, as golden files.

``pytest tests/cpu/test_gate_edits.py --update-golden`` writes the files anew; review their diff.
"""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from sample import ROWS_CONSTEXPR, SAMPLE, Edit, copied, jitaudit

GOLDEN = Path(__file__).parent / "golden" / "gate"

KERNELS, LAUNCHERS, SWEEPS = "rowscale/kernels.py", "rowscale/launchers.py", "sweeps.py"

EDITS: dict[str, tuple[int, str, tuple[Edit, ...]]] = {
    "unchanged": (0, "PASS", ()),
    "comment-above-a-kernel": (
        0,
        "PASS",
        (Edit(KERNELS, "@triton.jit", "# Why the batch stays out of the key.\n@triton.jit"),),
    ),
    "rows-made-constexpr": (1, "OVER", (ROWS_CONSTEXPR,)),
    "rows-made-constexpr-without-budget": (
        1,
        "UNBOUNDED",
        (
            ROWS_CONSTEXPR,
            Edit("pyproject.toml", '"rowscale.kernels:scale_kernel" = 3\ndefault = 4', ""),
        ),
    ),
    "dns-entry-removed": (
        1,
        "NEW",
        (Edit(KERNELS, '@triton.jit(do_not_specialize=["rows"])\ndef gather', "@triton.jit\ndef gather"),),
    ),
    "new-flag": (
        1,
        "NEW",
        (
            Edit(
                KERNELS,
                "    index_ptr,  # [rows]\n    rows,",
                "    index_ptr,  # [rows]\n    rows,\n    NEGATE: tl.constexpr,",
            ),
            Edit(LAUNCHERS, "(out, table, index, rows)", "(out, table, index, rows, NEGATE=False)"),
        ),
    ),
    "unaligned-view": (
        1,
        "NEW",
        (
            Edit(
                SWEEPS,
                'torch.empty(rows, dtype=torch.int32, device="cuda")',
                'torch.empty(rows + 1, dtype=torch.int32, device="cuda")[1:]',
            ),
        ),
    ),
    "renamed-kernel": (
        1,
        "NEW",
        (
            Edit(KERNELS, "def gather_kernel", "def pick_kernel"),
            Edit(LAUNCHERS, "import gather_kernel, scale_kernel", "import pick_kernel, scale_kernel"),
            Edit(LAUNCHERS, "    gather_kernel[", "    pick_kernel["),
        ),
    ),
    "case-removed": (1, "GONE", (Edit(SWEEPS, "columns=[64, 128, 256]", "columns=[64, 128]"),)),
    "kernel-without-a-sweep": (
        1,
        "NEVER LAUNCHED",
        (
            Edit(
                SWEEPS,
                "import jitaudit\n",
                "import triton\n\nimport jitaudit\n\n\n@triton.jit\ndef idle_kernel(x_ptr):\n    pass\n",
            ),
        ),
    ),
    "sweep-that-raises": (
        1,
        "NOT COUNTED",
        (Edit(SWEEPS, "def gather(rows):\n", "def gather(rows):\n    assert rows < 20, 'too many rows'\n"),),
    ),
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_has_its_verdict(tmp_path: Path, pytestconfig: pytest.Config, name: str):
    code, word, edits = EDITS[name]
    answer = jitaudit(copied(tmp_path, *edits), "gate")
    words = f"exit {answer.code}\n{answer.out}{answer.err}".replace(f"{tmp_path}/", "")
    golden = GOLDEN / f"{name}.txt"
    if pytestconfig.getoption("--update-golden"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(words)
    assert (answer.code, word in answer.out) == (code, True), words
    assert words == golden.read_text()


@pytest.mark.parametrize("name", [name for name, (code, _, _) in EDITS.items() if code])
def test_a_failure_fits_a_screen_and_ends_in_a_command(name: str):
    lines = (GOLDEN / f"{name}.txt").read_text().splitlines()[1:-1]
    assert len(lines) <= 20
    assert lines[-1].startswith("  run     jitaudit ")


def test_the_commands_run(tmp_path: Path):
    name = "renamed-kernel"
    commands = [line.removeprefix("  run     ") for line in golden_lines(name) if line.startswith("  run     ")]
    folder = copied(tmp_path, *EDITS[name][2])
    for command in commands:
        answer = jitaudit(folder, *shlex.split(command.removeprefix("jitaudit ")))
        assert answer.code == 0, answer.err


def golden_lines(name: str) -> list[str]:
    return (GOLDEN / f"{name}.txt").read_text().splitlines()


def test_the_samples_lock_is_the_one_that_an_update_writes(tmp_path: Path):
    folder = copied(tmp_path)
    (folder / "jitaudit.lock.json").unlink()
    assert jitaudit(folder, "gate", "--update", "--reason", "first lock").code == 0
    assert (folder / "jitaudit.lock.json").read_text() == (SAMPLE / "jitaudit.lock.json").read_text()
