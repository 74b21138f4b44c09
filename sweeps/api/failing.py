"""Failing models: their causes, and the strings that most of them get wrong."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Int64
from sqlalchemy import Connection, select

from sweeps.api.failures import leading_causes, why_without
from sweeps.api.reading import for_pages
from sweeps.records import error_numbers
from sweeps.results import Outcome
from sweeps.store.database import Store
from sweeps.store.reads import explained, frames, queries
from sweeps.store.reads.misclassified import TestStrings, errors_of_runs, kinds_of_errors
from sweeps.store.reads.selection import Selection
from sweeps.store.reads.stored import tested_lengths
from sweeps.store.statements import one_of
from sweeps.store.tables import Config, Run, TestString

FAILING = (Outcome.FAILS_BEYOND, Outcome.NOT_LEARNED)
"""Outcomes of models that fail."""


def failing_models(store: Store, selection: Selection) -> pd.DataFrame:
    """Returns the models of a selection that fail, or err with an unknown outcome, the least
    accurate first.

    Returns:
        The columns of `sweeps.api.reading.models`.
    """
    runs = frames.finished_runs(store, selection)
    errs = (runs["outcome"] == Outcome.NOT_KNOWN) & (runs["wrong"] > 0).fillna(False)
    found = for_pages(runs[runs["picked"] & (runs["outcome"].isin(FAILING) | errs)])
    return found.sort_values(["accuracy", "run_id"], ignore_index=True)


def count_tested(store: Store, selection: Selection) -> int:
    """Returns the number of tested models that a selection picks."""
    return int(frames.finished_runs(store, selection)["picked"].sum())


# Causes.


def main_causes(
    store: Store, models: pd.DataFrame, selection: Selection
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Returns the cause of most errors of each of these models, as far as causes are known.

    Returns:
        run_id, config_id, mechanism, models in their order; and the frame of all their causes, as
        in `sweeps.store.reads.explained.causes`.
    """
    ids = models["run_id"].tolist()
    # Beyond so many, reading all causes is cheaper than selecting runs by id.
    some = ids if len(ids) <= frames.MOST_BY_ID else None
    known = explained.causes(store, some, selection.learned_at)
    known = known[known["run_id"].isin(ids)]
    leading = models[["run_id", "config_id"]].join(leading_causes(known), on="run_id", how="inner")
    return leading, known


def waiting(
    store: Store, models: pd.DataFrame, known: Collection[int] | None = None
) -> tuple[list[int], dict[str, int]]:
    """Returns the models whose causes can be found and are not known yet, in their order.

    Args:
        models: the frame of `failing_models`.
        known: the ids of those whose causes are known; by default, they are read.

    Returns:
        Their ids; and the number of others whose causes cannot be found, by the reason.
    """
    known = explained.runs_with_causes(store) if known is None else known
    without = models[~models["run_id"].isin(known) & (models["errors"] > 0).fillna(False)]
    configs = queries.configs(store, without["config_id"].drop_duplicates().tolist())
    reasons = {config_id: why_without(config) for config_id, config in configs.items()}
    of_models = without["config_id"].map(reasons)
    return without.loc[of_models.isna(), "run_id"].tolist(), dict(of_models.value_counts())


def waiting_of(store: Store, selection: Selection) -> list[int]:
    """Returns the failing models of a selection whose causes are not known yet, the worst first."""
    return waiting(store, failing_models(store, selection))[0]


def count_explained(store: Store) -> int:
    """Returns the number of models of a database with known causes."""
    return len(explained.runs_with_causes(store))


# Strings.

MOST_ERRORS = 500_000
"""Maximum number of errors counted by string; beyond it only every k-th model is read."""

EXAMPLES = 20
"""Number of the worst models, one of whose outputs is shown for each string."""


def breaking_strings(store: Store, models: pd.DataFrame, limit: int) -> tuple[pd.DataFrame, int]:
    """Returns the strings that most of these models of one task get wrong.

    Args:
        models: the frame of `failing_models`.
        limit: the maximum number of strings.

    Returns:
        string, kind (of the error), length, models (that get it wrong), of (that were tested on
        it), run_id (one of the worst of those that get it wrong); and of outputs the target, that
        model's output and first_wrong (right tokens before the first wrong one). And the number of
        models that were read.
    """
    # Ceiling division: every k-th model of the ranking represents its neighbors.
    every = max(1, -(-int(models["errors"].sum()) // MOST_ERRORS))
    run_ids = models["run_id"].tolist()[::every]
    with store.read() as connection:
        wrong, runs = _wrong_by_set(connection, run_ids)
        texts = TestStrings(store)
        parts = []
        for set_id, counts in wrong.items():
            numbers = np.flatnonzero(counts)
            strings = texts.by_number(set_id, numbers).select(["string", "label", "length"])
            parts.append(strings.to_pandas().assign(models=counts[numbers]))
        columns = ["string", "kind", "length", "models"]
        if not parts:
            return pd.DataFrame(columns=[*columns, "of", "run_id"]), 0
        same = pd.concat(parts).groupby(["string", "label", "length"], dropna=False)
        summed: pd.DataFrame = same.agg(models=("models", "sum")).reset_index()
        order = ["models", "length", "string"]
        first = summed.sort_values(order, ascending=[False, True, True]).head(limit)
        first = first.assign(
            kind=kinds_of_errors(first["label"]),
            of=_count_tested(store, runs, first["string"]),
        ).reset_index(drop=True)
        shown = errors_of_runs(store, run_ids[:EXAMPLES])
    outputs = ["target", "output", "first_wrong"] if "output" in shown else []
    # In the order of models, the worst first, not of ids.
    shown = shown.sort_values("run_id", key=lambda ids: ids.map(run_ids.index), kind="stable")
    examples = shown[["string", "run_id", *outputs]].drop_duplicates("string")
    return first[[*columns, "of"]].merge(examples, "left", "string"), len(run_ids)


Counts = Int64[np.ndarray, " string"]


def _wrong_by_set(
    connection: Connection, run_ids: Sequence[int]
) -> tuple[dict[Any, Counts], Counter[tuple[Any, int]]]:
    """Counts the runs that got each string of a test set wrong, and those that got any wrong.

    Returns:
        Counts by the number of a string, by test set; and runs by test set and configuration.
    """
    query = (
        select(Config.test_set_id, Config.id, Run.errors)
        .join(Config, Config.id == Run.config_id)
        .where(one_of(Run.id, run_ids), Run.wrong > 0)
    )
    numbers: dict[Any, list[Counts]] = {}
    runs = Counter[tuple[Any, int]]()
    for test_set_id, config_id, errors in connection.execute(query):
        numbers.setdefault(test_set_id, []).append(error_numbers(errors))
        runs[test_set_id, config_id] += 1
    return {x: np.bincount(np.concatenate(own)) for x, own in numbers.items()}, runs


def _count_tested(
    store: Store, runs: Mapping[tuple[Any, int], int], strings: Collection[str]
) -> list[int]:
    """Counts the runs tested on each string; their test sets and greatest lengths differ."""
    longest = {
        x: int(lengths[-1, 0]) for x, lengths in tested_lengths(store, {x for _, x in runs}).items()
    }
    query = select(TestString.test_set_id, TestString.string, TestString.length)
    query = query.where(
        one_of(TestString.test_set_id, {x for x, _ in runs}), TestString.string.in_(strings)
    )
    tested = Counter[str]()
    for test_set_id, string, length in store.rows(query):
        tested[string] += sum(
            number
            for (own, config_id), number in runs.items()
            if own == test_set_id and length <= longest[config_id]
        )
    return [tested[string] for string in strings]
