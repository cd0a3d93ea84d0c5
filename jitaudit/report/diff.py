"""`jitaudit explain --diff` for a person: what was never warmed, and the nearest variant that was."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from jitaudit.explaining.differing import Diff, KernelDifference, New, Unseen
from jitaudit.judging.nearest import Difference
from jitaudit.report.differences import difference_words

SCREEN = 20
"""Lines before the rest is left to ``-v``."""

_WHAT = {
    "=1": "{} = 1",
    "%16": "{} divisible by 16",
    "any": "{} neither 1 nor divisible by 16",
    "aligned": "{} aligned to 16 bytes",
    "unaligned": "{} not aligned to 16 bytes",
    "none": "{} = None",
    "given": "{} given",
}


def text(diff: Diff, *, verbose: bool = False) -> RenderableType:
    """The difference on one screen; all of it when `verbose`."""
    lines = list(_lines(diff, verbose))
    if not verbose and len(lines) > SCREEN:
        lines = [*lines[: SCREEN - 1], f"{len(lines) - SCREEN + 1} lines more, use -v"]
    return Group(*(Text(line, style="" if line.startswith(" ") else "bold") for line in lines))


def markdown(diff: Diff) -> str:
    """All of the difference as Markdown."""
    lines = [f"Target {diff.target}", ""]
    for line in _lines(diff, verbose=True):
        lines.append(f"  - {line.strip()}" if line.startswith(" ") else f"- {line}")
    return "\n".join(lines) + "\n"


def _lines(diff: Diff, verbose: bool) -> Iterator[str]:
    if not diff.kernels:
        yield "PASS: the second has no variant that the first has not"
    for one in diff.kernels:
        group = f" [{one.group}]" if one.group is not None else ""
        count = f"{len(one.new):,} variant{'' if len(one.new) == 1 else 's'}"
        if not one.known:
            yield f"NEW {one.kernel}{group}: {count}; the first never launched this kernel"
            continue
        yield f"NEW {one.kernel}{group}: {count} beside the {one.known:,} known"
        for unseen in one.unseen:
            yield f"  {_unseen(unseen)} was never warmed ({unseen.variants:,} of them)"
        yield from _combinations(one)
        if verbose:
            for new in one.new:
                yield f"  {new.key.text}"
                yield f"    nearest{_ties(new)}: {_parts(new)}"


def _combinations(one: KernelDifference) -> Iterator[str]:
    """Variants of classes that are all known, only never together: how often, by what is nearest."""
    unseen = {(item.argument, item.text) for item in one.unseen}
    told = Counter(
        _parts(new) for new in one.new if new.parts and not any(_is_unseen(part, unseen) for part in new.parts)
    )
    for words, count in told.most_common():
        yield f"  known classes in a new combination ({count:,}): nearest: {words}"


def _is_unseen(part: Difference, unseen: set[tuple[str, str]]) -> bool:
    return any(name == part.name and str(part.now).endswith(text) for name, text in unseen)


def _ties(new: New) -> str:
    return f" ({len(new.nearest)} tie)" if len(new.nearest) > 1 else ""


def _parts(new: New) -> str:
    if not new.nearest:
        return "not searched: the manifests are too large"
    return difference_words(new.parts)


def _unseen(unseen: Unseen) -> str:
    kind, _, value = unseen.text.partition(" ")
    if unseen.kind in ("constexpr", "autotune"):
        return f"constexpr {unseen.argument}={value or kind}"
    if unseen.kind == "option":
        return f"option {unseen.argument}={unseen.text}"
    if unseen.text in _WHAT:
        return _WHAT[unseen.text].format(unseen.argument)
    return f"{unseen.argument} as {unseen.text}"
