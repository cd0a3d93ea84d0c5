"""Warm: what it compiles, a fresh Triton finds; what it can't compile, it says, and the others go on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from forks import checked, warmed

from jitaudit.jit.marker import read_markers
from jitaudit.manifest import encode
from jitaudit.model import Compile, Manifest
from jitaudit.planning import Planned
from jitaudit.probing import Probe
from jitaudit.report import warm as warm_report
from jitaudit.sweeping import Narrowing
from jitaudit.warming.queue import Queue

pytestmark = pytest.mark.matrix
HERE = Path(__file__).parent


@pytest.fixture
def manifest(probe_here: Callable[..., Probe]) -> Callable[..., Manifest]:
    """``manifest("copy_kernel", …)``: the manifest of the quick kernels, only these."""

    def of(*kernels: str) -> Manifest:
        return Narrowing(kernels=kernels).of(probe_here("warm_kernels").manifest)

    return of


def run(*command: str | Path, code: int = 0, **environ: str) -> str:
    """What a command of jitaudit prints: JSON alone, text with its notes. The quick kernels are installed for it."""
    done = subprocess.run(
        [sys.executable, "-c", "from jitaudit.cli import main; main()", *map(str, command)],
        env=os.environ | {"PYTHONPATH": f"{HERE}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"} | environ,
        capture_output=True,
        text=True,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout if "json" in command else done.stdout + done.stderr


LAUNCHES = """
import json, sys
import warm_kernels
from jitaudit.jit.rebuild import compiling_for
from jitaudit.jit import decoding
from triton import knobs
compiled = []
knobs.compilation.listener = lambda **event: compiled.append(not event["cache_hit"])
with compiling_for("cuda:90"):
    for arguments in json.load(sys.stdin):
        made = {name: decoding.argument(text) for name, text in arguments.items()}
        warm_kernels.copy_kernel.run(grid=(1,), warmup=True, **made)
print(compiled.count(True), len(compiled))
"""


def launches(manifest: Manifest, directory: Path) -> tuple[int, int]:
    """Compiles and look-ups in a fresh process that launches each variant through Triton's own code."""
    arguments = [variant.key.arguments for kernel in manifest.kernels for variant in kernel.variants]
    done = subprocess.run(
        [sys.executable, "-c", LAUNCHES],
        input=json.dumps(arguments),
        env=os.environ
        | {"TRITON_CACHE_DIR": str(directory), "PYTHONPATH": f"{HERE}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"},
        capture_output=True,
        text=True,
        check=True,
    )
    compiled, looked_up = map(int, done.stdout.split())
    return compiled, looked_up


def test_what_is_warmed_is_hit_by_a_fresh_process(manifest: Callable[..., Manifest], tmp_path: Path) -> None:
    wanted = manifest("copy_kernel")
    assert checked(wanted, tmp_path / "cache").hits == 0
    done = warmed(wanted, tmp_path / "cache")
    assert (done.compiled, done.present, done.failed, done.complete) == (6, 0, (), True)
    assert launches(wanted, tmp_path / "cache") == (0, 6)
    assert checked(wanted, tmp_path / "cache").hits == 6
    assert launches(wanted, tmp_path / "empty") == (6, 6)  # the listener does see compiles


def test_a_second_run_does_nothing_and_says_so(manifest: Callable[..., Manifest], tmp_path: Path) -> None:
    wanted = manifest("copy_kernel")
    first = warmed(wanted, tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    again = warmed(wanted, tmp_path)
    assert again.nothing_to_do
    assert (again.compiled, again.present, again.marker) == (0, 6, first.marker)
    assert "nothing to do, all 6 are there" in warm_report.text(again)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()} == before


def test_the_marker_lists_every_file_with_its_digest(manifest: Callable[..., Manifest], tmp_path: Path) -> None:
    wanted = manifest("copy_kernel")
    done = warmed(wanted, tmp_path)
    (marker,) = read_markers(tmp_path).readable.values()
    assert Path(done.marker or "").parent == tmp_path / "jitaudit"
    assert {variant.key.text for variant in marker.variants} == {v.key.text for v in wanted.kernels[0].variants}
    listed = {path for variant in marker.variants for path in variant.files}
    there = {
        str(path.relative_to(tmp_path))
        for path in tmp_path.rglob("*")
        if path.is_file() and "jitaudit" not in path.parts
    }
    assert listed == there
    reordered = msgspec.structs.replace(wanted, kernels=tuple(reversed(wanted.kernels)))
    assert warmed(reordered, tmp_path).marker == done.marker


