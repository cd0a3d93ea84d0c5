"""Kernels of real libraries that grow with the traffic, explained and cured: what to change, confirmed by a compile.

`python -m benchmarks.remedies [-o reports/explain.md]`
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from benchmarks.conditions import conditions
from jitaudit.explaining import Explanation, Question, explain
from jitaudit.explaining.explanation import Explained, Planned
from jitaudit.judging.wording import remedy_words
from jitaudit.pricing import Price
from jitaudit.report.remedies import price_words, where
from jitaudit.report.splits import listed, tree_lines

SWEEPS = Path(__file__).parent.parent / "tests/launchers"


@dataclass(frozen=True)
class Launcher:
    """A launcher whose kernel is known to grow, and the sweeps that show it."""

    title: str
    distribution: str
    sweeps: tuple[str, ...]


LAUNCHERS = (
    Launcher("modulated_rms_norm", "liger-kernel", ("liger.py::modulated_rms_norm",)),
    Launcher(
        "GRPO loss",
        "liger-kernel",
        ("liger_losses.py::grpo_selective_log_softmax", "liger_losses.py::grpo_loss_backward"),
    ),
    Launcher("neighborhood attention", "liger-kernel", ("liger.py::neighborhood_attention",)),
    Launcher("rotary_embedding", "fla-core", ("fla_modules.py::rotary",)),
    Launcher("fused_kl_div", "fla-core", ("fla_modules.py::fused_kl_div",)),
)


def main() -> None:
    """Explain them all and write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path)
    output = parser.parse_args().output
    text = "\n".join(_report()) + "\n"
    if output is None:
        sys.stdout.write(text)
    else:
        output.write_text(text)


def explained(launcher: Launcher) -> Explanation:
    """What explain --compile says of one launcher."""
    question = Question(tuple(f"{SWEEPS}/{sweep}" for sweep in launcher.sweeps), compile=True)
    return explain(question, lambda sweep, done, cases: None)


def _report() -> Iterator[str]:
    yield "# Real kernels that grow with the traffic, explained and cured with no GPU"
    yield ""
    yield ", ".join(f"{name} {value}" for name, value in conditions("benchmarks.remedies").items()) + "."
    yield ""
    yield (
        "Each remedy of a plan was applied to the launches of the library's own launcher, unmodified: the kernel's by "
        "another policy of the same source, the call site's by rewriting what it passes. Counts are of Triton's own "
        "keys before and after; prices compare the binaries of one launch. The target is cuda:90."
    )
    for launcher in LAUNCHERS:
        yield ""
        yield f"## {launcher.title} ({launcher.distribution} {version(launcher.distribution)})"
        explanation = explained(launcher)
        for one in explanation.kernels:
            if one.plan or one.unmended:
                yield from _kernel(one)
        yield from (f"\n{note}" for note in explanation.notes)


def _kernel(one: Explained) -> Iterator[str]:
    yield ""
    yield f"### `{one.kernel.partition(':')[2]}`: {one.variants} variants, growth {one.growth}"
    yield ""
    for line in tree_lines(one.tree):
        indent = len(line) - len(line.lstrip())
        yield f"{' ' * indent}- {line.strip()}"
    if one.follows:
        yield f"- only where these do: {listed([f'`{name}`' for name in one.follows], few=12)}"
    yield ""
    yield "| step | who | variants | confirmed | price |"
    yield "|---|---|---:|---:|---|"
    before = one.variants
    for step in one.plan:
        yield _step(step, before)
        before = step.count
    yield from (f"| all of it | | {one.variants} → {before} | | {_price(price)} |" for price in one.prices[:1])
    for offer in one.offers:
        if offer.failure:
            yield f"\n{remedy_words(offer.remedy)}: does not compile: {offer.failure}"
    for cause in one.unmended:
        yield f"\nNo remedy here for the {cause.kind} of {cause.argument}."
    if one.tuning:
        yield f"\nTuning keys: {one.tuning.keys}; benchmark runs: {one.tuning.benchmark_runs}."


def _step(step: Planned, before: int) -> str:
    remedy = step.offer.remedy
    counts = f"{before} → {step.count} | {step.confirmed}"
    return f"| {remedy_words(remedy)} | {where(remedy)} | {counts} | {price_words(step.offer)} |"


def _price(price: Price) -> str:
    return f"{price.verdict}: {', '.join(price.changes)}" if price.changes else price.verdict


if __name__ == "__main__":
    main()
