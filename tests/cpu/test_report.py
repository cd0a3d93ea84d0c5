"""The tables of reports/ and the figures at the top of README.md are what the JSON beside them says."""

from __future__ import annotations

import msgspec
import pytest

from benchmarks.gpu.tables import markdown
from benchmarks.report.measured import REPORTS, ROOT, Measured, read
from benchmarks.report.pages import headlines, page


@pytest.fixture(scope="module")
def measured() -> Measured:
    return read()


def test_the_page_is_what_was_measured(measured: Measured) -> None:
    assert (REPORTS / "README.md").read_text() == page(measured, (REPORTS / "remarks.md").read_text())


def test_the_headlines_are_what_was_measured(measured: Measured) -> None:
    assert headlines(measured) in (ROOT / "README.md").read_text()


def test_the_kernels_are_what_was_measured(measured: Measured) -> None:
    assert (REPORTS / "bench-h200.md").read_text() == markdown(measured.bench)


def test_another_number_shows(measured: Measured) -> None:
    first, *others = measured.bench.rows
    slower = msgspec.structs.replace(first, cost=msgspec.structs.replace(first.cost, gpu_us=first.cost.gpu_us + 1))
    other = msgspec.structs.replace(measured, bench=msgspec.structs.replace(measured.bench, rows=(slower, *others)))
    assert page(other, "") != page(measured, "")


def test_every_linked_file_is_there(measured: Measured) -> None:
    text = page(measured, (REPORTS / "remarks.md").read_text())
    linked = {part.partition(")")[0] for part in text.split("](")[1:]}
    assert linked
    assert [name for name in linked if not (REPORTS / name).is_file()] == []
