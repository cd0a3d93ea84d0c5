"""`jitaudit scan` for a person and for a program: what is there, what came late, what one side has alone, what goes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from jitaudit.model import SCHEMA_VERSION, Finding
from jitaudit.report.layout import as_markdown
from jitaudit.scanning import Comparison, Pruning, Scan
from jitaudit.scanning.scans import Build, Difference
from jitaudit.scanning.sightings import Skipped
from jitaudit.scanning.tallying import Difference as Apart
from jitaudit.scanning.tallying import Row, Split

SCREEN = 20
"""Rows of the table, and lines below it, before the rest is left to ``-v``."""

FEW = 5
"""Skipped entries, and reasons of one row, that are named on one screen."""

LETTERS = 20
"""Of a kernel's id, and of its row's reasons, that are shown at least."""

PLACES = 3
"""Directories or processes of a row that are named."""

WIDEST = 10_000


class ScanDocument(msgspec.Struct, frozen=True):
    """``--format json`` of a scan."""

    schema_version: int
    origin: str
    since: str | None
    kernels: tuple[Row, ...]
    builds: tuple[Build, ...]
    findings: tuple[Finding, ...]
    skipped: tuple[Skipped, ...]
    notes: tuple[str, ...]


class ComparisonDocument(msgspec.Struct, frozen=True):
    """``--format json`` with ``--against``."""

    schema_version: int
    here: str
    there: str
    kernels: tuple[Difference, ...]
    skipped: tuple[Skipped, ...]
    notes: tuple[str, ...]


def document(result: Scan | Comparison | Pruning) -> msgspec.Struct:
    """The result as a program reads it."""
    match result:
        case Scan(origin=origin, since=since, rows=rows, builds=builds, findings=findings):
            return ScanDocument(SCHEMA_VERSION, origin, since, rows, builds, findings, result.skipped, result.notes)
        case Comparison(here=here, there=there, differences=differences):
            return ComparisonDocument(SCHEMA_VERSION, here.path, there.path, differences, result.skipped, result.notes)
        case Pruning():
            return result


def text(result: Scan | Comparison | Pruning, *, verbose: bool = False) -> RenderableType:
    """The result on one screen, the costliest first, a line a row; all of it, folded, when `verbose`."""
    grid, lines = _grid(result), list(_lines(result, verbose))
    parts: list[RenderableType] = [_table(grid) if verbose else _Screen(grid)] if grid.rows else []
    parts += [Text(line) for line in lines[: None if verbose else SCREEN]]
    hidden = max(len(grid.rows) - SCREEN, 0) + max(len(lines) - SCREEN, 0) + _unnamed(result)
    if hidden and not verbose:
        parts.append(Text(f"{hidden:,} more, use -v"))
    return Group(*parts)


def markdown(result: Scan | Comparison | Pruning) -> str:
    """The whole result as Markdown."""
    grid = _grid(result)
    lines = [f"- {line}" for line in _lines(result, verbose=True)]
    return "\n".join(([as_markdown(_table(grid))] if grid.rows else []) + lines) + "\n"


def summary(result: Scan | Comparison | Pruning) -> str:
    """One line: what was looked at."""
    match result:
        case Scan(rows=rows, origin=origin, since=since):
            count, size = sum(row.entries for row in rows), sum(row.bytes for row in rows)
            things = "entries" if origin == "cache" else "lines"
            weight = f", {_size(size)}" if origin == "cache" else ""
            late = f", after {since}" if since else ""
            kernels = len({row.kernel for row in rows})
            return f"kernels: {kernels:,}, {things}: {count:,}{weight}{late}, skipped: {len(result.skipped):,}"
        case Comparison(here=here, there=there, differences=differences):
            return (
                f"{here.path}: {here.kernels:,} kernels, {here.entries:,} entries; "
                f"{there.path}: {there.kernels:,} kernels, {there.entries:,} entries; "
                f"kernels that differ: {len(differences):,}"
            )
        case Pruning(removals=removals, done=done, kept=kept, young=young):
            count = sum(removal.removed for removal in removals) if done else len(removals)
            verb = "freed" if done else "to free"
            waiting = f", too young to touch: {young:,}" if young else ""
            again = "" if done or not removals else "; nothing was removed, add --yes"
            return f"{verb}: {count:,} entries, {_size(result.freed)}; kept: {kept:,}{waiting}{again}"


class _Grid(msgspec.Struct, frozen=True):
    """A table as text: the name first, the reasons last."""

    titles: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


_NUMBERS = {"entries", "lines", "late", "before", "bytes", "binaries", "keys", "seconds", "here", "there", "shared"}
_NUMBERS |= {"only here", "only there"}


class _Screen:
    """A grid's first rows, a line each: names and reasons share what the other columns leave of the screen's width."""

    def __init__(self, grid: _Grid) -> None:
        self._titles, self._rows = grid.titles, grid.rows[:SCREEN]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        rest = console.measure(self._table(0, 0), options=options.update(width=WIDEST)).maximum
        room = max(options.max_width - rest, 2 * LETTERS)
        name = min(max(len(row[0]) for row in self._rows), room // 2)
        yield self._table(name, room - name)

    def _table(self, name: int, reasons: int) -> Table:
        titles = (self._titles[0][:name], *self._titles[1:-1], self._titles[-1][:reasons])
        rows = tuple((_end(row[0], name), *row[1:-1], _start(row[-1], reasons)) for row in self._rows)
        table = _table(_Grid(titles, rows))
        table.padding = (0, 1, 0, 0)
        return table


def _table(grid: _Grid) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for title in grid.titles:
        table.add_column(title, justify="right" if title in _NUMBERS else "left", overflow="fold")
    for row in grid.rows:
        table.add_row(*map(Text, row))
    return table


def _end(name: str, letters: int) -> str:
    """The function's name is what tells kernels apart."""
    return name if len(name) <= letters else f"…{name[len(name) - letters + 1 :]}" if letters else ""


