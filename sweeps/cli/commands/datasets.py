"""How the command on files of strings shows what is in them."""

import json

import pandas as pd
import typer

from sweeps.cli.commands.printing import print_table
from sweeps.cli.exit_codes import BAD_INPUT
from sweeps.datasets.summary import Summary, summary


def show_data(path: str, as_json: bool) -> None:
    """Prints what is in a file; ends with status 2 where it is refused."""
    found = summary(path)
    if as_json:
        typer.echo(json.dumps(found.record(), indent=1))
    else:
        _print(found)
    if found.refused:
        raise typer.Exit(BAD_INPUT)


def _print(found: Summary) -> None:
    for problem in found.refused:
        typer.echo(f"refused: {problem}", err=True)
    if found.refused:
        return
    frame = pd.DataFrame(found.parts).rename(columns={"mean_length": "mean"})
    frame["mean"] = frame["mean"].map("{:.1f}".format)
    print_table(frame, f"{found.path}: {found.rows:,} rows, task = {found.task!r}")
    for sentence in found.sentences:
        typer.echo(sentence)
    typer.echo(f"digest {found.digest}")
