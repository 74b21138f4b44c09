"""What `seqcls states` and `seqcls patch` do, and how they show it."""

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd
import typer

from seqcls.errors import InvalidStringError
from seqcls.interpretability.strings.asked import Answer, AskedModel, Letters
from seqcls.interpretability.strings.attribution import has_residual_stream, logit_steps
from seqcls.interpretability.strings.nearest import nearest_right
from seqcls.interpretability.strings.patching import Patched, patch
from seqcls.interpretability.strings.states import (
    attention_patterns,
    has_attention,
    has_units,
    prefix_logits,
    principal_path,
    recurrent_units,
)
from sweeps.analysis.opened_models import opened
from sweeps.cli.commands.any_model import answer_record, said_of, show
from sweeps.cli.commands.printing import print_table

LISTED = 12
"""Places of patches that are printed; `--json` has them all."""


def show_states(
    db: str | None, reference: str, string: str, epoch: int | None, as_json: bool
) -> None:
    """Prints what a model's parts add to the logit, and the logit after every prefix."""
    run_id, model = opened(db, reference, epoch)
    letters = model.letters(string)
    answer = model.answer(letters)
    if as_json:
        record = {"run": run_id, **answer_record(answer), **states_record(model, letters)}
        show(True, [], record)
        return
    typer.echo(f"run {run_id}: {said_of(answer)}")
    for title, frame in _tables(model, letters):
        print_table(frame, title)


def states_record(model: AskedModel, letters: Letters) -> dict[str, Any]:
    """The states of a model along a string, as far as its architecture has them."""
    prefixes = prefix_logits(model, letters)
    record: dict[str, Any] = {"prefix_logits": prefixes.logits.tolist()}
    if has_residual_stream(model):
        record["steps"] = [vars(own) for own in logit_steps(model, letters)]
    if has_attention(model):
        patterns = attention_patterns(model, letters)
        record |= {"tokens": patterns.tokens, "attention": patterns.weights.tolist()}
    if has_units(model):
        units = recurrent_units(model, letters)
        path = principal_path(units.states[-1])
        record |= {
            "tokens": units.tokens,
            "units": units.states.tolist(),
            "gates": {name: own.tolist() for name, own in units.gates.items()},
            "path": path.points.tolist(),
        }
    return record


def _tables(model: AskedModel, letters: Letters) -> Iterator[tuple[str, pd.DataFrame]]:
    if has_residual_stream(model):
        steps = pd.DataFrame([vars(own) for own in logit_steps(model, letters)])
        for name in ("block", "head"):
            steps[name] = steps[name].astype("Int64")
        yield "what each part adds to the logit", steps.round(4)
    if has_units(model):
        yield "the last layer's units after each token", _units(model, letters)
    prefixes = prefix_logits(model, letters)
    frame = pd.DataFrame(
        {"token": prefixes.tokens, "logit": prefixes.logits.round(4), "label": prefixes.labels}
    )
    if prefixes.labels.dtype == bool:
        yield "the logit after every prefix", frame.assign(label=frame["label"].astype(int))
    else:
        yield "the margin after every prefix", frame.set_axis(["token", "margin", "target"], axis=1)


def _units(model: AskedModel, letters: Letters) -> pd.DataFrame:
    units = recurrent_units(model, letters)
    states = pd.DataFrame(units.states[-1].round(3)).add_prefix("unit ")
    states.insert(0, "token", units.tokens)
    return states


def show_patching(
    db: str | None,
    reference: str,
    base: str,
    source: str | None,
    epoch: int | None,
    as_json: bool,
) -> None:
    """Prints which states, carried over from another string, turn a model's answer."""
    run_id, model = opened(db, reference, epoch)
    letters = model.letters(base)
    other = _nearest(model, letters) if source is None else model.letters(source)
    found = patch(model, letters, other)
    ends = (model.answer(letters), model.answer(other))
    if as_json:
        show(True, [], {"run": run_id, **_patched_record(found, ends)})
        return
    typer.echo(f"base: {said_of(ends[0])}\nsource: {said_of(ends[1])}")
    flips = flip_table(found)
    if flips.empty:
        typer.echo("no single state, patched in, flips the prediction")
        return
    more = f"; the first {LISTED} of {len(flips)}" if len(flips) > LISTED else ""
    print_table(flips.head(LISTED), f"states that flip the prediction when patched{more}")


def flip_table(found: Patched) -> pd.DataFrame:
    """The states that turn the answer, ranked."""
    rows = [
        {
            "state": found.sites[site].text,
            "place": int(place),
            "base token": found.base_tokens[place],
            "source token": found.source_tokens[place],
            "logit": round(float(found.logits[site, place]), 4),
            "restored": f"{found.restored[site, place]:.0%}",
        }
        for site, place in found.ranked
    ]
    return pd.DataFrame(rows)


def _nearest(model: AskedModel, letters: Letters) -> Letters:
    near = nearest_right(model, letters, other_answer=True, same_length=True)
    if near.answer is None:
        raise InvalidStringError(
            "no string of the same length within two substitutions is classified correctly with "
            "the other prediction; name one with --source"
        )
    return near.letters


def _patched_record(found: Patched, ends: Sequence[Answer]) -> dict[str, Any]:
    return {
        "base": answer_record(ends[0]),
        "source": answer_record(ends[1]),
        "tokens": {"base": found.base_tokens, "source": found.source_tokens},
        "sites": [own.text for own in found.sites],
        "logits": found.logits.tolist(),
        "flips": found.flips.tolist(),
    }
