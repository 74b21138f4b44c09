"""The models of a report that fail, each with its causes and its strings."""

import html
from collections.abc import Hashable, Iterator, Mapping
from typing import Any

import pandas as pd

from dashboard import data
from dashboard.report.causes_and_remedies import causes_list
from dashboard.report.document import kept, quiet
from dashboard.words import kind_words, measures
from seqcls.interpretability.rounded import percent
from seqcls.kinds import Kind
from sweeps.analysis.answer_sentences import displayed
from sweeps.store.strings.string_queries import ErrorSearch

MOST_MODELS = 200
MOST_STRINGS, MOST_OF_ALL = 2_000, 20_000
"""Strings of a model, and of all models of a page, that stand in it: the shortest."""

SHORTEST = 5


def models(
    failing: pd.DataFrame, causes: pd.DataFrame, named: Mapping[int, str], *, strings: bool = True
) -> Iterator[str]:
    """A line for each failing model, unfolded to its causes and its strings.

    Args:
        failing: run_id, config_id, model_seed, accuracy, errors; the worst of each first. Those of
            other configurations than the named are counted.
        causes: of some of them, as `sweeps.store.results.explained.causes`.
        named: what configurations are called, in order.
        strings: whether all strings stand there, not only the shortest.
    """
    left = MOST_OF_ALL if strings else 0
    shown = failing[failing["config_id"].isin(named)].head(MOST_MODELS)
    for config_id, name in named.items():
        of_configuration = shown[shown["config_id"] == config_id]
        if of_configuration.empty:
            continue
        yield f"<h3>{html.escape(name)}</h3>"
        (kind,) = kind_words.kinds_of((config_id,))
        config = data.some_configs((config_id,))[config_id]
        for model in of_configuration.to_dict("records"):
            errors = data.string_errors(int(model["run_id"]), ErrorSearch())
            errors = displayed(errors, config)
            most = min(left, MOST_STRINGS)
            left -= min(most, len(errors))
            causes_of_it = causes[causes["run_id"] == model["run_id"]]
            yield _model(model, errors, causes_of_it, kind, most)
    if len(failing) > len(shown):
        yield quiet(f"And {len(failing) - len(shown):,} more models fail.")


def _model(
    model: Mapping[Hashable, Any],
    errors: pd.DataFrame,
    causes: pd.DataFrame,
    kind: Kind,
    most: int,
) -> str:
    words, run_id = kind.words, int(model["run_id"])
    shortest = ", ".join(
        f"<code>{html.escape(string or 'the empty string')}</code>"
        for string in errors["string"].head(SHORTEST)
    )
    cause = "" if causes.empty else f", mostly {causes['mechanism'].iloc[0]}"
    head = (
        f"Seed {int(model['model_seed'])} <small>run {run_id}: "
        f"accuracy {percent(model['accuracy'])}, {len(errors):,} different "
        f"{html.escape(words.plural(words.missed))}"
        f"{html.escape(cause)}</small>"
    )
    return (
        f'<details id="run-{run_id}"><summary>{head}</summary>\n{causes_list(causes)}\n'
        f"<p>The shortest: {shortest}.</p>\n{_strings(run_id, errors, kind, most)}</details>"
    )


def _strings(run_id: int, errors: pd.DataFrame, kind: Kind, most: int) -> str:
    if not most:
        return ""
    table = measures.ordered(errors, kind).head(most)
    titles = {"string": kind.words.string.capitalize(), **_titles(kind)}
    columns = [name for name in titles if name in table]
    rows = [[_cell(value) for value in row] for row in table[columns].itertuples(index=False)]
    shown = {
        "columns": [titles[name] for name in columns],
        "rows": rows,
        "left": len(errors) - len(rows),
    }
    name = f"strings-{run_id}"
    return f'<div data-strings="{name}"></div>{kept(name, shown)}'


def _titles(kind: Kind) -> dict[str, str]:
    # The kind of an error says the label too.
    of_kind = {
        column.name: column.title for column in kind.error_columns() if column.name != "label"
    }
    return {"kind": "Kind", **of_kind, "length": "Length", "occurrences": "Occurrences"}


def _cell(value: Any) -> Any:
    """As JSON has it: short, and nothing where there is nothing."""
    if isinstance(value, str):
        return value
    if pd.isna(value):
        return None
    return round(value, 4) if isinstance(value, float) else int(value)
