"""The gate where people work: the Action, pre-commit and pytest, each in an environment that holds what it installs.

What the README shows of them is what is run.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
import sysconfig
import venv
from pathlib import Path

import pytest
import yaml
from sample import ROWS_CONSTEXPR, Answer, Edit, apply, committed, copied, git, jitaudit, run

REPOSITORY = Path(__file__).parents[2]
ACTION = yaml.safe_load((REPOSITORY / "action.yml").read_text())
MARKER = "<!-- jitaudit gate -->"

pytestmark = pytest.mark.xdist_group("gate places")

FAKE_GH = """#!/usr/bin/env bash
printf '%s\\n' "$*" >> "$GH_CALLS"
[[ $* == *--jq* ]] && cat "$GH_WRITTEN"
exit 0
"""


def readme(language: str, name: str) -> str:
    """A block of the README, by its language and the file that its first line names."""
    blocks = re.findall(
        rf"```{language}\n# {re.escape(name)}\n(.*?)```", (REPOSITORY / "README.md").read_text(), re.DOTALL
    )
    (block,) = blocks
    return block


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This tree as a repository of its own: a build leaves files in the source."""
    source = tmp_path_factory.mktemp("source")
    for name in ("jitaudit", "kernels"):
        shutil.copytree(REPOSITORY / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE", "action.yml", ".pre-commit-hooks.yaml"):
        shutil.copy(REPOSITORY / name, source)
    return committed(source)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory, source: Path) -> Path:
    """An environment in which the Action's first step has run; torch and Triton are found where this one has them."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    here = sysconfig.get_path("purelib")
    (packages / "base.pth").write_text(f"import site; site.addsitedir({here!r})\n")
    installed = step("Install", folder, folder, {"github.action_path": str(source)})
    assert installed.code == 0, installed.err
    place = run(folder, str(folder / "bin" / "python"), "-c", "import jitaudit; print(jitaudit.__file__)")
    assert place.out.startswith(str(packages)), "not the tree that is tested here"
    return folder


def step(name: str, environment: Path, folder: Path, values: dict[str, str], **variables: str) -> Answer:
    """Run one step of the Action as GitHub's runner does, with the expressions that `values` knows."""
    (found,) = [step for step in ACTION["runs"]["steps"] if step["name"] == name]
    assert found["shell"] == "bash"
    defaults = {f"inputs.{name}": given["default"] for name, given in ACTION["inputs"].items()}
    expressions = defaults | values

    def value(text: str) -> str:
        return re.sub(r"\$\{\{ (.*?) \}\}", lambda match: expressions[match[1]], text)

    path = f"{environment / 'bin'}{os.pathsep}{os.environ['PATH']}"
    written = {name: value(text) for name, text in found.get("env", {}).items()}
    shell = ("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", found["run"])
    return run(folder, *shell, **{"GITHUB_BASE_REF": "", "PATH": path} | written | variables)


def test_the_action_gates_a_pull_request(environment: Path, tmp_path: Path):
    origin = copied(tmp_path / "origin")
    (origin / "jitaudit.lock.json").unlink()
    committed(origin)
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", "--depth=1", origin.as_uri(), str(clone))
    git(clone, "switch", "--quiet", "--create", "pull")
    git(clone, "branch", "--delete", "--remotes", "origin/main")
    apply(clone, ROWS_CONSTEXPR)
    for name in ("summary", "output"):
        (tmp_path / name).touch()
    variables = {
        "GITHUB_BASE_REF": "main", "RUNNER_TEMP": str(tmp_path), "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
        "GITHUB_OUTPUT": str(tmp_path / "output"),
    }  # fmt: skip
    answer = step("Gate", environment, clone, {}, **variables)
    assert answer.code == 1, answer.err
    assert answer.out.startswith("::error file=rowscale/kernels.py,line=7,title=OVER ")
    assert "against origin/main" in answer.err
    assert (tmp_path / "summary").read_text().startswith(MARKER)
    assert (tmp_path / "output").read_text() == f"sarif={tmp_path}/jitaudit.sarif\n"
    assert json.loads((tmp_path / "jitaudit.sarif").read_text())["version"] == "2.1.0"
    refused = step("Gate", environment, clone, {"inputs.arguments": "--kernel nothing"}, **variables)
    assert refused.code == 2


