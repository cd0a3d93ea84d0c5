"""Sweeps over Liger-Kernel 0.8.5, unmodified: norms, activations, softmaxes, rotary embeddings; and their backward."""

from __future__ import annotations

from types import SimpleNamespace

import torch
from liger_kernel import ops
from liger_kernel.transformers import functional as F
from liger_kernel.transformers import llama4_rope, swiglu, tiled_mlp
from tensors import backward, bf16, fp32

import jitaudit

TOKENS = jitaudit.ints(1, 128)
COLUMNS = jitaudit.ints(1, 256)
HIDDEN = 2048


# Norms and activations


@jitaudit.sweep(tokens=TOKENS)
def rms_norm(tokens):
    F.liger_rms_norm(bf16(tokens, HIDDEN), bf16(HIDDEN), 1e-6)


@jitaudit.sweep(tokens=TOKENS)
def rms_norm_backward(tokens):
    backward(F.liger_rms_norm(bf16(tokens, HIDDEN, grad=True), bf16(HIDDEN, grad=True), 1e-6, in_place=False))


@jitaudit.sweep(tokens=TOKENS)
def layer_norm(tokens):
    x, weight, bias = bf16(tokens, HIDDEN, grad=True), bf16(HIDDEN, grad=True), bf16(HIDDEN, grad=True)
    backward(F.liger_layer_norm(x, weight, bias, 1e-6))


@jitaudit.sweep(tokens=TOKENS)
def fused_add_rms_norm(tokens):
    F.liger_fused_add_rms_norm(bf16(tokens, HIDDEN), bf16(tokens, HIDDEN), bf16(HIDDEN), 1e-6)


@jitaudit.sweep(tokens=TOKENS)
def fused_add_rms_norm_backward(tokens):
    x, residual = bf16(tokens, HIDDEN, grad=True), bf16(tokens, HIDDEN, grad=True)
    backward(F.liger_fused_add_rms_norm(x, residual, bf16(HIDDEN, grad=True), 1e-6, in_place=False))


@jitaudit.sweep(tokens=TOKENS)
def modulated_rms_norm(tokens):
    F.liger_modulated_rms_norm(bf16(2, tokens, HIDDEN), bf16(HIDDEN), bf16(2, HIDDEN))


@jitaudit.sweep(tokens=TOKENS)
def modulated_rms_norm_backward(tokens):
    x = bf16(2, tokens, HIDDEN, grad=True)
    scale, shift = bf16(2, HIDDEN, grad=True), bf16(2, HIDDEN, grad=True)
    backward(F.liger_modulated_rms_norm(x, bf16(HIDDEN, grad=True), scale, shift, in_place=False))


@jitaudit.sweep(batch=TOKENS)
def group_norm(batch):
    F.liger_group_norm(bf16(batch, 32, 128), bf16(32), bf16(32), 32, 4, 1e-6)


@jitaudit.sweep(hidden=COLUMNS)
def group_norm_hidden(hidden):
    F.liger_group_norm(bf16(4, 32, hidden), bf16(32), bf16(32), 32, 4, 1e-6)


@jitaudit.sweep(batch=TOKENS)
def group_norm_backward(batch):
    x = bf16(batch, 32, 128, grad=True)
    backward(F.liger_group_norm(x, bf16(32, grad=True), bf16(32, grad=True), 32, 4, 1e-6))


@jitaudit.sweep(tokens=TOKENS)
def poly_norm(tokens):
    F.liger_poly_norm(bf16(tokens, HIDDEN), bf16(3), bf16())


@jitaudit.sweep(tokens=TOKENS)
def poly_norm_backward(tokens):
    backward(F.liger_poly_norm(bf16(tokens, HIDDEN, grad=True), bf16(3, grad=True), bf16(grad=True)))


@jitaudit.sweep(tokens=TOKENS)
def dyt(tokens):
    F.liger_dyt(bf16(tokens, HIDDEN), bf16(1), bf16(HIDDEN), bf16(HIDDEN))


@jitaudit.sweep(tokens=TOKENS)
def dyt_backward(tokens):
    x = bf16(tokens, HIDDEN, grad=True)
    backward(F.liger_dyt(x, bf16(1, grad=True), bf16(HIDDEN, grad=True), bf16(HIDDEN, grad=True)))


@jitaudit.sweep(tokens=TOKENS)
def relu_squared(tokens):
    backward(F.liger_relu_squared(bf16(tokens, HIDDEN, grad=True)))


def _swiglu(tokens):
    return F.liger_swiglu(bf16(tokens, HIDDEN, grad=True), bf16(tokens, HIDDEN, grad=True))


@jitaudit.sweep(tokens=TOKENS)
def swiglu_forward(tokens):
    _swiglu(tokens)


@jitaudit.sweep(tokens=TOKENS)
def swiglu_backward(tokens):
    backward(_swiglu(tokens))


@jitaudit.sweep(tokens=TOKENS)
def fused_gate_up_swiglu(tokens):
    backward(ops.LigerFusedGateUpSiLUMulFunction.apply(bf16(tokens, 2 * HIDDEN, grad=True)))


@jitaudit.sweep(tokens=TOKENS)
def geglu(tokens):
    F.liger_geglu(bf16(tokens, HIDDEN), bf16(tokens, HIDDEN))


