"""Real libraries' launchers, all of them, unmodified and with no GPU: verdicts and counts."""

from __future__ import annotations

from functools import cache

import pytest

from benchmarks.launchers import LIBRARIES, ROOT, Library, Row, answered, manifest_of, rows
from jitaudit.model import Autotuner, Manifest
from jitaudit.sweeping import Narrowing, run

pytestmark = pytest.mark.xdist_group("launchers")

# file, sweep → the count of each kernel named; an autotuned kernel counts one config.
COUNTS: dict[tuple[str, str], dict[str, int]] = {
    ("liger.py", "rms_norm"): {"_rms_norm_forward_kernel": 1},
    ("liger.py", "swiglu_forward"): {"_swiglu_forward_kernel": 1},
    ("liger.py", "geglu"): {"_geglu_tanh_forward_kernel": 1},
    ("liger.py", "group_norm"): {"_group_norm_forward_kernel": 1},
    ("liger.py", "softmax_rows"): {"_softmax_single_block_forward_kernel": 1},
    ("liger.py", "tiled_mlp_forward"): {"_swiglu_forward_kernel": 1},
    ("liger.py", "fused_add_rms_norm"): {"_fused_add_rms_norm_forward_kernel": 1},
    ("liger_losses.py", "tvd"): {"_tv_distance_kernel": 1},
    ("liger.py", "poly_norm"): {"_poly_norm_forward_kernel": 1},
    ("liger_losses.py", "jsd"): {"_jsd_kernel": 3},
    ("liger_losses.py", "fused_linear_jsd"): {"_jsd_kernel": 3},
    ("liger.py", "qwen2vl_mrope"): {"_triton_qwen2vl_mrope": 3},
    ("liger.py", "llama4_rope_forward"): {"_llama4_rope_kernel": 3},
    ("liger.py", "attn_res"): {"_attn_res_fwd_kernel": 3},
    ("liger.py", "rope"): {"_triton_rope": 3},
    ("liger.py", "rope_backward"): {"_triton_rope": 6},
    ("liger_losses.py", "cross_entropy"): {"liger_cross_entropy_kernel": 3},
    ("liger.py", "softmax_columns"): {"_softmax_single_block_forward_kernel": 14},
    ("liger.py", "sparsemax_columns"): {"_sparsemax_forward_kernel": 14},
    ("liger.py", "group_norm_hidden"): {"_group_norm_forward_kernel": 16},
    ("liger_losses.py", "grpo_selective_log_softmax"): {"_selective_log_softmax_kernel": 128},
    ("liger_losses.py", "grpo_loss_backward"): {"_grpo_loss_fwd_kernel": 128, "_grpo_loss_bwd_kernel": 128},
    ("liger.py", "modulated_rms_norm"): {"_modulated_rms_norm_forward_kernel": 128},
    ("liger.py", "neighborhood_attention"): {
        "_neighborhood_mask_kernel": 128,
        "_fused_neighborhood_attention_qk_kernel": 128,
        "_fused_neighborhood_attention_av_kernel": 128,
    },
    ("fla_modules.py", "l2norm_forward"): {"l2norm_fwd_kernel": 1},
    ("fla_modules.py", "rms_norm"): {"layer_norm_fwd_kernel": 1},
    ("fla_modules.py", "layer_norm"): {"layer_norm_fwd_kernel": 1},
    ("fla_modules.py", "cross_entropy"): {"cross_entropy_fwd_kernel": 1, "cross_entropy_bwd_kernel": 1},
    ("fla_modules.py", "fused_linear_ce"): {"cross_entropy_fwd_kernel": 2, "cross_entropy_bwd_kernel": 2},
    ("fla_modules.py", "fused_kl_div"): {"kl_div_kernel": 79},
    ("fla_modules.py", "rotary"): {"rotary_embedding_kernel": 256},
    ("fla_modules.py", "rotary_module"): {"rotary_embedding_kernel": 256},
    ("fla_modules.py", "token_shift_dense"): {"token_shift_fwd_kernel_short": 3, "token_shift_bwd_kernel_short": 3},
    ("fla_ops.py", "parallel_attn"): {"parallel_attn_fwd_kernel": 7},
    ("fla_ops.py", "forgetting_attn"): {"parallel_attn_fwd_kernel": 7},
    # 6 from T = 2: T = 1 is a class of its own. Triton's own warm-up over 1..128 makes the same keys.
    ("fla_ops.py", "attn_decoding"): {"naive_attn_decoding_kernel": 7},
}

