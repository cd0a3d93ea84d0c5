"""The oracle: captured keys are one-to-one with the binaries that Triton itself makes of the same launches.

Each launch is captured, and then really compiled by Triton's own ``JITFunction.run``, on the same stand-ins and from a
fresh key memo. Triton's disk hash says which binary it is; nothing of jitaudit's keys has a part in it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from cases import NARROWED
from triton.compiler.errors import CompilationError
from triton.runtime.jit import JITFunction

from jitaudit.jit.capture import Capture, SeenKernel, capturing
from jitaudit.jit.patching import patched
from jitaudit.sweeping.targets import load, read_target

pytestmark = pytest.mark.matrix

SIZES = "1,2,3,4,5,6,7,8,10,12,13,14,15,16,63,64,65,300,512"
SHIPPED = {"bs": SIZES, "valid": "0..2,15..17,63,64", "total": "1..3,15..17,63,64"}

CASES = ("ints", "constexprs", "pointers", "autotuned", "declarations", "launch_forms")
MODULES = (
    "chain_accept", "compact_draft", "draft_seqlens", "draft_topk", "dsa_metadata", "mamba_replay",
    "tree_build", "verify_commit", "vocab_shard",
)  # fmt: skip

SOURCES = (
    {f"cases.{name}": NARROWED for name in CASES}
    | {f"jitaudit_kernels.{name}": SHIPPED for name in MODULES}
    | {"jitaudit_kernels.round": {"bs": "1,3,16,64"}}  # the other modules' kernels, a dozen launches a case
)

REFUSED = "cases.constexprs:listed_constexpr"


@pytest.mark.parametrize("target", ["cuda:90", "hip:gfx942"])
@pytest.mark.parametrize("source", SOURCES)
def test_captured_keys_are_one_to_one_with_compiled_binaries(
    source: str, target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    with capturing(target) as capture, compiling_too(capture) as hashes:
        for name, sweep in load(read_target(source)).sweeps.items():
            for _, case in sweep.with_axes(SOURCES[source]).cases() if name != REFUSED else ():
                sweep(**case)
        kernels = capture.take()
    assert hashes
    for kernel in kernels.values():
        pairs = {(text, hashes[launch]) for text, variant in kernel.variants.items() for launch in variant.cases}
        assert sorted(split(pairs)) == [], kernel.function.__qualname__
        assert len(kernel.variants) == len({hash for _, hash in pairs})
    assert sum(launches_of(kernel) for kernel in kernels.values()) == len(hashes)


def test_every_sweep_of_the_cases_and_the_shipped_kernels_has_its_oracle():
    with capturing("cuda:90"):
        sweeps = [name for package in ("cases", "jitaudit_kernels") for name in load(read_target(package)).sweeps]
    assert len(sweeps) > len(SOURCES)
    assert [name for name in sweeps if not name.startswith(tuple(SOURCES))] == []


@pytest.mark.parametrize("batch", [1, 2, 16])
def test_triton_refuses_to_compile_a_listed_constexpr(batch: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Row 7: its keys can be counted, but there is no binary of any."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    with capturing("cuda:90") as capture, compiling_too(capture):
        sweep = load(read_target(REFUSED)).sweeps[REFUSED]
        with pytest.raises(CompilationError, match="BATCH marked as constexpr and listed in do_not_specialize"):
            sweep(batch=batch)


@contextmanager
def compiling_too(capture: Capture) -> Iterator[list[str]]:
    """Compile each launch after it was captured; gives Triton's disk hashes, by the number of the launch.

    A launch counts as a case of its own, so that a variant's cases are the launches that reached it.
    """
    hashes: list[str] = []
    triton_run, captured_run = TRITON_RUN, JITFunction.run

    def run(function: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        capture.begin(len(hashes))
        launched = captured_run(function, *args, grid=grid, warmup=warmup, **kwargs)
        capture.end()
        function.device_caches.clear()
        hashes.append(triton_run(function, *args, grid=grid, warmup=True, **kwargs).hash)
        function.device_caches.clear()
        return launched

    with patched([(JITFunction, "run", run)]):
        yield hashes


TRITON_RUN = JITFunction.run


def split(pairs: set[tuple[str, str]]) -> Iterator[str]:
    """The keys that stand for several binaries, and the keys that share one."""
    by_key, by_hash = defaultdict(set), defaultdict(set)
    for text, hash in pairs:
        by_key[text].add(hash)
        by_hash[hash].add(text)
    yield from (f"several binaries: {text}" for text, hashes in by_key.items() if len(hashes) > 1)
    yield from (f"one binary: {sorted(texts)}" for texts in by_hash.values() if len(texts) > 1)


def launches_of(kernel: SeenKernel) -> int:
    return sum(len(variant.cases) for variant in kernel.variants.values())
