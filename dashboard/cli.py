"""The `seqcls` command with what needs the charts: the outermost layer, and so its entry point.

`sweeps.cli` has all other commands and may not import from here.
"""

from pathlib import Path
from typing import Annotated

import typer

from sweeps.cli import MODELS, app, main
from sweeps.options import Db, Epoch, Run

__all__ = ["app", "main"]


@app.command(rich_help_panel=MODELS)
def figures(
    run: Run,
    strings: Annotated[
        list[str], typer.Argument(help="Strings such as baac or ab{100}c{55}.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(help="The folder to write to.", show_default=False)],
    db: Db = None,
    epoch: Epoch = None,
) -> None:
    """Write the figures of a model as PNG and SVG, as the page Model draws them."""
    # Imported where it is used: charts and PyTorch take seconds to load.
    from dashboard.figures.command import write_all

    write_all(db, run, strings, out, epoch)
