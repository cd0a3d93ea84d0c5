"""`jitaudit stall` where no GPU is: real compiles in serving order, and every figure from them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from jitaudit import manifest as manifests
from jitaudit import stalling
from jitaudit.jit.timing import Stopwatch
from jitaudit.report import stall as stall_report
from jitaudit.stalling import KINDS, Stalls, traffic
from jitaudit.sweeping import Narrowing, Progress, run
from jitaudit.sweeping.serving import Served, Serving, serve_cases
from jitaudit.sweeping.targets import read_target

LAUNCHERS = """
import torch, triton, triton.language as tl, jitaudit

@triton.jit
def fill_kernel(out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, n, mask=offsets < n)

@jitaudit.sweep(bs=[1, 2, 3, 16, 17], policy=["baseline", "floored"], compare="policy")
def fill(bs, policy):
    out = torch.empty(64, dtype=torch.int32, device="cuda")
    fill_kernel[(1,)](out, bs, BLOCK=triton.next_power_of_2(bs) if policy == "baseline" else 64)

@jitaudit.sweep(bs=[1, 2, 3])
def raises_at_two(bs):
    if bs == 2:
        raise RuntimeError("no two")
    fill_kernel[(1,)](torch.empty(64, dtype=torch.int32, device="cuda"), bs, BLOCK=64)

@jitaudit.sweep(bs=jitaudit.ints(1, 400))
def long(bs):
    out = torch.empty(64, dtype=torch.int32, device="cuda")
    fill_kernel[(1,)](out, bs, BLOCK=64, num_warps=1 << bs % 4, maxnreg=32 + bs)
