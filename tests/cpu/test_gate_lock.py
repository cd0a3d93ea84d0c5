"""The lock: what it says, what it refuses, and that the gate passes on what was just locked."""

from __future__ import annotations

import json
import re
from datetime import date
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample import ROWS_CONSTEXPR, SAMPLE, apply, copied, jitaudit

from jitaudit.configuration import Configuration
from jitaudit.errors import RequestError
from jitaudit.gating.accepting import covering, tightened, updated
from jitaudit.gating.drift import Scope, against_lock
from jitaudit.gating.lock import LOCK_VERSION, Lock, decode, encode, key_lines
from jitaudit.gating.verdicts import judge
from jitaudit.gating.words import Advice
from jitaudit.model import (
    SCHEMA_VERSION,
    Environment,
    Kernel,
    Manifest,
    Parameter,
    Profile,
    SweepRun,
    Variant,
    VariantKey,
)

NOTHING = Lock(schema_version=LOCK_VERSION, groups=None, targets={})
WHOLE = Scope(whole=True)

CLASSES = [
    "i32 any",
    "i32 =1",
    "i64 %16",
    "*fp32 aligned",
    "*fp8e4nv unaligned <2GB",
    "none",
    "(i32 any, (i32 =1, none))",
]
TEXTS = st.one_of(
    st.sampled_from(CLASSES),
    st.text(max_size=8).map(lambda text: f"constexpr str {json.dumps(text)}"),
    st.integers(-4, 300).map(lambda number: f"constexpr int {number}"),
)
OPTIONS = st.dictionaries(
    st.sampled_from(["num_warps", "num_stages", "extern_libs"]),
    st.one_of(st.integers(1, 8), st.booleans(), st.text(max_size=6)),
)


@st.composite
def manifests(draw: st.DrawFn) -> Manifest:
    """A manifest of up to three kernels, each with a few keys over its own arguments."""
    kernels = []
    for name, group in draw(st.sets(st.tuples(st.sampled_from("abc"), st.sampled_from([None, "floored"])), max_size=3)):
        arguments = draw(st.lists(st.sampled_from(["x_ptr", "n", "BLOCK", "<stages>"]), unique=True, max_size=4))
        of_key = st.builds(
            VariantKey, arguments=st.fixed_dictionaries(dict.fromkeys(arguments, TEXTS)), options=OPTIONS
        )
        keys = draw(st.lists(of_key, min_size=1, max_size=4, unique_by=key_lines))
        kernels.append(kernel(f"package.module:{name}", group, keys))
    return manifest(*kernels)


def kernel(name: str, group: str | None, keys: list[VariantKey]) -> Kernel:
    boxes: tuple[dict[str, str | tuple[str, ...]], ...] = ({"sweep": "sweeps.py:one", "bs": ("1",)},)
    variants = tuple(Variant(key=key, via="jit", origin="probe", launches=1, cases=boxes) for key in keys)
    parameters = tuple(Parameter(name=name, policy="specialized") for name in keys[0].arguments)
    return Kernel(
        id=name, group=group, object=None, file="package/module.py", line=3, source="sha256:0", parameters=parameters,
        autotuner=None, launches=len(keys), variants=variants,
    )  # fmt: skip


def manifest(*kernels: Kernel) -> Manifest:
    sweep = SweepRun(name="sweeps.py:one", axes={"bs": ("1",)}, compare=None, cases=1, counted=1, verdict="pass")
    return Manifest(
        schema_version=SCHEMA_VERSION, target="cuda:90", configuration="", sweeps=(sweep,), kernels=kernels,
        environment=Environment(triton="", torch="", python="", variables={}), profile=Profile(asked=()), findings=(),
    )  # fmt: skip


def locked(manifest: Manifest, lock: Lock = NOTHING) -> Lock:
    return updated(lock, manifest, against_lock(manifest, lock, WHOLE), "because")


@given(manifests())
def test_the_gate_passes_on_what_it_just_locked(reached: Manifest):
    lock = decode(encode(locked(reached)), "lock")
    drift = against_lock(reached, lock, WHOLE)
    assert (drift.new, drift.gone) == ({}, {})
    verdicts = judge(reached, drift, Configuration(), WHOLE, date(2027, 1, 1), Advice())
    assert all(verdict.word == "PASS" for verdict in verdicts)


@given(manifests(), manifests())
def test_drift_is_a_comparison_of_identities(before: Manifest, after: Manifest):
    drift = against_lock(after, locked(before), WHOLE)
    keys = [{(k.id, k.group, key_lines(v.key)) for k in m.kernels for v in k.variants} for m in (before, after)]
    assert {(*name, key) for name, new in drift.new.items() for key in new} == keys[1] - keys[0]
    assert {(*name, key) for name, gone in drift.gone.items() for key in gone} == keys[0] - keys[1]


@given(manifests(), manifests())
def test_an_update_allows_exactly_what_is_reached(before: Manifest, after: Manifest):
    assert keys_of(locked(after, locked(before))) == keys_of(locked(after))


@given(manifests(), manifests())
def test_tightening_never_allows_anything_new(before: Manifest, after: Manifest):
    lock = locked(before)
    tight = tightened(lock, after, against_lock(after, lock, WHOLE))
    assert keys_of(tight) == keys_of(lock) & keys_of(locked(after))


def keys_of(lock: Lock) -> set[tuple[str, str | None, tuple[str, ...]]]:
    return {(k.id, k.group, key) for entries in lock.targets.values() for k in entries for key in k.keys}


