"""Every kernel on the GPU, in both policies, eager and replayed from a CUDA graph, equals its reference bit for bit."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from kernel_cases.arena import Arena
from kernel_cases.compare import Case, compare, expect
from kernel_cases.registry import GPU_SIZES, all_cases

from jitaudit_kernels import dsa_metadata
from jitaudit_kernels.policy import POLICIES, PolicyName

CUDA = torch.device("cuda", 0)

CASES = all_cases(GPU_SIZES)


def test_there_are_enough_cases() -> None:
    assert len(CASES) >= 1000


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_equals_reference(case: Case, record_property: Callable[[str, object], None]) -> None:
    record_property("buffers", compare(case, CUDA))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("case", all_cases([0, 5, 17, 65]), ids=lambda case: case.name)
def test_a_captured_launch_equals_reference(case: Case, policy: PolicyName) -> None:
    if "bound=None" in case.name:
        pytest.skip("without the sum of lengths tree_build reads it from the device, which no graph can capture")
    arena = Arena(CUDA)
    call = case.make(arena)
    before = [buffer.memory.clone() for buffer in arena.buffers]

    def launch() -> tuple[Arena, object]:
        with arena.guarding_allocations() as allocated:
            return allocated, case.launcher(*call.positional, **call.keywords or {}, policy=policy)

    def restore() -> None:
        for buffer, memory in zip(arena.buffers, before, strict=True):
            buffer.memory.copy_(memory)

    launch()
    restore()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        allocated, results = launch()
    for memory, buffer in zip(before, arena.buffers, strict=True):
        assert torch.equal(memory, buffer.memory), "capturing launched something"
    for _ in range(2):
        restore()
        graph.replay()
    torch.cuda.synchronize()
    expect(case, arena, allocated, results)


def test_rows_lie_beyond_two_to_the_31_elements() -> None:
    rows, max_len = 2100, 2**20
    seq_lens = torch.zeros(rows, dtype=torch.int32, device=CUDA)
    seq_lens[-1] = max_len
    req_to_token = torch.zeros(rows, max_len, dtype=torch.int32, device=CUDA)
    req_to_token[-1] = torch.arange(max_len, device=CUDA)
    table = torch.full((rows, max_len), -1, dtype=torch.int32, device=CUDA)

    def i32(size: int) -> torch.Tensor:
        return torch.zeros(size, dtype=torch.int32, device=CUDA)

    dsa_metadata.decode(
        seq_lens,
        torch.arange(rows, device=CUDA),
        req_to_token,
        i32(rows),
        i32(rows + 1),
        table,
        i32(rows),
        i32(rows + 1),
        None,
        max_len=max_len,
        topk=2048,
        page_size=64,
        k_pool=4,
    )
    assert torch.equal(table[-1], req_to_token[-1])
    assert int(table[-2].max()) == -1
