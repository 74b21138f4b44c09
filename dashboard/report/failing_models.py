"""The models of a report that fail: their strings, their causes, and what came of remedies."""

import html
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import pandas as pd

from dashboard import data
from dashboard.report.document import embed_data, quiet
from dashboard.views import shortcuts
from dashboard.words import measures
from dashboard.words.outcomes import describe_outcome
from seqcls.config import RunConfig
from seqcls.errors import SeqclsError
from seqcls.interpretability.mechanisms import NOT_LEARNED, SAMPLE, forgetting_text
from seqcls.interpretability.network import obstacle
from seqcls.interpretability.wording import LONG_SCORE, percent, score_text
from seqcls.kinds import Kind
from seqcls.problem import obstacle_of, resolve, tokenizer_of
from sweeps.api import Store, failures
from sweeps.api import trials as remedy_trials
from sweeps.api.old_pages.reading import ErrorSearch, Selection, why_no_weights
from sweeps.api.presentation import display_of, display_strings

MOST_ASKED = 40
"""Models whose causes are found for a page: a tenth of a second each."""

MOST_HELPED = 12
"""Configurations whose remedies are listed."""


def causes_of_models(store: Store, failing: pd.DataFrame, learned_at: float) -> pd.DataFrame:
    """The causes of failing models: those stored, and others where letter counts decide.

    Nothing is stored.

    Args:
        store: the database.
        failing: a row a model: run_id, config_id.
        learned_at: as for `sweeps.store.reads.explained.causes`.

    Returns:
        As `sweeps.store.reads.explained.causes`.
    """
    stored = data.causes(failing["run_id"].tolist(), learned_at)
    waiting = failing[~failing["run_id"].isin(data.causes()["run_id"])]
    configs = data.some_configs(tuple(waiting["config_id"].drop_duplicates().tolist()))
    quick = [key for key, config in configs.items() if _is_quick(config)]
    parts = [stored]
    for run_id in waiting.loc[waiting["config_id"].isin(quick), "run_id"].head(MOST_ASKED):
        rows = _of(store, int(run_id), learned_at)
        if rows:
            parts.append(pd.DataFrame(rows))
    # Of nothing no column has a type, and so it may not stand beside what is.
    there = [part for part in parts if not part.empty]
    return pd.concat(there, ignore_index=True) if there else stored


def _is_quick(config: Any) -> bool:
    if obstacle_of(config) is not None or why_no_weights(config) is not None:
        return False
    problem = resolve(config)
    return problem.lacks("causes") is None and obstacle(problem) is None


def _of(store: Store, run_id: int, learned_at: float) -> list[dict[str, Any]]:
    try:
        each = failures.causes_of(store, run_id, SAMPLE, learned_at)
    except SeqclsError:  # Its weights are gone or damaged: it stays without causes.
        return []
    return [
        {"run_id": run_id, "number": number, **asdict(cause)} for number, cause in enumerate(each)
    ]


def _forgetting(run_id: int, config_id: int) -> str:
    """What a model forgets, where a proof found that a repetition refutes it."""
    if (found := data.forgettings().get(run_id)) is None:
        return ""
    config = data.some_configs((config_id,))[config_id]
    return f"<p>{html.escape(forgetting_text(found, display_of(config)))}</p>"


def _causes_list(of_one: pd.DataFrame, config: RunConfig) -> str:
    """The causes of one model, the most frequent first."""
    if of_one.empty:
        if (reason := why_no_weights(config)) is not None:
            return quiet(f"No causes can be found: {reason}.")
        return quiet("Its causes are not known; `seqcls causes SWEEP` finds and stores them.")
    rows = "".join(
        f"<li>{_share(row)}{html.escape(row['mechanism'])}{_about(row)}</li>"
        for row in of_one.to_dict("records")
    )
    looked_at = int(of_one["strings"].sum())
    return f"<p>Of {looked_at:,} errors that were looked at:</p><ul>{rows}</ul>"


def _share(row: Mapping[Hashable, Any]) -> str:
    """The share of errors with this cause; that it has not learned is said of the whole model."""
    return "" if row["mechanism"] == NOT_LEARNED else f"{percent(row['share'], 0)}: "


def _about(row: Mapping[Hashable, Any]) -> str:
    parts = [] if pd.isna(row["head"]) else [f"head {row['head']:.0f}"]
    about = ": ".join([*parts, *filter(None, [row["tokens"]])])
    return f" ({html.escape(about)})" if about else ""


def remedies(
    failing: pd.DataFrame,
    causes: pd.DataFrame,
    named: Mapping[int, str],
    tried: bool,
    view: Selection,
) -> Iterator[str]:
    """What may help each configuration against its causes, and what came of it where it was tried.

    Args:
        failing: as for `causes_of_models`.
        causes: what it returned.
        named: what configurations are called, in order.
        tried: whether only what was tried is listed.
        view: which seeds are compared, and what fails and has learned.
    """
    known = failing[failing["run_id"].isin(causes["run_id"])]
    listed = [config_id for config_id in named if config_id in set(known["config_id"])]
    for config_id in listed[:MOST_HELPED]:
        runs = known.loc[known["config_id"] == config_id, "run_id"]
        mechanisms = remedy_trials.mechanisms_of(causes[causes["run_id"].isin(runs)])
        lacking = obstacle_of(data.some_configs((config_id,))[config_id])
        if lacking is not None:
            if not tried:
                yield f"<h3>{html.escape(named[config_id])}</h3>"
                yield quiet(f"No remedy can be trained here: {lacking}.")
            continue
        trials = data.trials(int(runs.iloc[0]), mechanisms, view)
        shown = [trial for trial in trials if trial.comparison is not None or not tried]
        if shown or not tried:
            yield f"<h3>{html.escape(named[config_id])}</h3>"
            yield _table(shown) if shown else quiet("No known remedy changes a field of it.")
    if len(listed) > MOST_HELPED:
        yield quiet(f"And {len(listed) - MOST_HELPED:,} more configurations.")


