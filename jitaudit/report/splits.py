"""A kernel's tree of variants in words: one argument a step."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from jitaudit.boxes import read_range
from jitaudit.classes import facets
from jitaudit.judging.trees import Branch, Held, Split
from jitaudit.model import AxisValue

FEW = 4
"""Values that are told before the rest is left out."""

_INT = "constexpr int "


def tree_lines(split: Split | None, indent: str = "") -> Iterator[str]:
    """One line a branch, what lies below it indented under it."""
    for branch in split.branches if split else ():
        assert split is not None
        yield f"{indent}{_sentence(split, branch)}: {_each(branch)}"
        yield from tree_lines(branch.split, indent + "  ")


def listed(values: Sequence[object], few: int = FEW) -> str:
    """``1, 2 and 3``; ``1, 2, 3, … 512`` where they are many."""
    texts = [str(value) for value in values]
    if len(texts) > few + 1:
        return f"{', '.join(texts[: few - 1])}, … {texts[-1]}"
    return " and ".join(filter(None, (", ".join(texts[:-1]), texts[-1])))


def _each(branch: Branch) -> str:
    many = len(branch.classes) > 1 or ".." in branch.classes[0].text
    count = "one variant" if branch.variants == 1 else f"{branch.variants:,} variants"
    return f"{count} each" if many else count


def _sentence(split: Split, branch: Branch) -> str:
    texts = [held.text for b in split.branches for held in b.classes]
    if all(re.fullmatch(r"[iu]\d+ (=1|%16|any)", text) for text in texts) and len({t.split()[0] for t in texts}) == 1:
        return _int_classes(split, branch, {text.split()[1] for text in texts})
    if all(text.startswith("constexpr ") for text in texts):
        kinds = {text.split()[1] for text in texts}
        shown = [_constexpr(split, held, typed=len(kinds) > 1) for held in branch.classes]
        return f"`{split.argument}` = {listed(shown)}"
    told = _telling(texts)
    shown = [f"{told[held.text]}{_at(split, held)}" for held in branch.classes]
    return f"`{split.argument}` is {'; '.join(shown)}"


def _int_classes(split: Split, branch: Branch, all_classes: set[str]) -> str:
    """``bs`` = 16 and 32 are divisible by 16, 17..31 are not."""
    own = split.axis == split.argument
    parts: list[str] = []
    for held in branch.classes:
        word = _class_word(held.text.split()[1], all_classes, first=not parts)
        if own and held.values:
            verb = "is" if len(_written_out(held.values)) == 1 and ".." not in str(held.values[0]) else "are"
            subject = f"{'' if parts else f'`{split.argument}` = '}{_values(held)} {verb}"
            parts.append(f"{subject} {word}")
        else:
            parts.append(f"{'' if parts else f'`{split.argument}` is '}{word}{_at(split, held)}")
    return ", ".join(parts)


def _class_word(name: str, all_classes: set[str], *, first: bool) -> str:
    known = {"=1": "1", "%16": "divisible by 16"}
    if name in known:
        return known[name]
    others = [known[other] for other in ("=1", "%16") if other in all_classes]
    if not first:
        return "not" if len(others) == 1 else "neither"
    return f"not {others[0]}" if len(others) == 1 else "neither 1 nor divisible by 16"


def _constexpr(split: Split, held: Held, *, typed: bool) -> str:
    kind, _, value = held.text.removeprefix("constexpr ").partition(" ")
    shown = f"{kind} {value}".strip() if typed or not value else value
    same = split.axis == split.argument or list(map(str, held.values)) == [value]
    return shown if split.axis is None or not held.values or same else f"{shown} ({split.axis} {_values(held)})"


def _telling(texts: Sequence[str]) -> dict[str, str]:
    """Each text without what all of them have: of pointers of one dtype their alignment alone."""
    taken = {text: dict(facets(text)) for text in texts}
    given = [parts for parts in taken.values() if parts.get("none") != "none"]
    kinds = dict.fromkeys(kind for parts in given for kind in parts)
    differ = [kind for kind in kinds if len({parts.get(kind) for parts in given}) > 1]

    def words(text: str) -> str:
        if taken[text].get("none") == "none":
            return "None"
        return " ".join(taken[text][kind] for kind in differ if kind in taken[text]) or "given"

    said = {text: words(text) for text in texts}
    return said if len(set(said.values())) == len(set(texts)) else {text: text for text in texts}


def _at(split: Split, held: Held) -> str:
    return f" at {split.axis} = {_values(held)}" if held.values else ""


def _values(held: Held) -> str:
    return listed(_written_out(held.values))


def _written_out(values: Sequence[AxisValue]) -> list[str]:
    """Values with progressions of a few spelled out: 32, 48, 64 rather than 32..64:16."""
    texts: list[str] = []
    for value in values:
        numbers = read_range(value) if isinstance(value, str) and ":" in value else None
        texts += map(str, numbers) if numbers is not None and len(numbers) <= FEW else [str(value)]
    return texts