def test_a_reason_stays_with_the_kernels_it_was_given_for():
    first, second = (VariantKey(arguments={"n": text}, options={}) for text in ("i32 any", "i32 =1"))
    lock = locked(manifest(kernel("m:a", None, [first]), kernel("m:b", None, [first])))
    grown = manifest(kernel("m:a", None, [first]), kernel("m:b", None, [first, second]))
    again = updated(lock, grown, against_lock(grown, lock, WHOLE), "b learnt something")
    assert [entry.reason for entry in again.targets["cuda:90"]] == ["because", "b learnt something"]


def test_another_target_and_other_groups_are_left_alone():
    key = VariantKey(arguments={"n": "i32 any"}, options={})
    lock = msgspec.structs.replace(locked(manifest(kernel("m:a", "floored", [key]))), groups=("floored",))
    base = manifest(kernel("m:a", "floored", [key]), kernel("m:a", "baseline", [key]))
    assert against_lock(base, lock, WHOLE).new == {}
    only = against_lock(manifest(kernel("m:a", "baseline", [key])), lock, Scope(whole=True, groups=("baseline",)))
    assert (only.new, only.gone) == ({}, {})
    elsewhere = msgspec.structs.replace(base, target="hip:gfx942")
    both = updated(lock, elsewhere, against_lock(elsewhere, lock, WHOLE), "AMD too")
    assert both.targets["cuda:90"] == lock.targets["cuda:90"]
    assert [entry.group for entry in both.targets["hip:gfx942"]] == ["floored"]


def test_an_update_of_another_group_is_covered_from_then_on():
    key = VariantKey(arguments={"n": "i32 any"}, options={})
    both = manifest(kernel("m:a", "floored", [key]), kernel("m:a", "baseline", [key]))
    lock = covering(None, ("floored",))
    lock = updated(lock, both, against_lock(both, lock, WHOLE), "first")
    assert [entry.group for entry in lock.targets["cuda:90"]] == ["floored"]
    wider = covering(lock, ("baseline",))
    assert wider.groups == ("baseline", "floored")
    again = updated(wider, both, against_lock(both, wider, Scope(whole=True, groups=("baseline",))), "second")
    assert {entry.group: entry.reason for entry in again.targets["cuda:90"]} == {
        "baseline": "second",
        "floored": "first",
    }
    assert keys_of(again) == keys_of(locked(both))
    assert (covering(lock, ()), covering(None, ()).groups) == (lock, None)


TEXT = (SAMPLE / "jitaudit.lock.json").read_text()


@pytest.mark.parametrize(
    ("damaged", "words"),
    [
        (TEXT.replace('"schema_version": 1', '"schema_version": 2'), "a newer jitaudit wrote it; upgrade jitaudit"),
        (TEXT[:200], "not a lock"),
        ("", "not a lock"),
        (TEXT.replace('"reason"', '"raison"'), "unknown field `raison`"),
        (TEXT.replace('"first lock"', "7"), "Expected `str`, got `int`"),
        (TEXT.replace('"rows: i32 any"', '"rows are many"', 1), "'rows are many' is neither"),
        (TEXT.replace('"rows: i32 any",', '"rows: i32 any", "rows: i32 =1",', 1), "rows has two classes"),
        (TEXT.replace("BLOCK: constexpr int 128", "BLOCK: constexpr int 64"), "one variant stands there twice"),
        (TEXT.replace("BLOCK: constexpr int 128", "BLOK: constexpr int 128"), "different arguments"),
        (TEXT.replace("gather_kernel", "scale_kernel"), "scale_kernel: stands there twice"),
    ],
)  # fmt: skip
def test_nonsense_is_refused(damaged: str, words: str):
    assert damaged != TEXT
    with pytest.raises(RequestError, match=f"^jitaudit.lock.json: .*{re.escape(words)}"):
        decode(damaged.encode(), "jitaudit.lock.json")


def test_an_update_says_what_is_new_and_a_tightening_what_it_lowered(tmp_path: Path):
    folder = copied(tmp_path, ROWS_CONSTEXPR)
    apply_budget(folder, 3, 200)
    accepted = jitaudit(folder, "gate", "--update", "--reason", "rows are few here")
    assert accepted.code == 0, accepted.err
    assert (
        "NEW  rowscale.kernels:scale_kernel: 96 variants of 96 not allowed yet, 3 gone (accepted: rows" in accepted.out
    )
    lock = (folder / "jitaudit.lock.json").read_text()
    assert lock.count("rows are few here") == 1
    apply(folder, ROWS_CONSTEXPR._replace(old=ROWS_CONSTEXPR.new, new=ROWS_CONSTEXPR.old))
    (folder / "jitaudit.lock.json").write_text(lock.replace('"BLOCK: constexpr int 64, rows: constexpr int 1",', ""))
    tight = jitaudit(folder, "gate", "--tighten")
    assert tight.code == 1, "what is new stays new"
    assert "budget 'rowscale.kernels:scale_kernel' is now 3" in tight.out
    assert '"rowscale.kernels:scale_kernel" = 3\n' in (folder / "pyproject.toml").read_text()


def apply_budget(folder: Path, old: int, new: int) -> None:
    file = folder / "pyproject.toml"
    file.write_text(file.read_text().replace(f'kernel" = {old}', f'kernel" = {new}'))
