"""The typer app that the commands register with."""

from __future__ import annotations

import typer

app = typer.Typer(
    name="jitaudit",
    help="Audit Triton kernels for JIT variants, and warm them ahead of serving.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _jitaudit() -> None:
    """Audit Triton kernels for JIT variants, and warm them ahead of serving."""
