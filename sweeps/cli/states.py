"""Commands that look into a model's states along a string, and at what it is without its parts."""

from typing import Annotated

import typer

from sweeps.cli.parameters import INSIDE, AsJson, Db, Epoch, Run

app = typer.Typer()

String = Annotated[str, typer.Argument(help="Such as (){30} or 0110.", show_default=False)]


@app.command(rich_help_panel=INSIDE)
def states(
    run: Run, string: String, db: Db = None, epoch: Epoch = None, as_json: AsJson = False
) -> None:
    """Show what each part adds to a string's logit, and where in the string the answer is made."""
    from sweeps.cli.commands.states import show_states

    show_states(db, run, string, epoch, as_json)


@app.command(rich_help_panel=INSIDE)
def patch(
    run: Run,
    string: String,
    source: Annotated[
        str | None,
        typer.Option(
            help="The source string, of the same length, whose states are patched in.",
            show_default="the nearest correctly classified string with the other prediction",
        ),
    ] = None,
    db: Db = None,
    epoch: Epoch = None,
    as_json: AsJson = False,
) -> None:
    """Copy states over from another string, and say which of them flip the answer."""
    from sweeps.cli.commands.states import show_patching

    show_patching(db, run, string, source, epoch, as_json)


@app.command(rich_help_panel=INSIDE)
def ablate(
    run: Run,
    part: Annotated[
        list[str] | None,
        typer.Option(
            help="head, feed-forward or unit; repeatable.",
            show_default="heads and feed-forwards; of a recurrent network, units",
        ),
    ] = None,
    how: Annotated[
        str, typer.Option(help="zero: the part adds nothing; mean: the part adds its mean.")
    ] = "zero",
    sample: Annotated[
        int, typer.Option(min=1, max=1_000_000, help="Distinct test strings to evaluate on.")
    ] = 400,
    prune: Annotated[
        bool, typer.Option("--prune", help="Remove one part after another, the least useful first.")
    ] = False,
    db: Db = None,
    epoch: Epoch = None,
    as_json: AsJson = False,
) -> None:
    """Test a model without some of its heads, feed-forwards or units."""
    from sweeps.cli.commands.ablation import show_ablation

    show_ablation(db, run, part or [], how, sample, prune, epoch, as_json)