@jitaudit.sweep(tokens=TOKENS)
def geglu_backward(tokens):
    backward(F.liger_geglu(bf16(tokens, HIDDEN, grad=True), bf16(tokens, HIDDEN, grad=True)))


CONFIG = SimpleNamespace(hidden_size=256, intermediate_size=512, hidden_act="silu", num_experts=4)


@jitaudit.sweep(tokens=TOKENS)
def swiglu_mlp_module(tokens):
    with torch.device("cuda"):
        module = swiglu.LigerSwiGLUMLP(CONFIG).to(torch.bfloat16)
    backward(module(bf16(tokens, 256)))


@jitaudit.sweep(tokens=TOKENS)
def tiled_mlp_forward(tokens):
    with torch.device("cuda"), torch.no_grad():
        tiled_mlp.LigerTiledSwiGLUMLP(CONFIG, num_shards=2).to(torch.bfloat16)(bf16(1, tokens, 256))


@jitaudit.sweep(tokens=TOKENS)
def tiled_mlp_backward(tokens):
    with torch.device("cuda"):
        module = tiled_mlp.LigerTiledSwiGLUMLP(CONFIG, num_shards=2).to(torch.bfloat16)
    backward(module(bf16(1, tokens, 256, grad=True)))


@jitaudit.sweep(tokens=TOKENS)
def mlp(tokens):
    weights = [bf16(512, 256, grad=True), bf16(512, 256, grad=True), bf16(256, 512, grad=True)]
    backward(ops.LigerMLPFunction.apply(bf16(2, tokens, 256, grad=True), *weights))


# Softmaxes


@jitaudit.sweep(rows=TOKENS)
def softmax_rows(rows):
    F.liger_softmax(bf16(rows, HIDDEN))


@jitaudit.sweep(columns=COLUMNS)
def softmax_columns(columns):
    F.liger_softmax(bf16(16, columns))


@jitaudit.sweep(columns=COLUMNS)
def softmax_backward(columns):
    backward(F.liger_softmax(bf16(16, columns, grad=True)))


@jitaudit.sweep(columns=COLUMNS)
def sparsemax_columns(columns):
    F.liger_sparsemax(bf16(16, columns))


@jitaudit.sweep(columns=COLUMNS)
def sparsemax_backward(columns):
    backward(F.liger_sparsemax(bf16(16, columns, grad=True)))


@jitaudit.sweep(length=TOKENS)
def multi_token_attention(length):
    scores, weight = fp32(1, 4, length, length, grad=True), fp32(4, 4, 3, 3, grad=True)
    backward(F.liger_multi_token_attention(scores, weight, fp32(4, grad=True), padding=1))


@jitaudit.sweep(length=TOKENS)
def multi_token_attention_sparse(length):
    scores, weight = fp32(1, 4, length, length, grad=True), fp32(4, 4, 3, 3, grad=True)
    backward(F.liger_multi_token_attention(scores, weight, padding=1, sparse=True))


@jitaudit.sweep(length=TOKENS)
def neighborhood_attention(length):
    F.liger_fused_neighborhood_attention(*(bf16(1, 4, length, 64) for _ in range(3)))


@jitaudit.sweep(length=TOKENS)
def neighborhood_attention_backward(length):
    backward(F.liger_fused_neighborhood_attention(*(bf16(1, 4, length, 64, grad=True) for _ in range(3))))


@jitaudit.sweep(length=TOKENS)
def attn_res(length):
    F.liger_attn_res(bf16(8, 1, length, HIDDEN), bf16(HIDDEN), bf16(HIDDEN))


@jitaudit.sweep(length=TOKENS)
def attn_res_backward(length):
    blocks = bf16(8, 1, length, HIDDEN, grad=True)
    backward(F.liger_attn_res(blocks, bf16(HIDDEN, grad=True), bf16(HIDDEN, grad=True)))


# Rotary embeddings


def _rope(length):
    q, k = bf16(1, 32, length, 64, grad=True), bf16(1, 8, length, 64, grad=True)
    return F.liger_rope(q, k, bf16(1, length, 64), bf16(1, length, 64))


@jitaudit.sweep(length=TOKENS)
def rope(length):
    _rope(length)


@jitaudit.sweep(length=TOKENS)
def rope_backward(length):
    backward(_rope(length))


def _mrope(length):
    q, k = bf16(1, 32, length, 64, grad=True), bf16(1, 8, length, 64, grad=True)
    return F.liger_qwen2vl_mrope(q, k, bf16(3, 1, length, 64), bf16(3, 1, length, 64), [8, 12, 12])


@jitaudit.sweep(length=TOKENS)
def qwen2vl_mrope(length):
    _mrope(length)


@jitaudit.sweep(length=TOKENS)
def qwen2vl_mrope_backward(length):
    backward(_mrope(length))


def _llama4(length):
    q, k = bf16(1, length, 32, 64, grad=True), bf16(1, length, 8, 64, grad=True)
    angles = torch.empty(length, 32, dtype=torch.complex64, device="cuda")
    return llama4_rope.liger_llama4_text_rotary_pos_emb(q, k, angles)


@jitaudit.sweep(length=TOKENS)
def llama4_rope_forward(length):
    _llama4(length)


@jitaudit.sweep(length=TOKENS)
def llama4_rope_backward(length):
    backward(_llama4(length))
