"""Winners that Triton itself keeps on disk, and what tuning was seen to launch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from forks import checked, in_fork, warmed

import jitaudit
from jitaudit.jit.marker import Launched, add_tuning, read_markers
from jitaudit.jit.observing import Observation
from jitaudit.jit.rebuild import compiling_for
from jitaudit.model import Kernel, Manifest, VariantKey
from jitaudit.planning import Sources, find_kernels
from jitaudit.probing import Probe
from jitaudit.sweeping import Narrowing, run
from jitaudit.warming.tuning import launched, recorded

pytestmark = pytest.mark.matrix

OTHER = {"dst_ptr": "*fp32 unaligned", "n": "i32 any", "BLOCK": "constexpr int 16"}


class Seen(msgspec.Struct):
    """What a process saw."""

    tuned: int = 0
    compiled: list[bool] = []


@pytest.fixture
def manifest(probe_here: Callable[..., Probe]) -> Manifest:
    return Narrowing(kernels=("tuned_kernel",)).of(probe_here("warm_kernels").manifest)


def in_process(directory: Path, work: Callable[[], Seen]) -> Seen:
    def on_target() -> Seen:
        with compiling_for("cuda:90"):
            return work()

    return in_fork(on_target, Seen, TRITON_CACHE_DIR=str(directory))


def keep_results() -> Seen:
    """Have Triton write the results of tuning at the first key, as it does after a benchmark."""
    import warm_kernels

    tuner = warm_kernels.tuned_kernel

    def benchmark() -> None:
        tuner.configs_timings = {tuner.configs[0]: [2.0], tuner.configs[1]: [1.0]}

    tuner.check_disk_cache((8, "torch.float32"), tuner.configs, benchmark)
    return Seen()


def keys_without_a_winner(manifest: Manifest, directory: Path) -> int:
    return sum(len(one.keys) for one in checked(manifest, directory).untuned)


def test_tritons_own_results_are_read_where_it_keeps_them(
    manifest: Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import warm_kernels

    assert warmed(manifest, tmp_path).unknown_winners == 2
    in_process(tmp_path, keep_results)
    assert keys_without_a_winner(manifest, tmp_path) == 2  # Triton would not look
    monkeypatch.setattr(warm_kernels.tuned_kernel, "cache_results", True)
    assert keys_without_a_winner(manifest, tmp_path) == 1
    assert warmed(manifest, tmp_path).unknown_winners == 1

    def work() -> Seen:
        done = jitaudit.warm(manifest, load=False)
        winner = warm_kernels.tuned_kernel.cache[8, "torch.float32"]
        assert winner.kwargs == {"BLOCK": 32}
        return Seen(done.tuned)

    assert in_process(tmp_path, work).tuned == 1
    (results,) = tmp_path.rglob("*.autotune.json")
    results.write_text("{")
    assert keys_without_a_winner(manifest, tmp_path) == 2


def test_what_tuning_launched_is_warm_too(manifest: Manifest, tmp_path: Path) -> None:
    """The winner on arguments that were never benchmarked, which no manifest can have."""
    import warm_kernels

    (kernel,) = manifest.kernels
    function = warm_kernels.tuned_kernel.fn
    other = VariantKey(arguments=dict(sorted(OTHER.items())), options={})
    marker = warmed(manifest, tmp_path).marker
    assert marker is not None
    add_tuning(Path(marker), (), [Launched(kernel.id, kernel.group, other)])
    warmed(manifest, tmp_path)  # which leaves it where it is
    ((_, kept),) = read_markers(tmp_path).readable.items()
    assert [one.key.text for one in kept.launched] == [other.text]

    def work() -> Seen:
        from triton import knobs

        done = jitaudit.warm(manifest, load=False)
        seen: list[bool] = []
        knobs.compilation.listener = lambda **event: seen.append(not event["cache_hit"])
        unaligned = type("Unaligned", (), {"dtype": "fp32", "data_ptr": lambda self: 4})
        function.run(unaligned(), 3, BLOCK=16, grid=(1,), warmup=True)
        return Seen(done.ready - sum(len(k.variants) for k in manifest.kernels), seen)

    assert in_process(tmp_path, work) == Seen(1, [])


def test_what_was_launched_is_what_the_manifest_does_not_have(manifest: Manifest) -> None:
    import warm_kernels

    (kernel,) = manifest.kernels
    observed = Observation("cuda:90")
    functions = find_kernels(manifest, Sources())
    with compiling_for("cuda:90"):
        unaligned = type("Unaligned", (), {"dtype": "fp32", "data_ptr": lambda self: 4})
        observed.launch(warm_kernels.tuned_kernel.fn, (unaligned(), 3), {"BLOCK": 16, "grid": (1,)})
    assert observed.failed == []
    (new,) = launched(manifest, functions, observed)
    assert new.key.arguments == dict(sorted(OTHER.items()))
    known = msgspec.structs.replace(
        kernel, variants=(msgspec.structs.replace(kernel.variants[0], key=new.key), *kernel.variants)
    )
    assert list(launched(_of(manifest, known), functions, observed)) == []


def test_the_cases_that_were_counted_are_launched() -> None:
    import warm_kernels

    counted = run([f"{warm_kernels.__file__}::tuned"], "cuda:90", Narrowing(axes={"n": "24,40"}))
    sweeps = {"elsewhere:copy": warm_kernels.copy, counted.sweeps[0].name: warm_kernels.tuned}
    (chosen,) = recorded(sweeps, counted).values()
    assert [case for _, case in chosen.cases()] == [{"n": 24}, {"n": 40}]
    assert recorded({"elsewhere:copy": warm_kernels.copy}, counted) == {"elsewhere:copy": warm_kernels.copy}


def _of(manifest: Manifest, kernel: Kernel) -> Manifest:
    return msgspec.structs.replace(manifest, kernels=(kernel,))
