"""A price says what changes between two binaries, and whether it costs."""

from __future__ import annotations

import msgspec
import pytest

from jitaudit.model import Code
from jitaudit.pricing import price

BASE = Code("sha256:a", instructions=100, registers=40, spills=0, shared=0, loads={128: 1}, stores={32: 2})


def other(**changes: object) -> Code:
    return msgspec.structs.replace(BASE, digest="sha256:b", **changes)


def test_the_same_code_is_free():
    same = msgspec.structs.replace(BASE, registers=99)
    assert (price("key", BASE, same).verdict, price("key", BASE, same).changes) == ("free", ())


@pytest.mark.parametrize(
    ("after", "verdict", "change"),
    [
        (other(loads={16: 8}), "costs", "1×128-bit loads become 8×16-bit"),
        (other(stores={64: 1}), "gains", "2×32-bit stores become 1×64-bit"),
        (other(loads={128: 3}), "free", "2×128-bit loads more"),
        (other(stores={}), "free", "2×32-bit stores fewer"),
        (other(loads={128: 1, 64: 1}), "costs", "1×64-bit loads more"),
        (other(instructions=110), "free", "100 → 110 instructions"),
        (other(instructions=111), "costs", "100 → 111 instructions"),
        (other(instructions=1090), "costs", "100 → 1,090 instructions"),
        (other(instructions=90), "gains", "100 → 90 instructions"),
        (other(registers=44), "free", "40 → 44 registers"),
        (other(registers=45), "costs", "40 → 45 registers"),
        (other(registers=32), "gains", "40 → 32 registers"),
        (other(spills=4), "costs", "0 → 4 bytes of spills"),
        (other(shared=512), "free", "0 → 512 bytes of shared memory"),
    ],
    ids=lambda value: str(value) if isinstance(value, str) else "",
)
def test_changes(after: Code, verdict: str, change: str):
    found = price("key", BASE, after)
    assert (found.verdict, found.changes) == (verdict, (change,))


def test_few_registers_are_all_free():
    few = msgspec.structs.replace(BASE, registers=10)
    assert price("key", few, other(registers=32)).verdict == "free"


def test_a_cost_outweighs_a_gain():
    assert price("key", BASE, other(loads={16: 8}, instructions=50)).verdict == "costs"
