"""What surrounds Triton: what jitaudit reads from files is what an import of Triton, torch or libtriton says."""

from __future__ import annotations

import json
import os
import pwd
import sys
import tempfile
from pathlib import Path

import msgspec
import pytest
from surroundings import BLOCKED, DIAGNOSE, empty_home, entry, executable, printed, run, subjects, unprivileged

from jitaudit.doctor import Diagnosis, diagnose
from jitaudit.errors import SetupError
from jitaudit.jit.environment import c_compiler, cache_setting, environment, gpus, package, variables


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return empty_home(tmp_path, monkeypatch)


# --- versions -------------------------------------------------------------------------------------------------------


@pytest.mark.matrix
def test_environment_has_the_versions_that_an_import_brings() -> None:
    import torch
    import triton

    found = environment()
    assert (found.triton, found.torch) == (triton.__version__, torch.__version__)
    assert found.python == ".".join(map(str, sys.version_info[:3]))
    assert subjects(diagnose()) == []


def test_the_distribution_is_named() -> None:
    assert package("triton").distributions == ("triton",)


def test_nothing_of_torch_or_triton_is_imported() -> None:
    code = "import sys, jitaudit.doctor as d; d.diagnose(); print(sorted({'torch', 'triton'} & set(sys.modules)))"
    assert run(code).strip() == "[]"


def test_without_triton_and_torch() -> None:
    diagnosis = msgspec.json.decode(run(BLOCKED + DIAGNOSE), type=Diagnosis)
    assert diagnosis.triton.version is diagnosis.torch.version is None
    assert subjects(diagnosis) == ["Triton", "torch"]
    assert diagnosis.cache.inductor_moves_to is None
    assert "WARN  Triton       not installed; install jitaudit[triton]" in printed(diagnosis)


def test_environment_without_triton_is_a_setup_error() -> None:
    code = (
        BLOCKED
        + "import jitaudit.jit.environment as e\ntry: e.environment()\nexcept Exception as error: print(repr(error))"
    )
    assert run(code).startswith(f"{SetupError.__name__}('Triton is not installed")


