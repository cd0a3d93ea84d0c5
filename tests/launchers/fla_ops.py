"""Sweeps over fla-core 0.6.0's attention operators, unmodified: dense, `_varlen`, and `_backward`."""

from __future__ import annotations

import torch
from fla import ops
from fla.ops.attn.decoding import attn_decoding_one_step
from fla.ops.lightnet import chunk_lightnet, fused_recurrent_lightnet
from fla.ops.rwkv4 import fused_recurrent_rwkv4
from fla.ops.ttt import chunk_ttt_linear
from fla.ops.utils import chunk_global_cumsum, chunk_local_cumsum, mean_pooling, solve_tril
from fla_tensors import D, H, gate, gates, heads
from tensors import backward, bf16, fp32, i64, two_sequences

import jitaudit

LENGTHS = jitaudit.ints(1, 128)


# Gated linear attention


@jitaudit.sweep(T=LENGTHS)
def chunk_gla(T):
    ops.chunk_gla(*heads(3, T), gates(T))


@jitaudit.sweep(T=LENGTHS)
def chunk_gla_backward(T):
    backward(ops.chunk_gla(*heads(3, T, True), gates(T, True)))


@jitaudit.sweep(T=LENGTHS)
def fused_recurrent_gla(T):
    ops.fused_recurrent_gla(*heads(3, T), gates(T))


@jitaudit.sweep(T=LENGTHS)
def fused_recurrent_gla_varlen(T):
    ops.fused_recurrent_gla(*heads(3, T), gates(T), cu_seqlens=two_sequences(T))


@jitaudit.sweep(T=LENGTHS)
def fused_recurrent_gla_backward(T):
    backward(ops.fused_recurrent_gla(*heads(3, T, True), gates(T, True)))


@jitaudit.sweep(T=LENGTHS)
def chunk_simple_gla(T):
    ops.chunk_simple_gla(*heads(3, T), g=gate(T))


@jitaudit.sweep(T=LENGTHS)
def chunk_simple_gla_varlen(T):
    ops.chunk_simple_gla(*heads(3, T), g=gate(T), cu_seqlens=two_sequences(T))


@jitaudit.sweep(T=LENGTHS)
def chunk_simple_gla_backward(T):
    backward(ops.chunk_simple_gla(*heads(3, T, True), g=gate(T, True)))


@jitaudit.sweep(T=LENGTHS)
def parallel_simple_gla(T):
    backward(ops.parallel_simple_gla(*heads(3, T, True), gate(T, True)))


@jitaudit.sweep(T=LENGTHS)
def fused_recurrent_simple_gla(T):
    ops.fused_recurrent_simple_gla(*heads(3, T), g=gate(T))


@jitaudit.sweep(T=LENGTHS)
def chunk_retention(T):
    ops.chunk_retention(*heads(3, T))


@jitaudit.sweep(T=LENGTHS)
def chunk_retention_varlen(T):
    ops.chunk_retention(*heads(3, T), cu_seqlens=two_sequences(T))


@jitaudit.sweep(T=LENGTHS)
def chunk_retention_backward(T):
    backward(ops.chunk_retention(*heads(3, T, True)))


@jitaudit.sweep(T=LENGTHS)
def parallel_retention(T):
    ops.parallel_retention(*heads(3, T))


@jitaudit.sweep(T=LENGTHS)
def fused_recurrent_retention(T):
    ops.fused_recurrent_retention(*heads(3, T))


@jitaudit.sweep(T=LENGTHS)
def chunk_linear_attn(T):
    backward(ops.chunk_linear_attn(*heads(3, T, True), normalize=False))


@jitaudit.sweep(T=LENGTHS)
def chunk_lightning_attn(T):
    ops.chunk_lightning_attn(*heads(3, T), layer_idx=1, num_layers=4)


@jitaudit.sweep(T=LENGTHS)
def chunk_gsa(T):
    backward(ops.chunk_gsa(*heads(4, T, True), gates(T, True)))


@jitaudit.sweep(T=LENGTHS)
def fused_recurrent_gsa(T):
    ops.fused_recurrent_gsa(*heads(4, T), gates(T))


@jitaudit.sweep(T=LENGTHS)
def chunk_abc(T):
    ops.chunk_abc(*heads(4, T))


@jitaudit.sweep(T=LENGTHS)
def lightnet_chunk(T):
    chunk_lightnet(*heads(3, T))


@jitaudit.sweep(T=LENGTHS)
def lightnet_recurrent(T):
    fused_recurrent_lightnet(*heads(3, T))


@jitaudit.sweep(T=LENGTHS)
def fused_recurrent_hgrn(T):
    backward(ops.fused_recurrent_hgrn(bf16(1, T, 256, grad=True), bf16(1, T, 256, grad=True)))


@jitaudit.sweep(T=LENGTHS)
def chunk_rwkv6(T):
    backward(ops.chunk_rwkv6(*heads(3, T, True), gates(T, True), fp32(H, D, grad=True)))


@jitaudit.sweep(T=LENGTHS)
def fused_recurrent_rwkv6(T):
    ops.fused_recurrent_rwkv6(*heads(3, T), gates(T), fp32(H, D))


