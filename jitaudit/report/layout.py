"""Rich tables as Markdown."""

from __future__ import annotations

import io

from rich.box import MARKDOWN
from rich.console import Console
from rich.table import Table


def as_markdown(table: Table) -> str:
    """The table's rows as Markdown, each on one line."""
    table.box, table.pad_edge = MARKDOWN, True
    page = io.StringIO()
    Console(width=10_000, color_system=None, file=page).print(table)
    return "\n".join(line.strip() for line in page.getvalue().splitlines() if line.strip()) + "\n"
