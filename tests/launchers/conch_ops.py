"""Sweeps over Conch 1.3, unmodified: a serving engine's kernels with no compiled code."""

from __future__ import annotations

import torch
from conch.ops.activation.gelu_tanh_and_mul import gelu_tanh_and_mul
from conch.ops.activation.silu_and_mul import silu_and_mul
from conch.ops.attention.paged_attention import paged_attention
from conch.ops.attention.varlen_attention import varlen_attention
from conch.ops.embedding.rotary_embedding import rotary_embedding
from conch.ops.normalization.gemma_rms_norm import gemma_rms_norm
from conch.ops.normalization.rms_norm import fused_add_rms_norm, rms_norm
from conch.ops.quantization.fp8 import scaled_fp8_quant
from conch.ops.quantization.gemm import mixed_precision_gemm, scaled_gemm
from conch.ops.quantization.int8 import scaled_int8_quant
from conch.ops.vision.nms import nms
from conch.ops.vllm.copy_blocks import copy_blocks
from conch.ops.vllm.reshape_and_cache import reshape_and_cache
from tensors import bf16, fp16, fp32, i32, i64

import jitaudit

TOKENS = jitaudit.ints(1, 128)


@jitaudit.sweep(tokens=TOKENS)
def gelu(tokens):
    gelu_tanh_and_mul(bf16(tokens, 1024))


@jitaudit.sweep(tokens=TOKENS)
def silu(tokens):
    silu_and_mul(bf16(tokens, 1024))


@jitaudit.sweep(tokens=TOKENS)
def norm(tokens):
    rms_norm(bf16(tokens, 1024), bf16(1024), 1e-6)


@jitaudit.sweep(tokens=TOKENS)
def add_norm(tokens):
    fused_add_rms_norm(bf16(tokens, 1024), bf16(tokens, 1024), bf16(1024), 1e-6)


@jitaudit.sweep(tokens=TOKENS)
def gemma_norm(tokens):
    gemma_rms_norm(bf16(tokens, 1024), bf16(1024), 1e-6)


@jitaudit.sweep(tokens=TOKENS)
def rope(tokens):
    positions = i64(tokens)
    rotary_embedding(positions, bf16(tokens, 32 * 64), bf16(tokens, 8 * 64), 64, bf16(4096, 64))


@jitaudit.sweep(batch=TOKENS)
def paged_decode(batch):
    cache = [bf16(256, 16, 8, 64) for _ in range(2)]
    paged_attention(bf16(batch, 32, 64), *cache, i32(batch, 64), i32(batch))


@jitaudit.sweep(tokens=TOKENS)
def varlen_prefill(tokens):
    cache = [bf16(256, 16, 8, 64) for _ in range(2)]
    starts = torch.tensor([0, tokens], dtype=torch.int32, device="cuda")
    lens = torch.tensor([tokens], dtype=torch.int32, device="cuda")
    varlen_attention(bf16(tokens, 32, 64), *cache, starts, tokens, lens, tokens, i32(1, 16), causal=True)


@jitaudit.sweep(tokens=TOKENS)
def fp8_quant(tokens):
    scaled_fp8_quant(bf16(tokens, 1024), fp32(1))


@jitaudit.sweep(tokens=TOKENS)
def int8_quant(tokens):
    scaled_int8_quant(bf16(tokens, 1024), fp32(1))


@jitaudit.sweep(tokens=TOKENS)
def int4_gemm(tokens):
    x = fp16(tokens, 512)
    scales = fp16(4, 256)
    mixed_precision_gemm(x, i32(64, 256), scales, None, 4, 8, 128)


@jitaudit.sweep(tokens=TOKENS)
def int8_gemm(tokens):
    a = torch.empty(tokens, 512, dtype=torch.int8, device="cuda")
    b = torch.empty(512, 256, dtype=torch.int8, device="cuda")
    scaled_gemm(a, b, fp32(1), fp32(1), torch.bfloat16)


@jitaudit.sweep(tokens=TOKENS)
def write_cache(tokens):
    slots = i64(tokens)
    reshape_and_cache(bf16(tokens, 8, 64), bf16(tokens, 8, 64), bf16(256, 16, 8, 64), bf16(256, 16, 8, 64), slots)


@jitaudit.sweep(pairs=TOKENS)
def copy_cache_blocks(pairs):
    """Its kernel reads a table of the layers' addresses."""
    keys, values = ([bf16(256, 8192) for _ in range(2)] for _ in range(2))
    copy_blocks(keys, values, i64(pairs, 2))


@jitaudit.sweep(boxes=TOKENS)
def suppress(boxes):
    nms(fp32(boxes, 4), fp32(boxes), 0.5)
