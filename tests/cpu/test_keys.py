"""Keys in design words: every kind of argument, and constexprs by type and text, never by Python equality."""

from __future__ import annotations

import dataclasses
import enum
from collections import namedtuple
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from jitaudit.jit.capture import capturing
from jitaudit.jit.keys import Opaque, value_text
from jitaudit.jit.respecialize import respecialize

pytestmark = pytest.mark.matrix


class Mode(enum.Enum):
    FAST = 1


class Level(enum.IntEnum):
    LOW = 1


@dataclasses.dataclass(frozen=True)
class Shape:
    rows: int
    scale: float


Pair = namedtuple("Pair", "left right")


@triton.jit
def helper(x):
    return x


def local_function() -> Callable[..., Any]:
    def inner(x):
        return x

    return inner


class Anything:
    """Has no stable text."""


VALUES = [
    (None, "none"),
    (True, "bool True"),
    (1, "int 1"),
    (1.0, "float 1.0"),
    (0.0, "float 0.0"),
    (-0.0, "float -0.0"),
    (float("inf"), "float inf"),
    (2**80, f"int {2**80}"),
    ("1", 'str "1"'),
    ("fp32", 'str "fp32"'),
    ('a "b"\n', 'str "a \\"b\\"\\n"'),
    (tl.float32, "dtype fp32"),
    (torch.float32, "dtype torch.float32"),
    (Mode.FAST, f"enum {__name__}:Mode.FAST"),
    (Level.LOW, f"enum {__name__}:Level.LOW"),
    ((), "tuple()"),
    ((1, True), "tuple(int 1, bool True)"),
    ([1, True], "list(int 1, bool True)"),
    (((1,), None), "tuple(tuple(int 1), none)"),
    (Pair(1, 2), f"{__name__}:Pair(int 1, int 2)"),
    (frozenset({2, 1}), "frozenset(int 1, int 2)"),
    (Shape(1, 1.0), f"{__name__}:Shape(rows=int 1, scale=float 1.0)"),
    (np.float64(1.0), "numpy:float64 1.0"),
    (tl.constexpr(1), "constexpr(int 1)"),
    (helper, f"function {__name__}:helper"),
]


@pytest.mark.parametrize(("value", "text"), VALUES, ids=[text for _, text in VALUES])
def test_value_text(value: object, text: str):
    assert value_text(value, Opaque()) == text


def test_no_two_values_share_a_text():
    texts = [value_text(value, Opaque()) for value, _ in VALUES]
    assert [pair for pair in combinations(texts, 2) if pair[0] == pair[1]] == []


def test_what_has_no_text_is_numbered_in_order_of_appearance():
    opaque, first, second = Opaque(), Anything(), Anything()
    texts = [value_text(value, opaque) for value in (second, first, second)]
    assert texts == [f"opaque {__name__}:Anything #1", f"opaque {__name__}:Anything #2", texts[0]]


def test_a_function_without_a_name_of_its_own_is_told_from_others():
    opaque = Opaque()
    assert value_text(local_function(), opaque) != value_text(local_function(), opaque)


def test_an_opaque_value_never_gives_its_number_away():
    """A number is not free again when its value dies: another object may get the same address."""
    opaque = Opaque()
    assert len({value_text(Anything(), opaque) for _ in range(100)}) == 100


@triton.jit
def argument_kernel(x, OPTION: tl.constexpr = None):
    pass


LISTED = {
    "plain": argument_kernel,
    "dns": respecialize(argument_kernel, do_not_specialize=["x"]),
    "dnsa": respecialize(argument_kernel, do_not_specialize_on_alignment=["x"]),
    "constexpr": respecialize(argument_kernel, constexpr=["x"]),
}

ARGUMENTS = [
    # what is passed, how it is declared, its text on cuda:90
    (1, "plain", "i32 =1"),
    (16, "plain", "i32 %16"),
    (0, "plain", "i32 %16"),
    (7, "plain", "i32 any"),
    (-16, "plain", "i32 %16"),
    (2**31, "plain", "i64 %16"),
    (2**31 + 1, "plain", "i64 any"),
    (2**63 + 1, "plain", "u64 any"),
    (1, "dns", "i32 any"),
    (16, "dns", "i32 any"),
    (1, "dnsa", "i32 =1"),
    (16, "dnsa", "i32 any"),
    (1, "constexpr", "constexpr int 1"),
    (True, "plain", "u1"),
    (1.0, "plain", "fp32"),
    (None, "plain", "none"),
    (None, "dns", "none"),
    ((1, 2.0, None), "plain", "(i32 =1, fp32, none)"),
    (((16,), 3), "plain", "((i32 %16), i32 any)"),
    (Pair(1, 2), "plain", f"{__name__}:Pair(i32 =1, i32 any)"),
]