def test_a_variant_that_does_not_compile_does_not_stop_the_others(
    manifest: Callable[..., Manifest], tmp_path: Path
) -> None:
    done = warmed(manifest("cast_kernel", "copy_kernel"), tmp_path)
    (failed,) = done.failed
    assert (done.compiled, done.complete) == (7, False)
    assert failed.key.arguments["n"] == "i32 =1"
    assert "has no attribute 'to'" in failed.reason
    (miss,) = checked(manifest("cast_kernel"), tmp_path).misses
    assert miss.code == "JA211"
    assert "has no attribute 'to'" in miss.message


def test_a_compile_that_takes_too_long_is_named_and_the_others_finish(
    manifest: Callable[..., Manifest], tmp_path: Path
) -> None:
    done = warmed(manifest("unrolled_kernel", "copy_kernel"), tmp_path, timeout=2.0)
    (failed,) = done.failed
    assert failed.key.arguments["STEPS"] == "constexpr int 20000"
    assert failed.reason == "took longer than the timeout of 2 s"
    assert done.compiled == 7
    assert done.slowest[0].key == failed.key


def test_the_same_disk_hash_is_compiled_once(manifest: Callable[..., Manifest], tmp_path: Path) -> None:
    wanted = manifest("copy_kernel")
    twice = tuple(msgspec.structs.replace(wanted.kernels[0], group=group) for group in ("baseline", "floored"))
    done = warmed(msgspec.structs.replace(wanted, kernels=twice), tmp_path)
    assert (done.variants, done.compiled) == (12, 6)
    assert len(list(tmp_path.glob("*/__grp__*"))) == 6


def test_generic_adds_the_variant_without_classes(manifest: Callable[..., Manifest], tmp_path: Path) -> None:
    wanted = manifest("copy_kernel")
    aligned = tuple(v for v in wanted.kernels[0].variants if "unaligned" not in v.key.text)
    some = msgspec.structs.replace(wanted, kernels=(msgspec.structs.replace(wanted.kernels[0], variants=aligned),))
    done = warmed(some, tmp_path, generic=True)
    assert (done.variants, done.compiled) == (4, 4)
    (marker,) = read_markers(tmp_path).readable.values()
    assert {
        "dst_ptr": "*fp32 unaligned", "src_ptr": "*fp32 unaligned", "n": "i32 any", "BLOCK": "constexpr int 16"
    } in [variant.key.arguments for variant in marker.variants]  # fmt: skip


def test_a_budget_takes_what_most_cases_need_first(manifest: Callable[..., Manifest]) -> None:
    (kernel,) = manifest("copy_kernel").kernels
    planned = [
        Planned(kernel.id, None, variant.key, "copy_kernel", str(number), "", "", 1, cases, seconds)
        for number, (variant, cases, seconds) in enumerate(
            zip(kernel.variants, (10, 20, 90, 5, 0, 7), (1.0, 1.0, 30.0, 1.0, 1.0, 900.0), strict=True)
        )
    ]
    queue = Queue(planned, budget=100.0)
    assert [queue.next() for _ in range(6)] == [1, 0, 3, 2, 4, None]  # the last would outlast the budget
    longest_first = Queue(planned)
    assert [longest_first.next() for _ in range(3)] == [5, 2, 0]


def test_what_a_budget_leaves_is_said_and_is_no_failure(manifest: Callable[..., Manifest], tmp_path: Path) -> None:
    wanted = manifest("copy_kernel")
    (kernel,) = wanted.kernels
    long = Compile(binary="", seconds={"cubin": 1e6})
    variants = tuple(msgspec.structs.replace(v, compile=long) if "=1" in v.key.text else v for v in kernel.variants)
    kernel = msgspec.structs.replace(kernel, variants=variants)
    done = warmed(msgspec.structs.replace(wanted, kernels=(kernel,)), tmp_path, budget=1000.0)
    assert (done.compiled, len(done.left), done.complete) == (4, 2, True)
    assert {left.key.arguments["n"] for left in done.left} == {"i32 =1"}
    assert "the budget of 1000 s was spent" in warm_report.text(done)


def test_tuning_keys_stay_untuned_without_a_gpu(manifest: Callable[..., Manifest], tmp_path: Path) -> None:
    wanted = manifest("tuned_kernel")
    done = warmed(wanted, tmp_path)
    assert (done.compiled, done.unknown_winners) == (len(wanted.kernels[0].variants), 2)
    assert "2 tuning keys" in warm_report.text(done)
    found = checked(wanted, tmp_path)
    assert (found.misses, len(found.untuned[0].keys), found.passes) == ((), 2, False)


