"""A key is rebuilt into exactly what was captured: the same source, the same options, the same hash on disk."""

from __future__ import annotations

import dataclasses
import enum
from collections import namedtuple
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
import torch
import triton
import triton.language as tl
from hypothesis import given, settings
from hypothesis import strategies as st

from jitaudit.jit import decoding
from jitaudit.jit.capture import capturing
from jitaudit.jit.compiling import source_of
from jitaudit.jit.keys import Opaque, value_text
from jitaudit.jit.rebuild import NotWarmable, Rebuilder, compiling_for
from jitaudit.jit.respecialize import respecialize
from jitaudit.jit.target import gpu_target
from jitaudit.model import VariantKey
from jitaudit.sweeping.targets import load, read_target

pytestmark = pytest.mark.matrix


class Mode(enum.Enum):
    FAST = "fast"


@dataclasses.dataclass(frozen=True)
class Shape:
    rows: object
    scale: object

    def __post_init__(self):
        raise_on_rebuild()


def raise_on_rebuild() -> None:
    """What a class runs when an instance is made; making one from a manifest must not come here."""
    if rebuilding:
        raise AssertionError("a manifest ran code of the program's")


rebuilding: list[bool] = []
Pair = namedtuple("Pair", "left right")


def plain_function(x):
    return x


ATOMS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from([tl.float32, tl.int1, tl.pointer_type(tl.bfloat16), torch.bfloat16, Mode.FAST, plain_function]),
)
VALUES = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.builds(Pair, inner, inner),
        st.builds(Shape, inner, inner),
        st.frozensets(st.integers(), max_size=1),
        inner.map(tl.constexpr),
    ),
    max_leaves=6,
)


@settings(max_examples=300)
@given(VALUES)
def test_a_value_comes_back_with_its_exact_types(value: Any) -> None:
    text = value_text(value, Opaque())
    rebuilding.append(True)
    try:
        again = decoding.value(text)
    finally:
        rebuilding.clear()
    assert type(again) is type(value)
    assert value_text(again, Opaque()) == text
    assert str(again) == str(value)  # which is what Triton hashes


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("function os:system", None),
        ("opaque x:Y #1", "no stable text"),
        ("frozenset(str \"a\", str \"b\")", "changes from process to process"),
        ("enum os:path.NAME", "no longer such a class"),
        ("os:system(int 1)", "no longer such a class"),
        ("subprocess:Popen(str \"ls\")", "no longer such a class"),
        ("function no_such_module:f", "can't be found again"),
        ("function a:<locals>.f", "can't be found again"),
        ("dtype fp99", "no dtype"),
        ("int 1.5", "no such value"),
        ("bool maybe", "no such value"),
        ("str 7", "no string"),
        ("int 1, int 2", "can't be read"),
        ("tuple(int 1", "is missing"),
        ("", "ends where"),
    ],
)  # fmt: skip
def test_a_text_that_stands_for_nothing_is_refused_and_runs_nothing(text: str, why: str | None) -> None:
    if why is None:  # a function is found, not called
        import os

        assert decoding.value(text) is os.system
        return
    with pytest.raises(decoding.Undecodable, match=why):
        decoding.value(text)


def captured(target: str, module: str, axes: dict[str, str]) -> Iterator[tuple[Any, Any]]:
    """Each kernel that the sweeps of a module launch, with each of its variants."""
    with capturing(target) as capture:
        loaded = load(read_target(module))
        for sweep in loaded.sweeps.values():
            narrowed = sweep.with_axes({axis: text for axis, text in axes.items() if axis in sweep.axes})
            for number, (_, case) in enumerate(narrowed.cases()):
                capture.begin(number)
                try:
                    sweep(**case)
                except Exception:  # cases that are there to raise
                    continue
                capture.end()
            for function, seen in capture.take().items():
                for variant in seen.variants.values():
                    yield function, variant


@pytest.mark.parametrize("target", ["cuda:90", "hip:gfx942"])
@pytest.mark.parametrize(
    ("module", "axes"), [("jitaudit_kernels", {"bs": "1..20", "valid": "1..17", "total": "17"}), ("cases", {})]
)
def test_what_is_rebuilt_is_what_was_captured(
    module: str, axes: dict[str, str], target: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(request.path.parent)
    rebuilders: dict[Any, Rebuilder] = {}
    rebuilt = 0
    for function, variant in captured(target, module, axes):
        rebuilder = rebuilders.setdefault(function, Rebuilder(function))
        if "opaque" in variant.key.text or "<locals>" in variant.key.text:
            with pytest.raises(NotWarmable):
                rebuilder.rebuild(variant.key)
            continue
        made = rebuilder.rebuild(variant.key)
        source, options = source_of(function, variant)
        assert (made.source.signature, made.source.attrs) == (source.signature, source.attrs)
        assert str(made.source.constants) == str(source.constants)
        assert made.source.hash() == source.hash()
        assert made.options == options
        rebuilt += 1
    assert rebuilt > 150


@pytest.fixture
def copy_kernel() -> Any:
    import warm_kernels

    return warm_kernels.copy_kernel


@pytest.mark.parametrize("target", ["cuda:90", "hip:gfx942"])
def test_the_hash_is_the_one_that_a_compile_is_filed_under(
    target: str, copy_kernel: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    key = {"dst_ptr": "*fp32 aligned", "src_ptr": "*fp32 unaligned", "n": "i32 =1", "BLOCK": "constexpr int 16"}
    variant = VariantKey(arguments=key, options={"num_warps": 2})
    with compiling_for(target):
        made = Rebuilder(copy_kernel).rebuild(variant)
        kernel = triton.compile(made.source, target=gpu_target(target), options=made.options)
    assert kernel.hash == made.hash
    assert kernel.metadata.hash == made.hash


def test_another_policy_of_the_same_source_has_other_variants(copy_kernel: Any) -> None:
    key = {"dst_ptr": "*fp32 aligned", "src_ptr": "*fp32 aligned", "n": "i32 %16", "BLOCK": "constexpr int 16"}
    variant = VariantKey(arguments=key, options={})
    with compiling_for("cuda:90"):
        Rebuilder(copy_kernel).rebuild(variant)
        with pytest.raises(NotWarmable, match=r"no longer has this variant: n: 'i32 %16' became 'i32 any'"):
            Rebuilder(respecialize(copy_kernel, do_not_specialize=["n"])).rebuild(variant)
        with pytest.raises(NotWarmable, match="this Triton has no option colour"):
            Rebuilder(copy_kernel).rebuild(msgspec.structs.replace(variant, options={"colour": 1}))
