"""The `seqcls` command with what needs the charts: the outermost layer, and so its entry point.

`sweeps.cli.app` has all other commands and may not import from here.
"""

from pathlib import Path
from typing import Annotated, Any

import typer

from sweeps.cli.app import app, main
from sweeps.cli.models import MODELS
from sweeps.cli.parameters import Db, Epoch, Force, Run, SweepNames, filtered
from sweeps.cli.sweeps import PANEL

__all__ = ["app", "main"]


@app.command(
    rich_help_panel=MODELS,
    epilog="Example: seqcls figures all_initializations/2 aac baac -o figures",
)
def figures(
    run: Run,
    strings: Annotated[
        list[str], typer.Argument(help="Strings such as baac or ab{100}c{55}.", show_default=False)
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The folder to write to.", show_default=False)
    ],
    db: Db = None,
    epoch: Epoch = None,
    force: Force = False,
) -> None:
    """Write the figures of a model as PNG and SVG, as the page Model draws them."""
    # Imported where it is used: charts and PyTorch take seconds to load.
    from dashboard.figures.command import write_all

    write_all(db, run, strings, out, epoch, force=force)


@app.command(
    rich_help_panel=PANEL, epilog="Example: seqcls report all_initializations -o heads.html"
)
@filtered
def report(
    chosen: dict[str, Any],
    sweeps: SweepNames,
    out: Annotated[
        Path,
        typer.Option("--out", "-o", help="The file, such as heads.html.", show_default=False),
    ],
    db: Db = None,
    force: Force = False,
) -> None:
    """Write tables, charts, failing strings and causes of sweeps to one HTML file to email."""
    from dashboard.report.command import write_report

    write_report(db, sweeps, out, chosen, force=force)


@app.command(rich_help_panel=PANEL, epilog="Example: seqcls site public")
@filtered
def site(
    chosen: dict[str, Any],
    folder: Annotated[Path, typer.Argument(help="The folder to write to.", show_default=False)],
    db: Db = None,
    force: Force = False,
) -> None:
    """Write a static site: an index page that compares sweeps, and a report for each."""
    from dashboard.report.command import write_site

    write_site(db, folder, chosen.pop("sweeps", []), chosen, force=force)
