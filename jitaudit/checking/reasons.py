"""Why a variant is no hit: its hash is set against those that are recorded. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from jitaudit.checking.nouns import Difference, Miss
from jitaudit.checking.rules import NEXT, RULES, Code
from jitaudit.jit.entries import Entry
from jitaudit.jit.environment import is_hashed_as_text
from jitaudit.jit.lookup import Broken
from jitaudit.jit.marker import Marker, Parts, Warmed
from jitaudit.model import VariantKey
from jitaudit.planning import Planned

_BROKEN: dict[str, Code] = {"partial": "JA208", "damaged": "JA209", "moved": "JA207"}
_TIES = 3
"""Nearest keys that are told."""


class Record(msgspec.Struct, frozen=True):
    """A variant of a marker, with what its hash was made of besides."""

    variant: Warmed
    target: str
    parts: Parts
    marker: str


class Recorded:
    """All that markers record, and the entries that stand in the directory, by kernel."""

    def __init__(self, markers: dict[str, Marker], entries: Iterable[Entry]) -> None:
        self._records: dict[str, list[Record]] = defaultdict(list)
        for name, marker in markers.items():
            for variant in marker.variants:
                self._records[variant.kernel].append(Record(variant, marker.target, marker.parts, name))
        self._entries: dict[str, list[Entry]] = defaultdict(list)
        for entry in entries:
            self._entries[entry.kernel].append(entry)

    def explain(self, planned: Planned, target: str, parts: Parts, found: Broken | None, brief: str) -> Miss:
        """Why this variant is missed; `found` is what stands under its hash."""
        if found is not None:
            code = _BROKEN[found.kind]
            return miss(code, planned, brief, f"{found.file}: {found.detail}")
        records = self._records[planned.kernel]
        alike = [record for record in records if record.variant.key.text == planned.key.text]
        for record in alike:
            if record.variant.hash == planned.hash:
                return _once_there(planned, record, brief)
        if alike:
            nearest = min(alike, key=lambda record: len(list(_differences(planned, target, parts, record))))
            return _changed(planned, target, parts, nearest, brief)
        if records:
            return _other_keys(planned, [record.variant.key for record in records], brief)
        return self._without_marker(planned, target, parts, brief)

    def _without_marker(self, planned: Planned, target: str, parts: Parts, brief: str) -> Miss:
        """What Triton's own metadata of the kernel's entries tells: its version, the target, the variables."""
        entries = self._entries[planned.name]
        if not entries:
            return miss("JA210", planned, brief, "nothing of this kernel is there")
        made = f"{len(entries)} entries of a kernel of this name are there"
        here = [entry for entry in entries if entry.target == target]
        if not here:
            others = ", ".join(sorted({entry.target for entry in entries}))
            return miss("JA203", planned, brief, f"{made}, all for {others}", [Difference("target", others, target)])
        ours = [entry for entry in here if entry.triton == parts.triton]
        if not ours:
            others = ", ".join(sorted({entry.triton for entry in here}))
            difference = Difference("Triton", others, parts.triton)
            return miss("JA201", planned, brief, f"{made}, all by Triton {others}", [difference])
        set_here = {name: value for name, value in parts.variables.items() if value is not None}
        differing = [list(_variables(entry.variables, set_here, as_text=True)) for entry in ours]
        if all(differing):
            fewest = min(differing, key=len)
            return miss("JA206", planned, brief, f"{made}, under other variables", fewest)
        return miss("JA210", planned, brief, f"{made}, and no marker tells for which keys")


def miss(
    code: Code,
    planned: Planned,
    brief: str,
    message: str,
    differences: Sequence[Difference] = (),
    nearest: Sequence[VariantKey] = (),
) -> Miss:
    """One variant's miss."""
    return Miss(
        code=code,
        name=RULES[code],
        kernel=planned.kernel,
        group=planned.group,
        key=planned.key,
        brief=brief,
        variants=1,
        message=message,
        next=NEXT[code],
        differences=tuple(differences),
        nearest=tuple(nearest),
    )


def _once_there(planned: Planned, record: Record, brief: str) -> Miss:
    if record.variant.failure is not None:
        return miss("JA211", planned, brief, f"it did not compile when it was warmed: {record.variant.failure}")
    return miss("JA216", planned, brief, "it was warmed, and its entry is gone", nearest=[planned.key])


