"""A kernel's policy changes without its source, its identity or its defaults."""

from __future__ import annotations

import inspect

import pytest
import triton
import triton.language as tl

from jitaudit.jit.respecialize import respecialize

pytestmark = pytest.mark.matrix


def plain_kernel(out_ptr, n, width: tl.constexpr = 4, BLOCK: tl.constexpr = 64):
    tl.store(out_ptr + tl.arange(0, BLOCK), width, mask=tl.arange(0, BLOCK) < n)


@triton.jit(do_not_specialize=["n"], debug=True)
def decorated_kernel(out_ptr, n, BLOCK: tl.constexpr):
    tl.store(out_ptr + tl.arange(0, BLOCK), 1, mask=tl.arange(0, BLOCK) < n)


def policy(kernel: object, name: str) -> tuple[bool, bool, bool]:
    parameter = next(parameter for parameter in kernel.params if parameter.name == name)
    return parameter.is_constexpr, parameter.do_not_specialize, parameter.do_not_specialize_on_alignment


def test_parameters_take_the_given_policy():
    kernel = respecialize(
        plain_kernel,
        constexpr=["n"],
        runtime=["width"],
        do_not_specialize=["width"],
        do_not_specialize_on_alignment=["out_ptr"],
    )
    assert policy(kernel, "n") == (True, False, False)
    assert policy(kernel, "width") == (False, True, False)
    assert policy(kernel, "out_ptr") == (False, False, True)
    assert policy(kernel, "BLOCK") == (True, False, False)


def test_identity_source_line_and_defaults_stay():
    kernel = respecialize(plain_kernel, runtime=["width"])
    original = triton.jit(plain_kernel)
    assert (kernel.__module__, kernel.__qualname__) == (plain_kernel.__module__, plain_kernel.__qualname__)
    assert (kernel.src, kernel.starting_line_number) == (original.src, original.starting_line_number)
    assert kernel.cache_key == original.cache_key
    assert [parameter.default for parameter in kernel.signature.parameters.values()][2:] == [4, 64]


def test_the_source_function_is_left_alone():
    before = inspect.signature(plain_kernel)
    respecialize(plain_kernel, constexpr=["n"], runtime=["BLOCK"])
    assert inspect.signature(plain_kernel) == before
    assert not policy(triton.jit(plain_kernel), "n")[0]


def test_a_jit_function_keeps_its_own_lists_and_options():
    kernel = respecialize(decorated_kernel, do_not_specialize=["out_ptr"])
    assert policy(kernel, "n") == (False, True, False)
    assert policy(kernel, "out_ptr") == (False, True, False)
    assert kernel.debug is True
    assert kernel.src == decorated_kernel.src
    assert not policy(decorated_kernel, "out_ptr")[1]


@pytest.mark.parametrize("names", ["constexpr", "runtime", "do_not_specialize", "do_not_specialize_on_alignment"])
def test_an_unknown_name_is_refused_by_name(names: str):
    with pytest.raises(ValueError, match=r"plain_kernel has no parameter batch; it has out_ptr, n, width, BLOCK"):
        respecialize(plain_kernel, **{names: ["batch"]})


def test_a_name_can_not_be_both():
    with pytest.raises(ValueError, match="n can't be both constexpr and runtime"):
        respecialize(plain_kernel, constexpr=["n"], runtime=["n"])
