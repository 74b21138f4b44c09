"""What `seqcls states` and `seqcls patch` do, and how they show it."""

from collections.abc import Iterator, Sequence
from dataclasses import astuple
from typing import TYPE_CHECKING, Any

from sweeps import api
from sweeps.cli.commands.opening import opened
from sweeps.cli.commands.printing import answer_record, print_record, print_table
from sweeps.terminal import say

if TYPE_CHECKING:
    import pandas as pd

    from seqcls.interpretability.states.by_strings import Prefixes, Units
    from seqcls.interpretability.states.output_tokens import OutputToken
    from sweeps.questions.inside import Patches, States


def show_states(
    db: str | None, reference: str, string: str, epoch: int | None, as_json: bool
) -> None:
    """Prints what a model's parts add to the logit, and the logit after every prefix."""
    from sweeps.analysis.answer_sentences import said_of

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


def _states_record(model_states: "States") -> dict[str, Any]:
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


def _tables(model_states: "States") -> "Iterator[tuple[str, pd.DataFrame]]":
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
    from sweeps.analysis.answer_sentences import said_of
    from sweeps.analysis.state_frames import LISTED, flip_table

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