_WORDS: dict[Code, str] = {
    "JA203": "it was warmed for another target",
    "JA201": "it was warmed by another build of Triton",
    "JA202": "it was warmed with another assembler",
    "JA206": "it was warmed under other environment variables",
    "JA218": "the options of a plain launch were others when it was warmed",
    "JA204": "the kernel's source, what it calls or a global that it reads has changed since it was warmed",
    "JA205": "the kernel starts on another line than when it was warmed; its source is the same",
    "JA217": "it was warmed with another pass pipeline",
}


def _changed(planned: Planned, target: str, parts: Parts, record: Record, brief: str) -> Miss:
    differences = list(_differences(planned, target, parts, record))
    codes = [code for code, _ in differences] or ["JA217"]
    code = next(code for code in _WORDS if code in codes)
    return miss(code, planned, brief, _WORDS[code], [difference for _, difference in differences], [record.variant.key])


def _differences(planned: Planned, target: str, parts: Parts, record: Record) -> Iterator[tuple[Code, Difference]]:
    """Every part of the hash that differs, with the reason that it would be."""
    was = record.parts
    if record.target != target:
        yield "JA203", Difference("target", record.target, target)
    if was.build != parts.build:
        same = was.triton == parts.triton
        old, new = (f"{p.triton} ({p.build[7:19]})" if same else p.triton for p in (was, parts))
        yield "JA201", Difference("Triton", old, new)
    if was.backend != parts.backend and record.target == target:
        yield "JA202", Difference("assembler and architecture", was.backend, parts.backend)
    # A tool or library that a variable names is hashed by its content, so the name alone makes no difference.
    through = was.options != parts.options or was.backend != parts.backend
    for difference in _variables(was.variables, parts.variables, as_text=not through):
        yield "JA206", difference
    if record.target == target:
        for name in sorted(was.options.keys() | parts.options.keys()):
            if was.options.get(name) != parts.options.get(name):
                yield "JA218", Difference(f"default {name}", was.options.get(name), parts.options.get(name))
    if record.variant.line != planned.line:
        yield "JA205", Difference("first line", str(record.variant.line), str(planned.line))
    if record.variant.source != planned.source:
        yield "JA204", Difference("source", record.variant.source[:19], planned.source[:19])
    elif record.variant.code != planned.code and was.build == parts.build and record.variant.line == planned.line:
        yield "JA204", Difference("what it calls or reads", record.variant.code[:12], planned.code[:12])


def _variables(
    was: dict[str, str | None] | dict[str, str], now: dict[str, str | None] | dict[str, str], *, as_text: bool
) -> Iterator[Difference]:
    """The variables that differ; `as_text`: only those whose own text is in the hash."""
    for name in sorted(was.keys() | now.keys()):
        if was.get(name) != now.get(name) and (is_hashed_as_text(name) or not as_text):
            yield Difference(name, was.get(name), now.get(name))


def _other_keys(planned: Planned, recorded: Sequence[VariantKey], brief: str) -> Miss:
    """The key itself was never warmed: which of the recorded ones are nearest, and in what they differ."""
    distances = {key.text: (len(list(_key_differences(key, planned.key))), key) for key in recorded}
    least = min(distance for distance, _ in distances.values())
    nearest = [key for distance, key in distances.values() if distance == least]
    told = nearest[:_TIES]
    differences = list(_key_differences(told[0], planned.key))
    what = ", ".join(f"{d.part}={d.now}" for d in differences)
    more = f" (and {len(nearest) - 1} as near)" if len(nearest) > 1 else ""
    return miss("JA210", planned, brief, f"{what} was never warmed{more}", differences, told)


def _key_differences(was: VariantKey, now: VariantKey) -> Iterator[Difference]:
    for name in {**now.arguments, **was.arguments}:
        if was.arguments.get(name) != now.arguments.get(name):
            yield Difference(name, was.arguments.get(name), now.arguments.get(name))
    for name in sorted(was.options.keys() | now.options.keys()):
        if was.options.get(name, "") != now.options.get(name, ""):
            yield Difference(name, _option(was, name), _option(now, name))


def _option(key: VariantKey, name: str) -> str | None:
    return str(key.options[name]) if name in key.options else None
