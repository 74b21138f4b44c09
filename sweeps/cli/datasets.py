"""The command that says what is in a file of strings."""

from typing import Annotated

import typer

from sweeps.cli.options import AsJson

PANEL = "Sweeps"

app = typer.Typer()


@app.command(rich_help_panel=PANEL)
def data(
    file: Annotated[
        str,
        typer.Argument(
            help="CSV, TSV, JSONL or Parquet with the columns tokens and label or target; a "
            "folder of FLaRe's; or NAME_src.txt beside NAME_tgt.txt.",
            show_default=False,
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Say what is in a file of strings, and what of it is refused."""
    from sweeps.cli.commands.datasets import show_data

    show_data(file, as_json)
