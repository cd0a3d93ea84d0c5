"""What the gate refuses, in words, and what it needs: no Triton for a manifest, 15 seconds for the shipped kernels."""

from __future__ import annotations

import sys
from datetime import date
from pathlib import Path

import pytest
from sample import SAMPLE, Edit, apply, copied, jitaudit, jitaudit_here, run

from jitaudit import configuration
from jitaudit.configuration import Configuration, Ignore
from jitaudit.gating.drift import Scope
from jitaudit.gating.verdicts import CODES, NOTES, Breach, Verdict, notes
from jitaudit.ruling import page

REPOSITORY = Path(__file__).parents[2]
WHOLE = Scope(whole=True)
IGNORE = "[[tool.jitaudit.ignore]]\nkernel = '*'\n"


def test_without_a_configuration_it_says_how_to_start(tmp_path: Path):
    answer = jitaudit_here(tmp_path, "gate")
    assert (answer.code, answer.out) == (2, "")
    assert 'write sweeps = ["sweeps.py"] under [tool.jitaudit] in pyproject.toml' in answer.err
    assert "jitaudit gate sweeps.py --update --reason" in answer.err


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("[tool.jitaudit\n", "not TOML"),
        ("[tool.jitaudit]\nsweep = []", "[tool.jitaudit] Object contains unknown field `sweep`; the keys are sweeps, "),
        ("[tool.jitaudit]\nsweeps = 'sweeps.py'", "Expected `array`, got `str` - at `$.sweeps`"),
        ("[tool.jitaudit]\ndrift = 'maybe'", "Invalid enum value 'maybe' - at `$.drift`"),
        ("[tool.jitaudit.budget]\ndefault = -1", "budget 'default' = -1: a budget is a number of variants"),
        ("[tool.jitaudit.budget]\ndefault = 'few'", "Expected `int`, got `str`"),
        (f"{IGNORE}code = 'JA301'", "missing required field `reason`"),
        (f"{IGNORE}code = 'JA301'\nreason = ' '", "ignore JA301 '*': say why in reason"),
        (f"{IGNORE}code = 'JA999'\nreason = 'x'", "ignore JA999 '*': the gate's codes are JA006, JA301, "),
        (f"{IGNORE}code = 'JA301'\nreason = 'x'\nuntil = 'soon'", "Invalid RFC3339 encoded date - at `$.ignore"),
    ],
)  # fmt: skip
def test_a_configuration_that_makes_no_sense_is_refused(tmp_path: Path, written: str, words: str):
    (tmp_path / "pyproject.toml").write_text(written)
    answer = jitaudit_here(tmp_path, "gate")
    assert (answer.code, answer.err.count("\n")) == (2, 1), answer.err
    assert words in answer.err
    assert f"{tmp_path}/pyproject.toml: " in answer.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--update"], '--update and --reason go together: jitaudit gate --update --reason "why"'),
        (["--reason", "why"], "--update and --reason go together"),
        (["--update", "--reason", " "], "say why with --reason"),
        (["--base", "main", "--tighten"], "nothing is written against a base"),
        (["--axis", "rows=1..4", "--update", "--reason", "why"], "the lock and the budgets hold for the sweeps as"),
        (["missing.json"], "missing.json: no such file"),
        (["jitaudit.lock.json"], "jitaudit.lock.json: not a manifest"),
        (["m.json", "sweeps.py"], "m.json: a manifest is read as it is"),
        (["missing.py"], "missing.py: no such file"),
        (["-o", "nowhere/gate.sarif"], "nowhere/gate.sarif: no such directory"),
        (["-o", "sweeps.py"], "sweeps.py: exists; give another -o, or --force"),
        (["-o", "rowscale"], "rowscale: is a directory"),
    ],
)  # fmt: skip
def test_a_request_that_makes_no_sense_is_refused(arguments: list[str], words: str):
    answer = jitaudit_here(SAMPLE, "gate", *arguments)
    assert (answer.code, answer.out) == (2, ""), answer.err
    assert words in answer.err


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        ('"rowscale.kernels:idle_kernel"', "budget 'rowscale.kernels:idle_kernel': no sweep launches such a kernel"),
        ('"nothing.*"', "launched are rowscale.kernels:gather_kernel, rowscale.kernels:scale_kernel"),
    ],
)
def test_a_budget_that_binds_no_kernel_is_refused(tmp_path: Path, budget: str, words: str):
    folder = copied(tmp_path, Edit("pyproject.toml", "default = 4", f"{budget} = 4"))
    answer = jitaudit(folder, "gate")
    assert (answer.code, answer.out) == (2, ""), answer.err
    assert words in answer.err


