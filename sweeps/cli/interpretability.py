"""Commands that look inside one model."""

from typing import Annotated

import typer

from sweeps.cli.parameters import INSIDE, AsJson, Db, Epoch, Run

app = typer.Typer()


@app.command(rich_help_panel=INSIDE)
def explain(
    run: Run,
    string: Annotated[str, typer.Argument(help="Such as ab{100}c{55}.", show_default=False)],
    db: Db = None,
    epoch: Epoch = None,
    as_json: AsJson = False,
) -> None:
    """Explain why a model answers a string as it does, and what would change the answer."""
    from sweeps.cli.commands.interpretability import explain_string

    explain_string(db, run, string, epoch, as_json)


@app.command(rich_help_panel=INSIDE)
def family(
    run: Run,
    strings: Annotated[
        str, typer.Argument(help="Such as ab{n}, a{m}b{n} or <ab>{n}.", show_default=False)
    ],
    db: Db = None,
    epoch: Epoch = None,
    as_json: AsJson = False,
) -> None:
    """Say where a model's answer changes as the free counts of a family of strings grow.

    Of a transduction: which outputs are right, and up to which token.
    """
    from sweeps.cli.commands.interpretability import show_family

    show_family(db, run, strings, epoch, as_json)
