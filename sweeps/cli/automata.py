"""The command that learns the automaton that a model has become."""

from typing import Annotated

import typer

from sweeps.cli.parameters import INSIDE, AsJson, Db, Epoch, Run

app = typer.Typer()


@app.command(rich_help_panel=INSIDE)
def automaton(
    run: Run,
    states: Annotated[int, typer.Option(help="At most this many states in a hypothesis.")] = 40,
    rounds: Annotated[int, typer.Option(help="At most this many hypotheses.")] = 100,
    strings: Annotated[
        int, typer.Option(help="At most this many short strings, all of which are tried.")
    ] = 65_536,
    length: Annotated[
        int | None,
        typer.Option(
            help="Tokens of the longest string asked.", show_default="twice the longest tested"
        ),
    ] = None,
    seconds: Annotated[float, typer.Option(help="Stop learning after this many seconds.")] = 60.0,
    inside: Annotated[
        bool,
        typer.Option("--inside", help="Also look for its states in the model's own states."),
    ] = False,
    dot: Annotated[
        bool, typer.Option("--dot", help="Print the automaton as a graph in the language DOT.")
    ] = False,
    db: Db = None,
    epoch: Epoch = None,
    as_json: AsJson = False,
) -> None:
    """Learn the minimal automaton of a model's answers, and where the language differs."""
    from sweeps.cli.commands.automata import show_automaton

    bounds = {"states": states, "rounds": rounds, "strings": strings, "length": length}
    show_automaton(db, run, epoch, bounds, seconds, inside=inside, dot=dot, as_json=as_json)
