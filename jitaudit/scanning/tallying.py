"""From sightings to rows: how many of each kernel, what splits them, how they grow. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Literal

import msgspec

from jitaudit.classes import Facets, facets
from jitaudit.model import CauseKind
from jitaudit.scanning.sightings import NANOSECONDS, Sighting, time_text

HOUR = 3600 * NANOSECONDS

YOUNGEST = 4
"""Hours that a cache must span before its growth is judged."""

FEWEST = 8
"""Entries that a kernel must have gained in the judged hours before it is called growing."""

STEADY = 0.9
"""The share of the earlier rate from which growth counts as going on (as `judging.LINEAR`)."""

SplitKind = CauseKind | Literal["variable", "line"]


class Split(msgspec.Struct, frozen=True):
    """A part of the key, as far as it shows, that is not the same in all of a kernel's entries."""

    argument: str
    """An argument, an option, a key variable, or ``<line>``: the source line, which an edit moves."""
    kind: SplitKind
    classes: tuple[str, ...]
    without: int
    """The different keys that would be left, as far as they show."""


class Difference(msgspec.Struct, frozen=True):
    """What sets entries apart from the nearest ones that were there before, or on the other side."""

    kind: Literal["part", "hidden", "new kernel"]
    """``hidden``: nothing that shows; ``new kernel``: there is none to compare with."""
    argument: str
    now: str
    before: str
    entries: int


class Row(msgspec.Struct, frozen=True):
    """One kernel of one target and Triton build."""

    kernel: str
    target: str
    triton: str
    entries: int
    earlier: int
    """With --since: those that were there before."""
    variants: int
    """Different hashes, or in a log different keys: an entry that two directories hold counts once."""
    keys: int
    """Different keys, as far as they show; variants beyond them differ in what was folded, or in their source."""
    bytes: int
    binaries: int
    """Different binaries; 0 for a log."""
    seconds: float
    """Of compiling, where a log tells it."""
    first: str | None
    last: str | None
    hours: dict[str, int]
    """Entries by the hour (UTC) in which they were written."""
    growing: bool
    places: dict[str, int]
    """Entries by directory, process or rank."""
    folded: tuple[str, ...]
    """Parameters that some entry's code does not have: a constexpr, =1 or None."""
    splits: tuple[Split, ...]
    differences: tuple[Difference, ...]
    """With --since or --against: why they were compiled, as far as it shows."""


Parts = tuple[tuple[str, Facets], ...]
"""What shows of a key: (part, its facets), by name."""

Life = tuple[int, int] | None
"""First and last time of everything that was read, in ns."""

RowKey = tuple[str, str, str]


def grouped(sightings: Iterable[Sighting]) -> dict[RowKey, list[Sighting]]:
    """Sightings by kernel, target and Triton build."""
    groups: dict[RowKey, list[Sighting]] = defaultdict(list)
    for sighting in sightings:
        groups[sighting.kernel, sighting.target, sighting.triton].append(sighting)
    return groups


def life(sightings: Iterable[Sighting]) -> Life:
    """The span of time that the sightings cover."""
    times = [sighting.written for sighting in sightings if sighting.written is not None]
    return (min(times), max(times)) if times else None


def tally(key: RowKey, sightings: Sequence[Sighting], before: Sequence[Sighting] | None, span: Life) -> Row:
    """One row. `before`: what the sightings are compared with, if with anything."""
    times = sorted(sighting.written for sighting in sightings if sighting.written is not None)
    names = _names([*sightings, *(before or ())])
    parts = [shown(sighting, names) for sighting in sightings]
    return Row(
        kernel=key[0],
        target=key[1],
        triton=key[2],
        entries=len(sightings),
        earlier=len(before or ()),
        variants=len({sighting.identity for sighting in sightings}),
        keys=len(set(parts)),
        bytes=sum(sighting.bytes for sighting in sightings),
        binaries=len({sighting.binary for sighting in sightings if sighting.binary}),
        seconds=round(sum(sighting.seconds or 0 for sighting in sightings), 3),
        first=time_text(times[0]) if times else None,
        last=time_text(times[-1]) if times else None,
        hours=dict(sorted(Counter(_hour(time) for time in times).items())),
        growing=grows(times, span),
        places=dict(sorted(Counter(sighting.place for sighting in sightings).items())),
        folded=tuple(_folded(sightings, names)),
        splits=tuple(sorted(_splits(parts), key=lambda split: (split.without, split.argument))),
        differences=() if before is None else _differences(parts, {shown(sighting, names) for sighting in before}),
    )


