"""The kernels. The batch stays out of their keys."""

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["rows"])
def scale_kernel(
    x_ptr,  # [rows, columns]
    scale_ptr,  # [rows]
    rows,
    columns,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = (row < rows) & (column < columns)
    x = tl.load(x_ptr + row * columns + column, mask=mask)
    tl.store(x_ptr + row * columns + column, x * tl.load(scale_ptr + row), mask=mask)


@triton.jit(do_not_specialize=["rows"])
def gather_kernel(
    out_ptr,  # [rows, 64]
    table_ptr,  # [any, 64]
    index_ptr,  # [rows]
    rows,
):
    row = tl.program_id(0)
    column = tl.arange(0, 64)
    source = tl.load(index_ptr + row, mask=row < rows, other=0)
    tl.store(out_ptr + row * 64 + column, tl.load(table_ptr + source * 64 + column), mask=row < rows)