@jitaudit.sweep(T=LENGTHS)
def chunk_rwkv7(T):
    ops.chunk_rwkv7(*heads(6, T))


@jitaudit.sweep(T=LENGTHS)
def chunk_rwkv7_varlen(T):
    ops.chunk_rwkv7(*heads(6, T), cu_seqlens=two_sequences(T))


@jitaudit.sweep(T=LENGTHS)
def chunk_rwkv7_backward(T):
    backward(ops.chunk_rwkv7(*heads(6, T, True)))


@jitaudit.sweep(T=LENGTHS)
def fused_recurrent_rwkv7(T):
    ops.fused_recurrent_rwkv7(*heads(6, T))


@jitaudit.sweep(T=LENGTHS)
def rwkv4(T):
    fused_recurrent_rwkv4(fp32(256), fp32(256), fp32(1, T, 256), fp32(1, T, 256), fp32(1, 3, 1, 256))


@jitaudit.sweep(T=LENGTHS)
def chunk_mesa_net(T):
    ops.chunk_mesa_net(*heads(3, T), gate(T), gate(T), fp32(H, D))


@jitaudit.sweep(T=LENGTHS)
def chunk_log_linear_attn(T):
    ops.chunk_log_linear_attn(*heads(3, T), gate(T), fp32(1, T, H, 11))


@jitaudit.sweep(T=LENGTHS)
def ttt_linear(T):
    chunk_ttt_linear(*heads(3, T), bf16(H, D), bf16(H, D), bf16(1, T, H, 1))


# Softmax attention and its kin


@jitaudit.sweep(T=LENGTHS)
def parallel_attn(T):
    ops.parallel_attn(*heads(3, T))


@jitaudit.sweep(T=LENGTHS)
def parallel_attn_backward(T):
    backward(ops.parallel_attn(*heads(3, T, True)))


@jitaudit.sweep(T=LENGTHS)
def parallel_attn_varlen(T):
    ops.parallel_attn(*heads(3, T), cu_seqlens=two_sequences(T))


@jitaudit.sweep(T=LENGTHS)
def forgetting_attn(T):
    ops.parallel_forgetting_attn(*heads(3, T), gate(T))


@jitaudit.sweep(T=LENGTHS)
def forgetting_attn_backward(T):
    backward(ops.parallel_forgetting_attn(*heads(3, T, True), gate(T, True)))


@jitaudit.sweep(T=LENGTHS)
def attn_decoding(T):
    cu_seqlens = torch.tensor([0, T], dtype=torch.int64, device="cuda")
    attn_decoding_one_step(bf16(1, 1, H, D), *heads(2, T), cu_seqlens=cu_seqlens)


@jitaudit.sweep(T=LENGTHS)
def parallel_nsa(T):
    q, k, v = bf16(1, T, 16, D), bf16(1, T, 1, D), bf16(1, T, 1, D)
    gate_cmp, gate_slc, gate_swa = (bf16(1, T, 16) for _ in range(3))
    indices = i64(1, T, 1, 16)
    ops.parallel_nsa(q, k, v, gate_cmp, gate_slc, gate_swa, block_indices=indices, block_size=32)


@jitaudit.sweep(T=LENGTHS)
def parallel_path_attn(T):
    w, beta = gates(T, True), gate(T, True)
    backward(ops.parallel_path_attn(*heads(3, T, True), w, beta))


@jitaudit.sweep(T=LENGTHS)
def parallel_based(T):
    q, k = bf16(1, T, H, 16, grad=True), bf16(1, T, H, 16, grad=True)
    backward(ops.parallel_based(q, k, bf16(1, T, H, D, grad=True)))


@jitaudit.sweep(T=LENGTHS)
def fused_chunk_based(T):
    ops.fused_chunk_based(bf16(1, T, H, 16), bf16(1, T, H, 16), bf16(1, T, H, D))


@jitaudit.sweep(T=LENGTHS)
def parallel_parallax(T):
    backward(ops.parallel_parallax(*heads(4, T, True)))


@jitaudit.sweep(T=LENGTHS)
def stickbreaking_attn(T):
    backward(ops.parallel_stickbreaking_attn(*heads(3, T, True)))


@jitaudit.sweep(T=LENGTHS)
def wall_attn(T):
    backward(ops.parallel_wall_attn(*heads(3, T, True), gates(T, True)))


@jitaudit.sweep(T=LENGTHS)
def attnres(T):
    backward(ops.fused_attnres(bf16(512, grad=True), [bf16(1, T, 512, grad=True) for _ in range(4)], bf16(512)))


# Their parts


@jitaudit.sweep(T=LENGTHS)
def local_cumsum(T):
    chunk_local_cumsum(gate(T), 64)
    chunk_local_cumsum(gates(T), 64)


@jitaudit.sweep(T=LENGTHS)
def global_cumsum(T):
    chunk_global_cumsum(gate(T))


@jitaudit.sweep(T=LENGTHS)
def mean_pool(T):
    backward(mean_pooling(bf16(1, T, H, D, grad=True), 32))


@jitaudit.sweep(T=LENGTHS)
def triangular_solve(T):
    solve_tril(fp32(1, T, H, 64))
