"""Sweeps over fla-core 0.6.0's modules, unmodified: norms, activations, losses, rotary embeddings, convolutions."""

from __future__ import annotations

import torch
from fla import modules
from fla.modules.activations import ops as activations
from fla.modules.causal_conv1d.ops import causal_conv1d, causal_conv1d_update
from fla.modules.fused_cross_entropy.ops import cross_entropy_loss
from fla.modules.fused_kl_div.ops import fused_kl_div_loss
from fla.modules.fused_linear_cross_entropy.ops import fused_linear_cross_entropy_loss
from fla.modules.grpo.ops import fused_grpo_loss
from fla.modules.norm import fused_norm_gate, l2norm, layernorm, layernorm_gated
from fla.modules.rotary.ops import rotary_embedding
from fla.modules.token_shift import token_shift
from fla.ops.utils.logsumexp import logsumexp_fwd
from fla.ops.utils.matmul import addmm, matmul
from fla.ops.utils.pack import pack_sequence, unpack_sequence
from fla.ops.utils.sinkhorn.ops import sinkhorn
from tensors import backward, bf16, fp32, i64, two_sequences

import jitaudit

LENGTHS = jitaudit.ints(1, 128)
LONG = jitaudit.ints(1, 256)
D = 512


def targets(tokens):
    return torch.ones(tokens, dtype=torch.int64, device="cuda")


# Norms


@jitaudit.sweep(T=LONG)
def l2norm_forward(T):
    l2norm.l2norm(bf16(T, 128))


@jitaudit.sweep(T=LENGTHS)
def l2norm_backward(T):
    backward(l2norm.l2norm(bf16(T, 128, grad=True)))


@jitaudit.sweep(T=LENGTHS)
def rms_norm(T):
    layernorm.rms_norm(bf16(1, T, D), bf16(D), None)


@jitaudit.sweep(T=LENGTHS)
def layer_norm(T):
    layernorm.layer_norm(bf16(1, T, D), bf16(D), bf16(D))


@jitaudit.sweep(T=LENGTHS)
def layer_norm_backward(T):
    backward(layernorm.layer_norm(bf16(1, T, D, grad=True), bf16(D, grad=True), bf16(D, grad=True)))


@jitaudit.sweep(T=LENGTHS)
def group_norm(T):
    backward(layernorm.group_norm(bf16(1, T, D, grad=True), bf16(D, grad=True), bf16(D, grad=True), num_groups=4))


@jitaudit.sweep(T=LENGTHS)
def rms_norm_linear(T):
    weight, linear = bf16(D, grad=True), bf16(D, D, grad=True)
    backward(layernorm.rms_norm_linear(bf16(1, T, D, grad=True), weight, None, linear, None))


@jitaudit.sweep(T=LENGTHS)
def rms_norm_gated(T):
    backward(fused_norm_gate.rms_norm_gated(bf16(1, T, D, grad=True), bf16(1, T, D, grad=True), bf16(D), None))


@jitaudit.sweep(T=LENGTHS)
def layer_norm_swish_gate_linear(T):
    x, g = bf16(1, T, D, grad=True), bf16(1, T, D, grad=True)
    norms = bf16(D, grad=True), bf16(D, grad=True)
    backward(fused_norm_gate.layer_norm_swish_gate_linear(x, g, *norms, bf16(D, D, grad=True), None))


@jitaudit.sweep(T=LENGTHS)
def mamba_norm_gated(T):
    z = bf16(1, T, D, grad=True)
    backward(layernorm_gated.rmsnorm_fn(bf16(1, T, D, grad=True), bf16(D, grad=True), None, z))


@jitaudit.sweep(T=LENGTHS)
def rms_norm_module(T):
    backward(modules.RMSNorm(D, dtype=torch.bfloat16, device="cuda")(bf16(1, T, D, grad=True)))


@jitaudit.sweep(T=LENGTHS)
def fused_rms_norm_gated_module(T):
    modules.FusedRMSNormGated(D, dtype=torch.bfloat16, device="cuda")(bf16(1, T, D), bf16(1, T, D))


@jitaudit.sweep(T=LENGTHS)
def bit_linear_module(T):
    modules.FusedBitLinear(D, D).to("cuda", torch.bfloat16)(bf16(1, T, D))


# Activations


@jitaudit.sweep(T=LENGTHS)
def sigmoid(T):
    backward(activations.sigmoid(bf16(1, T, D, grad=True)))


@jitaudit.sweep(T=LENGTHS)
def logsigmoid(T):
    backward(activations.logsigmoid(bf16(1, T, D, grad=True)))


@jitaudit.sweep(T=LENGTHS)
def elu_plus_one(T):
    backward(activations.elu_p1(bf16(1, T, D, grad=True)))


@jitaudit.sweep(T=LENGTHS)
def swish(T):
    backward(activations.swish(bf16(1, T, D, grad=True)))


@jitaudit.sweep(T=LENGTHS)
def swiglu(T):
    backward(activations.swiglu(bf16(1, T, D, grad=True), bf16(1, T, D, grad=True)))


