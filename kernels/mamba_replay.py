"""Replay of Mamba states after a verify step: which state each request uses, and its convolution window as of a step.

Both launch over static buffers, so their sizes and the alignment of their index slices move with the batch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import triton.language as tl

import jitaudit

from .arguments import I32, I64, check_at_least, check_tensor, device_of
from .blocks import BATCH_FLOOR, next_power_of_2
from .policy import POLICIES, Policy, PolicyName, batch_block, policies, resolve_policy

WindowPair = tuple[torch.Tensor, torch.Tensor]
"""(dst[layers, slots, dim, win], src[layers, rows, steps, dim, win]), the last two dimensions contiguous."""


@policies(floored=Policy(do_not_specialize=("valid", "total")))
def state_indices_kernel(
    req_pool_indices_ptr,  # [total]
    mapping_ptr,  # [pool]
    v2p_ptr,  # [virtual states] or None
    out_ptr,  # [total]
    valid,
    total,
    BLOCK: tl.constexpr,
):
    request = tl.arange(0, BLOCK)
    is_valid = request < valid
    padding = (request >= valid) & (request < total)
    state = tl.load(mapping_ptr + tl.load(req_pool_indices_ptr + request, mask=is_valid), mask=is_valid)
    if v2p_ptr is not None:
        state = tl.load(v2p_ptr + state, mask=is_valid).to(tl.int32)
    tl.store(out_ptr + request, tl.where(is_valid, state, -1), mask=request < total)
    tl.store(req_pool_indices_ptr + request, 0, mask=padding)


def state_indices(
    req_pool_indices: torch.Tensor,
    mapping: torch.Tensor,
    out: torch.Tensor,
    *,
    valid: int,
    total: int,
    v2p: torch.Tensor | None = None,
    policy: PolicyName | None = None,
) -> None:
    """Write the state of each of the ``valid`` requests to ``out``, physical where ``v2p`` maps virtual states.

    The padding up to ``total`` gets −1, and pool row 0, which a captured graph may read.
    """
    policy = resolve_policy(policy, "mamba_replay")
    check_at_least("total", total, 0)
    check_at_least("valid", valid, 0)
    if valid > total:
        raise ValueError(f"valid must be at most total, {total}, got {valid}")
    device = device_of("req_pool_indices", req_pool_indices)
    check_tensor("req_pool_indices", req_pool_indices, (total,), I64, device)
    check_tensor("mapping", mapping, (None,), I32, device)
    check_tensor("out", out, (total,), I32, device)
    if v2p is not None:
        check_tensor("v2p", v2p, (None,), I64, device)
    if total == 0:
        return
    state_indices_kernel[policy][(1,)](
        req_pool_indices, mapping, v2p, out, valid, total, BLOCK=batch_block(total, BATCH_FLOOR, policy)
    )


def state_indices_reference(
    req_pool_indices: torch.Tensor,
    mapping: torch.Tensor,
    out: torch.Tensor,
    *,
    valid: int,
    total: int,
    v2p: torch.Tensor | None = None,
    policy: PolicyName | None = None,
) -> None:
    """``state_indices`` in plain PyTorch."""
    state = mapping[req_pool_indices[:valid]]
    out[:valid] = state if v2p is None else v2p[state.long()].to(torch.int32)
    out[valid:total] = -1
    req_pool_indices[valid:total] = 0


@jitaudit.sweep(
    valid=jitaudit.ints(1, 64),
    total=jitaudit.ints(1, 64),
    policy=list(POLICIES),
    v2p=[False],
    where=lambda valid, total: valid <= total,
    compare="policy",
)
def sweep_state_indices(valid, total, policy, v2p):
    state_indices(
        torch.empty(total, dtype=torch.int64, device="cuda"),
        torch.empty(512, dtype=torch.int32, device="cuda"),
        torch.empty(total, dtype=torch.int32, device="cuda"),
        valid=valid,
        total=total,
        v2p=torch.empty(512, dtype=torch.int64, device="cuda") if v2p else None,
        policy=policy,
    )


_FIELDS = tl.constexpr(11)
"""Columns of the table: addresses of dst, src; layers, slots, steps, window; strides of dst's layer, slot and of src's
layer, row, step."""


@policies(floored=Policy(do_not_specialize=("idx1_ptr", "step1_ptr", "idx2_ptr", "step2_ptr", "n1", "n2")))
def conv_window_scatter_kernel(
    table_ptr,  # [pairs, _FIELDS] i64, sizes and strides in units of UNIT
    idx1_ptr,  # [n1]
    step1_ptr,  # [n1]
    idx2_ptr,  # [n2] or None
    step2_ptr,  # [n2] or None
    n1,
    n2,
    UNIT: tl.constexpr,  # the int dtype of the copy
    BLOCK: tl.constexpr,
):
    program = tl.program_id(0)
    layer = tl.program_id(1)
    pair_ptr = table_ptr + tl.program_id(2) * _FIELDS
    slots = tl.load(pair_ptr + 3)
    steps = tl.load(pair_ptr + 4)
    window = tl.load(pair_ptr + 5)
    is_first = program < n1
    row = tl.where(is_first, program, program - n1).to(tl.int64)
    slot = tl.load(idx1_ptr + row, mask=is_first, other=-1)
    step = tl.load(step1_ptr + row, mask=is_first, other=-1).to(tl.int64)
    if idx2_ptr is not None:
        is_second = (program >= n1) & (program < n1 + n2)
        slot = tl.where(is_first, slot, tl.load(idx2_ptr + row, mask=is_second, other=-1))
        step = tl.where(is_first, step, tl.load(step2_ptr + row, mask=is_second, other=-1).to(tl.int64))
    serves = (slot >= 0) & (slot < slots) & (step >= 0) & (step < steps) & (layer < tl.load(pair_ptr + 2))
    if serves:
        dst_ptr = tl.load(pair_ptr).to(tl.pointer_type(UNIT))
        src_ptr = tl.load(pair_ptr + 1).to(tl.pointer_type(UNIT))
        dst_ptr += layer * tl.load(pair_ptr + 6) + slot * tl.load(pair_ptr + 7)
        src_ptr += layer * tl.load(pair_ptr + 8) + row * tl.load(pair_ptr + 9) + step * tl.load(pair_ptr + 10)
        for start in range(0, window, BLOCK):
            element = start + tl.arange(0, BLOCK)
            tl.store(dst_ptr + element, tl.load(src_ptr + element, mask=element < window), mask=element < window)


def conv_window_scatter(
    pairs: Sequence[WindowPair],
    idx1: torch.Tensor,
    step1: torch.Tensor,
    idx2: torch.Tensor | None,
    step2: torch.Tensor | None,
    *,
    policy: PolicyName | None = None,
) -> None:
    """Copy ``src[:, p, step1[p]]`` to ``dst[:, idx1[p]]`` of every pair, and so ``idx2`` with ``step2``, in one launch.

    What names no slot or no step is left out. No slot may be named twice. The first call with a set of pairs copies
    their addresses to the device, so it can't be the one that a CUDA graph captures.
    """
    policy = resolve_policy(policy, "mamba_replay")
    device = device_of("idx1", idx1)
    check_tensor("idx1", idx1, (None,), I64, device)
    n1, n2 = idx1.shape[0], 0
    check_tensor("step1", step1, (n1,), I32, device)
    if (idx2 is None) != (step2 is None):
        raise ValueError("idx2 and step2 must be given together")
    if idx2 is not None and step2 is not None:
        check_tensor("idx2", idx2, (None,), I64, device)
        n2 = idx2.shape[0]
        check_tensor("step2", step2, (n2,), I32, device)
    table = _window_table(pairs, device)
    if max(n1, n2) > table.rows:
        raise ValueError(f"pairs must have a source row for each index, {max(n1, n2)}, got {table.rows}")
    if n1 + n2 == 0:
        return
    conv_window_scatter_kernel[policy][(n1 + n2, table.layers, len(pairs))](
        table.fields, idx1, step1, idx2, step2, n1, n2, UNIT=table.unit, BLOCK=table.block
    )


def conv_window_scatter_reference(
    pairs: Sequence[WindowPair],
    idx1: torch.Tensor,
    step1: torch.Tensor,
    idx2: torch.Tensor | None,
    step2: torch.Tensor | None,
    *,
    policy: PolicyName | None = None,
) -> None:
    """``conv_window_scatter`` in plain PyTorch."""
    for idx, steps in ((idx1, step1), (idx2, step2)):
        if idx is None or steps is None:
            continue
        for row, (slot, step) in enumerate(zip(idx.tolist(), steps.tolist(), strict=True)):
            for dst, src in pairs:
                if 0 <= slot < dst.shape[1] and 0 <= step < src.shape[2]:
                    dst[:, slot] = src[:, row, step]


@jitaudit.sweep(
    n1=[1, 3, 16],
    n2=[1, 3, 16],
    offset=jitaudit.ints(0, 15),
    policy=list(POLICIES),
    pairs=[2],
    layers=[4],
    dtype=[torch.bfloat16],
    compare="policy",
)
def sweep_conv_window_scatter(n1, n2, offset, policy, pairs, layers, dtype):
    def index(n: int, index_dtype: torch.dtype) -> torch.Tensor:
        return torch.empty(offset + n, dtype=index_dtype, device="cuda")[offset:]

    conv_window_scatter(
        [
            (
                torch.empty(layers, 32, 256 << pair, 3, dtype=dtype, device="cuda"),
                torch.empty(layers, 16, 4, 256 << pair, 3, dtype=dtype, device="cuda"),
            )
            for pair in range(pairs)
        ],
        index(n1, torch.int64),
        index(n1, torch.int32),
        index(n2, torch.int64),
        index(n2, torch.int32),
        policy=policy,
    )


@dataclass(frozen=True)
class _WindowTable:
    """A set of pairs as the kernel reads it."""

    fields: torch.Tensor  # [pairs, _FIELDS] i64
    unit: tl.dtype
    block: int
    layers: int
    rows: int


_tables: dict[tuple[object, ...], _WindowTable] = {}
"""Tables by what they hold, so an equal key is an equal table. Never evicted: a captured graph reads at its address."""


def _window_table(pairs: Sequence[WindowPair], device: torch.device) -> _WindowTable:
    if not pairs:
        raise ValueError("pairs must not be empty")
    key = (device, *(_identity(tensor) for pair in pairs for tensor in pair))
    if key not in _tables:
        _tables[key] = _make_window_table(pairs, device)
    return _tables[key]


def _identity(tensor: torch.Tensor) -> tuple[object, ...]:
    return tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype, tensor.device


def _make_window_table(pairs: Sequence[WindowPair], device: torch.device) -> _WindowTable:
    for dst, src in pairs:
        _check_pair(dst, src, device)
    if device.type == "cuda" and torch.cuda.is_current_stream_capturing():
        raise ValueError("pairs must have been passed once before a CUDA graph captures the call")
    in_bytes = [_byte_fields(dst, src) for dst, src in pairs]
    # The widest unit that divides every address, window and stride: the fewest loads, however the pairs are typed.
    unit = math.gcd(8, *(value for addresses, _, strides in in_bytes for value in (*addresses, *strides)))
    fields = [[*addresses, *sizes, *(stride // unit for stride in strides)] for addresses, sizes, strides in in_bytes]
    return _WindowTable(
        fields=torch.tensor(fields, dtype=torch.int64, device=device),
        unit={1: tl.int8, 2: tl.int16, 4: tl.int32, 8: tl.int64}[unit],
        block=min(1024, next_power_of_2(max(strides[0] // unit for _, _, strides in in_bytes))),
        layers=max(dst.shape[0] for dst, _ in pairs),
        rows=min(src.shape[1] for _, src in pairs),
    )


def _byte_fields(dst: torch.Tensor, src: torch.Tensor) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Addresses; layers, slots, steps; and in bytes the window and the free strides."""
    window = dst.shape[2] * dst.shape[3]
    strides = (window, *dst.stride()[:2], *src.stride()[:3])
    return (
        (dst.data_ptr(), src.data_ptr()),
        (dst.shape[0], dst.shape[1], src.shape[2]),
        tuple(stride * dst.element_size() for stride in strides),
    )


def _check_pair(dst: torch.Tensor, src: torch.Tensor, device: torch.device) -> None:
    check_tensor("pairs", dst, (None, None, None, None), (dst.dtype,), device)
    layers, _, dim, win = dst.shape
    check_tensor("pairs", src, (layers, None, None, dim, win), (dst.dtype,), device)
    for tensor in (dst, src):
        if dim > 1 and tensor.stride(-2) != win:
            raise ValueError(f"pairs must have contiguous windows, got strides {tensor.stride()}")