def _table(trials: Sequence[remedy_trials.RemedyTrial]) -> str:
    rows = "".join(
        "<tr>"
        + "".join(
            f"<td>{html.escape(text)}</td>"
            for text in (
                trial.suggestion.text,
                trial.suggestion.mechanism,
                "; ".join(remedy_trials.sentences(trial)),
                f"{trial.suggestion.reason} Source: {trial.suggestion.source}.",
            )
        )
        + "</tr>"
        for trial in trials
    )
    heads = "".join(f"<th>{name}</th>" for name in ("Try", "Against", "What came of it", "Why"))
    return f'<div class="wide words"><table><tr>{heads}</tr>{rows}</table></div>'


MOST_MODELS = 200
MOST_STRINGS, MOST_OF_ALL = 2_000, 20_000
"""Strings of a model, and of all models of a page, that stand in it: the shortest."""

SHORTEST = 5


def models(
    failing: pd.DataFrame,
    causes: pd.DataFrame,
    named: Mapping[int, str],
    view: Selection,
    *,
    strings: bool = True,
) -> Iterator[str]:
    """A line for each failing model, unfolded to its causes and its strings.

    Args:
        failing: run_id, config_id, model_seed, outcome, accuracy, errors; the worst of each first.
            Those of other configurations than the named are counted.
        causes: of some of them, as `sweeps.store.reads.explained.causes`.
        named: what configurations are called, in order.
        view: says what fails and what has learned.
        strings: whether all strings stand there, not only the shortest.
    """
    left = MOST_OF_ALL if strings else 0
    shown = failing[failing["config_id"].isin(named)].head(MOST_MODELS)
    for config_id, name in named.items():
        of_configuration = shown[shown["config_id"] == config_id]
        if of_configuration.empty:
            continue
        yield f"<h3>{html.escape(name)}</h3>"
        (kind,) = measures.kinds_of((config_id,))
        config = data.some_configs((config_id,))[config_id]
        for model in of_configuration.to_dict("records"):
            errors = data.string_errors(int(model["run_id"]), ErrorSearch())
            errors = display_strings(errors, config)
            most = min(left, MOST_STRINGS)
            left -= min(most, len(errors))
            causes_of_it = causes[causes["run_id"] == model["run_id"]]
            came_to = describe_outcome(int(model["run_id"]), config, view)
            table = _strings(model, config, errors, kind, most)
            yield _model(model, config, errors, causes_of_it, kind, came_to, table)
    if len(failing) > len(shown):
        yield quiet(f"And {len(failing) - len(shown):,} more models fail.")


def _model(
    model: Mapping[Hashable, Any],
    config: RunConfig,
    errors: pd.DataFrame,
    causes: pd.DataFrame,
    kind: Kind,
    came_to: str,
    strings: str,
) -> str:
    words, run_id = kind.words, int(model["run_id"])
    shortest = ", ".join(
        f"<code>{html.escape(string or 'the empty string')}</code>"
        for string in errors["string"].head(SHORTEST)
    )
    first = None if causes.empty else causes["mechanism"].iloc[0]
    cause = "" if first is None else f", {'' if first == NOT_LEARNED else 'mostly '}{first}"
    head = (
        f"Seed {int(model['model_seed'])} <small>run {run_id}: "
        f"{model['outcome']}, accuracy {percent(model['accuracy'])}, {len(errors):,} different "
        f"{html.escape(words.plural(words.missed))}"
        f"{html.escape(cause)}</small>"
    )
    return (
        f'<details id="run-{run_id}"><summary>{head}</summary>\n<p>{html.escape(came_to)} '
        f"{shortcuts.describe_border(Selection(run_ids=(run_id,)))}</p>\n"
        f"{_causes_list(causes, config)}{_forgetting(run_id, int(model['config_id']))}\n"
        f"<p>The shortest: {shortest}.</p>\n{strings}</details>"
    )


def _strings(
    model: Mapping[Hashable, Any], config: RunConfig, errors: pd.DataFrame, kind: Kind, most: int
) -> str:
    if not most:
        return ""
    table = measures.kinds_first(errors, kind).head(most)
    titles = {"string": kind.words.string.capitalize(), **_titles(kind)}
    columns = [name for name in titles if name in table]
    rows = [[_cell(value) for value in row] for row in table[columns].itertuples(index=False)]
    shown = {
        "columns": [titles[name] for name in columns],
        "rows": rows,
        "left": len(errors) - len(rows),
        # How a search writes strings out.
        "named": bool((tokenizer := tokenizer_of(config)) and tokenizer.separator),
    }
    name = f"strings-{int(model['run_id'])}"
    return f'<div data-strings="{name}"></div>{embed_data(name, shown)}'


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
    if isinstance(value, float):
        is_short = abs(value) < LONG_SCORE
        return round(value, 4) if is_short else score_text(value)
    return int(value)
