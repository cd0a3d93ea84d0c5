"""What the GPU benchmark measures runs, here in small on the CPU: each launch, its eager chain and its rivals."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from torch.overrides import TorchFunctionMode

from benchmarks.gpu import workloads
from jitaudit_kernels.policy import POLICIES


class OnCpu(TorchFunctionMode):
    """Puts on the CPU what is meant for the GPU."""

    def __torch_function__(
        self, function: Callable[..., object], types: object, args: tuple[object, ...] = (), kwargs: object = None
    ) -> object:
        keywords = dict(kwargs or {})
        if keywords.get("device") == "cuda":
            keywords["device"] = "cpu"
        return function(*args, **keywords)


@pytest.mark.parametrize("bs", [1, 8])
def test_every_workload_runs(bs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, small in (("MAX_LEN", 256), ("CONTEXT", 128), ("VOCABULARY", 4096)):
        monkeypatch.setattr(workloads, name, small)
    monkeypatch.setitem(workloads.METADATA, "max_len", 256)
    with OnCpu():
        for workload in workloads.workloads(bs):
            for policy in POLICIES:
                workload.launch(policy=policy)
            if workload.eager is not None:
                workload.eager()
            for rival in workload.rivals.values():
                rival()
