"""`jitaudit.warm` in a process: a launch afterwards neither compiles nor looks anything up, whatever its spelling."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from forks import checked, in_fork, warmed

import jitaudit
from jitaudit.errors import RequestError, SetupError
from jitaudit.jit import decoding
from jitaudit.jit.marker import Winner, add_tuning, read_markers, write_marker
from jitaudit.jit.rebuild import compiling_for
from jitaudit.jit.tuning import config_text
from jitaudit.manifest import encode
from jitaudit.model import Manifest, VariantKey
from jitaudit.planning import Cache, Sources, find_kernels
from jitaudit.probing import Probe
from jitaudit.sweeping import Narrowing
from jitaudit.warming import Settings, running, warm_cache
from jitaudit.warming.tuning import winners

pytestmark = pytest.mark.matrix

SPELLINGS: tuple[dict[str, object], ...] = (
    {},
    {"num_warps": 4},
    {"num_stages": 3, "num_warps": 4},
    {"num_warps": 4, "num_stages": 3},
)


class Seen(msgspec.Struct):
    """What a process saw: for each launch whether it compiled, or None where it was only looked up on disk."""

    looked_up: list[bool]
    ready: int = 0
    waiting: tuple[str, ...] = ()
    failed: list[str] = []
    said: list[str] = []


@pytest.fixture
def manifest(probe_here: Callable[..., Probe]) -> Callable[..., Manifest]:
    def of(*kernels: str) -> Manifest:
        return Narrowing(kernels=kernels).of(probe_here("warm_kernels").manifest)

    return of


def launch(function: Any, key: VariantKey, **options: object) -> Any:
    """Launch through Triton's own code, up to where the GPU would take over."""
    arguments = {name: decoding.argument(text) for name, text in key.arguments.items()}
    return function.run(grid=(1,), warmup=True, **arguments, **key.options, **options)


def listening() -> list[bool]:
    """Every look-up of this thread from now on: whether Triton compiled for it."""
    from triton import knobs

    seen: list[bool] = []
    here = threading.current_thread()

    def listener(**event: Any) -> None:
        if threading.current_thread() is here:
            seen.append(not event["cache_hit"])

    knobs.compilation.listener = listener
    return seen


def in_process(directory: Path, work: Callable[[], Seen]) -> Seen:
    def on_target() -> Seen:
        with compiling_for("cuda:90"):
            return work()

    return in_fork(on_target, Seen, TRITON_CACHE_DIR=str(directory))


def test_launches_after_warm_are_memory_hits_in_every_spelling(
    manifest: Callable[..., Manifest], tmp_path: Path
) -> None:
    import warm_kernels

    wanted = manifest("copy_kernel")

    def launches(warm: bool) -> Seen:
        done = jitaudit.warm(wanted, load=False) if warm else None
        seen = listening()
        for variant in wanted.kernels[0].variants:
            for options in SPELLINGS:
                launch(warm_kernels.copy_kernel, variant.key, **options)
        return Seen(seen, done.ready if done else 0)

    warmed(wanted, tmp_path)
    assert in_process(tmp_path, lambda: launches(warm=True)) == Seen([], 6)
    assert in_process(tmp_path, lambda: launches(warm=False)) == Seen([False] * 24)
    cold = in_process(tmp_path / "empty", lambda: launches(warm=False))
    assert cold.looked_up.count(True) == 6
    assert in_process(tmp_path / "other", lambda: launches(warm=True)) == Seen([], 6)  # compiled by warm itself


def test_a_variant_that_was_not_warmed_is_compiled_as_ever(manifest: Callable[..., Manifest], tmp_path: Path) -> None:
    import warm_kernels

    wanted = manifest("copy_kernel")

    def work() -> Seen:
        jitaudit.warm(wanted, load=False)
        seen = listening()
        launch(warm_kernels.copy_kernel, wanted.kernels[0].variants[0].key, num_warps=8)
        return Seen(seen)

    assert in_process(tmp_path, work).looked_up == [True]


