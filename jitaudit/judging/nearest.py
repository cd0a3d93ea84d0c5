"""What parts two keys differ in, and which keys of many are the nearest to one. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import ne

import msgspec

from jitaudit.classes import facets
from jitaudit.model import CauseKind, Scalar, VariantKey


class Difference(msgspec.Struct, frozen=True):
    """One argument or option in which a key differs from another."""

    name: str
    option: bool
    kinds: tuple[CauseKind, ...]
    was: Scalar
    now: Scalar
    added: bool = False
    """Only the new key has it; the other has an option at its default."""
    removed: bool = False
    """Only the other key has it."""


def differences(was: VariantKey, now: VariantKey) -> tuple[Difference, ...]:
    """All that must change in `was` to make it `now`."""
    return (*_arguments(was.arguments, now.arguments), *_options(was.options, now.options))


def changed(key: VariantKey, parts: Iterable[Difference]) -> VariantKey:
    """The key after these changes: the reverse of `differences`."""
    arguments, options = dict(key.arguments), dict(key.options)
    for part in parts:
        texts: dict[str, Scalar] = options if part.option else arguments  # type: ignore[assignment]
        if part.removed:
            del texts[part.name]
        else:
            texts[part.name] = part.now
    return VariantKey(arguments, options)


class Neighbours:
    """Keys of one kernel, to be searched for the nearest."""

    def __init__(self, keys: Sequence[VariantKey]) -> None:
        self._keys = list(keys)
        self._names = sorted({name for key in keys for name in key.arguments})
        self._options = sorted({name for key in keys for name in key.options})
        self._rows = [self._row(key) for key in keys]

    def nearest(self, key: VariantKey) -> tuple[VariantKey, ...]:
        """The keys that differ from `key` in the fewest arguments and options, all that tie."""
        row = self._row(key)
        distances = [sum(map(ne, row, other)) for other in self._rows]
        least = min(distances, default=0)
        return tuple(other for other, distance in zip(self._keys, distances, strict=True) if distance == least)

    def _row(self, key: VariantKey) -> tuple[object, ...]:
        return (
            *(key.arguments.get(name) for name in self._names),
            *(
                (key.options[name].__class__, key.options[name]) if name in key.options else None
                for name in self._options
            ),
        )


def _arguments(was: dict[str, str], now: dict[str, str]) -> Iterator[Difference]:
    for name in dict.fromkeys((*was, *now)):
        before, after = was.get(name), now.get(name)
        if before != after:
            one, other = (dict(facets(text)) if text is not None else {} for text in (before, after))
            kinds = tuple(kind for kind in dict.fromkeys((*one, *other)) if one.get(kind) != other.get(kind))
            yield Difference(name, False, kinds, before, after, name not in was, name not in now)


def _options(was: dict[str, Scalar], now: dict[str, Scalar]) -> Iterator[Difference]:
    for name in sorted({*was, *now}):
        before, after = was.get(name), now.get(name)
        same = (name in was) is (name in now) and (type(before), before) == (type(after), after)
        if not same:
            yield Difference(name, True, ("option",), before, after, name not in was, name not in now)
