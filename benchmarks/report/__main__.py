"""Write what reports/ shows of its JSON, and the headlines of README.md: `python -m benchmarks.report`."""

from __future__ import annotations

from benchmarks.gpu.tables import markdown
from benchmarks.report import charts
from benchmarks.report.measured import REPORTS, ROOT, read
from benchmarks.report.pages import headlines, page
from jitaudit.report.trace import trace

BEGIN, END = "<!-- figures: python -m benchmarks.report -->\n", "<!-- /figures -->"


def main() -> None:
    """Write all of it."""
    measured = read()
    (REPORTS / "README.md").write_text(page(measured, (REPORTS / "remarks.md").read_text()))
    (REPORTS / "bench-h200.md").write_text(markdown(measured.bench))
    (REPORTS / "stall-h200.trace.json").write_bytes(trace(measured.stall))
    charts.draw(measured, REPORTS)
    readme = ROOT / "README.md"
    before, rest = readme.read_text().split(BEGIN)
    readme.write_text(f"{before}{BEGIN}{headlines(measured)}{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    main()