def test_equal_constexprs_are_left_to_the_first_launch(tmp_path: Path, probe_here: Callable[..., Probe]) -> None:
    """True, 1 and 1.0 share an entry of Triton's memo: the first that is launched decides, warm or not."""
    from cases import constexprs

    wanted = Narrowing(kernels=("*:flag_kernel",)).of(probe_here("cases").manifest)
    (kernel,) = wanted.kernels
    keys = {variant.key.arguments["FLAG"]: variant.key for variant in kernel.variants}
    assert set(keys) == {"constexpr bool True", "constexpr int 1", "constexpr float 1.0"}

    def work(warm: bool, first: str) -> Seen:
        if warm:
            jitaudit.warm(wanted, load=False)
        launched = launch(constexprs.flag_kernel, keys[first])
        again = launch(constexprs.flag_kernel, keys["constexpr bool True"])
        return Seen([launched is again], said=[launched.hash])

    for first in keys:
        cold, warm = (in_process(tmp_path, lambda w=w, f=first: work(w, f)) for w in (False, True))
        assert warm == cold


def test_a_kernel_that_is_made_later_is_warmed_then(manifest: Callable[..., Manifest], tmp_path: Path) -> None:
    import warm_kernels

    wanted = manifest("*closure_kernel")

    def work() -> Seen:
        done = jitaudit.warm(wanted, load=False)
        waiting = done.waiting
        made = warm_kernels.make_kernel()
        seen = listening()
        launch(made, wanted.kernels[0].variants[0].key)
        return Seen(seen, done.ready, waiting, done.failed)

    assert in_process(tmp_path, work) == Seen([], 1, ("warm_kernels:make_kernel.<locals>.closure_kernel",))


def test_a_kernel_that_was_made_already_is_found(manifest: Callable[..., Manifest], tmp_path: Path) -> None:
    import warm_kernels

    wanted = manifest("*closure_kernel")

    def work() -> Seen:
        made = warm_kernels.make_kernel()
        jitaudit.warm(wanted, load=False)
        seen = listening()
        launch(made, wanted.kernels[0].variants[0].key)
        return Seen(seen)

    assert in_process(tmp_path, work).looked_up == []


@pytest.mark.parametrize("at_import", [False, True])
def test_a_module_that_is_imported_later(at_import: bool, tmp_path: Path) -> None:
    """Its kernels are warmed when the import is done: one of them calls a function that stands below it.

    The first launch waits for that, unless the import itself launches.
    """
    (tmp_path / "later.py").write_text(LATER)
    from jitaudit.probing import probe

    wanted = probe([str(tmp_path / "later.py")], "cuda:90", Narrowing(), lambda *_: None).manifest
    kernel = msgspec.structs.replace(wanted.kernels[0], id="later:doubled_kernel", file="later.py")
    wanted = msgspec.structs.replace(wanted, kernels=(kernel,))
    if at_import:
        (tmp_path / "later.py").write_text(LATER + "doubled_kernel.warmup(torch.float32, grid=(1,))\n")

    def work() -> Seen:
        done = jitaudit.warm(wanted, load=False)
        waiting = done.waiting
        sys.path.append(str(tmp_path))
        later = importlib.import_module("later")
        seen = listening()
        launch(later.doubled_kernel, kernel.variants[0].key)
        return Seen(seen, done.ready, waiting, done.failed)

    assert in_process(tmp_path / "cache", work) == Seen([], 1, ("later:doubled_kernel",))


LATER = """
import torch, triton, jitaudit

@triton.jit
def doubled_kernel(out_ptr):
    store(out_ptr, 2)

@triton.jit
def store(out_ptr, value):
    triton.language.store(out_ptr, value)

@jitaudit.sweep(n=[1])
def doubled(n):
    doubled_kernel[(1,)](torch.empty(n, device="cuda"))
"""


def test_a_kernel_that_never_comes_waits_and_breaks_nothing(manifest: Callable[..., Manifest], tmp_path: Path) -> None:
    import warm_kernels

    wanted = manifest("copy_kernel")
    never = msgspec.structs.replace(wanted.kernels[0], id="never.there:copy_kernel", source="sha256:0")
    both = msgspec.structs.replace(wanted, kernels=(*wanted.kernels, never))

    def work() -> Seen:
        done = jitaudit.warm(both, load=False)
        launch(
            warm_kernels.make_kernel(), VariantKey(arguments={"out_ptr": "*fp32 aligned", "n": "i32 any"}, options={})
        )
        return Seen([], done.ready, done.waiting, done.failed)

    assert in_process(tmp_path, work) == Seen([], 6, ("never.there:copy_kernel",))