def _start(reasons: str, letters: int) -> str:
    return reasons if len(reasons) <= letters else f"{reasons[: letters - 1]}…" if letters else ""


def _grid(result: Scan | Comparison | Pruning) -> _Grid:
    match result:
        case Scan():
            return _scan_grid(result)
        case Comparison(differences=differences):
            titles = ("kernel", "here", "there", "shared", "only here", "only there", "what sets them apart")
            return _Grid(titles, tuple(map(_difference_cells, differences)))
        case Pruning(removals=removals, done=done):
            rows = ((r.path, _size(r.bytes), _outcome(r.reason, done and not r.removed)) for r in removals)
            return _Grid(("entry", "bytes", "why it can't be hit"), tuple(rows))


def _outcome(reason: str, kept: bool) -> str:
    return f"NOT REMOVED, it changed or is not ours; {reason}" if kept else reason


def _scan_grid(scan: Scan) -> _Grid:
    rows, cache, late = scan.rows, scan.origin == "cache", scan.since is not None
    columns = {
        "kernel": [row.kernel for row in rows],
        "late" if late else "entries" if cache else "lines": [f"{row.entries:,}" for row in rows],
    }
    if late:
        columns["before"] = [f"{row.earlier:,}" for row in rows]
    if cache:
        columns["bytes"] = [_size(row.bytes) for row in rows]
        if any(row.binaries < row.entries for row in rows):
            columns["binaries"] = [f"{row.binaries:,}" for row in rows]
    else:
        columns["keys"] = [f"{row.variants:,}" for row in rows]
    if any(row.seconds for row in rows):
        columns["seconds"] = [f"{row.seconds:.2f}" for row in rows]
    columns["written (UTC)"] = list(map(_period, rows))
    columns["per hour"] = list(map(_rate, rows))
    if any(len(row.places) > 1 for row in rows):
        columns["by place"] = list(map(_places, rows))
    main = [(build.target, build.triton) for build in scan.builds[:1]]
    others = ["" if (row.target, row.triton) in main else f"OTHER BUILD ({row.target}, {row.triton}): " for row in rows]
    reasons = ["; ".join(_late_reasons(row) if late else _reasons(row)) for row in rows]
    columns["why"] = [other + why for other, why in zip(others, reasons, strict=True)]
    return _Grid(tuple(columns), tuple(zip(*columns.values(), strict=True)))


def _difference_cells(difference: Difference) -> tuple[str, ...]:
    sides = (("here", difference.only_here), ("there", difference.only_there))
    counts = (difference.here, difference.there, difference.shared, *(row.entries if row else 0 for _, row in sides))
    why = "; ".join(f"only {side}: {'; '.join(_late_reasons(row))}" for side, row in sides if row)
    return (difference.kernel, *(f"{count:,}" for count in counts), why)


def _reasons(row: Row) -> Iterator[str]:
    """What splits the kernel, as far as it shows; then what does not."""
    yield from (_split(split) for split in row.splits)
    hidden = row.variants - row.keys
    if hidden and row.folded:
        yield f"{', '.join(row.folded)} (folded): {hidden:,} more"
    elif hidden:
        yield f"what does not show: {hidden:,} more"
    elif row.variants == 1:
        yield "one variant"


