"""Bad arguments: a ``ValueError`` that starts with the argument's name, and no launch."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import pytest
import torch
from kernel_cases import (
    chain_accept,
    compact_draft,
    draft_seqlens,
    draft_topk,
    dsa_metadata,
    mamba_replay,
    tree_build,
    verify_commit,
    vocab_shard,
)
from kernel_cases.arena import Arena
from kernel_cases.compare import Case

from jitaudit_kernels.policy import PolicyKernel

CASES: dict[str, Case] = {}
for module in (
    chain_accept,
    compact_draft,
    draft_seqlens,
    draft_topk,
    dsa_metadata,
    mamba_replay,
    tree_build,
    verify_commit,
    vocab_shard,
):
    # The fifth size has tables, trees and blocks that are wide enough to be strided.
    for case in module.cases([4, 4, 4, 4, 3]):
        if "=3 " in case.name:
            CASES.setdefault(case.launcher.__name__, case)


@pytest.fixture(autouse=True)
def _no_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    def launched(self: PolicyKernel, policy: str) -> None:
        pytest.fail("launched a kernel")

    monkeypatch.setattr(PolicyKernel, "__getitem__", launched)


def good_arguments(launcher: str) -> dict[str, object]:
    """A good call's arguments by name."""
    call = CASES[launcher].make(Arena(torch.device("cpu")))
    signature = inspect.signature(CASES[launcher].launcher)
    return signature.bind(*call.positional, **call.keywords or {}).arguments


def refuse(launcher: str, name: str, **bad: object) -> None:
    with pytest.raises(ValueError, match=rf"^{name}\b"):
        CASES[launcher].launcher(**{**good_arguments(launcher), **bad})


def tensor_arguments() -> list[tuple[str, str]]:
    return [
        (launcher, name)
        for launcher in CASES
        for name, value in good_arguments(launcher).items()
        if isinstance(value, torch.Tensor)
    ]


def spread(tensor: torch.Tensor) -> torch.Tensor:
    """The same shape, each element two apart."""
    return tensor.new_zeros((*tensor.shape, 2))[..., 0]


BAD: dict[str, Callable[[torch.Tensor], object]] = {
    "dtype": lambda tensor: tensor.to(torch.int16),
    "rank": lambda tensor: tensor.unsqueeze(0),
    "stride": spread,
    "kind": lambda tensor: tensor.tolist(),
}


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize(("launcher", "name"), tensor_arguments())
def test_each_tensor_is_checked(launcher: str, name: str, bad: str) -> None:
    refuse(launcher, name, **{name: BAD[bad](good_arguments(launcher)[name])})


@pytest.mark.parametrize(("launcher", "name"), tensor_arguments())
def test_tensors_share_a_device(launcher: str, name: str) -> None:
    arguments = good_arguments(launcher)
    tensors = [other for other, value in arguments.items() if isinstance(value, torch.Tensor)]
    moved = {name: arguments[name].to("meta")}
    if name == tensors[0]:  # the one that the others are measured by
        moved = {other: arguments[other].to("meta") for other in tensors[1:]}
    if moved:
        with pytest.raises(ValueError, match=r"^\w+ must be on (cpu|meta) like the first argument"):
            CASES[launcher].launcher(**{**arguments, **moved})


# Launchers whose tensors are sized by the batch: (launcher, the tensor to cut).
SIZED = [
    ("decode", "req_pool_indices"),
    ("decode", "cache_seqlens"),
    ("decode", "cu_seqlens_k"),
    ("decode", "page_table_1"),
    ("decode", "dsa_cache_seqlens"),
    ("decode", "dsa_cu_seqlens_k"),
    ("decode", "real_page_table"),
    ("verify", "seqlens_expanded"),
    ("verify", "ctx_lens_2d"),
    ("draft_extend", "extend_lens"),
    ("draft_extend", "seqlens_expanded"),
    ("state_indices", "req_pool_indices"),
    ("state_indices", "out"),
    ("conv_window_scatter", "step1"),
    ("update_draft_step_seqlens", "seq_lens"),
    ("update_draft_step_seqlens", "cache_seqlens"),
    ("update_draft_step_seqlens", "cu_seqlens_k"),
    ("prepare_verify_commit_outputs", "accept_index"),
    ("prepare_verify_commit_outputs", "accept_lens"),
    ("chain_accept", "retrieve_index"),
    ("chain_accept", "retrieve_next_token"),
    ("chain_accept", "retrieve_next_sibling"),
    ("chain_accept", "target_predict"),
    ("chain_accept", "predict"),
    ("chain_accept", "accept_index"),
    ("chain_accept", "accept_lens"),
    ("chain_accept", "num_correct"),
    ("rebuild_compact_draft", "target_req_to_token"),
    ("rebuild_compact_draft", "suffix_start"),
    ("rebuild_compact_draft", "prefix_lens"),
    ("rebuild_compact_draft", "verify_loc"),
    ("build_tree", "selected_index"),
    ("build_tree", "seq_lens"),
]