def test_an_unsupported_triton_beside_a_torch_that_cannot_be_imported(tmp_path: Path) -> None:
    for name, version in (("triton", "3.10.0"), ("torch", "2.9.1+rocm6")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise ImportError\n__version__ = '0'\n")
        (tmp_path / name / "version.py").write_text(f"__version__: str = '{version}'\n")
    diagnosis = msgspec.json.decode(run(DIAGNOSE, path=(tmp_path,)), type=Diagnosis)
    assert (diagnosis.triton.version, diagnosis.torch.version) == ("3.10.0", "2.9.1+rocm6")
    assert subjects(diagnosis) == ["Triton"]
    assert "3.10.0 is not supported" in printed(diagnosis)


def test_two_distributions_over_one_another(tmp_path: Path) -> None:
    for name in ("pytorch_triton_rocm", "triton"):
        information = tmp_path / f"{name}-3.7.0.dist-info"
        information.mkdir()
        (information / "METADATA").write_text(f"Name: {name}\nVersion: 3.7.0\n")
        (information / "top_level.txt").write_text("triton\n")
    diagnosis = msgspec.json.decode(run(DIAGNOSE, path=(tmp_path,)), type=Diagnosis)
    assert diagnosis.triton.distributions == ("pytorch_triton_rocm", "triton")
    assert subjects(diagnosis) == ["Triton"]


# --- what enters the key --------------------------------------------------------------------------------------------

LISTED = """
import json, os, re, triton._C.libtriton as lib
data = open(lib.__file__, "rb").read()
words = re.findall(rb"(?<![A-Za-z0-9_])[A-Z]{2,}[A-Z0-9]*(?:_[A-Z0-9]{2,})+(?![A-Za-z0-9_])", data)
os.environ.update(dict.fromkeys({word.decode() for word in words}, "1"))
print(json.dumps(sorted(lib.get_cache_invalidating_env_vars())))
"""

OPTIONS_HASH = """
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import make_backend
given = {"debug": knobs.runtime.debug, "instrumentation_mode": knobs.compilation.instrumentation_mode}
if hasattr(knobs.compilation, "fpsan_homomorphic_casts"):
    given["fpsan_homomorphic_casts"] = knobs.compilation.fpsan_homomorphic_casts
for target in (GPUTarget("cuda", 80, 32), GPUTarget("cuda", 100, 32), GPUTarget("hip", "gfx942", 64)):
    backend = make_backend(target)
    try:
        print(backend.hash(), backend.parse_options(given).hash())
    except OSError as error:  # TRITON_AMD_CODEGEN_PATH is asked for its revision, and ours is no library
        print(error)
"""


@pytest.mark.matrix
def test_every_variable_that_triton_lists_is_known_and_the_others_enter_the_options(tmp_path: Path) -> None:
    """Against libtriton itself: every word in the binary is set, and it says which of them it would hash."""
    import triton

    known = variables(triton.__version__)
    listed = json.loads(run(LISTED))
    assert len(listed) > 30
    assert sorted(set(listed) - set(known)) == []
    plain = run(OPTIONS_HASH)
    ptxas = executable(tmp_path / "ptxas", "#!/bin/sh\necho 'Cuda compilation tools, release 99.9, V99.9.9'\n")
    for name in sorted(set(known) - set(listed)):
        value = {"TRITON_MOCK_PTX_VERSION": "8.0", "TRITON_INSTRUMENTATION_MODE": "consan"}.get(name, "1")
        assert run(OPTIONS_HASH, {**os.environ, name: str(ptxas) if name.endswith("_PATH") else value}) != plain, name


@pytest.mark.parametrize(
    ("triton", "new"), [("3.7.1", "TRITON_PLUGIN_PATHS"), ("3.9.0", "TRITON_FORCE_DISABLE_FP_FUSION")]
)
def test_variables_follow_the_version(triton: str, new: str) -> None:
    assert new in variables(triton)
    assert new not in variables("3.6.0")
    assert variables(None).keys() == variables("3.9.0").keys() == variables("3.10.0").keys()


def test_unset_differs_from_empty_and_from_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_DEBUG", "0")
    monkeypatch.setenv("USE_IR_LOC", "")
    monkeypatch.delenv("DISABLE_LLVM_OPT", raising=False)
    found = diagnose().variables
    assert (found["TRITON_DEBUG"], found["USE_IR_LOC"], found["DISABLE_LLVM_OPT"]) == ("0", "", None)
    assert "TRITON_DEBUG=0" in printed(diagnose())


# --- the cache directory in force -----------------------------------------------------------------------------------

SETTINGS: list[tuple[dict[str, str], str, str]] = [
    ({}, "{home}/.triton/cache", "default"),
    ({"HOME": "/"}, "/.triton/cache", "default"),
    ({"TRITON_HOME": "/srv"}, "/srv/.triton/cache", "TRITON_HOME"),
    ({"TRITON_HOME": ""}, ".triton/cache", "TRITON_HOME"),
    ({"TRITON_HOME": "/srv", "TRITON_CACHE_DIR": "/fast"}, "/fast", "TRITON_CACHE_DIR"),
    ({"TRITON_CACHE_DIR": "here"}, "here", "TRITON_CACHE_DIR"),
    ({"TRITON_CACHE_DIR": ""}, "", "TRITON_CACHE_DIR"),
]


@pytest.mark.matrix
@pytest.mark.parametrize(("given", "path", "decided_by"), SETTINGS)
def test_cache_directory_is_the_one_triton_uses(
    given: dict[str, str], path: str, decided_by: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    path = path.format(home=home)
    assert (cache_setting().path, cache_setting().decided_by) == (path, decided_by)
    assert run("import triton.knobs; print(triton.knobs.cache.dir)") == f"{path}\n"


def test_a_user_without_a_home_gets_a_relative_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(_: int) -> pwd.struct_passwd:
        raise KeyError

    monkeypatch.setattr(pwd, "getpwuid", nobody)
    for name in ("HOME", "LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    diagnosis = diagnose()
    assert diagnosis.cache.setting.path == "~/.triton/cache"
    assert subjects(diagnosis) == ["cache"]
    assert "a relative path: it moves with the working directory" in printed(diagnosis)
    assert (
        diagnosis.cache.inductor_moves_to == f"{tempfile.gettempdir()}/torchinductor_uid_{os.getuid()}/triton/<device>"
    )


def test_inductor_would_move_it_where_torch_says(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._inductor.runtime.cache_dir_utils import default_cache_dir

    assert diagnose().cache.inductor_moves_to == f"{default_cache_dir()}/triton/<device>"
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "/graphs")
    assert diagnose().cache.inductor_moves_to == "/graphs/triton/<device>"
    monkeypatch.setenv("TRITON_CACHE_DIR", "/kept")
    assert diagnose().cache.inductor_moves_to is None


def test_a_file_in_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "cache"
    file.touch()
    for path in (file, file / "below" / "it"):
        monkeypatch.setenv("TRITON_CACHE_DIR", str(path))
        diagnosis = diagnose()
        assert diagnosis.cache.obstacle == f"{file} is not a directory"
        assert diagnosis.cache.usage is None
        assert subjects(diagnosis) == ["cache"]


def test_a_directory_that_this_user_cannot_write(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o555)
        monkeypatch.setenv("TRITON_CACHE_DIR", f"{directory}/cache")
        with unprivileged():
            diagnosis = diagnose()
        assert diagnosis.cache.obstacle == f"this user can't write in {directory}"
        assert "WARN  cache " in printed(diagnosis)
        os.chmod(directory, 0o777)
        with unprivileged():
            assert diagnose().cache.obstacle is None


def test_a_manager_replaces_the_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_MANAGER", "triton.runtime.cache:RemoteCacheManager")
    monkeypatch.setenv("TRITON_REMOTE_CACHE_BACKEND", "ours:Backend")
    diagnosis = diagnose()
    assert (diagnosis.cache.setting.manager, diagnosis.cache.setting.remote) == (
        "triton.runtime.cache:RemoteCacheManager",
        "ours:Backend",
    )
    assert subjects(diagnosis) == ["cache"]


@pytest.mark.parametrize("name", ["TRITON_INTERPRET", "TRITON_ALWAYS_COMPILE"])
def test_a_switch_that_defeats_the_cache(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "0")
    assert subjects(diagnose()) == []
    monkeypatch.setenv(name, "1")
    assert subjects(diagnose()) == [name]
    assert f"WARN  {name}" in printed(diagnose())


# --- compiler and GPUs ----------------------------------------------------------------------------------------------


def test_the_compiler_that_triton_picks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CC")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert c_compiler().path is None
    assert subjects(diagnose()) == ["C compiler"]
    clang = executable(tmp_path / "bin" / "clang")
    assert (c_compiler().path, c_compiler().decided_by) == (str(clang), "PATH")
    gcc = executable(tmp_path / "bin" / "gcc")
    assert c_compiler().path == str(gcc)
    monkeypatch.setenv("CC", "clang")
    assert (c_compiler().path, c_compiler().decided_by) == (str(clang), "CC")
    monkeypatch.setenv("CC", "ccache gcc")
    assert c_compiler().path is None
    assert "CC=ccache gcc can't be run" in printed(diagnose())


def test_gpus_from_the_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    for bus in ("0000:18:00.0", "0000:2a:00.0"):
        entry(tmp_path / "proc/driver/nvidia/gpus" / bus)
        (tmp_path / "proc/driver/nvidia/gpus" / bus / "information").write_text("Model: \t\t NVIDIA H200\nIRQ:  1\n")
    for node, version in enumerate((0, 90402, 90010)):
        entry(tmp_path / f"sys/class/kfd/kfd/topology/nodes/{node}")
        properties = tmp_path / f"sys/class/kfd/kfd/topology/nodes/{node}/properties"
        properties.write_text(f"cpu_cores_count 0\ngfx_target_version {version}\n")
    assert gpus(tmp_path) == ("NVIDIA H200", "NVIDIA H200", "AMD gfx942", "AMD gfx90a")


def test_gpus_from_nvidia_smi_where_proc_tells_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert gpus(tmp_path) == ()
    executable(tmp_path / "bin" / "nvidia-smi", "#!/bin/sh\necho NVIDIA L4\n")
    assert gpus(tmp_path) == ("NVIDIA L4",)
    executable(tmp_path / "bin" / "nvidia-smi", "#!/bin/sh\necho couldn't communicate; exit 9\n")
    assert gpus(tmp_path) == ()
