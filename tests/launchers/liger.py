"""Sweeps over the public launchers of Liger-Kernel 0.8.5, unmodified: forward, and `_backward` with the backward too."""

from __future__ import annotations

from types import SimpleNamespace

import torch
from liger_kernel import ops
from liger_kernel.ops.fused_moe import compute_routing_metadata
from liger_kernel.ops.grpo_loss import fused_selective_log_softmax
from liger_kernel.transformers import functional as F
from liger_kernel.transformers import llama4_rope, swiglu, tiled_mlp
from liger_kernel.transformers.grpo_loss import triton_grpo_loss

import jitaudit

TOKENS = jitaudit.ints(1, 128)
COLUMNS = jitaudit.ints(1, 256)
HIDDEN, VOCAB = 2048, 4096
BOTH = [False, True]


def bf16(*shape, grad=False):
    return torch.empty(shape, dtype=torch.bfloat16, device="cuda", requires_grad=grad)


def fp32(*shape, grad=False):
    return torch.empty(shape, dtype=torch.float32, device="cuda", requires_grad=grad)


def labels(tokens, ignored=0):
    """Targets whose values are known: the last `ignored` of them count for nothing."""
    return torch.tensor([1] * (tokens - ignored) + [-100] * ignored, device="cuda")


def finish(out, backward):
    """Run the backward of everything that `out` holds."""
    if backward:
        outputs = [o for o in (out if isinstance(out, tuple) else (out,)) if o is not None and o.requires_grad]
        torch.autograd.backward(outputs, [None if o.numel() == 1 else torch.empty_like(o) for o in outputs])


# Norms and activations


@jitaudit.sweep(tokens=TOKENS)
def rms_norm(tokens):
    F.liger_rms_norm(bf16(tokens, HIDDEN), bf16(HIDDEN), 1e-6)


@jitaudit.sweep(tokens=TOKENS)
def rms_norm_backward(tokens):
    finish(F.liger_rms_norm(bf16(tokens, HIDDEN, grad=True), bf16(HIDDEN, grad=True), 1e-6, in_place=False), True)


@jitaudit.sweep(tokens=TOKENS, backward=BOTH)
def layer_norm(tokens, backward):
    finish(
        F.liger_layer_norm(bf16(tokens, HIDDEN, grad=True), bf16(HIDDEN, grad=True), bf16(HIDDEN, grad=True), 1e-6),
        backward,
    )


@jitaudit.sweep(tokens=TOKENS)
def fused_add_rms_norm(tokens):
    F.liger_fused_add_rms_norm(bf16(tokens, HIDDEN), bf16(tokens, HIDDEN), bf16(HIDDEN), 1e-6)


@jitaudit.sweep(tokens=TOKENS)
def fused_add_rms_norm_backward(tokens):
    x, residual = bf16(tokens, HIDDEN, grad=True), bf16(tokens, HIDDEN, grad=True)
    finish(F.liger_fused_add_rms_norm(x, residual, bf16(HIDDEN, grad=True), 1e-6, in_place=False), True)


@jitaudit.sweep(tokens=TOKENS)
def modulated_rms_norm(tokens):
    F.liger_modulated_rms_norm(bf16(2, tokens, HIDDEN), bf16(HIDDEN), bf16(2, HIDDEN))


@jitaudit.sweep(tokens=TOKENS)
def modulated_rms_norm_backward(tokens):
    x = bf16(2, tokens, HIDDEN, grad=True)
    scale, shift = bf16(2, HIDDEN, grad=True), bf16(2, HIDDEN, grad=True)
    finish(F.liger_modulated_rms_norm(x, bf16(HIDDEN, grad=True), scale, shift, in_place=False), True)


@jitaudit.sweep(batch=TOKENS)
def group_norm(batch):
    F.liger_group_norm(bf16(batch, 32, 128), bf16(32), bf16(32), 32, 4, 1e-6)


@jitaudit.sweep(hidden=COLUMNS)
def group_norm_hidden(hidden):
    F.liger_group_norm(bf16(4, 32, hidden), bf16(32), bf16(32), 32, 4, 1e-6)


@jitaudit.sweep(batch=TOKENS)
def group_norm_backward(batch):
    x = bf16(batch, 32, 128, grad=True)
    finish(F.liger_group_norm(x, bf16(32, grad=True), bf16(32, grad=True), 32, 4, 1e-6), True)


