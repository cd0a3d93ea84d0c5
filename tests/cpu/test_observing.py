"""Observation of launches that go on. A capture stands for the GPU: what it sees is what was really launched."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import pytest

from jitaudit.jit.capture import Capture, capturing
from jitaudit.jit.observing import Observation, observing
from jitaudit.sweeping import Sweep

pytestmark = pytest.mark.matrix


@pytest.fixture
def world() -> Iterator[Capture]:
    """The launches that happen."""
    with capturing("cuda:90") as capture:
        capture.begin(0)
        yield capture


def keys(seen: Capture | Observation) -> dict[object, set[str]]:
    return {function: set(kernel.variants) for function, kernel in seen.seen.items()}


def launch_everything() -> None:
    from cases import autotuned, ints, launch_forms, pointers

    for module in (autotuned, ints, launch_forms, pointers):
        for sweep in sweeps(module):
            for _, case in sweep.cases():
                sweep(**case)


def launch_penalty() -> object:
    import torch
    from cases.ints import penalty_kernel

    logits = torch.empty(64, device="cuda")
    return penalty_kernel[(1,)](logits, logits, 3, BLOCK=64)


def sweeps(module: ModuleType) -> list[Sweep]:
    return [value for value in vars(module).values() if isinstance(value, Sweep)]


def test_what_is_observed_is_what_is_launched(world: Capture):
    with observing() as observation:
        launch_everything()
    assert observation.failed == []
    assert keys(observation) == keys(world)
    assert sum(map(len, keys(observation).values())) > 20


def test_a_launch_returns_what_it_returns_and_raises_what_it_raises(world: Capture):
    from cases.ints import penalty_kernel

    with observing() as observation:
        launched = launch_penalty()
        with pytest.raises(TypeError, match="missing"):
            penalty_kernel[(1,)]()
    assert type(launched).__name__ == "_Launched"
    assert [text.partition(":")[0] for text in observation.failed] == ["penalty_kernel"]
    assert sum(map(len, keys(observation).values())) == 1


def test_what_can_not_be_observed_is_launched_all_the_same(world: Capture, monkeypatch: pytest.MonkeyPatch):
    def broken(function: object, opaque: object) -> None:
        raise ValueError("broken")

    with observing() as observation:
        with monkeypatch.context() as patch:
            patch.setattr("jitaudit.jit.observing.Binder", broken)
            launch_penalty()
        assert keys(observation) == {}
    world.end()
    (kernel,) = world.seen.values()
    assert [variant.launches for variant in kernel.variants.values()] == [1]
    assert observation.failed == ["penalty_kernel: ValueError: broken"]


def test_tritons_hooks_and_methods_are_left_as_they_were(world: Capture):
    from triton import knobs
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.jit import JITFunction

    before = JITFunction.run, Autotuner._bench
    with observing():
        assert JITFunction.run is not before[0]
        assert (knobs.runtime.jit_cache_hook, knobs.runtime.jit_post_compile_hook) == (None, None)
        assert knobs.compilation.listener is None
    assert (JITFunction.run, Autotuner._bench) == before
