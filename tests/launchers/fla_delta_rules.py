"""Sweeps over fla-core 0.6.0's delta rules, unmodified: dense, `_varlen`, and `_backward`."""

from __future__ import annotations

from fla import ops
from fla.ops.gated_delta_product import chunk_gated_delta_product
from fla.ops.gated_oja_rule import chunk_gated_oja_rule, fused_recurrent_gated_oja_rule
from fla.ops.gdn2 import chunk_gdn2, fused_recurrent_gdn2
from fla_tensors import D, H, gate, gates, heads
from tensors import backward, bf16, two_sequences

import jitaudit

LENGTHS = jitaudit.ints(1, 128)


@jitaudit.sweep(T=LENGTHS)
def fused_recurrent_gdn(T):
    ops.fused_recurrent_gated_delta_rule(*heads(3, T), gate(T), beta=gate(T))


@jitaudit.sweep(T=LENGTHS)
def fused_recurrent_gdn_varlen(T):
    ops.fused_recurrent_gated_delta_rule(*heads(3, T), gate(T), beta=gate(T), cu_seqlens=two_sequences(T))


@jitaudit.sweep(T=LENGTHS)
def chunk_gdn(T):
    ops.chunk_gated_delta_rule(*heads(3, T), gate(T), gate(T))


@jitaudit.sweep(T=LENGTHS)
def chunk_gdn_varlen(T):
    ops.chunk_gated_delta_rule(*heads(3, T), gate(T), gate(T), cu_seqlens=two_sequences(T))


@jitaudit.sweep(T=LENGTHS)
def chunk_gdn_backward(T):
    backward(ops.chunk_gated_delta_rule(*heads(3, T, True), gate(T, True), gate(T, True)))


@jitaudit.sweep(T=LENGTHS)
def chunk_delta_rule(T):
    ops.chunk_delta_rule(*heads(3, T), gate(T))


@jitaudit.sweep(T=LENGTHS)
def chunk_delta_rule_varlen(T):
    ops.chunk_delta_rule(*heads(3, T), gate(T), cu_seqlens=two_sequences(T))


@jitaudit.sweep(T=LENGTHS)
def chunk_delta_rule_backward(T):
    backward(ops.chunk_delta_rule(*heads(3, T, True), gate(T, True)))


@jitaudit.sweep(T=LENGTHS)
def fused_recurrent_delta_rule(T):
    backward(ops.fused_recurrent_delta_rule(*heads(3, T, True), gate(T, True)))


@jitaudit.sweep(T=LENGTHS)
def chunk_kda(T):
    ops.chunk_kda(*heads(3, T), gates(T), gate(T))


@jitaudit.sweep(T=LENGTHS)
def chunk_kda_varlen(T):
    ops.chunk_kda(*heads(3, T), gates(T), gate(T), cu_seqlens=two_sequences(T))


@jitaudit.sweep(T=LENGTHS)
def chunk_kda_backward(T):
    backward(ops.chunk_kda(*heads(3, T, True), gates(T, True), gate(T, True)))


@jitaudit.sweep(T=LENGTHS)
def fused_recurrent_kda(T):
    ops.fused_recurrent_kda(*heads(3, T), gates(T), gate(T))


@jitaudit.sweep(T=LENGTHS)
def fused_recurrent_kda_varlen(T):
    ops.fused_recurrent_kda(*heads(3, T), gates(T), gate(T), cu_seqlens=two_sequences(T))


@jitaudit.sweep(T=LENGTHS)
def gated_delta_product(T):
    q, (k, v), beta = bf16(1, T, H, D), heads(2, 2 * T), gate(2 * T)
    chunk_gated_delta_product(q, k, v, gate(T), beta, num_householder=2)


@jitaudit.sweep(T=LENGTHS)
def chunk_comba(T):
    backward(ops.chunk_comba(*heads(4, T, True), gate(T, True), gate(T, True)))


@jitaudit.sweep(T=LENGTHS)
def fused_recurrent_comba(T):
    ops.fused_recurrent_comba(*heads(4, T), gate(T), gate(T))


@jitaudit.sweep(T=LENGTHS)
def gdn2_chunk(T):
    backward(chunk_gdn2(*heads(3, T, True), gates(T, True), *heads(2, T, True)))


@jitaudit.sweep(T=LENGTHS)
def gdn2_recurrent(T):
    fused_recurrent_gdn2(*heads(3, T), gates(T), *heads(2, T))


@jitaudit.sweep(T=LENGTHS)
def oja_chunk(T):
    backward(chunk_gated_oja_rule(*heads(3, T, True), gates(T, True), gate(T, True)))


@jitaudit.sweep(T=LENGTHS)
def oja_recurrent(T):
    fused_recurrent_gated_oja_rule(*heads(3, T), gates(T), gate(T))


@jitaudit.sweep(T=LENGTHS)
def chunk_dplr(T):
    backward(ops.chunk_dplr_delta_rule(*heads(5, T, True), gates(T, True)))


@jitaudit.sweep(T=LENGTHS)
def fused_recurrent_dplr(T):
    ops.fused_recurrent_dplr_delta_rule(*heads(5, T), gates(T))


@jitaudit.sweep(T=LENGTHS)
def chunk_iplr(T):
    ops.chunk_iplr_delta_rule(*heads(5, T))


@jitaudit.sweep(T=LENGTHS)
def fused_recurrent_iplr(T):
    backward(ops.fused_recurrent_iplr_delta_rule(*heads(5, T, True)))


@jitaudit.sweep(T=LENGTHS)
def chunk_precond_gdn(T):
    backward(ops.chunk_precond_gated_delta_rule(*heads(3, T, True), *(gate(T, True) for _ in range(4))))


@jitaudit.sweep(T=LENGTHS)
def chunk_precond_kda(T):
    backward(ops.chunk_precond_kda(*heads(3, T, True), gates(T, True), *(gate(T, True) for _ in range(3))))


@jitaudit.sweep(T=LENGTHS)
def chunk_momentum_delta_rule(T):
    beta, eta = gate(T), gate(T)
    ops.chunk_momentum_delta_rule(*heads(3, T), gate(T), gate(T), beta=beta, eta=eta)
