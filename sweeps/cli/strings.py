"""Commands on the strings of a specification, before anything is trained on them."""

from dataclasses import asdict
from typing import Annotated, Literal

import typer

from sweeps import api
from sweeps.cli.parameters import AsJson, Commands, Spec
from sweeps.cli.printing import TableOptions, count, print_json, print_table
from sweeps.terminal import progress_bar, say

PANEL = "Sweeps"

app = Commands()

Where = Annotated[
    list[str] | None,
    typer.Option("--where", help="Only configurations with this value, such as task=dyck."),
]


@app.command(rich_help_panel=PANEL, epilog="Example: seqcls draw heads.toml --part test")
def draw(
    spec: Spec,
    part: Annotated[str, typer.Option(help="train, validation or test.")] = "train",
    number: Annotated[int, typer.Option("-n", "--number", help="How many strings.")] = 20,
    label: Annotated[
        str | None, typer.Option(help="Only positive or negative strings.", show_default="both")
    ] = None,
    where: Where = None,
    form: Annotated[
        Literal["table", "csv", "jsonl"], typer.Option("--format", help="How they are printed.")
    ] = "table",
) -> None:
    """Show strings that models are trained or tested on, and how each was drawn."""
    from seqcls.problem import resolve
    from sweeps.api.overlaps import without_near
    from sweeps.api.strings import choose, first_strings, negatives_sentence

    drawn = api.draw(
        spec,
        part,  # type: ignore[arg-type]
        number,
        label,  # type: ignore[arg-type]
        where or (),
        in_notation=form == "table",
    )
    if form == "csv":
        say(drawn.to_csv(index=False).rstrip("\n"), data=True)
    elif form == "jsonl":
        say(drawn.to_json(orient="records", lines=True).rstrip("\n"), data=True)
    else:
        configs = choose(spec, where or ())
        if said := without_near(configs):
            say(said, err=True)
        of_label = "" if label is None else f"{label} "
        print_table(drawn, f"{count(len(drawn), f'{of_label}string')} of {part}", TableOptions())
        if said := negatives_sentence(first_strings(resolve(configs[0]), part)):
            say(said)
    if len(drawn) < number:
        of_label = "such " if label is not None else ""
        say(f"the first epoch has only {count(len(drawn), f'{of_label}string')}", err=True)


@app.command(rich_help_panel=PANEL, epilog="Example: seqcls shortcuts heads.toml")
def shortcuts(spec: Spec, where: Where = None, as_json: AsJson = False) -> None:
    """Show how far one gets on each test with little of each string, such as its letter counts."""
    import pandas as pd

    from seqcls.interpretability.wording import percent
    from seqcls.shortcuts import READERS

    with progress_bar("fitting readers"):
        found = api.shortcuts(spec, where or ())
    rows = [
        {"task": test.task, **test.fields, **asdict(each)}
        for test in found
        for each in test.readers
    ]
    if as_json:
        print_json(pd.DataFrame(rows))
        return
    for row in rows:
        row |= {
            name: "" if row[name] is None else percent(row[name], 1)
            for name in ("within", "beyond")
        }
        row |= {"reader": READERS[row["reader"]], "reason": row["reason"] or ""}
    if not rows:
        say("no shortcut reader answers what these models are asked")
        return
    print_table(pd.DataFrame(rows), "How often shortcut readers are right", TableOptions())
    for advice in dict.fromkeys(test.advice for test in found if test.advice):
        say(advice)
