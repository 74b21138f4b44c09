"""Commands on why runs fail, and what would help."""

from typing import Annotated

import typer

from sweeps.options import AsJson, Db

PANEL = "Why models fail"

app = typer.Typer()


@app.command(rich_help_panel=PANEL)
def causes(
    sweep: Annotated[str, typer.Argument(help="The name of a sweep.", show_default=False)],
    db: Db = None,
    sample: Annotated[
        int, typer.Option(min=1, max=100_000, help="Errors of each run that are looked at.")
    ] = 50,
    as_json: AsJson = False,
) -> None:
    """Say why the failing runs of a sweep fail, and keep what was found."""
    from sweeps.commands.causes import show_causes

    show_causes(db, sweep, sample, as_json)