@jitaudit.sweep(tokens=TOKENS)
def poly_norm(tokens):
    F.liger_poly_norm(bf16(tokens, HIDDEN), bf16(3), bf16())


@jitaudit.sweep(tokens=TOKENS)
def poly_norm_backward(tokens):
    finish(F.liger_poly_norm(bf16(tokens, HIDDEN, grad=True), bf16(3, grad=True), bf16(grad=True)), True)


@jitaudit.sweep(tokens=TOKENS)
def dyt(tokens):
    F.liger_dyt(bf16(tokens, HIDDEN), bf16(1), bf16(HIDDEN), bf16(HIDDEN))


@jitaudit.sweep(tokens=TOKENS)
def dyt_backward(tokens):
    x = bf16(tokens, HIDDEN, grad=True)
    finish(F.liger_dyt(x, bf16(1, grad=True), bf16(HIDDEN, grad=True), bf16(HIDDEN, grad=True)), True)


@jitaudit.sweep(tokens=TOKENS, backward=BOTH)
def relu_squared(tokens, backward):
    finish(F.liger_relu_squared(bf16(tokens, HIDDEN, grad=True)), backward)


def _swiglu(tokens, backward):
    finish(F.liger_swiglu(bf16(tokens, HIDDEN, grad=True), bf16(tokens, HIDDEN, grad=True)), backward)


@jitaudit.sweep(tokens=TOKENS)
def swiglu_forward(tokens):
    _swiglu(tokens, False)


@jitaudit.sweep(tokens=TOKENS)
def swiglu_backward(tokens):
    _swiglu(tokens, True)


@jitaudit.sweep(tokens=TOKENS)
def fused_gate_up_swiglu(tokens):
    finish(ops.LigerFusedGateUpSiLUMulFunction.apply(bf16(tokens, 2 * HIDDEN, grad=True)), True)


@jitaudit.sweep(tokens=TOKENS)
def geglu(tokens):
    F.liger_geglu(bf16(tokens, HIDDEN), bf16(tokens, HIDDEN))


@jitaudit.sweep(tokens=TOKENS)
def geglu_backward(tokens):
    finish(F.liger_geglu(bf16(tokens, HIDDEN, grad=True), bf16(tokens, HIDDEN, grad=True)), True)


CONFIG = SimpleNamespace(hidden_size=256, intermediate_size=512, hidden_act="silu", num_experts=4)


@jitaudit.sweep(tokens=TOKENS)
def swiglu_mlp_module(tokens):
    with torch.device("cuda"):
        module = swiglu.LigerSwiGLUMLP(CONFIG).to(torch.bfloat16)
    finish(module(bf16(tokens, 256)), True)


@jitaudit.sweep(tokens=TOKENS)
def tiled_mlp_forward(tokens):
    with torch.device("cuda"), torch.no_grad():
        tiled_mlp.LigerTiledSwiGLUMLP(CONFIG, num_shards=2).to(torch.bfloat16)(bf16(1, tokens, 256))


@jitaudit.sweep(tokens=TOKENS)
def tiled_mlp_backward(tokens):
    with torch.device("cuda"):
        module = tiled_mlp.LigerTiledSwiGLUMLP(CONFIG, num_shards=2).to(torch.bfloat16)
    finish(module(bf16(1, tokens, 256, grad=True)), True)


@jitaudit.sweep(tokens=TOKENS)
def mlp(tokens):
    weights = [bf16(512, 256, grad=True), bf16(512, 256, grad=True), bf16(256, 512, grad=True)]
    finish(ops.LigerMLPFunction.apply(bf16(2, tokens, 256, grad=True), *weights), True)


# Softmaxes


@jitaudit.sweep(rows=TOKENS)
def softmax_rows(rows):
    F.liger_softmax(bf16(rows, HIDDEN))


@jitaudit.sweep(columns=COLUMNS)
def softmax_columns(columns):
    F.liger_softmax(bf16(16, columns))


@jitaudit.sweep(columns=COLUMNS)
def softmax_backward(columns):
    finish(F.liger_softmax(bf16(16, columns, grad=True)), True)


@jitaudit.sweep(columns=COLUMNS)
def sparsemax_columns(columns):
    F.liger_sparsemax(bf16(16, columns))


