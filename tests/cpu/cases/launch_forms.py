"""What else a launch can carry: options, tuples, descriptors, functions, widths, heuristics, Gluon."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.tools.tensor_descriptor import TensorDescriptor

import jitaudit


def buffer(elements: int = 256) -> torch.Tensor:
    return torch.empty(elements, device="cuda")


@triton.jit
def options_kernel(x_ptr, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), 1.0)


OPTIONS = {
    "none": {},
    "default": {"num_warps": 4},
    "defaults": {"num_warps": 4, "num_stages": 3},
    "reordered": {"num_stages": 3, "num_warps": 4},
    "eight warps": {"num_warps": 8},
}


@jitaudit.sweep(options=list(OPTIONS))
def keyword_options(options):
    """Defaults that are spelled out, in any order, are the same binary."""
    options_kernel[(1,)](buffer(), BLOCK=64, **OPTIONS[options])


@triton.jit
def tuple_kernel(tensors, sizes, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(tensors[1] + offsets, tl.load(tensors[0] + offsets, mask=offsets < sizes[0]), mask=offsets < sizes[1])


@jitaudit.sweep(n=[1, 16, 17], offset=[0, 1])
def tuples(n, offset):
    """Tuples are keyed element by element."""
    tuple_kernel[(1,)]((buffer(), buffer()[offset:]), (n, 16), BLOCK=64)


@triton.jit
def descriptor_kernel(descriptor, out_ptr, BLOCK: tl.constexpr):
    block = descriptor.load([0, 0])
    tl.store(out_ptr + tl.arange(0, BLOCK), tl.sum(block, 0))


@jitaudit.sweep(rows=[8, 16, 128], block_rows=[8, 16])
def tensor_descriptors(rows, block_rows):
    """A descriptor's dtype and block shape are in the key, its own shape is not."""
    descriptor = TensorDescriptor.from_tensor(torch.empty(rows, 64, device="cuda"), [block_rows, 64])
    descriptor_kernel[(1,)](descriptor, buffer(), BLOCK=64)


@triton.jit
def add_op(a, b):
    return a + b


@triton.jit
def max_op(a, b):
    return tl.maximum(a, b)


@triton.jit
def combine_kernel(x_ptr, OP: tl.constexpr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    tl.store(x_ptr + tl.arange(0, BLOCK), OP(x, x + 1))


@jitaudit.sweep(op=["add", "max"])
def function_constexprs(op):
    """A JIT function as a constexpr."""
    combine_kernel[(1,)](buffer(), OP={"add": add_op, "max": max_op}[op], BLOCK=64)


@triton.jit
def convert_kernel(x_ptr, DTYPE: tl.constexpr, SHAPE: tl.constexpr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    tl.store(x_ptr + tl.arange(0, BLOCK), x.to(DTYPE).to(x.dtype) + SHAPE[0])


@jitaudit.sweep(dtype=[tl.float16, tl.bfloat16], columns=[4, 8])
def dtype_and_tuple_constexprs(dtype, columns):
    """A dtype and a tuple as constexprs."""
    convert_kernel[(1,)](buffer(), DTYPE=dtype, SHAPE=(2, columns), BLOCK=64)


@triton.jit
def width_kernel(x_ptr, n, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), n)


@jitaudit.sweep(n=[0, 1, 2, 16, 2**31 - 1, 2**31, 2**31 + 1, 2**63, 2**63 + 1, -1, -16])
def int_widths(n):
    """An int's width is its value's."""
    width_kernel[(1,)](torch.empty(64, dtype=torch.int64, device="cuda"), n, BLOCK=64)


@triton.jit
def annotated_kernel(x_ptr, n: tl.int64, scale: tl.float32, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), n * scale)


@jitaudit.sweep(n=[1, 2, 16], scale=[1, 1.0, 0.5])
def annotated(n, scale):
    """An annotation fixes the width; a 1 is still a class of its own, a float never is."""
    annotated_kernel[(1,)](buffer(), n, scale, BLOCK=64)


@triton.heuristics({"EVEN": lambda arguments: arguments["n"] % arguments["BLOCK"] == 0})
@triton.jit(do_not_specialize=["n"])
def heuristics_kernel(x_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if EVEN:
        tl.store(x_ptr + offsets, 1.0)
    else:
        tl.store(x_ptr + offsets, 1.0, mask=offsets < n)


@jitaudit.sweep(elements=jitaudit.ints(1, 256))
def heuristics(elements):
    """A heuristic computes a constexpr, and the grid is a function of the bound arguments."""
    heuristics_kernel[lambda meta: (triton.cdiv(elements, meta["BLOCK"]),)](buffer(), elements, BLOCK=64)


@gluon.jit
def gluon_kernel(x_ptr, n, WARP: gl.constexpr, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [WARP], [4], [0])
    offsets = gl.arange(0, BLOCK, layout=layout)
    gl.store(x_ptr + offsets, offsets.to(gl.float32), mask=offsets < n)


@jitaudit.sweep(n=[1, 3, 16, 32])
def gluon_launch(n):
    """A Gluon kernel is keyed like any other. Its layout needs the device's warp size."""
    warp = torch.cuda.get_device_properties("cuda").warp_size
    gluon_kernel[(1,)](buffer(), n, WARP=warp, BLOCK=128)