def shown(sighting: Sighting, names: Sequence[str]) -> Parts:
    """The parts of a key that show in its entry: what is opaque is left out.

    `names`: of the arguments that any entry of the kernel has; one that this entry lacks was folded here.
    """
    own = sighting.key.arguments
    arguments = {
        name: tuple(facet for facet in facets(own.get(name, "folded")) if facet[1] != "opaque")
        for name in names
        if name in own or _was_folded(name, own)
    }
    options: dict[str, Facets] = {name: (("option", str(value)),) for name, value in sighting.key.options.items()}
    return tuple(sorted((arguments | options | _surroundings(sighting)).items()))


def grows(times: Sequence[int], span: Life) -> bool:
    """Whether entries keep coming: by quarters of the whole cache's life, the second half goes on at the rate of the
    second quarter. The first quarter, with the warm-up in it, decides nothing."""
    if span is None or span[1] - span[0] < YOUNGEST * HOUR:
        return False
    quarter = (span[1] - span[0]) / 4
    counts = Counter(min(int((time - span[0]) / quarter), 3) for time in times)
    second, third, last = counts[1], counts[2], counts[3]
    return second + third + last >= FEWEST and bool(second) and min((third + last) / 2, last) >= STEADY * second


def _surroundings(sighting: Sighting) -> dict[str, Facets]:
    """What Triton hashes beside the key, as far as it shows. The kinds of facets have no word for these."""
    around: dict[str, Facets] = {name: (("option", value),) for name, value in sighting.variables.items()}
    return around | ({"<line>": (("option", str(sighting.line)),)} if sighting.line else {})


def _hour(time: int) -> str:
    return datetime.fromtimestamp(time // HOUR * 3600, UTC).strftime("%Y-%m-%dT%HZ")


def _names(sightings: Sequence[Sighting]) -> list[str]:
    names = dict.fromkeys(name for sighting in sightings for name in sighting.key.arguments)
    return [name for name in names if name not in ("<folded>", "<arguments>")]


def _folded(sightings: Sequence[Sighting], names: Sequence[str]) -> Iterator[str]:
    for name in names:
        if any(_was_folded(name, sighting.key.arguments) for sighting in sightings):
            yield name


def _was_folded(name: str, arguments: Mapping[str, str]) -> bool:
    """Whether compiled code that has these `arguments` lacks one that other code of its kernel has."""
    if name in arguments:
        return arguments[name] == "folded"
    stand_together = any("|" in other for other in (name, *arguments))  # a log's: it tells all, if not each by itself
    return not stand_together and "<arguments>" not in arguments


def _splits(parts: Sequence[Parts]) -> Iterator[Split]:
    keys = [dict(part) for part in dict.fromkeys(parts)]
    for name in dict.fromkeys(name for key in keys for name in key):
        held = [key.get(name) for key in keys]
        if len(set(held)) < 2:
            continue
        without = len({tuple(item for item in sorted(key.items()) if item[0] != name) for key in keys})
        for kind in dict.fromkeys(kind for item in held if item for kind, _ in item):
            classes = {dict(item).get(kind) if item else _absent(kind) for item in held} - {None}
            if len(classes) > 1:
                yield Split(name, _kind(name, kind), tuple(sorted(filter(None, classes))), without)


def _absent(kind: CauseKind) -> str | None:
    return "default" if kind == "option" else None


def _kind(name: str, kind: CauseKind) -> SplitKind:
    if kind != "option":
        return kind
    return "line" if name == "<line>" else "variable" if name.isupper() else "option"


def _differences(parts: Sequence[Parts], before: set[Parts]) -> tuple[Difference, ...]:
    """For each sighting the parts that set it apart from the nearest one before, added up."""
    known = sorted(before)
    told: Counter[_Apart] = Counter()
    for part, count in Counter(parts).items():
        for apart in _apart(dict(part), known):
            told[apart] += count
    return tuple(
        Difference(*apart, count) for apart, count in sorted(told.items(), key=lambda item: (-item[1], item[0]))
    )


_Apart = tuple[Literal["part", "hidden", "new kernel"], str, str, str]


def _apart(key: Mapping[str, Facets], known: Sequence[Parts]) -> list[_Apart]:
    if not known:
        return [("new kernel", "", "", "")]

    own = set(key.items())
    nearest = dict(min(known, key=lambda other: len(own.symmetric_difference(other))))
    names = [name for name in {**key, **nearest} if key.get(name) != nearest.get(name)]
    if not names:
        return [("hidden", "", "", "")]
    return [("part", name, *_words(key.get(name), nearest.get(name))) for name in sorted(names)]


def _words(now: Facets | None, before: Facets | None) -> tuple[str, str]:
    """Both sides, in the kinds that differ."""
    new, old = dict(now or ()), dict(before or ())
    kinds = [kind for kind in {**new, **old} if new.get(kind) != old.get(kind)]
    sides = []
    for side in (new, old):
        sides.append(" ".join(side[kind] for kind in kinds if kind in side and side[kind] != "given") or "default")
    return sides[0], sides[1]