"""


@pytest.fixture(scope="module")
def launchers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("stall") / "launchers.py"
    path.write_text(LAUNCHERS)
    return path


def stall(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from jitaudit.cli import main; main()", "stall", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd)


@pytest.fixture(scope="module")
def measured(launchers: Path) -> tuple[Stalls, dict[str, list[dict[str, object]]], str]:
    """All passes over `fill`, once: the result, its trace, and what a person sees."""
    folder = launchers.parent
    done = stall("launchers.py::fill", "--repeat", "1", "-o", "s.json", "--trace", "t.json", cwd=folder)
    assert done.returncode == 0, done.stderr
    result = msgspec.json.decode((folder / "s.json").read_bytes(), type=Stalls)
    return result, json.loads((folder / "t.json").read_text()), done.stdout


def test_each_pass_compiles_the_variants_that_it_reaches(measured: tuple[Stalls, object, str]) -> None:
    stalls, _, _ = measured
    assert {one.name: one.variants for one in stalls.passes} == {"baseline": 5, "floored": 3, "warmed": 0}


def test_a_case_stands_still_where_its_variant_is_new(measured: tuple[Stalls, object, str]) -> None:
    stalls, _, _ = measured
    still = {one.name: [step.case for step in one.steps if step.waits] for one in stalls.passes}
    assert still == {
        "baseline": ["bs=1", "bs=2", "bs=3", "bs=16", "bs=17"],
        "floored": ["bs=1", "bs=2", "bs=16"],
        "warmed": [],
    }


def test_the_parts_sum_to_the_one_time_cost(measured: tuple[Stalls, object, str]) -> None:
    for one in measured[0].passes:
        assert sum(part.median for part in one.parts.values()) == pytest.approx(one.one_time.median, rel=0.05)
        assert one.one_time.median == pytest.approx(sum(step.seconds for step in one.steps), rel=0.05)


def test_stages_explain_a_compile(measured: tuple[Stalls, object, str]) -> None:
    waits = [wait for one in measured[0].passes for step in one.steps for wait in step.waits]
    assert len(waits) == 8
    for wait in waits:
        assert {"ttir", "ttgir", "llir", "ptx", "cubin"} <= set(wait.stages)
        assert 0 < sum(wait.stages.values()) <= wait.seconds


def test_the_trace_has_a_track_for_each_kind(measured: tuple[Stalls, dict[str, list[dict[str, Any]]], str]) -> None:
    events = measured[1]["traceEvents"]
    names = [event for event in events if event["name"] == "thread_name"]
    assert {event["args"]["name"] for event in names} == {"case", *KINDS[:-1]}
    numbers = [event["tid"] for event in names]
    assert len(set(numbers)) == len(numbers) == 18  # Perfetto joins threads of one number, whatever their process
    assert not set(numbers) & {0, *(event["pid"] for event in events)}
    compiles = [event for event in events if event["ph"] == "X" and "kernel" in event["args"]]
    assert {event["tid"] % 100 for event in compiles} == {1}
    starts = [event["ts"] for event in compiles if event["pid"] == 1]
    assert starts == sorted(starts)


def test_the_trace_says_which_variant_and_why_it_is_new(
    measured: tuple[Stalls, dict[str, list[dict[str, Any]]], str],
) -> None:
    compiles = [event for event in measured[1]["traceEvents"] if event["ph"] == "X" and "kernel" in event["args"]]
    assert [(event["pid"], event["args"]["case"], event["args"]["cause"]) for event in compiles] == [
        (1, "bs=1", "first variant"),
        (1, "bs=2", "n was i32 =1, is i32 any; BLOCK was int 1, is int 2"),
        (1, "bs=3", "BLOCK was int 2, is int 4"),
        (1, "bs=16", "n was i32 =1, is i32 %16; BLOCK was int 1, is int 16"),
        (1, "bs=17", "BLOCK was int 2, is int 32"),
        (2, "bs=1", "first variant"),
        (2, "bs=2", "n was i32 =1, is i32 any"),
        (2, "bs=16", "n was i32 =1, is i32 %16"),
    ]
    assert compiles[1]["args"]["variant"] == "BLOCK: constexpr int 2, n: i32 any, out_ptr: *i32 aligned"
    assert "compile fill_kernel (BLOCK was int 2, is int 32)" in " ".join(measured[2].split())


def test_the_first_line_says_what_was_not_measured(measured: tuple[Stalls, object, str]) -> None:
    assert measured[2].startswith("No GPU: only the compile part")
    assert "floored against baseline: one-time cost " in measured[2]


def test_a_variant_left_out_of_the_warm_up_stalls_alone(launchers: Path, tmp_path: Path) -> None:
    target = f"{launchers}::fill"
    manifest = Narrowing(groups=("floored",)).of(run([target], "cuda:90", Narrowing()))
    (kernel,) = manifest.kernels
    left = next(variant for variant in kernel.variants if variant.key.arguments["n"] == "i32 %16")
    rest = tuple(variant for variant in kernel.variants if variant is not left)
    partly = msgspec.structs.replace(manifest, kernels=(msgspec.structs.replace(kernel, variants=rest),))
    manifests.write(partly, tmp_path / "m.json")
    warm = [sys.executable, "-c", "from jitaudit.cli import main; main()", "warm", "m.json"]
    subprocess.run([*warm, "--cache-dir", "cache", "--sweeps", str(launchers)], cwd=tmp_path, check=True)
    request = Serving(
        target=read_target(target), architecture="cuda:90", group="floored", cache_directory=str(tmp_path / "cache")
    )
    served = serve_cases(request, lambda *_: None)
    assert [step.case for step in served.first if step.waits] == ["bs=16"]
    assert not any(step.waits for step in served.again)


def test_a_launcher_that_raises_leaves_the_others_measured(launchers: Path) -> None:
    done = stall("launchers.py::raises_at_two", "--passes", "cold", "--repeat", "1", cwd=launchers.parent)
    assert done.returncode == 1
    assert "RAISED: cold at bs=2: RuntimeError: no two" in done.stdout
    assert "bs=1" in done.stdout
    assert "bs=3" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (
            ["launchers.py::fill", "--passes", "hot"],
            2,
            "--passes hot: no such pass; there are baseline, floored, warmed",
        ),
        (["launchers.py::long", "--passes", "baseline"], 2, "there are cold, warmed"),
        (["launchers.py::fill", "--gpu"], 3, "torch sees no GPU"),
        (["launchers.py::nothing"], 2, "no sweep nothing there"),
        (["launchers.py::fill", "-o", "launchers.py"], 2, "launchers.py: exists"),
        (["launchers.py::fill", "--trace", "nowhere/t.json"], 2, "no such directory"),
    ],
)
def test_bad_input(arguments: list[str], code: int, words: str, launchers: Path) -> None:
    done = stall(*arguments, cwd=launchers.parent)
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_an_interrupted_run_keeps_what_it_measured(launchers: Path) -> None:
    command = [sys.executable, "-c", "from jitaudit.cli import main; main()", "stall", "launchers.py::long"]
    arguments = ["--passes", "cold", "--repeat", "2", "-o", "partial.json"]
    child = subprocess.Popen(
        [*command, *arguments], cwd=launchers.parent, stdout=subprocess.PIPE, start_new_session=True
    )
    time.sleep(12)
    os.killpg(child.pid, signal.SIGINT)
    output, _ = child.communicate(timeout=60)
    assert child.returncode == 1
    (one,) = msgspec.json.decode((launchers.parent / "partial.json").read_bytes(), type=Stalls).passes
    assert one.partial
    assert 0 < len(one.steps) < 400
    assert "PARTIAL: cold was interrupted after" in output.decode()


def test_interrupted_before_the_first_case_of_a_pass(launchers: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, passes = stalling.serve_cases, []

    def serve(request: Serving, progress: Progress) -> Served:
        passes.append(request.group)
        return real(request, progress) if len(passes) == 1 else Served((), (), "cuda:90", 0, 0, None, True)

    monkeypatch.setattr(stalling, "serve_cases", serve)
    done = stalling.stall(f"{launchers}::fill", "cuda:90", {}, (), gpu=False, repeats=1, progress=lambda *_: None)
    assert ([one.name for one in done.passes], done.complete) == (["baseline"], False)
    assert "PARTIAL: interrupted" in stall_report.markdown(done)
    nothing = stalling.stall(f"{launchers}::fill", "cuda:90", {}, (), gpu=False, repeats=1, progress=lambda *_: None)
    assert (nothing.passes, nothing.complete) == ((), False)
    assert "PARTIAL: interrupted" in stall_report.markdown(nothing)


def test_interrupted_before_the_last_repeat(launchers: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was measured before is kept, and nobody takes it for all that was asked for."""
    real, repeats = stalling.serve_cases, []

    def serve(request: Serving, progress: Progress) -> Served:
        repeats.append(request.group)
        return real(request, progress) if len(repeats) == 1 else Served((), (), "cuda:90", 0, 0, None, True)

    monkeypatch.setattr(stalling, "serve_cases", serve)
    asked = (f"{launchers}::fill", "cuda:90", {}, ("floored",))
    done = stalling.stall(*asked, gpu=False, repeats=2, progress=lambda *_: None)
    assert ([one.variants for one in done.passes], done.complete) == ([3], False)


def test_what_a_stall_contains_is_not_counted_twice() -> None:
    watch = Stopwatch()
    with watch.timing("module load", "outer"):
        time.sleep(0.02)
        with watch.timing("host build", "inner"):
            time.sleep(0.05)
    inner, outer = watch.take()
    assert inner.seconds >= 0.05
    assert 0.02 <= outer.seconds < inner.seconds
    assert watch.take() == []


def test_traffic_rises_and_falls_between_its_ends() -> None:
    sizes = traffic().values
    assert sizes == traffic().values
    assert (min(sizes), max(sizes)) == (1, 64)
    assert len(set(sizes)) > 40
    turns = sum((b - a) * (c - b) < 0 for a, b, c in zip(sizes, sizes[1:], sizes[2:], strict=False))
    assert turns >= 5
