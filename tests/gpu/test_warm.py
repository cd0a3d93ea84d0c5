"""Warmed with no GPU in sight, launched on a real one: no compile; warmed in the process, nothing at all.

The passes are those of `jitaudit stall`: each in a process of its own, timed around Triton's own functions.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from jitaudit import manifest as manifests
from jitaudit.jit.timing import Kind
from jitaudit.model import Manifest
from jitaudit.planning import Cache, Sources
from jitaudit.sweeping import Narrowing, run
from jitaudit.sweeping.serving import Served, Serving, serve_cases
from jitaudit.sweeping.targets import read_target
from jitaudit.warming import Settings, warm_cache

LAUNCHERS = Path(__file__).parents[1] / "launchers"
SHIPPED = ("jitaudit_kernels", {"bs": "1..33", "valid": "1..17", "total": "17", "offset": "0..15"})
WORKLOADS = [
    (*SHIPPED, "baseline"),
    (*SHIPPED, "floored"),
    (f"{LAUNCHERS / 'fla_delta_rules.py'}::fused_recurrent_gdn", {"T": "1..8"}, None),
]
TUNED = (f"{LAUNCHERS / 'fla_modules.py'}::rotary", {"T": "1..4"}, None)
NOTHING: set[tuple[Kind, str]] = set()


def target() -> str:
    major, minor = torch.cuda.get_device_capability()
    return f"cuda:{major * 10 + minor}"


def probed(launcher: str, axes: dict[str, str], group: str | None) -> Manifest:
    return run([launcher], target(), Narrowing(axes=axes, groups=(group,) if group else ()))


def warm_without_a_gpu(manifest: Manifest, launcher: str, directory: Path) -> None:
    """The command, in a process that sees no GPU."""
    path = directory.with_suffix(".json")
    manifests.write(manifest, path)
    command = [sys.executable, "-c", "from jitaudit.cli import main; main()", "warm", path, "--cache-dir", directory]
    if ".py" in launcher:
        command += ["--sweeps", launcher.partition("::")[0]]
    subprocess.run(command, check=True, env=os.environ | {"CUDA_VISIBLE_DEVICES": ""})


def served(launcher: str, axes: dict[str, str], group: str | None, cache: Path, warm: Manifest | None = None) -> Served:
    request = Serving(read_target(launcher), target(), group, axes, gpu=True, warm=warm, cache_directory=str(cache))
    done = serve_cases(request, lambda sweep, case, cases: None)
    assert [step.error for step in done.first if step.error] == []
    return done


def waits(done: Served) -> set[tuple[Kind, str]]:
    """Each kind of wait, and the kernel."""
    return {(wait.kind, wait.kernel) for step in done.first for wait in step.waits}


def kinds(done: Served) -> set[Kind]:
    return {kind for kind, _ in waits(done)}


@pytest.mark.parametrize(("launcher", "axes", "group"), WORKLOADS)
def test_warmed_without_a_gpu_nothing_compiles_on_one(
    launcher: str, axes: dict[str, str], group: str | None, tmp_path: Path
) -> None:
    assert "compile" in kinds(served(launcher, axes, group, tmp_path / "empty"))  # so the check can fail
    manifest = probed(launcher, axes, group)
    warm_without_a_gpu(manifest, launcher, tmp_path / "cache")
    cold_process = served(launcher, axes, group, tmp_path / "cache")
    assert "compile" not in kinds(cold_process)
    assert "module load" in kinds(cold_process)
    assert waits(served(launcher, axes, group, tmp_path / "cache", warm=manifest)) == NOTHING


def test_tuned_ahead_nothing_is_benchmarked(tmp_path: Path) -> None:
    launcher, axes, group = TUNED
    manifest = probed(launcher, axes, group)
    sources = Sources((launcher.partition("::")[0],), targets=(launcher,))
    cache = Cache(str(tmp_path / "cache"), "test")
    plain = warm_cache(manifest, sources, cache, Settings(jobs=os.cpu_count() or 1), lambda *progress: None)
    assert plain.unknown_winners
    assert "benchmark" in kinds(served(launcher, axes, group, tmp_path / "cache", warm=manifest))
    tuned = warm_cache(manifest, sources, cache, Settings(jobs=1, gpu=True), lambda *progress: None)
    assert tuned.tuned is not None
    assert (tuned.tuned.device, tuned.tuned.raised) == (torch.cuda.get_device_name(), ())
    assert (tuned.unknown_winners, tuned.host_builds) == (0, 0)
    assert waits(served(launcher, axes, group, tmp_path / "cache", warm=manifest)) == NOTHING


MOVED = """
import os, sys, torch
from triton import knobs
import jitaudit
from jitaudit_kernels.draft_seqlens import sweep_draft_seqlens
warm = sys.argv[1:]
if warm:
    jitaudit.warm(warm[0])
torch.compile(lambda x: (x * 2).relu())(torch.ones(64, device="cuda"))
compiled = []
knobs.compilation.listener = lambda **event: compiled.append(not event["cache_hit"])
sweep_draft_seqlens(bs=7, policy="floored", steps=3, first_offset=1, dtype=torch.int32)
print(os.environ["TRITON_CACHE_DIR"], compiled.count(True), flush=True)
"""


def test_inductor_moves_the_cache_and_a_warm_process_does_not_care(tmp_path: Path) -> None:
    """Check says so beforehand; `jitaudit.warm` in the process is the road."""
    home = tmp_path / "home"
    environ = {name: value for name, value in os.environ.items() if name != "TRITON_CACHE_DIR"}
    environ |= {"TRITON_HOME": str(home), "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "inductor")}
    manifest = probed("jitaudit_kernels.draft_seqlens", {"bs": "7"}, "floored")
    path = tmp_path / "m.json"
    manifests.write(manifest, path)

    def told(*command: str | Path) -> str:
        python = (sys.executable, "-X", "faulthandler", "-c")
        done = subprocess.run([*python, *command], env=environ, capture_output=True, text=True)
        assert done.stdout, (done.returncode, done.stderr)
        return done.stdout

    jitaudit = "from jitaudit.cli import main; main()"
    assert "1 compiled" in told(jitaudit, "warm", path)
    said = told(jitaudit, "check", path)
    assert "HIT" in said
    assert f"Inductor's first graph moves Triton's cache to {tmp_path / 'inductor'}" in said
    directory, compiled = told(MOVED).split()
    assert (directory.startswith(str(tmp_path / "inductor")), compiled) == (True, "1")
    environ["TORCHINDUCTOR_CACHE_DIR"] = str(tmp_path / "another")  # a graph that Inductor finds again moves nothing
    directory, compiled = told(MOVED, path).split()
    assert (directory.startswith(str(tmp_path / "another")), compiled) == (True, "0")
