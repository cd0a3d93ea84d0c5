"""The pictures: SVG, the same bytes for the same JSON."""

from __future__ import annotations

from pathlib import Path

import matplotlib

from benchmarks.report.measured import Measured, named

matplotlib.use("svg")
matplotlib.rcParams |= {"svg.hashsalt": "jitaudit", "svg.fonttype": "none", "font.size": 9, "axes.spines.top": False}
matplotlib.rcParams["axes.spines.right"] = False

from matplotlib import pyplot  # noqa: E402  # the backend comes first

COLOURS = {"baseline": "#c44e52", "floored": "#4c72b0", "warmed": "#55a868"}
PARTS = {"compile": "#c44e52", "host build": "#dd8452", "module load": "#937860", "launch": "#8c8c8c"}


def draw(measured: Measured, folder: Path) -> None:
    """Write every picture into `folder`."""
    _parts(measured, folder / "stall-parts.svg")
    _steps(measured, folder / "stall-steps.svg")
    _prefix(measured, folder / "prefix.svg")


def _parts(measured: Measured, path: Path) -> None:
    """The one-time cost of each pass, by what it is made of."""
    figure, axes = pyplot.subplots(figsize=(6.4, 1.9), layout="constrained")
    passes = measured.stall.passes
    left = [0.0] * len(passes)
    for part, colour in PARTS.items():
        seconds = [max(one.parts[part].median, 0.0) for one in passes]
        axes.barh([one.name for one in passes], seconds, left=left, color=colour, label=part)
        left = [before + more for before, more in zip(left, seconds, strict=True)]
    for row, one in enumerate(passes):
        axes.text(left[row] + 0.2, row, f"{one.one_time.median:.3g} s", va="center")
    axes.invert_yaxis()
    axes.set_xlabel(f"one-time cost of the first 96 rounds, seconds ({measured.stall.device})")
    axes.legend(frameon=False, loc="lower right")
    _save(figure, path)


def _steps(measured: Measured, path: Path) -> None:
    """Every round of the first pass."""
    figure, axes = pyplot.subplots(figsize=(6.4, 2.6), layout="constrained")
    for name, colour in COLOURS.items():
        seconds = [step.seconds * 1e3 for step in named(measured.stall, name).steps]
        axes.semilogy(range(1, len(seconds) + 1), seconds, ".-", color=colour, linewidth=0.6, markersize=3, label=name)
    axes.set_xlabel(f"round, batch sizes as traffic moves them ({measured.stall.device})")
    axes.set_ylabel("ms, first pass")
    axes.legend(frameon=False, ncols=3, loc="upper right")
    _save(figure, path)


def _prefix(measured: Measured, path: Path) -> None:
    """The tree mask with its prefix filled and left, against the context's length."""
    figure, axes = pyplot.subplots(figsize=(6.4, 2.2), layout="constrained")
    prefixes = measured.bench.prefixes
    contexts = [prefix.context for prefix in prefixes]
    axes.plot(contexts, [prefix.filled.gpu_us for prefix in prefixes], "o-", color=COLOURS["baseline"], label="filled")
    axes.plot(contexts, [prefix.left.gpu_us for prefix in prefixes], "o-", color=COLOURS["floored"], label="left")
    axes.set_ylim(bottom=0)
    axes.set_xlabel(f"context, tokens; {prefixes[0].rows} rows ({measured.bench.conditions['gpu']})")
    axes.set_ylabel("GPU µs")
    axes.legend(frameon=False)
    _save(figure, path)


def _save(figure: pyplot.Figure, path: Path) -> None:
    figure.savefig(path, metadata={"Date": None, "Creator": None})
    pyplot.close(figure)
    path.write_text("\n".join(line.rstrip() for line in path.read_text().splitlines()) + "\n")
