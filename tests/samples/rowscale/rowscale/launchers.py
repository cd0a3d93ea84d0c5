"""The launchers that a server calls."""

import torch

from rowscale.kernels import gather_kernel, scale_kernel


def scale_rows(x: torch.Tensor, scale: torch.Tensor) -> None:
    """Multiply each row of x[rows, columns] by its entry of scale[rows], in place."""
    rows, columns = x.shape
    block = max(64, 1 << (columns - 1).bit_length())
    scale_kernel[(rows,)](x, scale, rows, columns, BLOCK=block)


def gather_rows(out: torch.Tensor, table: torch.Tensor, index: torch.Tensor) -> None:
    """Copy the rows of table[any, 64] that index[rows] names to out[rows, 64]."""
    rows = index.shape[0]
    gather_kernel[(rows,)](out, table, index, rows)