def test_a_kernel_glob_that_matches_nothing_is_refused():
    answer = jitaudit(SAMPLE, "gate", "--kernel", "nothing*")
    assert (answer.code, "--kernel nothing*: no kernel matches; there are rowscale" in answer.err) == (2, True)


def test_a_lock_that_cannot_be_used_is_refused(tmp_path: Path):
    lock = copied(tmp_path) / "jitaudit.lock.json"
    lock.write_text(lock.read_text().replace('"schema_version": 1', '"schema_version": 9'))
    newer = jitaudit_here(tmp_path, "gate")
    assert (newer.code, "a newer jitaudit wrote it; upgrade jitaudit" in newer.err) == (2, True)
    lock.unlink()
    lock.mkdir()
    folder = jitaudit_here(tmp_path, "gate")
    assert (folder.code, "jitaudit.lock.json: can't be read: Is a directory" in folder.err) == (2, True)


def test_jitaudit_toml_takes_the_same_keys(tmp_path: Path):
    (tmp_path / "jitaudit.toml").write_text("sweeps = ['a.py', 'b.module']\n[budget]\n'*@floored' = 3\n")
    project = configuration.read(tmp_path)
    assert project.targets == (str(tmp_path / "a.py"), "b.module")
    assert project.configuration.budget_of("m:kernel", "floored") == ("*@floored", 3)
    assert project.configuration.budget_of("m:kernel", None) is None


def test_a_manifest_is_gated_without_torch_and_triton(tmp_path: Path):
    folder = copied(tmp_path)
    assert jitaudit(folder, "probe", "-o", "m.json").code == 0
    apply(folder, Edit("pyproject.toml", "= 3", "= 2"))
    loaded = "import atexit, sys; atexit.register(lambda: print({'torch', 'triton'} & sys.modules.keys()));"
    answer = run(folder, sys.executable, "-c", f"{loaded} from jitaudit.cli import main; main()", "gate", "m.json")
    assert answer.code == 1, answer.err
    assert "OVER  rowscale.kernels:scale_kernel: 3 variants, budget 2" in answer.out
    assert "  run     jitaudit explain m.json --kernel rowscale.kernels:scale_kernel\n" in answer.out
    assert answer.out.endswith("set()\n")
    other = jitaudit(folder, "gate", "m.json", "--target", "hip:gfx942")
    assert (other.code, "it is for cuda:90, not for --target hip:gfx942" in other.err) == (2, True)


@pytest.mark.matrix
def test_the_shipped_kernels_keep_to_their_lock():
    answer = jitaudit(REPOSITORY, "gate")
    assert answer.code == 0, answer.out
    assert "against jitaudit.lock.json" in answer.err


def suppressed(code: str, until: date | None) -> Configuration:
    return Configuration(ignore=(Ignore(code=code, kernel="*", reason="for now", until=until),))


def over(fails: bool = True) -> Verdict:
    breach = Breach("JA301", "9 variants, budget 8", "n moves", "mend it", "jitaudit explain", fails=fails)
    return Verdict(target="cuda:90", kernel="m:kernel", variants=9, budget=8, breaches=(breach,))


@pytest.mark.parametrize(
    ("code", "until", "scope", "expected"),
    [
        ("JA301", None, WHOLE, []),
        ("JA301", date(2027, 1, 1), WHOLE, []),
        ("JA301", date(2026, 12, 31), WHOLE, ["JA308"]),
        ("JA303", None, WHOLE, ["JA307"]),
        ("JA303", None, Scope(whole=False), []),
    ],
)
def test_suppressions_are_noted_when_nothing_needs_them(
    code: str, until: date | None, scope: Scope, expected: list[str]
):
    found = notes([over()], suppressed(code, until), scope, date(2027, 1, 1))
    assert [note.code for note in found] == expected


def test_loose_budgets_are_noted_where_all_of_their_kernels_were_seen():
    configured = Configuration(budget={"m:*@floored": 12, "m:*": 9, "default": 99})
    assert [note.code for note in notes([over()], configured, WHOLE, date(2027, 1, 1))] == []
    loose = Configuration(budget={"m:*": 12})
    assert [note.code for note in notes([over()], loose, WHOLE, date(2027, 1, 1))] == ["JA309"]
    assert notes([over()], loose, Scope(whole=True, groups=("floored",)), date(2027, 1, 1)) == ()


def test_each_code_has_its_page():
    for code, name in ({code: name for code, (name, _) in CODES.items()} | NOTES).items():
        assert page(code).startswith(f"# {code} {name}\n")
