"""Commands that look into a model's states along a string, and at what it is without its parts."""

from collections.abc import Iterator, Sequence
from dataclasses import astuple
from typing import TYPE_CHECKING, Annotated

import typer

from sweeps import api
from sweeps.cli.parameters import INSIDE, AsJson, Commands, Db, Epoch, Run
from sweeps.cli.printing import count, open_database, open_run, print_record, print_table
from sweeps.terminal import say

if TYPE_CHECKING:
    import pandas as pd

    from seqcls.interpretability.ablation import Ablated
    from seqcls.interpretability.states_by_strings import Prefixes, Units
    from seqcls.interpretability.states_of_outputs import OutputToken
    from seqcls.problem import Problem
    from sweeps.api.interpretability import ModelStates


app = Commands()

String = Annotated[str, typer.Argument(help="Such as (){30} or 0110.", show_default=False)]


@app.command(rich_help_panel=INSIDE, epilog="Example: seqcls states all_initializations/2 'ab{10}'")
def states(
    run: Run, string: String, db: Db = None, epoch: Epoch = None, as_json: AsJson = False
) -> None:
    """Show what each part adds to a string's logit, and where in the string the answer is made."""
    from sweeps.api.presentation import said_of

    store, run_id = open_run(db, run)
    model_states = api.states(store, run_id, string, epoch)
    if as_json:
        print_record({"run": run_id, **model_states.record()})
        return
    say(f"run {run_id}: {said_of(model_states.answer)}")
    for title, frame in _tables(model_states):
        print_table(frame, title)


@app.command(
    rich_help_panel=INSIDE, epilog="Example: seqcls patch all_initializations/2 'ab{100}c{55}'"
)
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
    from sweeps.api.presentation import LISTED, flip_table, said_of

    store, run_id = open_run(db, run)
    patches = api.patch(store, run_id, string, source, epoch)
    if as_json:
        print_record({"run": run_id, **patches.record()})
        return
    say(f"base: {said_of(patches.base)}\nsource: {said_of(patches.source)}")
    flips = flip_table(patches.patched)
    if flips.empty:
        say("no single state, patched in, flips the prediction")
        return
    number, unit = patches.patched.number, patches.patched.unit
    what = "" if number == unit else f": {number}"
    more = f"; the first {LISTED} of {len(flips)}" if len(flips) > LISTED else ""
    print_table(flips.head(LISTED), f"states that flip the prediction when patched{more}{what}")


@app.command(
    rich_help_panel=INSIDE,
    epilog="Example: seqcls ablate increased_num_attention_heads/0 --part head --prune",
)
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
        int | None,
        typer.Option(
            min=1,
            max=1_000_000,
            help="Distinct test strings to run and evaluate on.",
            show_default="all, by letter counts, where these decide; else 400",
        ),
    ] = None,
    prune: Annotated[
        bool, typer.Option("--prune", help="Remove one part after another, the least useful first.")
    ] = False,
    db: Db = None,
    epoch: Epoch = None,
    as_json: AsJson = False,
) -> None:
    """Test a model without some of its heads, feed-forwards or units."""
    from seqcls.problem import resolve

    store = open_database(db)
    judged = api.ablate(store, run, part or (), how, sample=sample, prune=prune, epoch=epoch)
    run_id = api.find_run(store, run)
    if as_json:
        steps = {"steps" if prune else "parts": [each.record() for each in judged.outcomes]}
        which = {"strings": judged.strings, "exact": judged.exact}
        print_record({"run": run_id, "how": how, **which, **steps})
        return
    strings = f"{judged.strings:,} distinct test strings"
    if judged.exact:
        strings = f"all {count(judged.strings, 'test string')}, exactly, by letter counts"
    say(f"run {run_id}, by {how} ablation, on {strings}")
    title = "the cheapest part removed first" if prune else "without each part alone"
    problem = resolve(api.run_config(store, run_id))
    print_table(_table(judged.outcomes, prune, problem), title)


def _tables(model_states: "ModelStates") -> "Iterator[tuple[str, pd.DataFrame]]":
    import pandas as pd

    if model_states.steps is not None:
        steps = pd.DataFrame(list(map(vars, model_states.steps)))
        for name in ("block", "head"):
            steps[name] = steps[name].astype("Int64")
        yield "what each part adds to the logit", steps.round(4)
    if model_states.units is not None:
        yield "the last layer's units after each token", _units(model_states.units)
    if model_states.output is not None:
        yield "the output, token by token", output_table(model_states.output)
    if model_states.prefixes is not None:
        yield _prefixes(model_states.prefixes)


def output_table(output: "Sequence[OutputToken]") -> "pd.DataFrame":
    """The tokens that are written, each with the likeliest other one."""
    import pandas as pd

    columns = ["token", "probability", "runner-up", "its probability"]
    return pd.DataFrame(map(astuple, output), columns=columns).round(4)


def _prefixes(prefixes: "Prefixes") -> "tuple[str, pd.DataFrame]":
    import pandas as pd

    frame = pd.DataFrame(
        {"token": prefixes.tokens, "logit": prefixes.logits.round(4), "label": prefixes.labels}
    )
    if not any(isinstance(label, str) for label in prefixes.labels):
        labels = ["not known" if label is None else str(int(label)) for label in prefixes.labels]
        return "the logit after every prefix", frame.assign(label=labels)
    frame = frame.set_axis(["token", "margin", "target"], axis=1)
    if prefixes.answers:
        frame["answer"] = prefixes.answers
    return "the margin after every prefix", frame


def _units(units: "Units") -> "pd.DataFrame":
    import pandas as pd

    frame = pd.DataFrame(units.states[-1].round(3)).add_prefix("unit ")
    frame.insert(0, "token", units.tokens)
    return frame


def _table(outcomes: "Sequence[Ablated]", pruning: bool, problem: "Problem") -> "pd.DataFrame":
    import pandas as pd

    from seqcls.interpretability.wording import percent

    # Of what it is the log-probability needs no saying in a heading.
    changed = problem.kind.score_name.partition(" of ")[0]
    return pd.DataFrame(
        [
            {
                "without": _name(each, pruning),
                problem.kind.words.missed: each.errors,
                "accuracy": percent(each.accuracy),
                "loss": f"{each.loss:.4g}",
                f"change of the {changed}": f"{each.logit_change:.4g}",
            }
            for each in outcomes
        ]
    )


def _name(each: "Ablated", pruning: bool) -> str:
    if not each.parts:
        return "nothing"
    return f"{'and ' * (pruning and len(each.parts) > 1)}{each.parts[-1].text}"
