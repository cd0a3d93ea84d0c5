"""Operators whose CUDA side a library wrote in Python are reached by stand-ins, as on a GPU."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
import torch.utils._pytree as pytree
import triton
import triton.language as tl

from jitaudit.jit.capture import Capture, capturing

pytestmark = pytest.mark.matrix


@triton.jit
def store_kernel(x_ptr, n):
    tl.store(x_ptr, n)


@triton.jit
def other_kernel(x_ptr, n):
    tl.store(x_ptr, n)


@pytest.fixture
def capture() -> Iterator[Capture]:
    with capturing("cuda:90") as under_way:
        under_way.begin(0)
        yield under_way


def keys(capture: Capture) -> dict[str, int]:
    """Kernel → how many variants the case reached."""
    capture.end()
    return {kernel.function.__name__: len(kernel.variants) for kernel in capture.take().values()}


@pytest.fixture
def library() -> Iterator[torch.library.Library]:
    made = torch.library.Library("aten", "IMPL")
    yield made
    made._destroy()


def launched(x: torch.Tensor, n: int = 3) -> torch.Tensor:
    store_kernel[(1,)](x, n)
    return x


def test_an_operator_that_torch_would_decompose(capture: Capture, library: torch.library.Library):
    library.impl("outer", lambda a, b: launched(torch.empty(len(a), len(b), device=a.device)), "CUDA")
    a = torch.empty(3, device="cuda")
    assert torch.outer(a, a).shape == (3, 3)
    assert keys(capture) == {"store_kernel": 1}
    capture.begin(1)
    assert torch.outer(torch.ones(2), torch.ones(2)).tolist() == [[1, 1], [1, 1]]
    assert keys(capture) == {}


def test_a_factory(capture: Capture, library: torch.library.Library):
    def zeros(size, *, dtype=None, layout=None, device=None, pin_memory=None):
        assert torch.device(device).type == "cuda"
        return launched(torch.empty(size, device=device))

    library.impl("zeros", zeros, "CUDA")
    assert torch.zeros(16, device="cuda").is_cuda
    assert keys(capture) == {"store_kernel": 1}
    capture.begin(1)
    assert torch.zeros(2).tolist() == [0, 0]
    assert keys(capture) == {}


def test_autograds_part_of_an_operator(capture: Capture):
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return launched(torch.empty_like(x), 3)

        @staticmethod
        def backward(ctx, gradient):
            return launched(torch.empty_like(gradient), 16)

    own = torch.library.Library("jitaudit_autograd", "FRAGMENT")
    own.define("twice(Tensor x) -> Tensor")
    own.impl("twice", lambda x: Twice.apply(x), "AutogradCUDA")
    own.impl("twice", lambda x: x + 1, "CUDA")
    torch.ops.jitaudit_autograd.twice(torch.empty(64, device="cuda", requires_grad=True)).sum().backward()
    assert keys(capture) == {"store_kernel": 2}


class Wrapped(torch.Tensor):
    """A tensor class that dispatches by itself, as torchao's quantized ones."""

    @staticmethod
    def __new__(cls, inner: torch.Tensor):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, device=inner.device)

    def __init__(self, inner: torch.Tensor) -> None:
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        inner = pytree.tree_map(lambda value: value.inner if isinstance(value, cls) else value, args)
        if func is torch.ops.aten.neg.default:
            return launched(torch.empty_like(inner[0]))
        out = func(*inner, **(kwargs or {}))
        return args[0] if func._schema.is_mutable else out


def test_what_a_tensor_class_makes_of_an_operation(capture: Capture):
    @torch.library.custom_op("jitaudit_test::within", mutates_args=())
    def within(x: torch.Tensor) -> torch.Tensor:
        other_kernel[(1,)](x, 3)
        return torch.empty_like(x)

    inner = torch.tensor([1, 2, 3], device="cuda")
    Wrapped(inner).add_(10)
    assert inner.tolist() == [11, 12, 13]
    assert torch.neg(Wrapped(inner)).is_cuda
    torch.ops.jitaudit_test.within(Wrapped(inner))
    assert keys(capture) == {"store_kernel": 1, "other_kernel": 1}