@jitaudit.sweep(columns=COLUMNS)
def sparsemax_backward(columns):
    finish(F.liger_sparsemax(bf16(16, columns, grad=True)), True)


@jitaudit.sweep(length=TOKENS)
def multi_token_attention(length):
    scores, weight = fp32(1, 4, length, length, grad=True), fp32(4, 4, 3, 3, grad=True)
    finish(F.liger_multi_token_attention(scores, weight, fp32(4, grad=True), padding=1), True)


@jitaudit.sweep(length=TOKENS)
def multi_token_attention_sparse(length):
    scores, weight = fp32(1, 4, length, length, grad=True), fp32(4, 4, 3, 3, grad=True)
    finish(F.liger_multi_token_attention(scores, weight, padding=1, sparse=True), True)


@jitaudit.sweep(length=TOKENS)
def neighborhood_attention(length):
    F.liger_fused_neighborhood_attention(*(bf16(1, 4, length, 64) for _ in range(3)))


@jitaudit.sweep(length=TOKENS)
def neighborhood_attention_backward(length):
    finish(F.liger_fused_neighborhood_attention(*(bf16(1, 4, length, 64, grad=True) for _ in range(3))), True)


@jitaudit.sweep(length=TOKENS)
def attn_res(length):
    F.liger_attn_res(bf16(8, 1, length, HIDDEN), bf16(HIDDEN), bf16(HIDDEN))


@jitaudit.sweep(length=TOKENS)
def attn_res_backward(length):
    blocks = bf16(8, 1, length, HIDDEN, grad=True)
    finish(F.liger_attn_res(blocks, bf16(HIDDEN, grad=True), bf16(HIDDEN, grad=True)), True)


# Rotary embeddings


def _rope(length):
    q, k = bf16(1, 32, length, 64, grad=True), bf16(1, 8, length, 64, grad=True)
    return F.liger_rope(q, k, bf16(1, length, 64), bf16(1, length, 64))


@jitaudit.sweep(length=TOKENS)
def rope(length):
    _rope(length)


@jitaudit.sweep(length=TOKENS)
def rope_backward(length):
    finish(_rope(length), True)


def _mrope(length):
    q, k = bf16(1, 32, length, 64, grad=True), bf16(1, 8, length, 64, grad=True)
    return F.liger_qwen2vl_mrope(q, k, bf16(3, 1, length, 64), bf16(3, 1, length, 64), [8, 12, 12])


@jitaudit.sweep(length=TOKENS)
def qwen2vl_mrope(length):
    _mrope(length)


@jitaudit.sweep(length=TOKENS)
def qwen2vl_mrope_backward(length):
    finish(_mrope(length), True)


def _llama4(length):
    q, k = bf16(1, length, 32, 64, grad=True), bf16(1, length, 8, 64, grad=True)
    angles = torch.empty(length, 32, dtype=torch.complex64, device="cuda")
    return llama4_rope.liger_llama4_text_rotary_pos_emb(q, k, angles)


@jitaudit.sweep(length=TOKENS)
def llama4_rope_forward(length):
    _llama4(length)


@jitaudit.sweep(length=TOKENS)
def llama4_rope_backward(length):
    finish(_llama4(length), True)


# Losses


@jitaudit.sweep(tokens=TOKENS)
def cross_entropy(tokens):
    F.liger_cross_entropy(bf16(tokens, VOCAB), labels(tokens))


@jitaudit.sweep(tokens=TOKENS)
def cross_entropy_backward(tokens):
    finish(F.liger_cross_entropy(bf16(tokens, VOCAB, grad=True), labels(tokens)), True)


@jitaudit.sweep(tokens=TOKENS)
def fused_linear_cross_entropy(tokens):
    x, weight = bf16(tokens, 256, grad=True), bf16(VOCAB, 256, grad=True)
    finish(F.liger_fused_linear_cross_entropy(x, weight, labels(tokens)), True)


@jitaudit.sweep(tokens=TOKENS)
def jsd(tokens):
    F.liger_jsd(bf16(tokens, VOCAB), bf16(tokens, VOCAB))


@jitaudit.sweep(tokens=TOKENS)
def jsd_labels_backward(tokens):
    finish(F.liger_jsd(bf16(tokens, VOCAB, grad=True), bf16(tokens, VOCAB), labels(tokens)), True)


