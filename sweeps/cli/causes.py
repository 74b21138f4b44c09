"""Commands on why runs fail, and what would help."""

from pathlib import Path
from typing import Annotated

import typer

from seqcls.interpretability.causes.mechanisms import SAMPLE
from sweeps.cli.parameters import AsJson, Db, Force, Run

PANEL = "Why models fail"

app = typer.Typer()


@app.command(rich_help_panel=PANEL)
def causes(
    sweep: Annotated[str, typer.Argument(help="The name of a sweep.", show_default=False)],
    db: Db = None,
    sample: Annotated[
        int, typer.Option(min=1, max=100_000, help="Errors to examine per run.")
    ] = SAMPLE,
    as_json: AsJson = False,
) -> None:
    """Say why the failing runs of a sweep fail, and store the causes."""
    from sweeps.cli.commands.causes import show_causes

    show_causes(db, sweep, sample, as_json)


@app.command(rich_help_panel=PANEL)
def helps(
    run: Run,
    db: Db = None,
    save: Annotated[
        Path | None,
        typer.Option(
            file_okay=False,
            help="A folder for a specification of each suggestion, with the same seeds.",
            show_default=False,
        ),
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Suggest which field to change so that a failing run may work, best record first."""
    from sweeps.cli.commands.helps import show_helps

    show_helps(db, run, save, force, as_json)
