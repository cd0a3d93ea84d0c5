"""Constexprs that move with the traffic (rows 2 to 7, 14, 15)."""

from __future__ import annotations

from types import SimpleNamespace

import torch
import triton
import triton.language as tl

import jitaudit
from jitaudit.jit.respecialize import respecialize


@triton.jit
def decode_stage2_kernel(partial_ptr, out_ptr, BATCH_NUM: tl.constexpr, BLOCK: tl.constexpr):
    request = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = request < BATCH_NUM
    total = tl.load(partial_ptr + request, mask=mask) + tl.load(partial_ptr + BATCH_NUM + request, mask=mask)
    tl.store(out_ptr + request, total, mask=mask)


DECODE_STAGE2 = SimpleNamespace(
    constexpr=decode_stage2_kernel,
    plain=respecialize(decode_stage2_kernel, runtime=["BATCH_NUM"]),
    dns=respecialize(decode_stage2_kernel, runtime=["BATCH_NUM"], do_not_specialize=["BATCH_NUM"]),
)


@jitaudit.sweep(batch=jitaudit.ints(1, 256), policy=list(vars(DECODE_STAGE2)), compare="policy")
def decode_stage2(batch, policy):
    """Row 2: a constexpr that only an offset and a comparison use."""
    partial = torch.empty(2, batch, device="cuda")
    out = torch.empty(batch, device="cuda")
    getattr(DECODE_STAGE2, policy)[(triton.cdiv(batch, 64),)](partial, out, BATCH_NUM=batch, BLOCK=64)


@triton.jit
def l2norm_kernel(x_ptr, y_ptr, T: tl.constexpr, NB: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row, mask=row < T, other=0.0)
    tl.store(y_ptr + row, x / tl.sqrt(tl.sum(x * x)), mask=row < T)


@triton.jit(do_not_specialize=["T"])
def l2norm_without_nb_kernel(x_ptr, y_ptr, T, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row, mask=row < T, other=0.0)
    tl.store(y_ptr + row, x / tl.sqrt(tl.sum(x * x)), mask=row < T)


L2NORM = SimpleNamespace(
    constexpr=l2norm_kernel,
    T_alone=respecialize(l2norm_kernel, runtime=["T"], do_not_specialize=["T"]),
)


@jitaudit.sweep(blocks=jitaudit.ints(1, 32), policy=[*vars(L2NORM), "T and NB"], compare="policy")
def l2norm(blocks, policy):
    """Row 3: tokens × heads as a bound, and a block count that the body never reads."""
    rows = 64 * blocks
    x, y = torch.empty(2, rows, device="cuda")
    if policy == "T and NB":
        l2norm_without_nb_kernel[(blocks,)](x, y, T=rows, BLOCK=64)
    else:
        getattr(L2NORM, policy)[(blocks,)](x, y, T=rows, NB=triton.cdiv(rows, 64), BLOCK=64)


@triton.jit
def split_k_reduce_kernel(partial_ptr, out_ptr, ELEMENTS: tl.constexpr, SPLITS: tl.constexpr, BLOCK: tl.constexpr):
    element = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for split in range(SPLITS):
        total += tl.load(partial_ptr + split * ELEMENTS + element, mask=element < ELEMENTS)
    tl.store(out_ptr + element, total, mask=element < ELEMENTS)


@jitaudit.sweep(m=jitaudit.ints(1, 64), splits=[2, 4, 8, 16])
def split_k_reduce(m, splits):
    """Row 4: a product of the batch as a constexpr, times a tuned number of splits."""
    out = torch.empty(m, 128, device="cuda")
    partial = torch.empty(splits, m, 128, device="cuda")
    split_k_reduce_kernel[(triton.cdiv(out.numel(), 256),)](
        partial, out, ELEMENTS=out.numel(), SPLITS=splits, BLOCK=256
    )


@triton.jit
def gemm_kernel(a_ptr, b_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[:, None]
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    depth = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, K, BLOCK):
        a = tl.load(a_ptr + row * K + start + depth[None, :], mask=row < M, other=0.0)
        b = tl.load(b_ptr + (start + depth[:, None]) * N + column, mask=column < N, other=0.0)
        total = tl.dot(a, b, total)
    tl.store(c_ptr + row * N + column, total.to(tl.float16), mask=(row < M) & (column < N))


