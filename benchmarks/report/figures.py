"""The published figures beside ours, a row each; only ratios are compared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from benchmarks.report.measured import Measured, by_kernel, costs, host_ratio, moving, named, ratios, warm_ratios

STALL, LIGER, BENCH = "stall-h200.json", "stall-liger-h200.json", "bench-h200.json"
OFFLINE = "compile part of it with no GPU, two CPU cores, the whole round, floored against baseline"
VOCABULARY = "V 131072"


class Figure(NamedTuple):
    """One row; `file` holds what it was taken from."""

    what: str
    published: str
    wanted: str
    here: str
    reached: str
    file: str


def figures(measured: Measured) -> Iterator[Figure]:
    """Every row, in the order in which they are told."""
    yield from _variants(measured)
    yield from _stall(measured)
    yield from _steady(measured)
    yield from _rounds(measured)
    yield from _rest(measured)


def _variants(measured: Measured) -> Iterator[Figure]:
    variants, file = measured.variants, "variants.json"
    before, after = ([getattr(row, side) for row in variants.trio] for side in ("baseline", "floored"))
    yield Figure(
        "variants, DSA trio, 14 batch sizes",
        "14, 14, 28 → 1, 1, 2",
        "the same",
        f"{_list(sorted(before))} → {_list(sorted(after))}",
        _yes(sorted(before) == [14, 14, 28] and sorted(after) == [1, 1, 2]),
        file,
    )
    mamba = [row for row in variants.whole if row.kernel.startswith("mamba_replay")]
    yield Figure(
        "variants, mamba replay",
        "49 → 7",
        "explained",
        f"{sum(r.baseline for r in mamba)} → {sum(r.floored for r in mamba)}: three classes of each count and of the "
        "offset, all of them left to runtime when floored",
        "–",
        file,
    )
    yield Figure(
        "variants, all shipped kernels, default axes",
        "–",
        "–",
        f"{sum(r.baseline for r in variants.whole):,} → {sum(r.floored for r in variants.whole):,}",
        "–",
        file,
    )


def _stall(measured: Measured) -> Iterator[Figure]:
    baseline, floored, warmed = (named(measured.stall, name) for name in ("baseline", "floored", "warmed"))
    before, after = by_kernel(baseline), by_kernel(floored)
    moved = moving(baseline)
    moves = [sum(seconds for kernel, seconds in side.items() if kernel in moved) for side in (before, after)]
    stays = [sum(seconds for kernel, seconds in side.items() if kernel not in moved) for side in (before, after)]
    yield Figure(
        "one-time cost, the kernels that the batch moves, floored against baseline",
        "17.2 → 2.6 s (−85 %)",
        "−85 % or better",
        f"{moves[0]:.1f} → {moves[1]:.1f} s ({_change(*moves)}); negative controls {stays[0]:.2f} → {stays[1]:.2f} s",
        _yes(moves[1] <= 0.15 * moves[0]),
        STALL,
    )
    whole = baseline.one_time.median, floored.one_time.median
    yield Figure(
        "one-time cost, the whole round, floored against baseline",
        "–",
        "–",
        f"{whole[0]:.1f} → {whole[1]:.1f} s ({_change(*whole)}), {floored.parts['host build'].median:.1f} s of what is "
        "left being host builds, which no floor removes",
        "–",
        STALL,
    )
    compiled = [named(measured.offline, name).one_time.median for name in ("baseline", "floored")]
    yield Figure(
        OFFLINE,
        "–",
        "–",
        f"{compiled[0]:.1f} → {compiled[1]:.2f} s ({_change(*compiled)})",
        "–",
        "stall-offline.json",
    )
    share = warmed.one_time.median / baseline.one_time.median
    parts = sum(warmed.parts[kind].max for kind in warmed.parts if kind != "launch")
    yield Figure(
        "one-time cost, floored and warmed in the process, against baseline",
        "–",
        "at most 1 %",
        f"{share * 100:.3f} %: compile, host build, benchmark, disk read and module load {parts:.0f} s",
        _yes(share <= 0.01 and parts == 0),
        STALL,
    )
    yield Figure(
        "longest stall of a warmed first pass",
        "–",
        "under 5 ms",
        f"{warmed.longest.median * 1e3:.1f} ms (at most {warmed.longest.max * 1e3:.1f})",
        _yes(warmed.longest.max < 0.005),
        STALL,
    )
    yield Figure(
        "first-pass throughput, floored against baseline",
        "2.3272 → 2.7367 req/s (+17.59 %)",
        "–",
        f"{baseline.first_rate.median:.2f} → {floored.first_rate.median:.1f} rounds/s "
        f"(×{floored.first_rate.median / baseline.first_rate.median:.1f}; a round has no model)",
        "–",
        STALL,
    )
    apart = warmed.first_rate.median / warmed.again_rate.median - 1
    rates = warmed.again_rate
    yield Figure(
        "first pass, floored and warmed, against its own warm pass",
        "–",
        "within 2 %",
        f"{warmed.first_rate.median:.0f} against {rates.median:.0f} rounds/s ({_percent(apart)}); the warm passes "
        f"alone spread from {rates.min:.0f} to {rates.max:.0f}",
        _yes(abs(apart) <= 0.02),
        STALL,
    )
    yield Figure(
        "first pass p95, floored against baseline",
        "TTFT 2.70 → 2.07 s",
        "–",
        f"{baseline.first_p95.median * 1e3:.0f} → {floored.first_p95.median * 1e3:.1f} ms a round",
        "–",
        STALL,
    )
    memory = [(one.device_bytes or 0) / 2**20 for one in (baseline, floored, warmed)]
    yield Figure(
        "peak device memory",
        "unchanged",
        "unchanged",
        f"{_list(f'{m:.0f}' for m in memory)} MiB (baseline, floored, warmed)",
        _yes(max(memory) - min(memory) < 1),
        STALL,
    )


def _steady(measured: Measured) -> Iterator[Figure]:
    bench = measured.bench
    every = [
        (ratio, name, bs)
        for name in dict.fromkeys(row.workload for row in bench.rows)
        if "dynamic" not in name
        for bs, ratio in ratios(bench, name)
    ]
    over = [(ratio, name, bs) for ratio, name, bs in every if ratio > 1.05]
    worst = max(over, default=max(every))
    yield Figure(
        "steady state, floored ÷ baseline, static branches, GPU µs",
        "−3 … +5 %",
        "within 5 %",
        f"{len(every) - len(over)} of {len(every)} workloads and sizes within 5 %; the worst {worst[1]} at bs "
        f"{worst[2]}, {_percent(worst[0] - 1)}; host dispatch ×{host_ratio(bench):.2f} in the median",
        _yes(not over),
        BENCH,
    )
    found, name = costs(bench), "dsa_metadata draft_extend, dynamic"
    extra = [found[bs, name, "floored"].gpu_us - found[bs, name, "baseline"].gpu_us for bs, _ in ratios(bench, name)]
    yield Figure(
        "steady state, floored − baseline, dynamic branch",
        "+0.1 … +11.1 µs",
        "–",
        f"+{min(extra):.1f} … +{max(extra):.1f} µs",
        "–",
        BENCH,
    )


def _rounds(measured: Measured) -> Iterator[Figure]:
    rates = {(r.bs, r.tail, r.readback, r.model): r.rounds_per_s for r in measured.bench.rates}
    for what, published, one, other in (
        (
            "post-verify tail in a CUDA graph",
            {64: "+10.0 %", 128: "+14.1 %"},
            ("eager", "async"),
            ("captured", "async"),
        ),
        (
            "accepted lengths read back async against sync",
            {64: "+11.9 %", 128: "+19.2 %"},
            ("captured", "sync"),
            ("captured", "async"),
        ),
    ):
        for bs, theirs in published.items():
            bare, full = (rates[bs, *other, model] / rates[bs, *one, model] - 1 for model in (False, True))
            yield Figure(
                f"{what}, bs {bs}",
                theirs,
                "–",
                f"{_percent(bare)} of bare rounds, {_percent(full)} with 2 ms of model each",
                "–",
                BENCH,
            )


def _rest(measured: Measured) -> Iterator[Figure]:
    found = costs(measured.bench)
    one, three = found[64, "draft_seqlens", "floored"], found[64, "draft_seqlens", "3 launches"]
    yield Figure(
        "draft metadata in one launch, bs 64",
        "+7.5 … +12.5 % static decode",
        "–",
        f"3 → 1 launches: {three.gpu_us:.1f} → {one.gpu_us:.1f} GPU µs, "
        f"{three.host_us:.0f} → {one.host_us:.0f} host µs",
        _yes(one.gpu_us < three.gpu_us),
        BENCH,
    )
    ours, rival = found[64, "compact_draft", "floored"], found[64, "compact_draft", ".max().item()"]
    yield Figure(
        "compact rebuild without `.item()`, launch lead, bs 64",
        "−51 µs → +19.1 ms",
        "the sign turns",
        f"{rival.lead_us:.0f} µs → +{ours.lead_us / 1e3:.1f} ms, of a backlog of 10 ms".replace("-", "−"),
        _yes(rival.lead_us < 0 < ours.lead_us),
        BENCH,
    )
    name = f"draft_topk, topk 1, {VOCABULARY}"
    pairs = [(found[bs, name, "floored"].gpu_us, found[bs, name, "eager"].gpu_us) for bs in (1, 8, 64, 256)]
    yield Figure(
        "topk = 1 without softmax, V = 128k, bs 1, 8, 64, 256",
        "−2.1 % mean time per token",
        "faster",
        f"softmax + topk {_list(f'{theirs:.0f}' for _, theirs in pairs)} → "
        f"{_list(f'{ours:.1f}' for ours, _ in pairs)} µs",
        _yes(all(ours < theirs for ours, theirs in pairs)),
        BENCH,
    )
    first, last = measured.bench.prefixes[0], measured.bench.prefixes[-1]
    yield Figure(
        f"prefix of the tree mask, {last.rows} × {last.context // 1024}k",
        "16 MB a step",
        "left: independent of the context",
        f"{last.bytes / 2**20:.0f} MiB a step; filled {first.filled.gpu_us:.1f} → {last.filled.gpu_us:.1f} µs from "
        f"{first.context // 1024}k to {last.context // 1024}k, left {first.left.gpu_us:.1f} → "
        f"{last.left.gpu_us:.1f} µs",
        _yes(abs(last.left.gpu_us / first.left.gpu_us - 1) < 0.05),
        BENCH,
    )
    cold, warmed = (named(measured.library, name) for name in ("cold", "warmed"))
    yield Figure(
        "Liger-Kernel 0.8.5 modulated_rms_norm, unmodified, 64 lengths: cold → `warm` and `jitaudit.warm`",
        "–",
        "–",
        f"one-time cost {cold.one_time.median:.1f} s → {warmed.one_time.median * 1e3:.1f} ms, "
        f"{cold.variants} → {warmed.variants} compiles, longest stall {cold.longest.median:.2f} s → "
        f"{warmed.longest.median * 1e3:.1f} ms",
        "–",
        LIGER,
    )
    yield from _warm(measured)
    shipped, libraries = measured.shipped, measured.libraries
    equal = sum(row.equal for row in libraries.kernels)
    unpredicted = sum(len(row.only_launched) for row in libraries.kernels)
    whole = {row.target for row in libraries.kernels if row.equal} - {
        r.target for r in libraries.kernels if not r.equal
    }
    yield Figure(
        "predicted keys = keys of real launches, shipped kernels",
        "–",
        "set for set",
        f"{sum(row.equal for row in shipped.kernels)} of {len(shipped.kernels)} kernels × policies, "
        f"{sum(row.predicted for row in shipped.kernels):,} keys",
        _yes(all(row.equal for row in shipped.kernels)),
        "crosscheck-h200.json",
    )
    yield Figure(
        "predicted keys = keys of real launches, 30 drawn sweeps of five libraries",
        "–",
        "set for set",
        f"{len(whole)} of {libraries.targets} sweeps ({equal} kernels, "
        f"{sum(row.predicted for row in libraries.kernels if row.equal):,} keys); "
        f"{unpredicted} launched keys were not predicted",
        _yes(len(whole) == libraries.targets),
        "crosscheck-libraries-h200.json",
    )


def _warm(measured: Measured) -> Iterator[Figure]:
    for warm, wanted, file in (
        (measured.warm, {72: 1.7, 1000: 1.7}, "warm.json"),
        (measured.warm_there, {72: 4.0, 1000: 10.0}, "warm-h200.json"),
    ):
        if warm is not None:
            found = warm_ratios(warm)
            yield Figure(
                f"`jitaudit warm` on {warm.conditions['cores']} cores, against one process that warms up each",
                "–",
                _list(
                    f"{ratio:.0f}× for {size:,}" if ratio >= 2 else f"{ratio}× for {size:,}"
                    for size, ratio in wanted.items()
                ),
                f"{_list(f'{ratio:.1f}× for {size:,}' for size, ratio in found.items())} variants",
                _yes(all(found.get(size, 0) >= ratio for size, ratio in wanted.items())),
                file,
            )


def _yes(reached: bool) -> str:
    return "yes" if reached else "**no**"


def _change(before: float, after: float) -> str:
    return _percent(after / before - 1)


def _percent(change: float) -> str:
    return f"{change * 100:+.1f} %".replace("-", "−")


def _list(values: Iterable[object]) -> str:
    return ", ".join(map(str, values))
