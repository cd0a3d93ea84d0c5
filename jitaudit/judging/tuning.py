"""Tuning keys: how many an autotuner meets, and how many if one of its arguments were rounded up. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from jitaudit.model import Autotuner, Kernel, Remedy, TuningKey


class Bucketed(msgspec.Struct, frozen=True):
    """A key's argument rounded up to powers of two, and what it comes to."""

    remedy: Remedy
    keys: int
    benchmark_runs: int
    confirmed: int | None = None
    """The tuning keys when it was really done."""


class Tuning(msgspec.Struct, frozen=True):
    """What an autotuner meets."""

    keys: int
    benchmark_runs: int
    buckets: tuple[Bucketed, ...]


def tuning(kernel: Kernel) -> Tuning | None:
    """The tuning of a kernel; None where it has no autotuner."""
    tuner = kernel.autotuner
    if tuner is None:
        return None
    buckets = (_bucketed(tuner, place) for place in range(len(tuner.arguments)))
    return Tuning(
        keys=len(tuner.tuning_keys),
        benchmark_runs=tuner.benchmark_runs,
        buckets=tuple(bucket for bucket in buckets if bucket.keys < len(tuner.tuning_keys)),
    )


def bucket(number: int) -> int:
    """The smallest power of two that is no smaller; what is not positive stays."""
    return 1 << (number - 1).bit_length() if number > 0 else number


def _bucketed(tuner: Autotuner, place: int) -> Bucketed:
    merged: dict[tuple[str, ...], TuningKey] = {}
    for key in sorted(tuner.tuning_keys, key=lambda key: _number(key.key, place)):
        texts = list(key.key)
        if place < len(texts) and (match := re.fullmatch(r"int (-?\d+)", texts[place])):
            texts[place] = f"int {bucket(int(match[1]))}"
        merged.setdefault(tuple(texts), key)
    runs = sum(len(key.configs) for key in merged.values() if len(key.configs) > 1)
    return Bucketed(Remedy("bucket", tuner.arguments[place]), len(merged), runs)


def _number(key: Sequence[str], place: int) -> tuple[int, tuple[str, ...]]:
    match = re.fullmatch(r"int (-?\d+)", key[place]) if place < len(key) else None
    return (int(match[1]) if match else 0), tuple(key)