@jitaudit.sweep(T=LENGTHS)
def swiglu_linear(T):
    x, y = bf16(1, T, D, grad=True), bf16(1, T, D, grad=True)
    backward(activations.swiglu_linear(x, y, bf16(D, D, grad=True), None))


@jitaudit.sweep(T=LENGTHS)
def powglu(T):
    backward(activations.powglu(bf16(1, T, D, grad=True), bf16(1, T, D, grad=True)))


@jitaudit.sweep(T=LENGTHS)
def gated_mlp_module(T):
    with torch.device("cuda"):
        mlp = modules.GatedMLP(hidden_size=256, hidden_ratio=2).to(torch.bfloat16)
    backward(mlp(bf16(1, T, 256, grad=True)))


# Losses


@jitaudit.sweep(tokens=LENGTHS)
def cross_entropy(tokens):
    backward(cross_entropy_loss(bf16(tokens, 4096, grad=True), targets(tokens)))


@jitaudit.sweep(tokens=LENGTHS)
def fused_linear_ce(tokens):
    fused_linear_cross_entropy_loss(bf16(tokens, D), targets(tokens), bf16(4096, D))


@jitaudit.sweep(tokens=LENGTHS)
def fused_linear_ce_backward(tokens):
    weight = bf16(4096, D, grad=True)
    fused_linear_cross_entropy_loss(bf16(tokens, D, grad=True), targets(tokens), weight).backward()


@jitaudit.sweep(N=jitaudit.ints(1, 64))
def fused_kl_div(N):
    x, teacher = bf16(N, D, grad=True), bf16(N, D)
    fused_kl_div_loss(x, teacher, bf16(4096, D, grad=True), bf16(4096, D)).backward()


@jitaudit.sweep(tokens=LENGTHS)
def grpo(tokens):
    logits, mask = bf16(2, tokens + 1, 4096, grad=True), torch.ones(2, tokens, dtype=torch.int32, device="cuda")
    backward(fused_grpo_loss(logits, fp32(2, tokens), i64(2, tokens), fp32(2), completion_mask=mask))


# Positions, shifts and convolutions


@jitaudit.sweep(T=LONG)
def rotary(T):
    rotary_embedding(bf16(1, T, 4, 64), bf16(T, 32), bf16(T, 32))


@jitaudit.sweep(T=LENGTHS)
def rotary_backward(T):
    backward(rotary_embedding(bf16(1, T, 4, 64, grad=True), bf16(128, 32), bf16(128, 32)))


_module = modules.RotaryEmbedding(64, device="cuda")


@jitaudit.sweep(T=LONG)
def rotary_module(T):
    """Its cos cache grows with the longest T so far: what it launches depends on the order."""
    _module(bf16(1, T, 4, 64), bf16(1, T, 4, 64))


@jitaudit.sweep(T=LENGTHS)
def token_shift_dense(T):
    backward(token_shift(bf16(1, T, D, grad=True)))


@jitaudit.sweep(T=LENGTHS)
def token_shift_varlen(T):
    backward(token_shift(bf16(1, T, D, grad=True), two_sequences(T)))


@jitaudit.sweep(T=LENGTHS)
def causal_conv(T):
    backward(causal_conv1d(bf16(1, T, D, grad=True), bf16(D, 4, grad=True), activation="silu"))


@jitaudit.sweep(T=LENGTHS)
def causal_conv_varlen(T):
    causal_conv1d(bf16(1, T, D), bf16(D, 4), activation="silu", cu_seqlens=two_sequences(T))


@jitaudit.sweep(batch=LENGTHS)
def causal_conv_update(batch):
    causal_conv1d_update(bf16(batch, 1, D), bf16(batch, D, 4), weight=bf16(D, 4), activation="silu")


@jitaudit.sweep(T=LENGTHS)
def short_convolution_module(T):
    conv = modules.ShortConvolution(D, 4, activation="silu", device="cuda", dtype=torch.bfloat16)
    conv(bf16(1, T, D))


# Utilities that launch kernels of their own


@jitaudit.sweep(M=LENGTHS)
def matmul_rows(M):
    matmul(bf16(M, 256), bf16(256, 128))


@jitaudit.sweep(M=LENGTHS)
def addmm_rows(M):
    addmm(bf16(M, 128), bf16(M, 256), bf16(256, 128))


@jitaudit.sweep(rows=LENGTHS)
def logsumexp(rows):
    logsumexp_fwd(bf16(rows, 4096))


@jitaudit.sweep(T=LENGTHS)
def sinkhorn_rounds(T):
    backward(sinkhorn(fp32(1, T, 4, 4, grad=True)))


@jitaudit.sweep(T=LENGTHS)
def pack(T):
    pack_sequence(bf16(2, T, 64), two_sequences(2 * T))


@jitaudit.sweep(T=LENGTHS)
def unpack(T):
    unpack_sequence(bf16(2 * T, 64), two_sequences(2 * T))