@pytest.mark.parametrize(("value", "listed", "text"), ARGUMENTS, ids=[f"{v!r}-{how}" for v, how, _ in ARGUMENTS])
def test_class_of_a_value(value: object, listed: str, text: str):
    assert texts_of(lambda: LISTED[listed][(1,)](value)) == [text]


POINTERS = [
    # dtype, elements before it, how it is declared, its text
    (torch.float32, 0, "plain", "*fp32 aligned"),
    (torch.float32, 1, "plain", "*fp32 unaligned"),
    (torch.float32, 4, "plain", "*fp32 aligned"),
    (torch.bfloat16, 7, "plain", "*bf16 unaligned"),
    (torch.bfloat16, 8, "plain", "*bf16 aligned"),
    (torch.int64, 2, "plain", "*i64 aligned"),
    (torch.int64, 1, "dns", "*i64 unaligned"),
    (torch.int64, 0, "dns", "*i64 unaligned"),
    (torch.int64, 0, "dnsa", "*i64 unaligned"),
    (torch.bool, 16, "plain", "*u1 aligned"),
    (torch.float8_e4m3fn, 0, "plain", "*fp8e4nv aligned"),
]


@pytest.mark.parametrize(("dtype", "before", "listed", "text"), POINTERS)
def test_class_of_a_pointer(dtype: torch.dtype, before: int, listed: str, text: str):
    def launch() -> None:
        LISTED[listed][(1,)](torch.empty(64, dtype=dtype, device="cuda")[before:])

    assert texts_of(launch) == [text]


@pytest.mark.parametrize(("elements", "text"), [(4, "*i8 aligned <2GB"), (2**31, "*i8 aligned")])
def test_amd_adds_an_address_range(elements: int, text: str):
    def launch() -> None:
        argument_kernel[(1,)](torch.empty(elements, dtype=torch.int8, device="cuda"))

    assert texts_of(launch, "hip:gfx942") == [text]


def test_options_are_those_that_differ_from_the_targets_defaults():
    def launch() -> None:
        argument_kernel[(1,)](7)
        argument_kernel[(1,)](7, num_warps=4, num_stages=3)
        argument_kernel[(1,)](7, num_stages=5, num_warps=8)
        argument_kernel[(1,)](7, num_warps=8, num_stages=5, OPTION=None)

    assert options_of(launch) == [{}, {"num_stages": 5, "num_warps": 8}]


def test_defaults_are_the_targets_own():
    """AMD's is two stages."""

    def launch() -> None:
        argument_kernel[(1,)](7, num_stages=2)

    assert options_of(launch, "hip:gfx942") == [{}]
    assert options_of(launch, "cuda:90") == [{"num_stages": 2}]


def test_a_kernels_own_debug_is_an_option_and_the_environments_is_not(monkeypatch: pytest.MonkeyPatch):
    debugging = triton.jit(argument_kernel.fn, debug=True)
    assert options_of(lambda: debugging[(1,)](7)) == [{"debug": True}]
    assert options_of(lambda: argument_kernel[(1,)](7, debug=True)) == [{"debug": True}]
    monkeypatch.setenv("TRITON_DEBUG", "1")
    assert options_of(lambda: argument_kernel[(1,)](7)) == [{}]


def texts_of(launch: Callable[[], object], target: str = "cuda:90") -> list[str]:
    return [key.arguments["x"] for key in keys_of(launch, target)]


def options_of(launch: Callable[[], object], target: str = "cuda:90") -> list[dict[str, Any]]:
    return [key.options for key in keys_of(launch, target)]


def keys_of(launch: Callable[[], object], target: str) -> list[Any]:
    with capturing(target) as capture:
        capture.begin(0)
        launch()
        capture.end()
        return [variant.key for kernel in capture.take().values() for variant in kernel.variants.values()]
