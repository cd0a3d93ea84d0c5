"""One manifest for every Triton: what is made here equals the golden file but for its environment.

``pytest tests/cpu/test_golden.py --update-golden`` writes the files anew; review their diff.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from cases import NARROWED

from jitaudit.manifest import decode, encode
from jitaudit.model import Environment, Manifest
from jitaudit.probing import Probe

pytestmark = pytest.mark.matrix

GOLDEN = Path(__file__).parent / "golden"
NO_ENVIRONMENT = Environment(triton="", torch="", python="", variables={})


@pytest.mark.parametrize("target", ["cuda:90", "hip:gfx942"])
def test_the_manifest_equals_the_golden_one(probe_here: Callable[..., Probe], pytestconfig: pytest.Config, target: str):
    manifest = without_environment(probe_here("cases", target, **NARROWED).manifest)
    golden = GOLDEN / f"cases-{target.replace(':', '-')}.json"
    if pytestconfig.getoption("--update-golden"):
        golden.write_bytes(encode(manifest))
    expected = decode(golden.read_bytes(), golden.name)
    assert encode(manifest).decode().splitlines() == encode(expected).decode().splitlines()


def without_environment(manifest: Manifest) -> Manifest:
    return msgspec.structs.replace(manifest, environment=NO_ENVIRONMENT)
