"""Models that fail, each unfolded to all strings that it gets wrong."""

from collections.abc import Hashable, Iterator, Mapping
from typing import Any

import pandas as pd

from dashboard.report.html import Details
from dashboard.words.sentences import as_code
from seqcls.config import RunConfig
from seqcls.interpretability.wording import LONG_SCORE, percent, score_text
from seqcls.kinds import Kind
from seqcls.problem import obstacle_of, resolve, tokenizer_of
from seqcls.text import count
from sweeps.api import Store, configs, names_of
from sweeps.api.presentation import display_strings
from sweeps.api.reading import string_errors

MOST_MODELS = 200
MOST_STRINGS, MOST_OF_ALL = 2_000, 20_000
"""Strings of a model, and of all models of a page, at most: the shortest."""

SHORTEST = 5


def failing_models(store: Store, failing: pd.DataFrame) -> Iterator[Details]:
    """A line for each failing model, unfolded to its strings.

    Args:
        failing: run_id, config_id, model_seed, outcome, accuracy and errors, the worst first.
    """
    left, shown = MOST_OF_ALL, failing.head(MOST_MODELS)
    known = configs(store, shown["config_id"].unique().tolist())
    named = names_of(store, list(known))
    for model in shown.to_dict("records"):
        config = known[model["config_id"]]
        errors = string_errors(store, int(model["run_id"]))
        errors = display_strings(errors, config)
        most = min(left, MOST_STRINGS, len(errors))
        # The worst models come first: their strings are the last that are left out.
        left -= most
        yield _model(model, named[model["config_id"]], config, errors, most)
    if len(failing) > len(shown):
        yield Details(f"And {len(failing) - len(shown):,} more models fail.")


def _model(
    model: Mapping[Hashable, Any], name: str, config: RunConfig, errors: pd.DataFrame, most: int
) -> Details:
    run_id, accuracy = int(model["run_id"]), percent(model["accuracy"])
    wrong = count(len(errors), "wrong string")
    note = f"run {run_id}: {model['outcome']}, accuracy {accuracy}, {wrong}"
    first = errors["string"].head(SHORTEST)
    shortest = ", ".join(as_code(string) if string else "the empty string" for string in first)
    kind = resolve(config).kind if obstacle_of(config) is None else None
    return Details(
        f"{name}, seed {int(model['model_seed'])}",
        note,
        id=f"run-{run_id}",
        says=[f"The shortest: {shortest}."] if shortest else [],
        strings=_strings(config, errors, kind, most) if most else None,
    )


def _strings(
    config: RunConfig, errors: pd.DataFrame, kind: Kind | None, most: int
) -> dict[str, Any]:
    """The strings that the page's program shows, as JSON."""
    first = "String" if kind is None else kind.words.string.capitalize()
    titles = {"string": first, "kind": "Kind"}
    if kind is not None:
        # The kind of an error implies the label.
        titles |= {x: title for x, title in kind.error_columns().items() if x != "label"}
    titles |= {"length": "Length", "occurrences": "Occurrences"}
    shown = errors.sort_values(["length"], kind="stable").head(most)
    present = [name for name in titles if name in shown]
    tokenizer = tokenizer_of(config)
    return {
        "columns": [titles[name] for name in present],
        "rows": [[_cell(value) for value in row] for row in shown[present].to_numpy(object)],
        "left": len(errors) - len(shown),
        # How a search writes strings out.
        "named": bool(tokenizer and tokenizer.separator),
    }


def _cell(value: Any) -> Any:
    """A cell as JSON: short, and null for a missing value."""
    if isinstance(value, str):
        return value
    if pd.isna(value):
        return None
    if isinstance(value, float):
        return round(value, 4) if abs(value) < LONG_SCORE else score_text(value)
    return int(value)