def _late_reasons(row: Row) -> Iterator[str]:
    """What sets late entries, or those of one side, apart from the nearest others."""
    for difference in row.differences[:FEW]:
        yield f"{difference.entries:,} × {_apart(difference, row.folded)}"
    if more := len(row.differences[FEW:]):
        yield f"{more} more reasons"


def _apart(difference: Apart, folded: Sequence[str]) -> str:
    match difference.kind:
        case "new kernel":
            return "no entry to compare with"
        case "hidden":
            return f"{', '.join(folded)} (folded)" if folded else "what does not show"
        case "part":
            name = "source line" if difference.argument == "<line>" else difference.argument
            return f"{name} {difference.now}, was {difference.before}"


def _split(split: Split) -> str:
    if split.kind == "line":
        return f"source lines {'/'.join(split.classes)} (edited)"
    classes = "/".join(split.classes[:6]) + ("…" if len(split.classes) > 6 else "")
    return (
        f"{split.kind} {split.argument} {classes}"
        if split.kind in ("option", "variable")
        else f"{split.argument} {classes}"
    )


def _period(row: Row) -> str:
    """Without the year and the seconds, which JSON has."""
    if row.first is None or row.last is None:
        return "no time"
    first, last = (moment[5:16].replace("T", " ") for moment in (row.first, row.last))
    return first if first == last else f"{first}–{last[6:] if first[:5] == last[:5] else last}"


def _rate(row: Row) -> str:
    """Entries in the first hours that had some and in the last, and whether more keep coming."""
    counts = [f"{count:,}" for count in row.hours.values()]
    shown = " ".join(counts[:3]) + (f" … {counts[-1]}" if len(counts) > 3 else "")
    return f"{shown} GROWING" if row.growing else shown


def _places(row: Row) -> str:
    ranked = sorted(row.places.items(), key=lambda item: (-item[1], item[0]))
    shown = ", ".join(f"{place or '.'}: {count:,}" for place, count in ranked[:PLACES])
    return f"{shown} and {len(ranked) - PLACES} more" if len(ranked) > PLACES else shown


def _lines(result: Scan | Comparison | Pruning, verbose: bool) -> Iterator[str]:
    match result:
        case Scan(builds=builds, findings=findings, origin=origin, since=since):
            if origin == "cache":
                yield from (_build(build, first=build is builds[0]) for build in builds)
            if since and not result.rows:
                yield f"nothing was compiled after {since}"
            elif origin == "log" and not result.rows:
                yield "the log tells of no late compile"
            yield from result.notes
            yield from _skipped(result.skipped, verbose)
            yield from _findings(findings, verbose)
        case Comparison(differences=differences):
            if not differences:
                yield "both sides have the same entries"
            yield from result.notes
            yield from _skipped(result.skipped, verbose)
        case Pruning(toolchain=toolchain):
            if toolchain.triton is None:
                yield "no Triton is installed here: entries of every version are kept"
            if toolchain.target is None:
                yield "no GPU here tells the target: entries of every target are kept; --target names it"


def _findings(findings: Sequence[Finding], verbose: bool) -> Iterator[str]:
    """A line each; on one screen those that every cache has (JA012) are one line together."""
    for finding in findings:
        if verbose or finding.code != "JA012":
            yield f"{finding.code} {finding.name} {finding.kernel}: {finding.message}"
    opaque = {finding.kernel for finding in findings if finding.code == "JA012"}
    if opaque and not verbose:
        yield f"JA012 not-warmable: {len(opaque):,} kernels have values (constexpr, =1, None) that are not told: opaque"


def _build(build: Build, *, first: bool) -> str:
    other = "" if first else "OTHER BUILD: "
    return (
        f"{other}{build.target} by Triton {build.triton}: kernels: {build.kernels:,}, entries: {build.entries:,}, "
        f"{_size(build.bytes)}"
    )


def _skipped(skipped: Sequence[Skipped], verbose: bool) -> Iterator[str]:
    yield from (f"SKIPPED {item.path}: {item.reason}" for item in (skipped if verbose else skipped[:FEW]))


def _unnamed(result: Scan | Comparison | Pruning) -> int:
    return 0 if isinstance(result, Pruning) else max(len(result.skipped) - FEW, 0)


def _size(size: int) -> str:
    number = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if number < 1024:
            return f"{size} B" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1024
    return f"{number:.1f} TiB"
