"""The pytest plugin: what it counts, and what it says when a test fails."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from sample import SAMPLE, copied, run

TESTS = """
import pytest
import torch
from rowscale import gather_rows, scale_rows

SCALE, GATHER = "rowscale.kernels:scale_kernel", "rowscale.kernels:gather_kernel"


def scale(columns, rows=3):
    scale_rows(torch.empty(rows, columns, device="cuda"), torch.empty(rows, device="cuda"))


def gather(offset=0):
    index = torch.empty(offset + 3, dtype=torch.int32, device="cuda")[offset:]
    gather_rows(torch.empty(3, 64, device="cuda"), torch.empty(64, 64, device="cuda"), index)


def test_pass_count(jit_variants):
    with jit_variants() as seen:
        scale(64)
        scale(128)
        scale(64, rows=7)
        gather()
    assert seen.count(SCALE) == 2
    assert seen.count("*_kernel") == 3
    assert seen.kernels == {GATHER: 1, SCALE: 2}
    assert [("BLOCK: constexpr int 64" in key) for key in seen.variants(SCALE)].count(True) == 1
    assert (seen.target, torch.cuda.is_available()) == ("cuda:90", False)


def test_pass_nested_blocks(jit_variants):
    with jit_variants() as outer:
        scale(64)
        with jit_variants() as inner:
            scale(128)
        scale(64)
    with jit_variants() as later:
        scale(256)
    assert (outer.count(SCALE), inner.count(SCALE), later.count(SCALE)) == (2, 1, 1)


def test_pass_target(jit_variants):
    with jit_variants(target="hip:gfx942") as seen:
        gather()
    assert "*i32 aligned <2GB" in seen.variants(GATHER)[0]


@pytest.mark.jit_budget(kernel=SCALE, max=2)
@pytest.mark.jit_budget(kernel="gather_kernel", max=1)
def test_pass_budget(jit_variants):
    gather()
    scale(64)
    with jit_variants() as seen:
        scale(128)
    assert seen.count(SCALE) == 1


class TestMethods:
    @pytest.mark.jit_budget(kernel=SCALE, max=1)
    def test_pass_budget(self):
        scale(64)


def test_fail_count(jit_variants):
    with jit_variants() as seen:
        gather(0)
        gather(1)
    assert seen.count(GATHER) == 1


def test_fail_unknown_kernel(jit_variants):
    with jit_variants() as seen:
        gather()
    assert seen.count("rowscale.kernels:gathr") == 1


@pytest.mark.jit_budget(kernel=SCALE, max=2)
def test_fail_budget():
    for columns in (64, 128, 256):
        scale(columns)


@pytest.mark.jit_budget(kernel=SCALE, max=2)
def test_fail_never_launched():
    gather()


@pytest.mark.jit_budget("SCALE")
def test_fail_marker():
    gather()


@pytest.mark.jit_budget(kernel=SCALE, max=9)
def test_fail_for_its_own_reason():
    scale(64)
    raise RuntimeError("mine")


@pytest.mark.jit_budget(kernel=SCALE, max=9, target="cuda:100")
def test_fail_two_targets(jit_variants):
    with jit_variants(target="cuda:90"):
        scale(64)


def test_pass_at_the_end_all_is_put_back():
    from triton.runtime.jit import JITFunction

    assert JITFunction.run.__module__ == "triton.runtime.jit"
    assert torch.empty(1).data_ptr() % 16 == 0
"""

WORDS = {
    "test_fail_count": (
        "assert 2 == 1",
        "rowscale.kernels:gather_kernel: 2 variants (rowscale/kernels.py:22)",
        "cause   index_ptr alignment unaligned/aligned",
        "remedy  list index_ptr in do_not_specialize_on_alignment: 1 variant",
        "run     jitaudit rule JA301",
    ),
    "test_fail_unknown_kernel": (
        "assert 0 == 1",
        "no kernel that matches 'rowscale.kernels:gathr' was launched; launched were rowscale",
    ),
    "test_fail_budget": (
        "jit_budget 'rowscale.kernels:scale_kernel': 3 variants, budget 2",
        "cause   BLOCK constexpr 64/128/256",
        "remedy  pass no BLOCK below 256, and mask what lies past the end: 1 variant",
    ),
    "test_fail_never_launched": ("0 variants, budget 2", "launched were rowscale.kernels:gather_kernel"),
    "test_fail_marker": ("write jit_budget(kernel='module:name', max=4)",),
    "test_fail_for_its_own_reason": ("RuntimeError: mine",),
    "test_fail_two_targets": ("cuda:90: this test already counts for cuda:100",),
}  # fmt: skip


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What pytest prints of TESTS, with the sample package beside them."""
    folder = copied(tmp_path_factory.mktemp("plugin"))
    (folder / "test_plugin.py").write_text(TESTS)
    options = ("-p", "no:cacheprovider", "-rA", "--strict-markers", "test_plugin.py")
    answer = run(folder, sys.executable, "-m", "pytest", *options)
    assert answer.code == 1, answer.out + answer.err
    return answer.out


def test_tests_end_as_they_are_named(output: str):
    ended = re.findall(r"^(PASSED|FAILED|ERROR) test_plugin.py::(\S+)", output, re.MULTILINE)
    expected = re.findall(r"def (test_(pass|fail)\w*)", TESTS)
    assert len(ended) == len(expected)
    assert {(end == "PASSED", name.split("::")[-1]) for end, name in ended} == {(w == "pass", n) for n, w in expected}


@pytest.mark.parametrize("name", WORDS)
def test_a_failure_says_why(output: str, name: str):
    told = re.split(r"^_+ (\S+) _+$", output, flags=re.MULTILINE)
    section = dict(zip(told[1::2], told[2::2], strict=True))[name]
    for words in WORDS[name]:
        assert words in section


def test_without_triton_a_test_fails_with_words(tmp_path: Path):
    (tmp_path / "triton.py").write_text("raise ImportError('there is none')")
    (tmp_path / "test_none.py").write_text("def test_none(jit_variants):\n    with jit_variants():\n        pass\n")
    answer = run(tmp_path, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", PYTHONPATH=str(tmp_path))
    assert answer.code == 1
    assert "Triton can't be imported (there is none); install jitaudit[triton]" in answer.out


def test_the_plugin_costs_other_tests_nothing(tmp_path: Path):
    (tmp_path / "test_other.py").write_text(
        "import sys\n\ndef test_other():\n    assert not {'torch', 'triton', 'msgspec', 'rich'} & sys.modules.keys()"
    )
    answer = run(tmp_path, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert answer.code == 0, answer.out


def test_the_samples_own_tests_pass():
    answer = run(SAMPLE, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert (answer.code, "2 passed" in answer.out) == (0, True), answer.out