T_IS_NOT_SPECIALIZED = [
    f"{name}{form}"
    for name in ("chunk_gdn", "chunk_kda", "chunk_retention", "chunk_simple_gla", "chunk_delta_rule", "chunk_rwkv7")
    for form in ("", "_varlen")
] + [f"fused_recurrent_{name}{form}" for name in ("gdn", "gla", "kda") for form in ("", "_varlen")]
"""Launchers all of whose kernels have T in do_not_specialize: one variant each."""


@cache
def counted(library: Library) -> tuple[Manifest, dict[str, Row]]:
    """A library's manifest, and its rows by sweep."""
    manifest = manifest_of(library)
    return manifest, {row.sweep: row for row in rows(manifest)}


def by_file(file: str) -> Library:
    return next(library for library in LIBRARIES if library.file == file)


@pytest.mark.parametrize(("file", "sweep"), COUNTS, ids=[f"{file}-{sweep}" for file, sweep in COUNTS])
def test_count(file: str, sweep: str):
    row = counted(by_file(file))[1][sweep]
    reached = {kernel.name: kernel.one_config for kernel in row.kernels}
    assert row.verdict == "pass"
    assert {name: reached.get(name) for name in COUNTS[file, sweep]} == COUNTS[file, sweep]


@pytest.mark.parametrize("sweep", T_IS_NOT_SPECIALIZED)
def test_one_variant_where_the_length_is_not_specialized(sweep: str):
    row = (counted(by_file("fla_delta_rules.py"))[1] | counted(by_file("fla_ops.py"))[1])[sweep]
    assert row.verdict == "pass"
    assert {kernel.one_config for kernel in row.kernels} == {1}


def tuner(file: str, kernel: str) -> tuple[int, Autotuner]:
    """A kernel's variants over its whole file, and its autotuner."""
    found = next(k for k in counted(by_file(file))[0].kernels if k.id.endswith(f":{kernel}"))
    assert found.autotuner is not None
    return len(found.variants), found.autotuner


def test_an_autotuner_subclass_has_one_variant_a_config():
    variants, autotuner = tuner("fla_modules.py", "l2norm_fwd_kernel")
    assert (variants, len(autotuner.configs)) == (25, 25)


def test_the_tuning_cache_is_modelled():
    """Running every config at every launch would give 256 × 15 = 3,840."""
    manifest = run([f"{ROOT}/tests/launchers/fla_modules.py::rotary"], "cuda:90", Narrowing())
    (kernel,) = manifest.kernels
    assert kernel.autotuner is not None
    assert (len(kernel.variants), len(kernel.autotuner.tuning_keys), kernel.autotuner.benchmark_runs) == (270, 1, 15)


def test_a_modules_own_history_makes_the_count_depend_on_the_order():
    manifest = run([f"{ROOT}/tests/launchers/fla_modules.py::rotary_module"], "cuda:90", Narrowing(orders=True))
    (finding,) = [finding for finding in manifest.findings if finding.code == "JA010"]
    configs = 14  # beside the first, at the one tuning key
    assert f"ascending {256 + configs} " in finding.message
    assert f"descending {2 + configs} " in finding.message


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.file)
def test_every_sweep_is_as_the_report_says(library: Library):
    report = (ROOT / "reports/launchers.md").read_text().splitlines()
    section = report[report.index(f"## {library.file}") :]
    changed = [row.line for row in counted(library)[1].values() if row.line not in section]
    assert not changed, "python -m benchmarks.launchers -o reports/launchers.md"


def test_nearly_all_pass():
    verdicts = [row.verdict for library in LIBRARIES for row in counted(library)[1].values()]
    passed = verdicts.count("pass")
    assert len(verdicts) >= 200
    assert passed >= 0.95 * len(verdicts)


@pytest.mark.parametrize("library", [one for one in LIBRARIES if one.host_values], ids=lambda library: library.file)
def test_what_reads_on_the_host_is_counted_with_an_answer(library: Library):
    stopped = [row.sweep for row in counted(library)[1].values() if row.verdict != "pass"]
    assert {row.sweep: row.verdict for row in rows(answered(library, stopped))} == dict.fromkeys(stopped, "pass")


def test_only_a_host_read_stops_a_launcher():
    codes = {
        reason.partition(":")[0]
        for library in LIBRARIES
        for row in counted(library)[1].values()
        for reason in row.reasons
    }
    assert codes == {"JA009"}