def test_stored_winners_spare_the_benchmark(manifest: Callable[..., Manifest], tmp_path: Path) -> None:
    import warm_kernels

    wanted = manifest("tuned_kernel")
    (kernel,) = wanted.kernels
    assert kernel.autotuner is not None
    first, second = (key.key for key in kernel.autotuner.tuning_keys)
    warmed(wanted, tmp_path)
    ((name, marker),) = read_markers(tmp_path).readable.items()
    winners = (
        Winner(kernel.id, kernel.group, first, kernel.autotuner.configs[1], ""),  # no GPU here has a name
        Winner(kernel.id, kernel.group, second, "BLOCK: 999", ""),
        Winner(kernel.id, kernel.group, ("int 5",), kernel.autotuner.configs[1], "NVIDIA H200"),
    )
    marker = msgspec.structs.replace(marker, winners=winners)
    write_marker(tmp_path / "jitaudit" / name, marker, tmp_path / "jitaudit" / "staging")

    def work() -> Seen:
        done = jitaudit.warm(wanted, load=False)
        found = [config_text(config) for config in warm_kernels.tuned_kernel.cache.values()]
        return Seen([], done.tuned, failed=done.failed, said=found)

    seen = in_process(tmp_path, work)
    assert seen.ready == 1
    assert seen.said == [kernel.autotuner.configs[1]]
    gone, elsewhere = seen.failed
    assert "JA219 winner-gone: BLOCK: 999 is no config any more" in gone
    assert "JA220 winner-elsewhere: measured on NVIDIA H200" in elsewhere


def test_what_autotuners_measured_is_stored_and_ends_the_note(
    manifest: Callable[..., Manifest], tmp_path: Path
) -> None:
    """As `warm --gpu` does after its launches; the cache of an autotuner stands for the measuring."""
    import warm_kernels

    wanted = manifest("tuned_kernel")
    (kernel,) = wanted.kernels
    assert kernel.autotuner is not None
    marker = warmed(wanted, tmp_path).marker
    assert marker is not None

    def work() -> Seen:
        tuner = warm_kernels.tuned_kernel
        tuner.cache = {(8, "torch.float32"): tuner.configs[1], (999, "torch.float32"): tuner.configs[0]}
        found = tuple(winners(wanted, find_kernels(wanted, Sources()), "Some GPU"))
        add_tuning(Path(marker), found, [])
        return Seen([], len(found))

    assert in_process(tmp_path, work).ready == 1  # a key that the manifest does not have is not kept
    (stored,) = read_markers(tmp_path).readable.values()
    (winner,) = stored.winners
    assert (winner.config, winner.device) == (kernel.autotuner.configs[1], "Some GPU")
    assert winner.key in [key.key for key in kernel.autotuner.tuning_keys]
    assert len(checked(wanted, tmp_path).untuned[0].keys) == 1
    again = warmed(wanted, tmp_path)
    assert (again.nothing_to_do, again.unknown_winners) == (True, 1)
    assert next(iter(read_markers(tmp_path).readable.values())).winners == (winner,)


def test_measuring_needs_launchers_and_a_gpu(
    manifest: Callable[..., Manifest], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = manifest("copy_kernel"), Sources(), Cache(str(tmp_path), "test"), Settings(jobs=1, gpu=True)
    with pytest.raises(RequestError, match="--gpu launches the sweeps: give a TARGET"):
        warm_cache(*asked, lambda *progress: None)
    monkeypatch.setattr(running, "gpus", tuple)
    with pytest.raises(SetupError, match="there is no GPU here"):
        warm_cache(asked[0], Sources(targets=("warm_kernels",)), *asked[2:], lambda *progress: None)
    assert list(tmp_path.iterdir()) == []


def test_a_manifest_file_and_a_device_that_is_not_its_target(manifest: Callable[..., Manifest], tmp_path: Path) -> None:
    (tmp_path / "m.json").write_bytes(encode(manifest("copy_kernel")))
    with compiling_for("cuda:100"), pytest.raises(SetupError, match="is for cuda:90, and the device here is cuda:100"):
        jitaudit.warm(tmp_path / "m.json")


def test_without_a_gpu_it_says_what_to_do_instead(manifest: Callable[..., Manifest]) -> None:
    with pytest.raises(SetupError, match="jitaudit warm fills the cache directory"):
        jitaudit.warm(manifest("copy_kernel"))
