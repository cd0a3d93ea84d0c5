"""What is known of stand-ins' content follows torch's operations, on either side, and never tells a stale value."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
import triton
import triton.language as tl

from jitaudit.jit.capture import Capture, capturing
from jitaudit.jit.stops import HostRead

pytestmark = pytest.mark.matrix


@triton.jit
def store_kernel(x_ptr, n):
    tl.store(x_ptr, n)


@triton.jit
def find(lens_ptr, target, n):
    left = 0
    while left < n:
        left += tl.load(lens_ptr + left) > target
    return left - 1


@triton.jit
def moved(x_ptr, n):
    return x_ptr + n


@triton.jit
def write(x_ptr, n):
    tl.store(x_ptr, n)


@triton.jit
def passing_kernel(read_ptr, moved_ptr, written_ptr, out_ptr, n):
    row = find(read_ptr, target=3, n=n)
    tl.store(out_ptr + row, row)
    tl.store(moved(moved_ptr, n), row)
    write(written_ptr, n)


@pytest.fixture
def capture() -> Iterator[Capture]:
    with capturing("cuda:90") as under_way:
        under_way.begin(0)
        yield under_way


def cuda(*values: object, dtype: torch.dtype = torch.int64) -> torch.Tensor:
    return torch.tensor(values, dtype=dtype, device="cuda")


def unknown(*shape: int) -> torch.Tensor:
    return torch.empty(*shape, dtype=torch.int64, device="cuda")


def written_by(make: Callable[[torch.Tensor], None], like: torch.Tensor | None = None) -> torch.Tensor:
    out = unknown(3) if like is None else like
    make(out)
    return out


def cumulated(lens: torch.Tensor) -> torch.Tensor:
    """As launchers make `cu_seqlens`: two writes that together cover it."""
    out = unknown(len(lens) + 1)
    out[0] = 0
    out[1:] = lens.cumsum(0)
    return out


KNOWN: list[tuple[str, Callable[[], torch.Tensor], list[object]]] = [
    ("conjugates", lambda: torch.tensor([1 + 2j], device="cuda").conj(), [1 - 2j]),
    ("imaginary part of a conjugate", lambda: torch.tensor([1 + 2j], device="cuda").conj().imag, [-2.0]),
    ("its clone", lambda: torch.tensor([1 + 2j], device="cuda").conj().imag.clone(), [-2.0]),
    ("two parts", lambda: cumulated(cuda(3, 4)), [0, 3, 7]),
    ("out=", lambda: written_by(lambda out: torch.cumsum(cuda(1, 2, 3), 0, out=out)), [1, 3, 6]),
    ("a tensor to fill with", lambda: written_by(lambda out: out.fill_(cuda(5)[0])), [5, 5, 5]),
    ("a list as index", lambda: cuda(5, 6, 7)[[0, 2]], [5, 7]),
    ("a mask as a list", lambda: cuda(5, 6, 7)[[True, False, True]], [5, 7]),
    ("a list in an index", lambda: cuda(5, 6, 7)[None, :][:, [1, 2]][0], [6, 7]),
    ("a list that is written", lambda: written_by(lambda out: out.__setitem__([0, 1], 9), cuda(1, 2, 3)), [9, 9, 3]),
    ("a mask on the host", lambda: cuda(5, 6, 7)[torch.tensor([True, False, True])], [5, 7]),
    ("stand-ins in a list", lambda: torch.tensor([cuda(5, 6).max(), 1], device="cuda"), [6, 1]),
    ("stand-ins in a list, on the host", lambda: torch.tensor([[cuda(5, 6).max()], [1]])[:, 0], [6, 1]),
    ("linspace", lambda: torch.linspace(0, 1, 3, device="cuda"), [0.0, 0.5, 1.0]),
]


@pytest.mark.parametrize(("made", "held"), [case[1:] for case in KNOWN], ids=[case[0] for case in KNOWN])
def test_values_are_followed(capture: Capture, made: Callable[[], torch.Tensor], held: list[object]):
    assert made().tolist() == held


UNKNOWN: list[tuple[str, Callable[[], torch.Tensor]]] = [
    ("one part", lambda: written_by(lambda out: out[1:].zero_())),
    ("a part, then something unknown", lambda: written_by(lambda out: (out[:1].zero_(), out[1:].copy_(unknown(2))))),
    ("a part of another width", lambda: written_by(lambda out: (out[:2].zero_(), out.view(torch.int32)[4:].fill_(1)))),
    ("out= of unknown values", lambda: written_by(lambda out: torch.cumsum(unknown(3), 0, out=out), cuda(1, 2, 3))),
    ("filled with something unknown", lambda: written_by(lambda out: out.fill_(unknown(1)[0]), cuda(1, 2, 3))),
    ("an operation that the host lacks", lambda: torch.histc(cuda(0, 1, 1, dtype=torch.int32), bins=2, min=0, max=1)),
]


@pytest.mark.parametrize("made", [case[1] for case in UNKNOWN], ids=[case[0] for case in UNKNOWN])
def test_what_is_not_known_is_not_told(capture: Capture, made: Callable[[], torch.Tensor]):
    with pytest.raises(HostRead):
        made().tolist()


def test_a_mask_on_the_host_decides_the_shape(capture: Capture):
    """Each has its own: shapes are remembered, but not by what a mask holds."""
    x = torch.empty(32, 4, device="cuda")
    assert [x[torch.arange(32) < n].shape for n in (1, 3, 5)] == [(1, 4), (3, 4), (5, 4)]
    assert [x[:, 0].masked_select(torch.arange(32) < n).shape for n in (1, 3, 5)] == [(1,), (3,), (5,)]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_results_have_the_default_dtype_of_their_time(capture: Capture, dtype: torch.dtype):
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        assert (torch.arange(8, device="cuda") / 2).dtype == dtype
        assert unknown(4).sqrt().dtype == dtype
    finally:
        torch.set_default_dtype(before)


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.empty(1 << 40, dtype=torch.int8, device="cuda").zero_(),
        lambda: torch.empty(1 << 40, dtype=torch.int8, device="cuda").fill_(1),
        lambda: cuda(1).new_zeros(1 << 40),
        lambda: torch.arange(60_000, device="cuda")[:, None] - torch.arange(60_000, device="cuda"),
    ],
    ids=["zero_", "fill_", "new_zeros", "outer difference"],
)
def test_what_is_too_large_to_keep_is_never_made(capture: Capture, make: Callable[[], torch.Tensor]):
    assert make().numel() > 1 << 30


class Pointer:
    """Triton takes whatever has a dtype and an address."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.dtype, self._tensor = tensor.dtype, tensor

    def data_ptr(self) -> int:
        return self._tensor.data_ptr()


@pytest.mark.parametrize("wrap", [lambda x: triton.reinterpret(x, tl.int64), Pointer], ids=["reinterpret", "own"])
def test_a_write_through_a_wrapper_is_a_write(capture: Capture, wrap: Callable[[torch.Tensor], object]):
    x = cuda(1, 2)
    store_kernel[(1,)](wrap(x), 3)
    with pytest.raises(HostRead):
        x.tolist()


def test_what_a_kernel_passes_to_its_helpers(capture: Capture):
    """As vLLM's unified attention looks a sequence up in `cu_seqlens`, which the launcher reads afterwards."""
    read, moved_on, written, out = cuda(1, 2), cuda(1, 2), cuda(1, 2), cuda(0)
    passing_kernel[(1,)](read, moved_on, written, out, 2)
    assert read.tolist() == [1, 2]
    for changed in (moved_on, written, out):
        with pytest.raises(HostRead):
            changed.tolist()
