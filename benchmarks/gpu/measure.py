"""What a call costs: GPU µs, host dispatch µs, launches, and how far the host runs ahead. Medians throughout."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

import torch

from benchmarks.gpu.tables import Cost

Call = Callable[[], object]

WARM_UP, BURSTS, CALLS, QUEUED = 3, 11, 20, 600

BACKLOG_CYCLES = 20_000_000
"""A spin of about 10 ms, so that the queue never runs dry while a burst is dispatched."""

DISPATCHED_US = 5_000
"""A burst's dispatch, at most: half of the spin."""


def cost(call: Call) -> Cost:
    """Measure a call on the current device. It is warmed first, so nothing here compiles."""
    for _ in range(WARM_UP):
        call()
    torch.cuda.synchronize()
    launches = _launches(call)
    # The queue holds about a thousand launches: a fuller one makes the host wait, which is no dispatch. And where a
    # burst takes longer to dispatch than the spin, GPU time is the host's.
    single = min(_burst(call, 1)[1] for _ in range(WARM_UP))
    calls = max(1, min(CALLS, int(QUEUED / max(launches, 1)), int(DISPATCHED_US / single)))
    bursts = [_burst(call, calls) for _ in range(BURSTS)]
    aside = torch.cuda.Stream()
    return Cost(
        gpu_us=round(median(gpu for gpu, _ in bursts), 2),
        host_us=round(median(host for _, host in bursts), 2),
        launches=launches,
        lead_us=round(median(_lead(call, aside) for _ in range(BURSTS)), 1),
    )


def _burst(call: Call, calls: int) -> tuple[float, float]:
    """GPU and host µs of one of the calls that are dispatched behind a spin, back to back."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda._sleep(BACKLOG_CYCLES)
    start.record()
    began = time.perf_counter()
    for _ in range(calls):
        call()
    host = time.perf_counter() - began
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) * 1e3 / calls, host * 1e6 / calls


def _lead(call: Call, aside: torch.cuda.Stream) -> float:
    """µs from the call's return, which an event on an idle stream marks, to the end of a spin before it."""
    begun, drained, returned = (torch.cuda.Event(enable_timing=True) for _ in range(3))
    begun.record()
    torch.cuda._sleep(BACKLOG_CYCLES)
    drained.record()
    call()
    returned.record(aside)
    torch.cuda.synchronize()
    return (begun.elapsed_time(drained) - begun.elapsed_time(returned)) * 1e3


def _launches(call: Call) -> float:
    """Kernels, fills and copies that a call puts on the GPU, as the profiler sees them."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for _ in range(CALLS):
            call()
        torch.cuda.synchronize()
    return sum(event.device_type == torch.autograd.DeviceType.CUDA for event in profile.events()) / CALLS
