"""Write reports/README.md, its pictures, bench-h200.md, and README.md's headlines: `python -m benchmarks.report`."""

from __future__ import annotations

from benchmarks.gpu.tables import markdown
from benchmarks.report import charts
from benchmarks.report.measured import REPORTS, ROOT, read
from benchmarks.report.pages import headlines, page

BEGIN, END = "<!-- figures: python -m benchmarks.report -->\n", "<!-- /figures -->"


def main() -> None:
    """Write all of it."""
    measured = read()
    (REPORTS / "README.md").write_text(page(measured, (REPORTS / "remarks.md").read_text()))
    (REPORTS / "bench-h200.md").write_text(markdown(measured.bench))
    charts.draw(measured, REPORTS)
    readme = ROOT / "README.md"
    before, rest = readme.read_text().split(BEGIN)
    readme.write_text(f"{before}{BEGIN}{headlines(measured)}{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    main()