@pytest.mark.parametrize(("launcher", "name"), SIZED)
def test_each_size_is_checked(launcher: str, name: str) -> None:
    refuse(launcher, name, **{name: good_arguments(launcher)[name][:-1]})


@pytest.mark.parametrize(
    ("launcher", "bad"),
    [
        ("decode", {"max_len": 0}),
        ("decode", {"topk": -1}),
        ("decode", {"page_size": 0}),
        ("decode", {"k_pool": 0}),
        ("decode", {"max_len": 8.0}),
        ("verify", {"next_n": 0}),
        ("draft_extend", {"total_len": -1}),
        ("draft_extend", {"max_extend_len": -1}),
        ("draft_extend", {"max_total_len": 0}),
        ("state_indices", {"total": -1, "valid": 0}),
        ("state_indices", {"valid": -1}),
        ("state_indices", {"valid": 99}),
        ("conv_window_scatter", {"pairs": []}),
        ("update_draft_step_seqlens", {"bs": -3}),
        ("update_draft_step_seqlens", {"steps": -1}),
        ("update_draft_step_seqlens", {"first_offset": -1}),
        ("prepare_verify_commit_outputs", {"num_draft_tokens": -1}),
        ("prepare_verify_commit_outputs", {"track_interval": -1}),
        ("prepare_verify_commit_outputs", {"bonus_dtype": torch.float32}),
        ("chain_accept", {"simulate": -1}),
        ("chain_accept", {"simulate": 99}),
        ("build_tree", {"topk": 0}),
        ("build_tree", {"depth": 0}),
        ("build_tree", {"num_draft_tokens": 0}),
        ("build_tree", {"mask_mode": "half"}),
        ("build_tree", {"seq_lens_sum": -1}),
        ("select_draft", {"topk": 0}),
        ("select_draft", {"topk": 10**6}),
        ("local_keys", {"vocab_start": -1}),
        ("local_keys", {"vocab_start": 2**31}),
    ],
)
def test_each_number_is_checked(launcher: str, bad: dict[str, object]) -> None:
    refuse(launcher, next(iter(bad)), **bad)


@pytest.mark.parametrize("launcher", CASES)
def test_an_unknown_policy_is_refused(launcher: str) -> None:
    refuse(launcher, "policy", policy="fast")


def test_a_table_is_needed() -> None:
    refuse("decode", "page_table_1", page_table_1=None, real_page_table=None)
    refuse("decode", "page_table_1", page_table_1=None, page_size=1)


def test_flags_that_do_nothing_are_refused() -> None:
    refuse("chain_accept", "verify, finish and simulate", verify=False, finish=False, simulate=0)
    refuse(
        "chain_accept", "verify, finish and simulate", verify=False, finish=False, simulate=0, real_draft_tokens=True
    )


def test_a_tree_has_a_root() -> None:
    arguments = good_arguments("chain_accept")
    empty = {name: value[:, :0] for name, value in arguments.items() if getattr(value, "ndim", 0) == 2}
    refuse("chain_accept", "candidates", **empty)


def test_a_shard_has_a_column() -> None:
    refuse("local_keys", "logits", logits=torch.empty(3, 0))


def test_index_and_step_come_together() -> None:
    refuse("conv_window_scatter", "idx2 and step2", idx2=torch.zeros(2, dtype=torch.int64), step2=None)


def test_window_pairs_fit_together() -> None:
    dst, src = torch.zeros(2, 9, 5, 3), torch.zeros(2, 3, 4, 5, 3)
    for bad in (
        (dst, src[:1]),
        (dst, src[..., :2]),
        (dst, src.double()),
        (dst, src.to("meta")),
        (dst[0], src),
        (torch.zeros(2, 9, 6, 3)[:, :, ::2], src[:, :, :, :3]),
        (dst, src[:, :0]),
    ):
        refuse("conv_window_scatter", "pairs", pairs=[bad])
