"""The command that learns the automaton that a model has become."""

from typing import Annotated

import typer

from sweeps.cli.options import INSIDE, AsJson, Db, Epoch, Run

app = typer.Typer()


@app.command(rich_help_panel=INSIDE)
def automaton(
    run: Run,
    states: Annotated[int, typer.Option(help="States of a hypothesis, at most.")] = 40,
    rounds: Annotated[int, typer.Option(help="Hypotheses that are tried, at most.")] = 100,
    strings: Annotated[
        int, typer.Option(help="Short strings, all of which are tried, at most.")
    ] = 65_536,
    length: Annotated[
        int | None,
        typer.Option(
            help="Tokens of the longest string asked.", show_default="twice the longest tested"
        ),
    ] = None,
    seconds: Annotated[float, typer.Option(help="The learning ends after so many.")] = 60.0,
    inside: Annotated[
        bool,
        typer.Option("--inside", help="Look for its states in the model's own, too."),
    ] = False,
    dot: Annotated[
        bool, typer.Option("--dot", help="Print the automaton as a graph in the language DOT.")
    ] = False,
    db: Db = None,
    epoch: Epoch = None,
    as_json: AsJson = False,
) -> None:
    """Learn the minimal automaton of what a model answers, and where the language differs."""
    from sweeps.cli.commands.automata import show_automaton

    bounds = {"states": states, "rounds": rounds, "strings": strings, "length": length}
    show_automaton(db, run, epoch, bounds, seconds, inside=inside, dot=dot, as_json=as_json)