def test_what_can_not_be_found_again_is_said_not_raised(manifest: Callable[..., Manifest], tmp_path: Path) -> None:
    wanted = manifest("*")
    copy = next(kernel for kernel in wanted.kernels if kernel.id.endswith(":copy_kernel"))
    closure = next(kernel for kernel in wanted.kernels if kernel.object is None)
    lost = msgspec.structs.replace(copy.variants[0].key, arguments=copy.variants[0].key.arguments | {"m": "i32 any"})
    variant = msgspec.structs.replace(copy.variants[0], key=lost)
    changed = msgspec.structs.replace(
        copy.variants[0].key, arguments=copy.variants[0].key.arguments | {"BLOCK": "i32 any"}
    )
    kernels = {
        "no module no_such_module is installed": msgspec.structs.replace(copy, id="no_such_module:copy_kernel"),
        "no longer holds the kernel gone": msgspec.structs.replace(copy, id="warm_kernels:gone", object="gone"),
        "raised on import at": msgspec.structs.replace(copy, id="this_raises:copy_kernel"),
        "lives in the file x.py: give that file with --sweeps": msgspec.structs.replace(copy, id="x.py:copy_kernel"),
        "no parameter m any more": msgspec.structs.replace(copy, variants=(variant,)),
        "BLOCK: 'i32 any' became": msgspec.structs.replace(
            copy, group="a", variants=(msgspec.structs.replace(copy.variants[0], key=changed),)
        ),
        "a closure or generated code": closure,
    }
    (tmp_path / "this_raises.py").write_text("raise OSError('no licence')\n")
    sys.path.append(str(tmp_path))
    try:
        done = warmed(msgspec.structs.replace(wanted, kernels=tuple(kernels.values())), tmp_path / "cache")
    finally:
        sys.path.remove(str(tmp_path))
    assert (done.compiled, len(done.unplanned)) == (0, len(kernels))
    for (expected, _), found in zip(kernels.items(), done.unplanned, strict=True):
        assert expected in found.reason
    assert not (tmp_path / "cache").exists()


def test_the_command(manifest: Callable[..., Manifest], tmp_path: Path) -> None:
    (tmp_path / "m.json").write_bytes(encode(manifest("copy_kernel")))
    cache = tmp_path / "cache"
    assert "6 compiled" in run("warm", tmp_path / "m.json", "--cache-dir", cache)
    assert "HIT" in run("check", tmp_path / "m.json", TRITON_CACHE_DIR=str(cache))
    assert (
        msgspec.json.decode(run("warm", tmp_path / "m.json", "--format", "json", TRITON_CACHE_DIR=str(cache)))[
            "present"
        ]
        == 6
    )


def test_a_kernel_in_a_file_needs_that_file(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "pyproject.toml").touch()
    (project / "mine.py").write_text((HERE / "warm_kernels.py").read_text())
    cache, kernels = ("--cache-dir", tmp_path / "cache"), ("--kernel", "cast_kernel")
    run("probe", project / "mine.py", *kernels, "-o", tmp_path / "m.json")
    told = run("warm", tmp_path / "m.json", *cache, code=1)
    assert "mine.py:cast_kernel (2 variants): it lives in the file mine.py: give that file with --sweeps" in told
    assert "1 compiled" in run("warm", tmp_path / "m.json", "--sweeps", project / "mine.py", *cache, code=1)


ON_THE_GPU_AT_IMPORT = """
import torch, triton, triton.language as tl, jitaudit

TABLE = torch.zeros(4, device="cuda")

@triton.jit
def read_kernel(table_ptr, n):
    tl.store(table_ptr, n)

@jitaudit.sweep(n=[1, 2])
def read(n):
    read_kernel[(1,)](TABLE, n)
"""


def test_a_file_that_puts_a_tensor_on_the_gpu_when_it_is_imported(tmp_path: Path) -> None:
    """As modules of real libraries do; probe stands in for the GPU, and so must what imports the file again."""
    (tmp_path / "sweeps.py").write_text(ON_THE_GPU_AT_IMPORT)
    given = "--sweeps", tmp_path / "sweeps.py", "--cache-dir", tmp_path / "cache"
    run("probe", tmp_path / "sweeps.py", "-o", tmp_path / "m.json")
    assert "2 compiled" in run("warm", tmp_path / "m.json", *given)
    assert "HIT" in run("check", tmp_path / "m.json", *given)