GEMM = SimpleNamespace(constexpr=gemm_kernel, dns=respecialize(gemm_kernel, runtime=["M"], do_not_specialize=["M"]))


@jitaudit.sweep(tokens=jitaudit.ints(1, 4096), policy=list(vars(GEMM)), compare="policy")
def gemm(tokens, policy):
    """Row 5: the tokens padded to 128 as a constexpr, beside the model's own constants."""
    m, n, k = triton.cdiv(tokens, 128) * 128, 256, 64
    a = torch.empty(m, k, dtype=torch.float16, device="cuda")
    b = torch.empty(k, n, dtype=torch.float16, device="cuda")
    c = torch.empty(m, n, dtype=torch.float16, device="cuda")
    getattr(GEMM, policy)[(m // 32, n // 32)](a, b, c, M=m, N=n, K=k, BLOCK=32)


@triton.jit
def fill_kernel(x_ptr, numel, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, 1.0, mask=offsets < numel)


FILL = SimpleNamespace(plain=fill_kernel, dns=respecialize(fill_kernel, do_not_specialize=["numel"]))


@jitaudit.sweep(
    numel=jitaudit.ints(1, 3000), policy=["plain", "dns", "plain, fixed block", "dns, fixed block"], compare="policy"
)
def fill(numel, policy):
    """Row 6: a block that follows the size up to 1024."""
    kernel, _, fixed = policy.partition(", ")
    block = 1024 if fixed else triton.next_power_of_2(min(numel, 1024))
    getattr(FILL, kernel)[(triton.cdiv(numel, block),)](torch.empty(numel, device="cuda"), numel, BLOCK=block)


@triton.jit(do_not_specialize=["BATCH"])
def listed_constexpr_kernel(x_ptr, BATCH: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, 1.0, mask=offsets < BATCH)


@jitaudit.sweep(batch=jitaudit.ints(1, 256))
def listed_constexpr(batch):
    """Row 7: a parameter both constexpr and in `do_not_specialize`."""
    listed_constexpr_kernel[(1,)](torch.empty(256, device="cuda"), BATCH=batch, BLOCK=256)


@triton.jit
def flag_kernel(x_ptr, FLAG: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, tl.load(x_ptr + offsets) + FLAG)


@triton.jit
def cleared_flag_kernel(x_ptr, FLAG: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, tl.load(x_ptr + offsets) + FLAG)


@jitaudit.sweep(flag=[True, 1, 1.0])
def equal_constexprs(flag):
    """Row 14: values that Python calls equal, and Triton's memo too, with a binary each."""
    flag_kernel[(1,)](torch.empty(64, dtype=torch.int32, device="cuda"), FLAG=flag, BLOCK=64)


@jitaudit.sweep(flag=[False, 0, 0.0])
def equal_cleared_constexprs(flag):
    """Row 14, with the other three."""
    cleared_flag_kernel[(1,)](torch.empty(64, dtype=torch.int32, device="cuda"), FLAG=flag, BLOCK=64)


@triton.jit
def rope_kernel(x_ptr, cos_ptr, seq_len: tl.constexpr, BLOCK: tl.constexpr):
    position = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    if position < seq_len:
        angle = tl.load(cos_ptr + position * BLOCK + column)
        tl.store(x_ptr + position * BLOCK + column, tl.load(x_ptr + position * BLOCK + column) * angle)


@triton.jit
def rope_control_kernel(x_ptr, cos_ptr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + at, tl.load(x_ptr + at) * tl.load(cos_ptr + at))


ROPE = SimpleNamespace(
    constexpr=rope_kernel, dns=respecialize(rope_kernel, runtime=["seq_len"], do_not_specialize=["seq_len"])
)


@jitaudit.sweep(length=jitaudit.ints(7, 700, 7), policy=list(vars(ROPE)), compare="policy")
def rope(length, policy):
    """Row 15: a hundred lengths as a constexpr, beside a kernel whose grid has the length."""
    x, cos = torch.empty(2, length, 64, device="cuda")
    getattr(ROPE, policy)[(length,)](x, cos, seq_len=length, BLOCK=64)
    rope_control_kernel[(length,)](x, cos, BLOCK=64)
