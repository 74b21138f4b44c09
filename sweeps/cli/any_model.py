"""Commands that hold for a model of any architecture, on any task."""

from typing import Annotated

import typer

from sweeps.cli.parameters import INSIDE, AsJson, Db, Epoch, Run

app = typer.Typer()


@app.command(rich_help_panel=INSIDE)
def minimal(
    run: Run,
    string: Annotated[
        str | None,
        typer.Argument(
            help="A string that it gets wrong, such as (){30}.",
            show_default="search for the shortest failing strings",
        ),
    ] = None,
    db: Db = None,
    epoch: Epoch = None,
    as_json: AsJson = False,
) -> None:
    """Shrink a string that a model gets wrong to a minimal one, and find the nearest right one."""
    from sweeps.cli.commands.minimal import show_minimal

    show_minimal(db, run, string, epoch, as_json)


@app.command(rich_help_panel=INSIDE)
def rules(run: Run, db: Db = None, epoch: Epoch = None, as_json: AsJson = False) -> None:
    """Find simple rules that predict a model's answers on all of its test strings."""
    from sweeps.cli.commands.comparison import show_rules

    show_rules(db, run, epoch, as_json)


Configuration = Annotated[
    str,
    typer.Argument(
        help="A sweep, SWEEP:FIELD=VALUE,…, or a run, which stands for its configuration. If 2 "
        "is both a sweep and a run, write 2: for the sweep and SWEEP/SEED for the run.",
        show_default=False,
    ),
]


@app.command(rich_help_panel="Models")
def compare(a: Configuration, b: Configuration, db: Db = None, as_json: AsJson = False) -> None:
    """Compare two configurations seed by seed: who fails, by how much, on which strings."""
    from sweeps.cli.commands.comparison import show_comparison

    show_comparison(db, a, b, as_json)


@app.command(rich_help_panel="Models")
def theory(
    task: Annotated[
        str, typer.Argument(help="A task, such as parity or regular.", show_default=False)
    ],
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="A field of the task or the network, as pattern='(ab)*' or positions=rotary; "
            "repeatable.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say which class a language is in, and whether networks can recognize it at every length."""
    from sweeps.cli.commands.theory import show_theory

    show_theory(task, settings or [], as_json)
