"""Autotuners as they behave: JIT variants, tuning keys, configs and benchmark runs are different numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from triton.runtime.autotuner import Autotuner

from jitaudit.jit.capture import Capture, SeenKernel, capturing
from jitaudit.jit.stops import HostRead, Unsupported

pytestmark = pytest.mark.matrix

CONFIGS = [triton.Config({"BLOCK": block}) for block in (32, 64, 128)]


def fill_kernel(x_ptr, n, length: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, length, mask=offsets < n)


@pytest.fixture
def capture() -> Iterator[Capture]:
    with capturing("cuda:90") as under_way:
        under_way.begin(0)
        yield under_way


def launch(kernel: Any, n: int, length: int = 1) -> Any:
    return kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](torch.empty(n, device="cuda"), n, length)


def only(capture: Capture) -> SeenKernel:
    """The one kernel that the case reached."""
    capture.end()
    (kernel,) = capture.take().values()
    assert kernel.tuner is not None
    return kernel


def numbers(kernel: SeenKernel) -> tuple[int, int, int, int]:
    """Variants, launches, tuning keys, benchmark runs."""
    variants = kernel.variants.values()
    return len(variants), sum(v.launches for v in variants), len(kernel.tuner.tuning_keys), kernel.tuner.benchmark_runs


def test_configs_are_run_at_a_new_tuning_key_only(capture: Capture):
    """At a known one the winner alone is launched: 10 lengths are 3 + 9 variants, not 30."""
    kernel = triton.autotune(CONFIGS, key=["n"])(triton.jit(fill_kernel))
    for length in range(2, 12):
        launch(kernel, 100, length)
    assert numbers(only(capture)) == (12, 10, 1, 3)


def test_each_tuning_key_is_benchmarked(capture: Capture):
    kernel = triton.autotune(CONFIGS, key=["n"])(triton.jit(fill_kernel))
    for n in (33, 34, 35, 48):
        launch(kernel, n)
    seen = only(capture)
    assert numbers(seen) == (6, 4, 4, 12)
    assert set(seen.tuner.tuning_keys.values()) == {(0, 1, 2)}


def test_one_config_is_never_benchmarked(capture: Capture):
    launch(triton.autotune(CONFIGS[:1], key=["n"])(triton.jit(fill_kernel)), 100)
    assert numbers(only(capture)) == (1, 1, 0, 0)


def test_pruning_and_performance_models_are_followed(capture: Capture):
    pruned = {
        "early_config_prune": lambda configs, arguments, **_: [c for c in configs if c.kwargs["BLOCK"] > 32],
        "perf_model": lambda BLOCK, **_: -BLOCK,
        "top_k": 2,
    }
    configs = [*CONFIGS, triton.Config({"BLOCK": 256})]
    launch(triton.autotune(configs, key=["n"], prune_configs_by=pruned)(triton.jit(fill_kernel)), 100)
    seen = only(capture)
    assert numbers(seen) == (2, 1, 1, 2)
    assert list(seen.tuner.tuning_keys.values()) == [(3, 2)]


def test_a_config_that_survives_alone_may_be_benchmarked(capture: Capture):
    """Triton 3.6 and 3.7 do, 3.8 does not."""
    alone = {"early_config_prune": lambda configs, arguments, **_: configs[:1]}
    launch(triton.autotune(CONFIGS, key=["n"], prune_configs_by=alone)(triton.jit(fill_kernel)), 100)
    benchmarked = int(tuple(map(int, triton.__version__.split(".")[:2])) < (3, 8))
    assert numbers(only(capture)) == (1, 1, 1, benchmarked)


def test_pruning_may_make_configs(capture: Capture):
    made = {"early_config_prune": lambda configs, arguments, **_: [triton.Config({"BLOCK": 256})]}
    launch(triton.autotune(CONFIGS, key=["n"], prune_configs_by=made)(triton.jit(fill_kernel)), 100)
    seen = only(capture)
    assert list(seen.tuner.tuning_keys.values()) == [(3,)]
    assert seen.tuner.configs[3].kwargs == {"BLOCK": 256}


def test_options_of_a_config_are_in_the_key(capture: Capture):
    configs = [
        triton.Config({"BLOCK": 64}),
        triton.Config({"BLOCK": 64}, num_warps=8, num_stages=2),
        triton.Config({"BLOCK": 64}, num_ctas=2),
        triton.Config({"BLOCK": 64}, maxnreg=64),
        triton.Config({"BLOCK": 64}, ir_override="other.ttgir"),
    ]
    launch(triton.autotune(configs, key=["n"])(triton.jit(fill_kernel)), 100)
    options = [variant.key.options for variant in only(capture).variants.values()]
    expected = [{}, {"num_stages": 2, "num_warps": 8}, {"num_ctas": 2}, {"maxnreg": 64}, {"ir_override": "other.ttgir"}]
    assert options == expected


def test_hooks_run_and_arguments_are_reset_and_restored(capture: Capture):
    hooks: list[str] = []

    def hook(arguments: dict[str, Any], reset_only: bool = False) -> None:
        hooks.append("reset" if reset_only else "before")

    configs = [triton.Config({"BLOCK": 64}, pre_hook=lambda arguments: hooks.append("config")), *CONFIGS[:1]]
    kernel = triton.autotune(configs, key=["n"], pre_hook=hook, post_hook=lambda *a, **k: hooks.append("after"))
    launch(kernel(triton.jit(fill_kernel)), 100)
    assert hooks == ["config", "before", "after", "before", "after", "reset", "config"]


def test_restored_values_are_known_until_the_launch(capture: Capture):
    x = torch.zeros(8, dtype=torch.int32, device="cuda")
    seen: list[object] = []

    def winner_hook(arguments: dict[str, Any]) -> None:
        seen.append(arguments["x_ptr"].tolist())

    configs = [triton.Config({"BLOCK": block}, pre_hook=winner_hook) for block in (32, 64)]
    kernel = triton.autotune(configs, key=["n"], restore_value=["x_ptr"])(triton.jit(fill_kernel))
    kernel[(1,)](x, 8, 1)
    assert seen == [[0] * 8] * 3  # two benchmark runs and the launch
    with pytest.raises(HostRead):
        x.tolist()


def test_heuristics_run_inside_the_autotuner(capture: Capture):
    @triton.autotune([triton.Config({"HALF": half}) for half in (16, 32)], key=["n"])
    @triton.heuristics({"BLOCK": lambda arguments: 2 * arguments["HALF"]})
    @triton.jit
    def halved_kernel(x_ptr, n, HALF: tl.constexpr, BLOCK: tl.constexpr):
        offsets = tl.arange(0, BLOCK)
        tl.store(x_ptr + offsets, HALF, mask=offsets < n)

    halved_kernel[(1,)](torch.empty(8, device="cuda"), 8)
    assert {v.key.arguments["BLOCK"] for v in only(capture).variants.values()} == {
        "constexpr int 32",
        "constexpr int 64",
    }


class OwnTuner(Autotuner):
    """Rounds its key, tunes by itself, keeps the winner in another shape, and never calls super().run."""

    def run(self, *args: Any, **kwargs: Any) -> Any:
        self.nargs = dict(zip(self.arg_names, args, strict=False))
        key = (triton.next_power_of_2(self.nargs["n"]),)
        if key not in self.cache:
            timings = {id(config): self._bench(*args, config=config, **kwargs) for config in self.prune_configs(kwargs)}
            self.cache[key] = min(self.configs, key=lambda config: timings[id(config)])
        self.best_config = self.cache[key]
        return self.fn.run(*args, **kwargs, **self.best_config.all_kwargs())


def own_tuner(cls: type[Autotuner]) -> Any:
    function = triton.jit(fill_kernel)
    return cls(function, function.arg_names, CONFIGS, ["n"], None, None)


def test_a_subclass_that_overrides_run_is_followed(capture: Capture):
    """Not really benchmarked: each config once at each key of its own strategy."""
    kernel = own_tuner(OwnTuner)
    for n in (65, 66, 100, 129):
        launch(kernel, n)
    assert kernel.best_config is CONFIGS[0]
    assert numbers(only(capture)) == (3, 4, 2, 6)


def test_a_subclass_made_during_the_capture_is_followed(capture: Capture):
    class Later(OwnTuner):
        def run(self, *args: Any, **kwargs: Any) -> Any:
            return super().run(*args, **kwargs)

    launch(own_tuner(Later), 100)
    assert numbers(only(capture)) == (3, 1, 1, 3)


def test_a_tuner_of_no_known_class_is_followed(capture: Capture):
    kernel = triton.jit(fill_kernel)
    x = torch.empty(100, device="cuda")
    times = [triton.testing.do_bench(lambda b=b: kernel[(1,)](x, 100, 1, BLOCK=b)) for b in (32, 64)]
    assert times == [1.0, 1.0]
    capture.end()
    (seen,) = capture.take().values()
    assert [variant.launches for variant in seen.variants.values()] == [0, 0]


def test_tuners_are_put_back():
    kernel = triton.autotune(CONFIGS, key=["n"])(triton.jit(fill_kernel))
    before, run = dict(vars(kernel)), Autotuner.run
    with capturing("cuda:90") as capture:
        capture.begin(0)
        launch(kernel, 100)
        assert Autotuner.run is not run
    assert vars(kernel) == before
    assert Autotuner.run is run


def test_a_case_that_stops_inside_a_benchmark_leaves_no_trace(capture: Capture):
    def read(arguments: dict[str, Any]) -> None:
        arguments["x_ptr"].tolist()

    kernel = triton.autotune([triton.Config({"BLOCK": 32}, pre_hook=read), *CONFIGS], key=["n"])(
        triton.jit(fill_kernel)
    )
    with pytest.raises(HostRead):
        launch(kernel, 100)
    capture.begin(1)
    launch(triton.autotune(CONFIGS, key=["n"])(triton.jit(fill_kernel)), 100)
    capture.end()
    counted = [kernel for kernel in capture.take().values() if any(v.cases for v in kernel.variants.values())]
    assert [numbers(kernel) for kernel in counted] == [(3, 1, 1, 3)]


# Kernels that launchers keep


class Memoising:
    """Keeps what the first launch returned, and launches that."""

    def __init__(self, kernel: Any) -> None:
        self.kernel, self.kept = kernel, {}

    def launch(self, n: int) -> None:
        x = torch.empty(n, device="cuda")
        if n not in self.kept:
            self.kept[n] = self.kernel[(1,)](x, n, 1, BLOCK=64)
        else:
            self.kept[n][(1, 1, 1)](x, n)


def test_a_kept_kernel_is_launched_again(capture: Capture):
    memoising = Memoising(triton.jit(fill_kernel))
    for n in (8, 8, 16, 8):
        memoising.launch(n)
    capture.end()
    (kernel,) = capture.take().values()
    assert sorted(variant.launches for variant in kernel.variants.values()) == [1, 3]


def test_a_kernel_kept_since_another_sweep_still_counts():
    memoising = Memoising(triton.jit(fill_kernel))
    counted = []
    for _ in range(2):
        with capturing("cuda:90") as capture:
            for sweep in range(2):
                capture.begin(sweep)
                memoising.launch(8)
                capture.end()
                counted += [
                    variant.launches for kernel in capture.take().values() for variant in kernel.variants.values()
                ]
    assert counted == [1, 1, 1, 1]
    with pytest.raises(RuntimeError, match="inside a capture only"):
        memoising.kept[8][(1,)]()


def test_what_a_kept_kernel_writes_is_unknown(capture: Capture):
    kept = triton.jit(fill_kernel)[(1,)](torch.empty(8, device="cuda"), 8, 1, BLOCK=32)
    x = torch.zeros(8, device="cuda")
    kept[(1, 1, 1)](x, 8)
    with pytest.raises(HostRead):
        x.tolist()


def test_questions_about_a_binary_have_no_answer(capture: Capture):
    kernel = triton.jit(fill_kernel)[(1,)](torch.empty(8, device="cuda"), 8, 1, BLOCK=32)
    with pytest.raises(Unsupported, match=r"CompiledKernel\.n_regs"):
        _ = kernel.n_regs


def test_a_warm_up_reaches_a_variant_and_launches_nothing(capture: Capture):
    triton.jit(fill_kernel).warmup(torch.float32, 8, 1, BLOCK=32, grid=(1,))
    capture.end()
    (kernel,) = capture.take().values()
    assert [(variant.launches, variant.cases) for variant in kernel.variants.values()] == [(0, [0])]
