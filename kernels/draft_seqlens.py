"""Sequence lengths of every draft step at once: a multi-step draft launches once, not once a step."""

from __future__ import annotations

import torch
import triton.language as tl

import jitaudit

from .arguments import I32, check_at_least, check_batch, check_tensor, check_width
from .blocks import BATCH_FLOOR
from .policy import POLICIES, Policy, PolicyName, batch_block, policies, resolve_policy


@policies(floored=Policy(do_not_specialize=("bs", "first_offset")))
def draft_seqlens_kernel(
    seq_lens_ptr,  # [bs]
    cache_seqlens_ptr,  # [steps, ≥ bs]
    cu_seqlens_k_ptr,  # [steps, ≥ bs + 1]
    cache_seqlens_stride,
    cu_seqlens_k_stride,
    bs,
    first_offset,
    BLOCK: tl.constexpr,
):
    step = tl.program_id(0)
    requests = tl.arange(0, BLOCK)
    mask = requests < bs
    lens = tl.load(seq_lens_ptr + requests, mask=mask, other=0).to(tl.int32) + first_offset + step
    tl.store(cache_seqlens_ptr + step * cache_seqlens_stride + requests, lens, mask=mask)
    # Only lanes past the batch hold a length that is none, and no sum that is stored reaches them.
    tl.store(cu_seqlens_k_ptr + step * cu_seqlens_k_stride + 1 + requests, tl.cumsum(lens, 0), mask=mask)


def update_draft_step_seqlens(
    *,
    seq_lens: torch.Tensor,
    cache_seqlens: torch.Tensor,
    cu_seqlens_k: torch.Tensor,
    bs: int,
    steps: int,
    first_offset: int,
    policy: PolicyName | None = None,
) -> None:
    """Write row s of ``cache_seqlens``, the lengths at draft step s, and their prefix sums from column 1 on.

    Column 0 of ``cu_seqlens_k`` is preset by its owner and left alone.
    """
    policy = resolve_policy(policy, "draft_seqlens")
    for name, value in (("bs", bs), ("steps", steps), ("first_offset", first_offset)):
        check_at_least(name, value, 0)
    requests, device = check_batch("seq_lens", seq_lens)
    if requests != bs:
        raise ValueError(f"seq_lens must have shape [{bs}], got [{requests}]")
    check_tensor("cache_seqlens", cache_seqlens, (steps, None), I32, device)
    check_tensor("cu_seqlens_k", cu_seqlens_k, (steps, None), I32, device)
    check_width("cache_seqlens", cache_seqlens, bs)
    check_width("cu_seqlens_k", cu_seqlens_k, bs + 1)
    if bs == 0 or steps == 0:
        return
    draft_seqlens_kernel[policy][(steps,)](
        seq_lens,
        cache_seqlens,
        cu_seqlens_k,
        cache_seqlens.stride(0),
        cu_seqlens_k.stride(0),
        bs,
        first_offset,
        BLOCK=batch_block(bs, BATCH_FLOOR, policy),
    )


def update_draft_step_seqlens_reference(
    *,
    seq_lens: torch.Tensor,
    cache_seqlens: torch.Tensor,
    cu_seqlens_k: torch.Tensor,
    bs: int,
    steps: int,
    first_offset: int,
    policy: PolicyName | None = None,
) -> None:
    """``update_draft_step_seqlens`` in plain PyTorch: the eager chain of a step, ``steps`` times."""
    for step in range(steps):
        cache_seqlens[step, :bs] = seq_lens + first_offset + step
        cu_seqlens_k[step, 1 : bs + 1] = cache_seqlens[step, :bs].cumsum(0)


@jitaudit.sweep(
    bs=jitaudit.ints(1, 512),
    policy=list(POLICIES),
    steps=[3],
    first_offset=[1],
    dtype=[torch.int32],
    compare="policy",
)
def sweep_draft_seqlens(bs, policy, steps, first_offset, dtype):
    update_draft_step_seqlens(
        seq_lens=torch.empty(bs, dtype=dtype, device="cuda"),
        cache_seqlens=torch.empty(steps, 512, dtype=torch.int32, device="cuda"),
        cu_seqlens_k=torch.empty(steps, 513, dtype=torch.int32, device="cuda"),
        bs=bs,
        steps=steps,
        first_offset=first_offset,
        policy=policy,
    )
