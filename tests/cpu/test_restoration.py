"""After a capture everything is as it was, whatever happened inside, and nothing was compiled."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from torch.utils._python_dispatch import _get_current_dispatch_mode
from triton.runtime.autotuner import Autotuner, Heuristics
from triton.runtime.driver import driver
from triton.runtime.jit import JITFunction

from jitaudit.jit.capture import capturing

pytestmark = pytest.mark.matrix

OWNERS = (
    torch, torch.Tensor, torch.cuda, torch.accelerator, torch.version, torch.storage.UntypedStorage, triton.testing,
    JITFunction, Autotuner, Heuristics, driver, tl.dtype, torch._C._nn, torch.cuda.nvtx, threading.Thread,
)  # fmt: skip


@triton.jit
def plain_kernel(x_ptr, n, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), n)


@triton.autotune([triton.Config({"BLOCK": block}) for block in (64, 128)], key=["n"], reset_to_zero=["x_ptr"])
@triton.jit
def tuned_kernel(x_ptr, n, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), n)


def launch() -> None:
    x = torch.arange(128, device="cuda")
    plain_kernel[(1,)](x, 7, BLOCK=64)
    for n in (1, 2, 2):
        tuned_kernel[lambda meta: (triton.cdiv(128, meta["BLOCK"]),)](x, n)


def raises() -> None:
    launch()
    raise ValueError("the launcher's own")


def raises_while_benchmarking() -> None:
    tuned_kernel[(1,)](torch.empty(1, device="cpu"), 5)


def reads_on_the_host() -> None:
    launch()
    torch.empty(3, device="cuda").tolist()


def asks_too_much() -> None:
    launch()
    print(torch.cuda.get_device_properties(0).pci_bus_id)


def is_interrupted() -> None:
    launch()
    raise KeyboardInterrupt


@pytest.fixture(autouse=True)
def first_capture_is_over() -> None:
    """What torch and Triton import or memoise at their first use is not the capture's."""
    with capturing("cuda:90"):
        launch()


@pytest.mark.parametrize("target", ["cuda:90", "hip:gfx942"])
@pytest.mark.parametrize(
    "work",
    [launch, raises, raises_while_benchmarking, reads_on_the_host, asks_too_much, is_interrupted],
    ids=lambda work: work.__name__,
)
def test_everything_is_put_back(work: Callable[[], None], target: str):
    before = snapshot()
    try:
        with capturing(target):
            work()
    except BaseException:
        assert work is not launch
    else:
        assert work is launch
    assert different(before, snapshot()) == []
    assert vars(tuned_kernel)["cache"] == {}


def test_the_snapshot_sees_what_a_capture_changes():
    before = snapshot()
    with capturing("cuda:90"):
        changed = different(before, snapshot())
    for expected in ("Tensor.data_ptr", "torch.cuda.device_count", "JITFunction.run", "dispatch mode", "driver"):
        assert any(expected in name for name in changed), (expected, changed)


def test_a_meta_tensor_is_a_meta_tensor_again():
    with capturing("cuda:90"):
        inside = torch.empty(4, device="cuda")
        assert (inside.device, inside.is_cuda, type(inside)) == (torch.device("cuda", 0), True, torch.Tensor)
    outside = torch.empty(4, device="meta")
    assert (inside.device.type, outside.device.type, outside.is_cuda) == ("meta", "meta", False)


def test_nothing_is_compiled_or_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for variable in ("TRITON_CACHE_DIR", "HOME", "TRITON_HOME"):
        monkeypatch.setenv(variable, str(tmp_path))
    for function in (plain_kernel, tuned_kernel.fn):
        function.device_caches.clear()
    with capturing("cuda:90") as capture:
        capture.begin(0)
        launch()
        capture.end()
        assert sum(len(kernel.variants) for kernel in capture.take().values()) == 5
    assert list(tmp_path.iterdir()) == []
    assert not any(caches[0] for f in (plain_kernel, tuned_kernel.fn) for caches in f.device_caches.values())


def snapshot() -> dict[str, Any]:
    state = {
        f"{getattr(owner, '__name__', type(owner).__name__)}.{name}": value
        for owner in OWNERS
        for name, value in vars(owner).items()
        if not isinstance(value, ModuleType)
    }
    state |= {f"torch._C.{name}": getattr(torch._C, name) for name in dir(torch._C) if name.startswith("_cuda")}
    state |= {f"tuner.{name}": value for name, value in vars(tuned_kernel).items()}
    state["dispatch mode"] = _get_current_dispatch_mode()
    state["lift"] = torch._C._only_lift_cpu_tensors()
    state["default device"] = str(torch.get_default_device())
    state["driver._active"] = driver._active
    return state


def different(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """The names that came, went, or hold another object; equal scalars are the same."""
    missing = object()
    return sorted(
        name
        for name in before | after
        if (old := before.get(name, missing)) is not (new := after.get(name, missing))
        and not (isinstance(old, bool | int | float | str) and old == new)
    )
