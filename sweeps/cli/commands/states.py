"""What `seqcls states` and `seqcls patch` do, and how they show it."""

from collections.abc import Iterator, Sequence
from dataclasses import astuple
from typing import TYPE_CHECKING, Any

import pandas as pd
import typer

from sweeps.cli.commands.any_model import answer_record, said_of, show
from sweeps.cli.commands.opening import opened
from sweeps.cli.commands.printing import print_table
from sweeps.questions.inside import Patches, States, patch, states

if TYPE_CHECKING:
    from seqcls.interpretability.patching import Patched
    from seqcls.interpretability.states.by_strings import Prefixes, Units
    from seqcls.interpretability.states.output_tokens import OutputToken

LISTED = 12
"""Places of patches that are printed; `--json` has them all."""


def show_states(
    db: str | None, reference: str, string: str, epoch: int | None, as_json: bool
) -> None:
    """Prints what a model's parts add to the logit, and the logit after every prefix."""
    store, run_id = opened(db, reference)
    found_states = states(store, run_id, string, epoch)
    if as_json:
        show(
            True,
            [],
            {"run": run_id, **answer_record(found_states.answer), **_states_record(found_states)},
        )
        return
    typer.echo(f"run {run_id}: {said_of(found_states.answer)}")
    for title, frame in _tables(found_states):
        print_table(frame, title)


def _states_record(found_states: States) -> dict[str, Any]:
    """The states of a model along a string, as far as its architecture has them."""
    record: dict[str, Any] = {}
    if found_states.prefixes is not None:
        record["prefix_logits"] = found_states.prefixes.logits.tolist()
    if found_states.output is not None:
        record["output"] = list(map(vars, found_states.output))
    if found_states.steps is not None:
        record["steps"] = list(map(vars, found_states.steps))
    if found_states.attention is not None:
        attention = found_states.attention
        record |= {"tokens": attention.tokens, "attention": attention.weights.tolist()}
    if found_states.units is not None and found_states.path is not None:
        record |= {
            "tokens": found_states.units.tokens,
            "units": found_states.units.states.tolist(),
            "gates": {name: gate.tolist() for name, gate in found_states.units.gates.items()},
            "path": found_states.path.points.tolist(),
        }
    return record


def _tables(found_states: States) -> Iterator[tuple[str, pd.DataFrame]]:
    if found_states.steps is not None:
        steps = pd.DataFrame(list(map(vars, found_states.steps)))
        for name in ("block", "head"):
            steps[name] = steps[name].astype("Int64")
        yield "what each part adds to the logit", steps.round(4)
    if found_states.units is not None:
        yield "the last layer's units after each token", _units(found_states.units)
    if found_states.output is not None:
        yield "the output, token by token", output_table(found_states.output)
    if found_states.prefixes is not None:
        yield _prefixes(found_states.prefixes)


def output_table(output: "Sequence[OutputToken]") -> pd.DataFrame:
    """The tokens that are written, each with the likeliest other one."""
    columns = ["token", "probability", "runner-up", "its probability"]
    return pd.DataFrame(map(astuple, output), columns=columns).round(4)


def _prefixes(prefixes: "Prefixes") -> tuple[str, pd.DataFrame]:
    frame = pd.DataFrame(
        {"token": prefixes.tokens, "logit": prefixes.logits.round(4), "label": prefixes.labels}
    )
    if not any(isinstance(label, str) for label in prefixes.labels):
        labels = ["not known" if label is None else str(int(label)) for label in prefixes.labels]
        return "the logit after every prefix", frame.assign(label=labels)
    return "the margin after every prefix", frame.set_axis(["token", "margin", "target"], axis=1)


def _units(units: "Units") -> pd.DataFrame:
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
    store, run_id = opened(db, reference)
    patches = patch(store, run_id, base, source, epoch)
    if as_json:
        show(True, [], {"run": run_id, **_patches_record(patches)})
        return
    typer.echo(f"base: {said_of(patches.base)}\nsource: {said_of(patches.source)}")
    flips = flip_table(patches.patched)
    if flips.empty:
        typer.echo("no single state, patched in, flips the prediction")
        return
    number, unit = patches.patched.number, patches.patched.unit
    what = "" if number == unit else f": {number}"
    more = f"; the first {LISTED} of {len(flips)}" if len(flips) > LISTED else ""
    print_table(flips.head(LISTED), f"states that flip the prediction when patched{more}{what}")


def flip_table(patched: "Patched") -> pd.DataFrame:
    """The states that turn the answer, ranked."""
    rows = [
        {
            "state": patched.sites[site].text,
            "place": int(place),
            "base token": patched.base_tokens[place],
            "source token": patched.source_tokens[place],
            patched.unit: round(float(patched.logits[site, place]), 4),
            "restored": f"{patched.restored[site, place]:.0%}",
        }
        for site, place in patched.ranked
    ]
    return pd.DataFrame(rows)


def _patches_record(patches: Patches) -> dict[str, Any]:
    patched = patches.patched
    what = {} if patched.number == patched.unit else {"number": patched.number}
    return {
        **what,
        "base": answer_record(patches.base),
        "source": answer_record(patches.source),
        "tokens": {"base": patched.base_tokens, "source": patched.source_tokens},
        "sites": [site.text for site in patched.sites],
        "logits": patched.logits.tolist(),
        "flips": patched.flips.tolist(),
    }
