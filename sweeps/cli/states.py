"""Commands that look into a model's states along a string, and at what it is without its parts."""

from collections.abc import Iterator, Sequence
from dataclasses import astuple
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sweeps import api
from sweeps.cli.parameters import INSIDE, AsJson, Db, Epoch, Run
from sweeps.cli.printing import answer_record, opened, print_record, print_table
from sweeps.terminal import say

if TYPE_CHECKING:
    import pandas as pd

    from seqcls.interpretability.ablation_judge import Ablated
    from seqcls.interpretability.states_by_strings import Prefixes, Units
    from seqcls.interpretability.states_of_outputs import OutputToken
    from seqcls.problem import Problem
    from sweeps.api.interpretability import ModelStates, Patches


app = typer.Typer()

String = Annotated[str, typer.Argument(help="Such as (){30} or 0110.", show_default=False)]


@app.command(rich_help_panel=INSIDE)
def states(
    run: Run, string: String, db: Db = None, epoch: Epoch = None, as_json: AsJson = False
) -> None:
    """Show what each part adds to a string's logit, and where in the string the answer is made."""
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
    show_ablation(db, run, part or [], how, sample, prune, epoch, as_json)


def show_states(
    db: str | None, reference: str, string: str, epoch: int | None, as_json: bool
) -> None:
    """Prints what a model's parts add to the logit, and the logit after every prefix."""
    from sweeps.api.presentation import said_of

    store, run_id = opened(db, reference)
    model_states = api.states(store, run_id, string, epoch)
    if as_json:
        print_record(
            {"run": run_id, **answer_record(model_states.answer), **_states_record(model_states)},
        )
        return
    say(f"run {run_id}: {said_of(model_states.answer)}")
    for title, frame in _tables(model_states):
        print_table(frame, title)


def _states_record(model_states: "ModelStates") -> dict[str, Any]:
    """The states of a model along a string, as far as its architecture has them."""
    record: dict[str, Any] = {}
    if model_states.prefixes is not None:
        record["prefix_logits"] = model_states.prefixes.logits.tolist()
    if model_states.output is not None:
        record["output"] = list(map(vars, model_states.output))
    if model_states.steps is not None:
        record["steps"] = list(map(vars, model_states.steps))
    if model_states.attention is not None:
        attention = model_states.attention
        record |= {"tokens": attention.tokens, "attention": attention.weights.tolist()}
    if model_states.units is not None and model_states.path is not None:
        record |= {
            "tokens": model_states.units.tokens,
            "units": model_states.units.states.tolist(),
            "gates": {name: gate.tolist() for name, gate in model_states.units.gates.items()},
            "path": model_states.path.points.tolist(),
        }
    return record


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
    return "the margin after every prefix", frame.set_axis(["token", "margin", "target"], axis=1)


def _units(units: "Units") -> "pd.DataFrame":
    import pandas as pd

    frame = pd.DataFrame(units.states[-1].round(3)).add_prefix("unit ")
    frame.insert(0, "token", units.tokens)
    return frame


def show_patching(
    db: str | None,
    reference: str,
    base: str,
    source: str | None,
    epoch: int | None,
    as_json: bool,
) -> None:
    """Prints which states, carried over from another string, turn a model's answer."""
    from sweeps.api.presentation import LISTED, flip_table, said_of

    store, run_id = opened(db, reference)
    patches = api.patch(store, run_id, base, source, epoch)
    if as_json:
        print_record({"run": run_id, **_patches_record(patches)})
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


def _patches_record(patches: "Patches") -> dict[str, Any]:
    import numpy as np

    patched = patches.patched
    what = {} if patched.number == patched.unit else {"number": patched.number}
    return {
        **what,
        "base": answer_record(patches.base),
        "source": answer_record(patches.source),
        "tokens": {"base": patched.base_tokens, "source": patched.source_tokens},
        "sites": [site.text for site in patched.sites],
        "logits": [
            [None if np.isnan(logit) else logit for logit in logits]
            for logits in patched.logits.tolist()
        ],
        "flips": patched.flips.tolist(),
    }


def show_ablation(
    db: str | None,
    reference: str,
    kinds: list[str],
    how: str,
    sample: int,
    pruning: bool,
    epoch: int | None,
    as_json: bool,
) -> None:
    """Prints what a model is without each of its parts, or without more and more of them."""
    from seqcls.problem import resolve
    from sweeps.store.opening import open_reader
    from sweeps.store.reads.queries import find_run, run_config

    store = open_reader(db)
    judged = api.ablate(store, reference, kinds, how, sample=sample, prune=pruning, epoch=epoch)
    run_id = find_run(store, reference)
    if as_json:
        steps = {"steps" if pruning else "parts": list(map(_record, judged.outcomes))}
        print_record({"run": run_id, "how": how, "strings": judged.strings, **steps})
        return
    say(f"run {run_id}, by {how} ablation, on {judged.strings:,} distinct test strings")
    title = "the cheapest part removed first" if pruning else "without each part alone"
    problem = resolve(run_config(store, run_id))
    print_table(_table(judged.outcomes, pruning, problem), title)


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


def _record(each: "Ablated") -> dict[str, Any]:
    return {
        "without": [part.text for part in each.parts],
        "misclassified": each.errors,
        "accuracy": each.accuracy,
        "loss": each.loss,
        "logit_change": each.logit_change,
        "lengths": each.lengths.tolist(),
        "strings": each.strings.tolist(),
        "right": each.right.tolist(),
    }
