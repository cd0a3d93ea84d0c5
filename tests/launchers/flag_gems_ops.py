"""Sweeps over FlagGems 5.0.2, unmodified: it generates kernels, keeps compiled ones, and has its own tuner."""

from __future__ import annotations

import os

os.environ["GEMS_VENDOR"] = "nvidia"  # else it asks nvidia-smi what machine this is

import flag_gems
import torch
from flag_gems import ops
from tensors import bf16, i64

import jitaudit

ROWS = jitaudit.ints(1, 64)


# Generated pointwise kernels


@jitaudit.sweep(rows=ROWS)
def add(rows):
    ops.add(bf16(rows, 256), bf16(rows, 256))


@jitaudit.sweep(rows=ROWS)
def add_scalar(rows):
    ops.add(bf16(rows, 256), 2.0)


@jitaudit.sweep(rows=ROWS)
def mul_broadcast(rows):
    ops.mul(bf16(rows, 256), bf16(256))


@jitaudit.sweep(rows=ROWS)
def gelu(rows):
    ops.gelu(bf16(rows, 256))


@jitaudit.sweep(rows=ROWS)
def silu_strided(rows):
    ops.silu(bf16(256, rows).t())


@jitaudit.sweep(rows=ROWS)
def where(rows):
    ops.where_self(torch.empty(rows, 256, dtype=torch.bool, device="cuda"), bf16(rows, 256), bf16(rows, 256))


@jitaudit.sweep(rows=ROWS)
def clamp(rows):
    ops.clamp(bf16(rows, 256), 0.0, 1.0)


# Reductions and norms


@jitaudit.sweep(rows=ROWS)
def softmax(rows):
    ops.softmax(bf16(rows, 512), -1)


@jitaudit.sweep(rows=ROWS)
def sum_rows(rows):
    ops.sum_dim(bf16(rows, 512), [1])


@jitaudit.sweep(rows=ROWS)
def sum_all(rows):
    ops.sum(bf16(rows, 512))


@jitaudit.sweep(rows=ROWS)
def max_rows(rows):
    ops.max_dim(bf16(rows, 512), 1)


@jitaudit.sweep(rows=ROWS)
def argmax(rows):
    ops.argmax(bf16(rows, 512), 1)


@jitaudit.sweep(rows=ROWS)
def layer_norm(rows):
    ops.layer_norm(bf16(rows, 512), [512], bf16(512), bf16(512))


@jitaudit.sweep(rows=ROWS)
def rms_norm(rows):
    flag_gems.rms_norm(bf16(rows, 512), [512], bf16(512))


@jitaudit.sweep(rows=ROWS)
def cumsum(rows):
    ops.cumsum(bf16(rows, 512), 1)


# Matrix products: its own tuner, with a database of results


@jitaudit.sweep(rows=ROWS)
def mm(rows):
    ops.mm(bf16(rows, 256), bf16(256, 128))


@jitaudit.sweep(rows=ROWS)
def bmm(rows):
    ops.bmm(bf16(4, rows, 256), bf16(4, 256, 128))


@jitaudit.sweep(rows=ROWS)
def addmm(rows):
    ops.addmm(bf16(128), bf16(rows, 256), bf16(256, 128))


@jitaudit.sweep(rows=ROWS)
def mv(rows):
    ops.mv(bf16(rows, 256), bf16(256))


# Indexing, embedding, random numbers


@jitaudit.sweep(rows=ROWS)
def embedding(rows):
    ops.embedding(bf16(1000, 256), i64(rows))


@jitaudit.sweep(rows=ROWS)
def index_select(rows):
    ops.index_select(bf16(100, 256), 0, i64(rows))


@jitaudit.sweep(rows=ROWS)
def gather(rows):
    ops.gather(bf16(rows, 256), 1, i64(rows, 8))


@jitaudit.sweep(rows=ROWS)
def cat(rows):
    ops.cat([bf16(rows, 256), bf16(8, 256)])


@jitaudit.sweep(rows=ROWS)
def rand(rows):
    ops.rand((rows, 256), dtype=torch.float32, device="cuda")


@jitaudit.sweep(rows=ROWS)
def dropout(rows):
    ops.dropout(bf16(rows, 256), 0.5, True)


@jitaudit.sweep(rows=ROWS)
def topk(rows):
    ops.topk(bf16(rows, 256), 8)


@jitaudit.sweep(rows=ROWS)
def sort(rows):
    ops.sort(bf16(rows, 256))


@jitaudit.sweep(rows=ROWS)
def enabled_globally(rows):
    """It replaces torch's own operators inside the block."""
    with flag_gems.use_gems():
        torch.softmax(bf16(rows, 256) + bf16(256), -1)
