"""Every code has a page, offline: what it is, an example, the fix, and what the fix costs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from jitaudit.errors import RequestError
from jitaudit.ruling import contents, page

NAMES = {
    "JA001": "constexpr-in-dns", "JA002": "unknown-name-in-dns", "JA003": "unread-argument",
    "JA004": "mixed-scalar-types", "JA005": "equal-constexprs", "JA006": "never-launched", "JA007": "launched-nothing",
    "JA008": "linear-growth", "JA009": "host-read", "JA010": "order-dependent", "JA011": "redundant-variant",
    "JA012": "not-warmable", "JA013": "case-raised", "JA014": "unsupported",
}  # fmt: skip


def codes_in_the_code() -> set[str]:
    """Every code that jitaudit's own source mentions."""
    package = Path(__file__).parents[2] / "jitaudit"
    return {code for file in package.rglob("*.py") for code in re.findall(r"\bJA\d{3}\b", file.read_text())}


@pytest.mark.parametrize("code", sorted(NAMES))
def test_codes_are_stable(code: str):
    assert page(code).startswith(f"# {code} {NAMES[code]}\n")
    assert page(NAMES[code]) == page(code.lower()) == page(code)


@pytest.mark.parametrize("code", sorted(codes_in_the_code()))
def test_a_page_has_all_its_parts(code: str):
    text = page(code)
    sections = re.findall(r"^## (.*)$", text, re.M)
    assert sections == ["Example", "Fix", "What the fix costs"]
    parts = re.split(r"^## .*$", text, flags=re.M)
    assert all(len(part.strip()) > 5 for part in parts)
    assert "http" not in text


def test_contents():
    lines = contents().splitlines()
    assert [line.partition(" ")[0] for line in lines] == sorted(line.partition(" ")[0] for line in lines)
    assert {line.partition(" ")[0] for line in lines} >= codes_in_the_code()
    assert lines[0] == "JA001 constexpr-in-dns"


def test_an_unknown_code():
    with pytest.raises(RequestError, match="rule JA999: no such code; there are JA001, JA002"):
        page("JA999")
