"""What `pip install jitaudit` does to an environment that already serves with a torch and a Triton of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]

pytestmark = pytest.mark.xdist_group("install")

# A ROCm server: its torch is older than the [triton] extra asks for, and its Triton comes under another name.
SERVING = {"torch": ("torch", "2.9.1"), "pytorch-triton-rocm": ("triton", "3.5.1")}


def run(*command: str | Path) -> str:
    """The output of a command that must succeed, run outside the repository, with nothing of it on the path."""
    environ = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "COLUMNS")}
    answer = subprocess.run(command, env=environ, cwd="/", capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that this tree builds, from a copy: a build leaves files in the source."""
    source = tmp_path_factory.mktemp("source")
    for name in ("jitaudit", "kernels"):
        shutil.copytree(REPOSITORY / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, source)
    run(sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", source / "dist", source)
    (built,) = (source / "dist").glob("*.whl")
    return built


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Path:
    """The `bin` of an environment with SERVING in it, after `pip install jitaudit`."""
    directory = tmp_path_factory.mktemp("server")
    venv.create(directory, with_pip=True)
    (packages,) = directory.glob("lib/python*/site-packages")
    for distribution, (module, version) in SERVING.items():
        stand_in(packages, distribution, module, version)
    before = frozen(directory)
    assert before == {name: version for name, (_, version) in SERVING.items()}
    run(directory / "bin/pip", "install", "--quiet", "--constraint", REPOSITORY / "constraints.txt", wheel)
    return directory / "bin"


def stand_in(packages: Path, distribution: str, module: str, version: str) -> None:
    """A distribution as pip knows one, whose module only says its version."""
    (packages / module).mkdir()
    (packages / module / "__init__.py").write_text(f"__version__ = {version!r}\n")
    information = packages / f"{distribution.replace('-', '_')}-{version}.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
    (information / "top_level.txt").write_text(f"{module}\n")
    (information / "RECORD").write_text(f"{module}/__init__.py,,\n")
    (information / "INSTALLER").write_text("pip\n")


def frozen(directory: Path) -> dict[str, str]:
    """Version by distribution, pip and setuptools left out."""
    lines = run(directory / "bin/pip", "list", "--format=freeze").split()
    versions = dict(line.split("==") for line in lines)
    return {name: version for name, version in versions.items() if name not in ("pip", "setuptools")}


def test_neither_torch_nor_triton_changes(server: Path) -> None:
    after = frozen(server.parent)
    assert after["jitaudit"] == "0.1.0"
    serving = {name: version for name, version in after.items() if "torch" in name or "triton" in name}
    assert serving == {name: version for name, (_, version) in SERVING.items()}
    assert not [name for name in after if name.startswith(("nvidia", "cuda"))]
    run(server / "pip", "check")
    for module, version in SERVING.values():
        assert run(server / "python", "-c", f"import {module}; print({module}.__version__)") == f"{version}\n"


def test_the_command_and_both_packages_are_there(server: Path) -> None:
    for name in ("doctor", "probe"):
        assert name in run(server / "jitaudit", "--help")
    places = run(
        server / "python", "-c", "import jitaudit, jitaudit_kernels as k; print(jitaudit.__file__, k.__file__)"
    )
    assert all(place.startswith(str(server.parent)) for place in places.split()), places


def test_the_doctor_names_what_serves_there(server: Path) -> None:
    shown = run(server / "jitaudit", "doctor")
    assert "3.5.1 (pytorch-triton-rocm)" in shown
    assert "3.5.1 is not supported" in shown
    assert "2.9.1 (torch)" in shown


def test_every_module_ships(server: Path) -> None:
    """The packages are listed by hand, since a mapped directory can't be found; a new one must be in the list."""
    (packages,) = server.parent.glob("lib/python*/site-packages")
    for source, installed in (("jitaudit", "jitaudit"), ("kernels", "jitaudit_kernels")):
        written = {file.relative_to(REPOSITORY / source) for file in (REPOSITORY / source).rglob("*.py")}
        shipped = {file.relative_to(packages / installed) for file in (packages / installed).rglob("*.py")}
        assert written == shipped
    assert (packages / "jitaudit" / "py.typed").is_file()


def test_the_constraints_pin_what_the_extras_name() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    pins = dict(
        line.lower().split("==")
        for line in (REPOSITORY / "constraints.txt").read_text().splitlines()
        if not line.startswith("#")
    )
    asked = [
        *project["dependencies"],
        *project["optional-dependencies"]["triton"],
        *project["optional-dependencies"]["test"],
    ]
    names = {requirement.lower().partition("[")[0].split(">")[0].split("=")[0] for requirement in asked}
    assert names - pins.keys() == set()
    assert (pins["torch"], pins["triton"]) == ("2.13.0", "3.7.1")
