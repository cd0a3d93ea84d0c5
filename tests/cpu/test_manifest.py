"""The manifest file: what was written reads back the same, what is none is refused, and manifests unite."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hand_made import BS, FLAGS, manifest_of
from hypothesis import given, settings
from hypothesis import strategies as st
from nouns import nouns

from jitaudit.boxes import Grid, compact
from jitaudit.errors import RequestError
from jitaudit.manifest import decode, encode, read, require_writable, union, write
from jitaudit.model import SCHEMA_VERSION, Manifest, VariantKey


@given(nouns(Manifest))
@settings(max_examples=200)
def test_reading_what_was_written_gives_the_same(manifest: Manifest):
    manifest = msgspec.structs.replace(manifest, schema_version=SCHEMA_VERSION)
    assert decode(encode(manifest), "m.json") == manifest


@given(nouns(VariantKey), nouns(VariantKey))
def test_the_text_of_a_key_is_equal_for_equal_keys(one: VariantKey, other: VariantKey):
    def reversed_key(key: VariantKey) -> VariantKey:
        return VariantKey(arguments=dict(reversed(key.arguments.items())), options=dict(reversed(key.options.items())))

    assert reversed_key(one).text == one.text
    if one == other:
        assert one.text == other.text


def test_an_option_keeps_its_type_in_the_text():
    texts = {VariantKey(arguments={}, options={"o": value}).text for value in (1, True, 1.0, "1", None)}
    assert len(texts) == 5


def test_a_file_has_an_item_a_line_and_sorted_keys():
    data = encode(manifest_of({"b": {(0, 0)}, "a": {(1, 0)}})).decode()
    assert data.startswith(f'{{\n "schema_version": {SCHEMA_VERSION},\n "target": "cuda:90",\n')
    assert data.endswith("\n}\n")
    assert [line for line in data.splitlines() if '"i32 any"' in line] == ['       "n": "i32 any",'] * 2
    assert data.index('"x": "a"') < data.index('"x": "b"')


BROKEN = [
    (b"", "not a manifest"),
    (b"{", "not a manifest"),
    (b"[]", "not a manifest"),
    (b"\xff\xfe", "not a manifest"),
    (b"[" * 100_000, "not a manifest"),
    (b'{"schema_version": "1"}', "not a manifest"),
    (b'{"schema_version": 1}', "not a manifest"),
    (b'{"schema_version": 2}', "newer jitaudit wrote it; upgrade jitaudit"),
    (b'{"schema_version": 0}', "make it again with jitaudit probe -o"),
]


@pytest.mark.parametrize(("data", "words"), BROKEN)
def test_what_is_no_manifest_is_refused_by_name(data: bytes, words: str):
    with pytest.raises(RequestError, match=words) as raised:
        decode(data, "some.json")
    assert str(raised.value).startswith("some.json: ")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("change", ["unknown field", "wrong type", "missing field"])
def test_a_manifest_is_read_strictly(change: str):
    document = json.loads(encode(manifest_of({"a": {(0, 0)}})))
    kernel = document["kernels"][0]
    match change:
        case "unknown field":
            kernel["surprise"] = 1
        case "wrong type":
            kernel["launches"] = "many"
        case "missing field":
            del kernel["launches"]
    with pytest.raises(RequestError, match=r"not a manifest: .*\$\.kernels\[0\]"):
        decode(json.dumps(document).encode(), "m.json")


def test_an_output_is_whole_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    manifest = manifest_of({"a": {(0, 0)}})

    def full_disk(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full_disk)
    with pytest.raises(RequestError, match="No space left on device"):
        write(manifest, tmp_path / "m.json")
    assert not (tmp_path / "m.json").exists()
    monkeypatch.undo()
    write(manifest, tmp_path / "m.json")
    assert read([tmp_path / "m.json"]) == manifest
    assert (tmp_path / "m.json").stat().st_mode & 0o777 == 0o666 & ~umask()


@pytest.mark.parametrize(
    ("path", "words"),
    [
        (".", "is a directory"),
        ("there.json", "exists; give another -o, or --force"),
        ("no/m.json", "no such directory"),
    ],
)
def test_an_output_that_can_not_be_written_is_refused_before_the_work(tmp_path: Path, path: str, words: str):
    (tmp_path / "there.json").write_text("kept")
    with pytest.raises(RequestError, match=words):
        require_writable(tmp_path / path)
    assert (tmp_path / "there.json").read_text() == "kept"


def test_force_replaces_a_file(tmp_path: Path):
    (tmp_path / "m.json").write_text("old")
    write(manifest_of({"a": {(0, 0)}}), tmp_path / "m.json", force=True)
    assert read([tmp_path / "m.json"]).kernels


def test_a_missing_manifest_is_named(tmp_path: Path):
    with pytest.raises(RequestError, match=r"gone\.json: no such file"):
        read([tmp_path / "gone.json"])


CASES = st.sets(st.tuples(st.sampled_from(range(len(BS))), st.sampled_from(range(len(FLAGS)))), min_size=1)
REACHED = st.dictionaries(st.sampled_from("abc"), CASES, min_size=1)


@given(REACHED)
def test_a_manifest_alone_stays_as_it_is(reached: dict[str, set[tuple[int, int]]]):
    manifest = manifest_of(reached)
    assert union([manifest]) == manifest


@given(REACHED, REACHED)
def test_a_union_has_the_cases_of_both_once_each(
    one: dict[str, set[tuple[int, int]]], other: dict[str, set[tuple[int, int]]]
):
    (kernel,) = union([manifest_of(one), manifest_of(other)]).kernels
    assert kernel.launches == sum(len(cases) for reached in (one, other) for cases in reached.values())
    grid = Grid({"bs": compact(map(str, BS)), "flag": FLAGS})
    for variant in kernel.variants:
        name = variant.key.arguments["x"]
        numbers = [number for box in variant.cases for number in grid.numbers(box)]
        assert len(numbers) == len(set(numbers))
        assert set(numbers) == {2 * bs + flag for bs, flag in one.get(name, set()) | other.get(name, set())}
        assert variant.launches == len(one.get(name, ())) + len(other.get(name, ()))
    assert {variant.key.arguments["x"] for variant in kernel.variants} == one.keys() | other.keys()


@given(REACHED, REACHED)
def test_a_union_does_not_depend_on_the_order(one: Any, other: Any):
    a, b = manifest_of(one), manifest_of(other)
    assert union([a, b]).kernels == union([b, a]).kernels


@pytest.mark.parametrize("field", ["target", "configuration"])
def test_manifests_of_two_targets_or_configurations_do_not_unite(field: str):
    one = manifest_of({"a": {(0, 0)}})
    with pytest.raises(RequestError, match="one target and one configuration at a time"):
        union([one, msgspec.structs.replace(one, **{field: "other"})])


def test_one_sweep_over_two_ranges_does_not_unite():
    one = manifest_of({"a": {(0, 0)}})
    other = msgspec.structs.replace(one, sweeps=(msgspec.structs.replace(one.sweeps[0], axes={"bs": ("1..9",)}),))
    with pytest.raises(RequestError, match="with different axes"):
        union([one, other])


def umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