@pytest.mark.parametrize(
    ("written", "outcome", "calls"),
    [
        (None, "success", []),
        (None, "failure", ["--silent repos/o/r/issues/7/comments --field body=@{file}"]),
        ("all is well", "success", []),
        ("all was bad", "success", ["--silent --method PATCH repos/o/r/issues/comments/41 --field body=@{file}"]),
    ],
)
def test_the_comment_edits_itself_and_is_quiet(tmp_path: Path, written: str | None, outcome: str, calls: list[str]):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "gh").write_text(FAKE_GH)
    (tmp_path / "bin" / "gh").chmod(0o755)
    body = tmp_path / "jitaudit.md"
    body.write_text(f"{MARKER}\nall is well\n")
    (tmp_path / "written").write_text("" if written is None else f"41\n{MARKER}\n{written}\n")
    values = {"inputs.token": "secret", "steps.gate.outcome": outcome}
    variables = {
        "RUNNER_TEMP": str(tmp_path), "GITHUB_REF": "refs/pull/7/merge", "GITHUB_REPOSITORY": "o/r",
        "GH_CALLS": str(tmp_path / "calls"), "GH_WRITTEN": str(tmp_path / "written"),
    }  # fmt: skip
    answer = step("Comment", tmp_path, tmp_path, values, **variables)
    assert answer.code == 0, answer.err
    listing, *others = (tmp_path / "calls").read_text().splitlines()
    assert listing.startswith("api --paginate repos/o/r/issues/7/comments --jq ")
    assert others == [f"api {call.format(file=body)}" for call in calls]


def test_the_comment_is_written_for_pull_requests_only(tmp_path: Path):
    values = {"inputs.token": "secret", "steps.gate.outcome": "failure"}
    answer = step("Comment", tmp_path, tmp_path, values, GITHUB_REF="refs/heads/main", RUNNER_TEMP=str(tmp_path))
    assert answer == Answer(0, "", "")


def test_the_workflow_that_the_readme_shows_fits_the_action():
    workflow = yaml.safe_load(readme("yaml", ".github/workflows/variants.yml"))
    (ours,) = [step for step in workflow["jobs"]["gate"]["steps"] if "jitaudit" in step["uses"]]
    assert ours["with"].keys() <= ACTION["inputs"].keys()


def test_the_hook_that_the_readme_shows_runs(environment: Path, source: Path, tmp_path: Path):
    folder = committed(copied(tmp_path / "repository"))
    shown = yaml.safe_load(readme("yaml", ".pre-commit-config.yaml"))
    shown["repos"][0] |= {"repo": source.as_uri(), "rev": git(source, "rev-parse", "HEAD")}
    (folder / ".pre-commit-config.yaml").write_text(yaml.safe_dump(shown))
    git(folder, "add", ".pre-commit-config.yaml")
    path = f"{environment / 'bin'}{os.pathsep}{os.environ['PATH']}"
    hook = (sys.executable, "-m", "pre_commit", "run", "--all-files")
    variables = {"PATH": path, "PRE_COMMIT_HOME": str(tmp_path / "home"), "PRE_COMMIT_COLOR": "never"}
    passed = run(folder, *hook, **variables)
    assert (passed.code, passed.out.rstrip()[-6:]) == (0, "Passed"), passed.out + passed.err
    apply(folder, Edit("rowscale/kernels.py", '(do_not_specialize=["rows"])\ndef gather', "\ndef gather"))
    failed = run(folder, *hook, **variables)
    assert failed.code == 1
    assert "NEW  rowscale.kernels:gather_kernel: 2 variants of 3 not allowed yet" in failed.out


def test_the_tests_that_the_readme_shows_run(environment: Path, tmp_path: Path):
    folder = copied(tmp_path)
    (folder / "test_rowscale.py").unlink()
    (folder / "test_readme.py").write_text(readme("python", "test_variants.py"))
    passed = run(folder, str(environment / "bin" / "python"), "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert passed.code == 0, passed.out
    assert "2 passed" in passed.out


def test_the_configuration_that_the_readme_shows_is_the_samples():
    shown = readme("toml", "pyproject.toml")
    lines = [line.partition("#")[0].strip() for line in shown.splitlines()]
    written = (Path(__file__).parents[1] / "samples" / "rowscale" / "pyproject.toml").read_text().splitlines()
    assert [line for line in lines if line] == [line for line in written if line][3:]


def test_the_commands_that_the_readme_shows_run(tmp_path: Path):
    """Those with a base are run by the Action's test and by test_gate_base.py."""
    section = (REPOSITORY / "README.md").read_text().partition("## In CI")[2]
    shown = [shlex.split(line, comments=True)[1:] for line in section.splitlines() if line.startswith("jitaudit gate")]
    bases = [command[2] for command in shown if "--base" in command]
    assert bases == ["origin/main", "pypi:liger-kernel==0.8.4"]
    folder = copied(tmp_path)
    for command in shown:
        if "--base" not in command:
            answer = jitaudit(folder, *command)
            assert answer.code == 0, answer.out + answer.err
