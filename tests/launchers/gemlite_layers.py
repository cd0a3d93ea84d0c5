"""Sweeps over GemLite 0.6.0, unmodified: quantized layers that choose among tuned kernels by a database of results."""

from __future__ import annotations

import torch
from gemlite import helper
from tensors import fp16

import jitaudit

BATCH = jitaudit.ints(1, 32)
N, K, GROUP = 512, 512, 64


def linear():
    return torch.nn.Linear(K, N, bias=False, dtype=torch.float16, device="cuda")


def groups(layer, bits):
    """An integer-quantized layer, a scale and a zero for each group."""
    weights = torch.empty(N, K, dtype=torch.uint8, device="cuda")
    return layer.from_weights(weights, fp16(N * K // GROUP, 1), fp16(N * K // GROUP, 1), bits, GROUP)


@jitaudit.sweep(batch=BATCH)
def a16w8_int8(batch):
    helper.A16W8_INT8().from_linear(linear())(fp16(batch, K))


@jitaudit.sweep(batch=BATCH)
def a16w8_fp8(batch):
    helper.A16W8_FP8().from_linear(linear())(fp16(batch, K))


@jitaudit.sweep(batch=BATCH)
def a16w8_groups(batch):
    groups(helper.A16Wn(), 8)(fp16(batch, K))


@jitaudit.sweep(batch=BATCH)
def a16w4_groups(batch):
    groups(helper.A16Wn(), 4)(fp16(batch, K))


@jitaudit.sweep(batch=BATCH)
def a16w2_groups(batch):
    groups(helper.A16Wn(), 2)(fp16(batch, K))


@jitaudit.sweep(batch=BATCH)
def a16w8_mxfp(batch):
    helper.A16W8_MXFP().from_linear(linear())(fp16(batch, K))


@jitaudit.sweep(batch=BATCH)
def a16w4_mxfp(batch):
    helper.A16W4_MXFP().from_linear(linear())(fp16(batch, K))


@jitaudit.sweep(batch=BATCH)
def a8w8_int8(batch):
    helper.A8W8_INT8_dynamic().from_linear(linear())(fp16(batch, K))


@jitaudit.sweep(batch=BATCH)
def a8w8_fp8(batch):
    helper.A8W8_FP8_dynamic().from_linear(linear())(fp16(batch, K))


@jitaudit.sweep(batch=BATCH)
def a8w8_mxfp(batch):
    helper.A8W8_MXFP_dynamic().from_linear(linear())(fp16(batch, K))


@jitaudit.sweep(batch=BATCH)
def a4w4_mxfp(batch):
    helper.A4W4_MXFP_dynamic().from_linear(linear())(fp16(batch, K))


@jitaudit.sweep(batch=BATCH)
def a4w4_nvfp(batch):
    helper.A4W4_NVFP_dynamic().from_linear(linear())(fp16(batch, K))
