"""Rich tables as Markdown."""

from __future__ import annotations

from rich.box import MARKDOWN
from rich.console import Console
from rich.table import Table


def as_markdown(table: Table) -> str:
    """The table's rows as Markdown, each on one line."""
    table.box, table.pad_edge = MARKDOWN, True
    console = Console(width=10_000, color_system=None, record=True, quiet=True)
    console.print(table)
    return "\n".join(line.strip() for line in console.export_text().splitlines() if line.strip()) + "\n"
