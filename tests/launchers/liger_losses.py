"""Sweeps over Liger-Kernel 0.8.5, unmodified: losses, experts, embeddings, hyper-connections; and their backward."""

from __future__ import annotations

import torch
from liger_kernel import ops
from liger_kernel.ops.fused_moe import compute_routing_metadata
from liger_kernel.ops.grpo_loss import fused_selective_log_softmax
from liger_kernel.transformers import functional as F
from liger_kernel.transformers.grpo_loss import triton_grpo_loss
from tensors import backward, bf16, fp32, i32, i64

import jitaudit

TOKENS = jitaudit.ints(1, 128)
VOCAB = 4096


def labels(tokens):
    """Targets whose values are known."""
    return torch.ones(tokens, dtype=torch.int64, device="cuda")


# Losses


@jitaudit.sweep(tokens=TOKENS)
def cross_entropy(tokens):
    F.liger_cross_entropy(bf16(tokens, VOCAB), labels(tokens))


@jitaudit.sweep(tokens=TOKENS)
def cross_entropy_backward(tokens):
    backward(F.liger_cross_entropy(bf16(tokens, VOCAB, grad=True), labels(tokens)))


@jitaudit.sweep(tokens=TOKENS)
def fused_linear_cross_entropy(tokens):
    x, weight = bf16(tokens, 256, grad=True), bf16(VOCAB, 256, grad=True)
    backward(F.liger_fused_linear_cross_entropy(x, weight, labels(tokens)))


@jitaudit.sweep(tokens=TOKENS)
def jsd(tokens):
    F.liger_jsd(bf16(tokens, VOCAB), bf16(tokens, VOCAB))


@jitaudit.sweep(tokens=TOKENS)
def jsd_labels_backward(tokens):
    backward(F.liger_jsd(bf16(tokens, VOCAB, grad=True), bf16(tokens, VOCAB), labels(tokens)))


@jitaudit.sweep(tokens=TOKENS)
def fused_linear_jsd(tokens):
    student, weight = bf16(tokens, 256, grad=True), bf16(VOCAB, 256, grad=True)
    backward(F.liger_fused_linear_jsd(student, weight, bf16(tokens, 512), bf16(VOCAB, 512)))


@jitaudit.sweep(tokens=TOKENS)
def fused_linear_kl_div(tokens):
    student, weight = bf16(tokens, 256, grad=True), bf16(VOCAB, 256, grad=True)
    backward(F.liger_fused_linear_kl_div(student, weight, bf16(tokens, VOCAB)))


@jitaudit.sweep(tokens=TOKENS)
def kl_div(tokens):
    backward(F.liger_kl_div(fp32(tokens, VOCAB, grad=True), fp32(tokens, VOCAB)))


@jitaudit.sweep(tokens=TOKENS)
def tvd(tokens):
    F.liger_tvd(bf16(tokens, VOCAB), bf16(tokens, VOCAB))


@jitaudit.sweep(tokens=TOKENS)
def tvd_backward(tokens):
    backward(F.liger_tvd(bf16(tokens, VOCAB, grad=True), bf16(tokens, VOCAB), labels(tokens)))


@jitaudit.sweep(tokens=TOKENS)
def fused_ce_tvd(tokens):
    backward(ops.LigerFusedCETVDFunction.apply(bf16(tokens, VOCAB, grad=True), bf16(tokens, VOCAB), labels(tokens)))


@jitaudit.sweep(length=TOKENS)
def grpo_selective_log_softmax(length):
    fused_selective_log_softmax(bf16(2, length + 1, VOCAB), i64(2, length))


def _grpo(length):
    logits = bf16(2, length + 1, VOCAB, grad=True)
    ids = i64(2, length)
    mask = torch.ones(2, length, dtype=torch.int32, device="cuda")
    old, reference, advantages = fp32(2, length), fp32(2, length), fp32(2)
    return triton_grpo_loss(logits, old, reference, ids, advantages, mask)[0]


@jitaudit.sweep(length=TOKENS)
def grpo_loss(length):
    _grpo(length)


@jitaudit.sweep(length=TOKENS)
def grpo_loss_backward(length):
    backward(_grpo(length))


# Experts, embeddings, hyper-connections


@jitaudit.sweep(tokens=TOKENS)
def fused_moe(tokens):
    x, gate_up, down = bf16(tokens, 256, grad=True), bf16(8, 1024, 256, grad=True), bf16(8, 256, 512, grad=True)
    experts = i32(tokens, 2)
    backward(ops.LigerFusedMoEFunction.apply(x, gate_up, down, experts, bf16(tokens, 2, grad=True)))


@jitaudit.sweep(tokens=TOKENS)
def moe_routing(tokens):
    compute_routing_metadata(i32(tokens, 2), 8)


@jitaudit.sweep(tokens=TOKENS)
def embedding(tokens):
    ids = i64(1, tokens)
    backward(ops.LigerEmbeddingFunction.apply(bf16(VOCAB, 256, grad=True), ids))


@jitaudit.sweep(tokens=TOKENS)
def mhc_coeffs(tokens):
    x, phi = bf16(tokens, 4, 256, grad=True), bf16(1024, 24, grad=True)
    alphas = [fp32(grad=True) for _ in range(3)]
    backward(F.liger_mhc_coeffs(x, phi, fp32(24, grad=True), *alphas))


@jitaudit.sweep(tokens=TOKENS)
def mhc_pre(tokens):
    backward(F.liger_mhc_pre(bf16(tokens, 4, 256, grad=True), fp32(tokens, 4, grad=True)))


@jitaudit.sweep(tokens=TOKENS)
def mhc_post_res(tokens):
    x, f = bf16(tokens, 4, 256, grad=True), bf16(tokens, 256, grad=True)
    backward(F.liger_mhc_post_res(x, f, fp32(tokens, 4, grad=True), fp32(tokens, 4, 4, grad=True)))
