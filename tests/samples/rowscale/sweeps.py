"""What the server's traffic moves."""

import torch
from rowscale import gather_rows, scale_rows

import jitaudit


@jitaudit.sweep(rows=jitaudit.ints(1, 32), columns=[64, 128, 256])
def scale(rows, columns):
    scale_rows(torch.empty(rows, columns, device="cuda"), torch.empty(rows, device="cuda"))


@jitaudit.sweep(rows=jitaudit.ints(1, 32))
def gather(rows):
    table = torch.empty(1024, 64, device="cuda")
    index = torch.empty(rows, dtype=torch.int32, device="cuda")
    gather_rows(torch.empty(rows, 64, device="cuda"), table, index)
