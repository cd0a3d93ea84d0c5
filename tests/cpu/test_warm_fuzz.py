"""A manifest is data: whatever stands in it ends in a clear error or a named variant, and writes nothing elsewhere."""

from __future__ import annotations

import copy
import json
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from forks import in_fork, warm_here

from jitaudit import manifest as manifests
from jitaudit.errors import JitauditError
from jitaudit.model import Manifest
from jitaudit.probing import Probe
from jitaudit.sweeping import Narrowing
from jitaudit.warming import Warming

JUNK: tuple[Any, ...] = (
    None, True, 0, -1, 1 << 70, 1e300, "", "x", "\x00", "../../../etc/passwd", "/etc/passwd", "os:system", "a" * 5000,
    "constexpr function os:system", "constexpr os:system(str \"id\")", "constexpr tuple(", "i32 =1", "*i64 aligned",
    "constexpr int 7", "constexpr bool True", "cuda:10", "hip:gfx942", "warm_kernels", "warm_kernels:copy_kernel",
    [], {}, [[]],
    {"a": 1}, "constexpr str \"\\ud800\"", "(i32 any, i32 any)", "tensordesc<fp16[3]>", "constexpr enum os:path.x",
)  # fmt: skip


class Ended(msgspec.Struct):
    """How each mutated manifest ended: its error, or None where it was warmed."""

    errors: list[str | None]
    warmed: list[Warming]


@pytest.fixture(scope="module")
def wanted(probe_here: Callable[..., Probe]) -> Manifest:
    return Narrowing(kernels=("copy_kernel", "tuned_kernel")).of(probe_here("warm_kernels").manifest)


@pytest.mark.parametrize("count", [40, pytest.param(200, marks=pytest.mark.nightly)])
def test_a_mutated_manifest_ends_clearly(
    count: int, wanted: Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, elsewhere = tmp_path / "cache", tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    before = written_outside(tmp_path)

    def work() -> Ended:
        errors: list[str | None] = []
        done: list[Warming] = []
        for data in mutated(manifests.encode(wanted), count):
            try:
                done.append(warm_here(manifests.decode(data, "m.json"), cache, jobs=1, timeout=20.0))
                errors.append(None)
            except JitauditError as error:  # anything else is a bug, and fails the fork
                errors.append(str(error))
        return Ended(errors, done)

    ended = in_fork(work, Ended, TRITON_CACHE_DIR=str(cache), HOME=str(elsewhere))
    assert len(ended.errors) == count
    assert 0 < sum(error is None for error in ended.errors) < count  # both ends are reached
    for error in filter(None, ended.errors):
        assert "\n" not in error
        assert "Traceback" not in error
        assert "m.json" in error or "target" in error
    for done in ended.warmed:
        assert done.compiled + done.present + len(done.failed) or done.unplanned or not done.variants
        assert all(one.reason and "\n" not in one.reason for one in (*done.failed, *done.unplanned))
    assert written_outside(tmp_path) == before
    assert list(elsewhere.iterdir()) == []


def written_outside(tmp_path: Path) -> set[str]:
    """What stands beside the directories of the test."""
    return set(os.listdir(tmp_path.parent)) | {"cwd:" + name for name in os.listdir(tmp_path) if name != "cache"}


def mutated(data: bytes, count: int) -> Iterator[bytes]:
    chance = random.Random(6)
    for number in range(count):
        if number % 4 == 0:
            yield bent(data, chance)
        else:
            document = json.loads(data)
            for _ in range(chance.randint(1, 3)):
                mutate(document, chance)
            yield json.dumps(document).encode()


def bent(data: bytes, chance: random.Random) -> bytes:
    """A byte changed, left out or doubled, or the rest cut off."""
    at = chance.randrange(len(data))
    return chance.choice(
        [
            data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :],
            data[:at] + data[at + 1 :],
            data[:at] + data[at : at + 1] + data[at:],
            data[:at],
        ]
    )


def mutate(document: Any, chance: random.Random) -> None:
    """Replace, remove or double something, kernels and keys above all."""
    places = list(inner(document))
    likely = [place for place in places if place[1] in ("arguments", "options", "id", "object", "target", "key")]
    holder, name = chance.choice(likely if likely and chance.random() < 0.6 else places)
    match chance.randrange(4):
        case 0:
            del holder[name]
        case 1:
            other, place = chance.choice(places)
            holder[name] = copy.deepcopy(other[place]) if in_place(other, place) else None
        case 2 if isinstance(holder[name], dict):
            holder[name][chance.choice([*holder[name], "new"])] = chance.choice(JUNK)
        case _:
            holder[name] = chance.choice(JUNK)


def in_place(holder: Any, name: Any) -> bool:
    return name in holder if isinstance(holder, dict) else name < len(holder)


def inner(node: Any) -> Iterator[tuple[Any, Any]]:
    """Every (container, key) of a document."""
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for name, value in list(items):
        yield node, name
        yield from inner(value)