@jitaudit.sweep(tokens=TOKENS)
def fused_linear_jsd(tokens):
    student, weight = bf16(tokens, 256, grad=True), bf16(VOCAB, 256, grad=True)
    finish(F.liger_fused_linear_jsd(student, weight, bf16(tokens, 512), bf16(VOCAB, 512)), True)


@jitaudit.sweep(tokens=TOKENS)
def fused_linear_kl_div(tokens):
    student, weight = bf16(tokens, 256, grad=True), bf16(VOCAB, 256, grad=True)
    finish(F.liger_fused_linear_kl_div(student, weight, bf16(tokens, VOCAB)), True)


@jitaudit.sweep(tokens=TOKENS, backward=BOTH)
def kl_div(tokens, backward):
    finish(F.liger_kl_div(fp32(tokens, VOCAB, grad=True), fp32(tokens, VOCAB)), backward)


@jitaudit.sweep(tokens=TOKENS)
def tvd(tokens):
    F.liger_tvd(bf16(tokens, VOCAB), bf16(tokens, VOCAB))


@jitaudit.sweep(tokens=TOKENS)
def tvd_backward(tokens):
    finish(F.liger_tvd(bf16(tokens, VOCAB, grad=True), bf16(tokens, VOCAB), labels(tokens)), True)


@jitaudit.sweep(tokens=TOKENS)
def fused_ce_tvd(tokens):
    finish(ops.LigerFusedCETVDFunction.apply(bf16(tokens, VOCAB, grad=True), bf16(tokens, VOCAB), labels(tokens)), True)


@jitaudit.sweep(length=TOKENS)
def grpo_selective_log_softmax(length):
    fused_selective_log_softmax(bf16(2, length + 1, VOCAB), torch.empty(2, length, dtype=torch.int64, device="cuda"))


def _grpo(length, backward):
    logits = bf16(2, length + 1, VOCAB, grad=True)
    ids = torch.empty(2, length, dtype=torch.int64, device="cuda")
    mask = torch.ones(2, length, dtype=torch.int32, device="cuda")
    old, reference, advantages = fp32(2, length), fp32(2, length), fp32(2)
    out = triton_grpo_loss(logits, old, reference, ids, advantages, mask)
    finish(out[0], backward)


@jitaudit.sweep(length=TOKENS)
def grpo_loss(length):
    _grpo(length, False)


@jitaudit.sweep(length=TOKENS)
def grpo_loss_backward(length):
    _grpo(length, True)


# Experts, embeddings, hyper-connections


@jitaudit.sweep(tokens=TOKENS)
def fused_moe(tokens):
    x, gate_up, down = bf16(tokens, 256, grad=True), bf16(8, 1024, 256, grad=True), bf16(8, 256, 512, grad=True)
    experts = torch.empty(tokens, 2, dtype=torch.int32, device="cuda")
    finish(ops.LigerFusedMoEFunction.apply(x, gate_up, down, experts, bf16(tokens, 2, grad=True)), True)


@jitaudit.sweep(tokens=TOKENS)
def moe_routing(tokens):
    compute_routing_metadata(torch.empty(tokens, 2, dtype=torch.int32, device="cuda"), 8)


@jitaudit.sweep(tokens=TOKENS)
def embedding(tokens):
    ids = torch.empty(1, tokens, dtype=torch.int64, device="cuda")
    finish(ops.LigerEmbeddingFunction.apply(bf16(VOCAB, 256, grad=True), ids), True)


@jitaudit.sweep(tokens=TOKENS)
def mhc_coeffs(tokens):
    x, phi = bf16(tokens, 4, 256, grad=True), bf16(1024, 24, grad=True)
    alphas = [fp32(grad=True) for _ in range(3)]
    finish(F.liger_mhc_coeffs(x, phi, fp32(24, grad=True), *alphas), True)


@jitaudit.sweep(tokens=TOKENS)
def mhc_pre(tokens):
    finish(F.liger_mhc_pre(bf16(tokens, 4, 256, grad=True), fp32(tokens, 4, grad=True)), True)


@jitaudit.sweep(tokens=TOKENS)
def mhc_post_res(tokens):
    x, f = bf16(tokens, 4, 256, grad=True), bf16(tokens, 256, grad=True)
    finish(F.liger_mhc_post_res(x, f, fp32(tokens, 4, grad=True), fp32(tokens, 4, 4, grad=True)), True)
