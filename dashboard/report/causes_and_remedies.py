"""Why models fail, and what came of what may help: as stored, or found where that is quick."""

import html
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import pandas as pd

from dashboard import data
from dashboard.report.document import quiet
from seqcls.errors import SeqclsError
from seqcls.interpretability.causes.mechanisms import SAMPLE
from seqcls.interpretability.model.obstacle import obstacle
from seqcls.interpretability.rounded import percent
from seqcls.problem import obstacle_of, resolve
from sweeps.analysis import causes, remedy_trials
from sweeps.store.databases.engine import Store
from sweeps.store.reading.queries import why_no_weights
from sweeps.store.strings.string_queries import ErrorSearch

MOST_ASKED = 40
"""Models whose causes are found for a page: a tenth of a second each."""

MOST_HELPED = 12
"""Configurations whose remedies are listed."""


def causes_of_models(store: Store, failing: pd.DataFrame) -> pd.DataFrame:
    """The causes of failing models: those stored, and others where letter counts decide.

    Nothing is stored.

    Args:
        store: the database.
        failing: a row a model: run_id, config_id.

    Returns:
        As `sweeps.store.results.explained.causes`.
    """
    stored = data.causes(failing["run_id"].tolist())
    waiting = failing[~failing["run_id"].isin(stored["run_id"])]
    configs = data.some_configs(tuple(waiting["config_id"].drop_duplicates().tolist()))
    quick = [key for key, config in configs.items() if _is_quick(config)]
    parts = [stored]
    for run_id in waiting.loc[waiting["config_id"].isin(quick), "run_id"].head(MOST_ASKED):
        rows = _of(store, int(run_id))
        if rows:
            parts.append(pd.DataFrame(rows))
    # Of nothing no column has a type, and so it may not stand beside what is.
    there = [part for part in parts if not part.empty]
    return pd.concat(there, ignore_index=True) if there else stored


def _is_quick(config: Any) -> bool:
    if obstacle_of(config) is not None or why_no_weights(config) is not None:
        return False
    problem = resolve(config)
    return problem.no_causes is None and obstacle(problem) is None


def _of(store: Store, run_id: int) -> list[dict[str, Any]]:
    errors = data.string_errors(run_id, ErrorSearch())
    # Each as often as it occurs, as where causes are stored.
    wrong = errors["string"].repeat(errors["occurrences"].tolist()).tolist()
    try:
        each = causes.causes_of(store, run_id, wrong, SAMPLE)
    except SeqclsError:  # Its weights are gone or damaged: it stays without causes.
        return []
    return [
        {"run_id": run_id, "number": number, **asdict(cause)} for number, cause in enumerate(each)
    ]


def causes_list(of_one: pd.DataFrame) -> str:
    """The causes of one model, the most frequent first."""
    if of_one.empty:
        return quiet("Its causes are not known; `seqcls causes SWEEP` finds and keeps them.")
    rows = "".join(
        f"<li>{percent(row['share'], 0)}: {html.escape(row['mechanism'])}{_about(row)}</li>"
        for row in of_one.to_dict("records")
    )
    looked_at = int(of_one["strings"].sum())
    return f"<p>Of {looked_at:,} errors that were looked at:</p><ul>{rows}</ul>"


def _about(row: Mapping[Hashable, Any]) -> str:
    parts = [] if pd.isna(row["head"]) else [f"head {row['head']:.0f}"]
    about = ": ".join([*parts, *filter(None, [row["tokens"]])])
    return f" ({html.escape(about)})" if about else ""


def remedies(
    failing: pd.DataFrame, causes: pd.DataFrame, named: Mapping[int, str], tried: bool
) -> Iterator[str]:
    """What may help each configuration against its causes, and what came of it where it was tried.

    Args:
        failing: as for `causes_of_models`.
        causes: what it returned.
        named: what configurations are called, in order.
        tried: whether only what was tried is listed.
    """
    known = failing[failing["run_id"].isin(causes["run_id"])]
    listed = [config_id for config_id in named if config_id in set(known["config_id"])]
    for config_id in listed[:MOST_HELPED]:
        runs = known.loc[known["config_id"] == config_id, "run_id"]
        mechanisms = remedy_trials.mechanisms_of(causes[causes["run_id"].isin(runs)])
        trials = data.trials(int(runs.iloc[0]), mechanisms)
        shown = [trial for trial in trials if trial.comparison is not None or not tried]
        if shown or not tried:
            yield f"<h3>{html.escape(named[config_id])}</h3>"
            yield _table(shown) if shown else quiet("No known remedy changes a field of it.")
    if len(listed) > MOST_HELPED:
        yield quiet(f"And {len(listed) - MOST_HELPED:,} more configurations.")


def _table(trials: Sequence[remedy_trials.Trial]) -> str:
    rows = "".join(
        "<tr>"
        + "".join(
            f"<td>{html.escape(text)}</td>"
            for text in (
                trial.suggestion.text,
                trial.suggestion.mechanism,
                remedy_trials.trial_sentence(trial),
                f"{trial.suggestion.reason} Source: {trial.suggestion.source}.",
            )
        )
        + "</tr>"
        for trial in trials
    )
    heads = "".join(f"<th>{name}</th>" for name in ("Try", "Against", "What came of it", "Why"))
    return f'<div class="wide words"><table><tr>{heads}</tr>{rows}</table></div>'
