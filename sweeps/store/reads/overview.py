"""Reads for pages: the results of thousands of runs, summed up and paged in SQL."""

import json
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Int64
from sqlalchemy import BigInteger, Float, Select, cast, func, select

from seqcls.config import default_fields
from seqcls.fields import language_of
from seqcls.imported import PREFIX, fields_known, in_columns
from seqcls.theory.predictions import TheoryPrediction, theory_of
from sweeps.records import LENGTH_COUNTS, OUTPUT_COUNTS
from sweeps.results import (
    RANGE_COLUMNS,
    Outcome,
    differing_fields,
    exact_type,
    solved_or_none,
)
from sweeps.store.databases.engine import Store
from sweeps.store.databases.statements import frame
from sweeps.store.reads.explained import with_proofs
from sweeps.store.reads.queries import config_texts, with_outputs
from sweeps.store.reads.selection import (
    View,
    condition_of,
    errors_made,
    fails,
    in_scope,
    model_columns,
    outcome_counts,
    proof_counts,
)
from sweeps.store.reads.stored import config_of, length_frame, problem_of, tested_lengths
from sweeps.store.reads.test_sets import names_of_datasets
from sweeps.store.tables import Revision, Run, RunState


def configs_revision(store: Store) -> int:
    """A number that is raised whenever configurations are added or deleted."""
    with store.begin() as connection:
        return connection.scalars(select(Revision.configs)).one()


def settings(store: Store) -> pd.DataFrame:
    """The fields in which configurations differ: one row a configuration, indexed by config_id.

    A dataset is called as the file that it was read from.
    """
    texts, defaults = _texts(store), default_fields()
    names = dataset_names(store)
    fields = []
    for config_id, text in texts.items():
        stored = {**defaults, **json.loads(text)}
        known = fields_known(config_of(config_id, text)) if stored["imported"] else stored
        digest = stored["dataset"]
        fields.append({**known, "dataset": names.get(digest, digest)})
    index = pd.Index(list(texts), name="config_id")
    columns = None if fields else list(defaults)
    table = pd.DataFrame(in_columns(fields), index=index, columns=columns, dtype=object)
    foreign = table.columns[table.columns.str.startswith(PREFIX)]
    # One missing value, whether a model has no such setting or has None.
    table[foreign] = table[foreign].fillna(np.nan)
    varying = table[differing_fields(table)]
    # A whole number stays one where others are missing, and beside fractions where none holds it.
    whole = [
        name
        for name in varying
        if not varying[name].hasnans and exact_type(varying[name]) != "object"
    ]
    return varying.astype({name: varying[name].infer_objects().dtype for name in whole})


def languages(store: Store) -> dict[int, str]:
    """What the language of each configuration is called, by config_id."""
    names = dataset_names(store)
    return {key: language_of(json.loads(text), names) for key, text in _texts(store).items()}


def dataset_names(store: Store) -> dict[str, str]:
    """What datasets are called, by their digests: no two the same."""
    with store.begin() as connection:
        return names_of_datasets(connection)


def predictions(store: Store, config_ids: Sequence[int]) -> dict[int, TheoryPrediction]:
    """What theory predicts of each of these configurations, by config_id."""
    texts = _texts(store, config_ids)
    return {key: theory_of(json.loads(text)).first for key, text in texts.items()}


def _texts(store: Store, config_ids: Sequence[int] | None = None) -> dict[int, str]:
    """The stored fields of these configurations, or of all, as JSON, by config_id."""
    with store.begin() as connection:
        return config_texts(connection, config_ids)


def model_seeds(store: Store) -> list[int]:
    """The model seeds that there are, in order."""
    query = select(Run.model_seed).distinct().order_by(Run.model_seed)
    with store.begin() as connection:
        return list(connection.scalars(query))


def count_runs(store: Store, view: View) -> int:
    """How many runs a view leaves."""
    query = select(func.count()).select_from(Run).where(in_scope(view), condition_of(view))
    with store.begin() as connection:
        return connection.scalars(query).one()


def configurations(store: Store, view: View) -> pd.DataFrame:
    """One row a configuration, by counts and sums over its runs in scope.

    Returns:
        config_id; seeds (done), unfinished, failed (in training); failing (of those done),
        picked (runs that the view leaves); judged (done, and known on trained lengths), learned (of
        those judged), judged_beyond (of those that learned, known on longer lengths), generalize
        (of those judged beyond); proved, refuted, undecided (of those done, by stored proofs);
        false_positives and false_negatives (strings, summed
        over the seeds; missing where no run is done).
    """
    count = func.count(Run.id)
    done = Run.state == RunState.DONE
    query = (
        select(
            Run.config_id,
            count.filter(done).label("seeds"),
            count.filter(Run.state.in_([RunState.QUEUED, RunState.RUNNING])).label("unfinished"),
            count.filter(Run.state == RunState.FAILED).label("failed"),
            count.filter(fails(view)).label("failing"),
            count.filter(condition_of(view)).label("picked"),
            *outcome_counts(view),
            *proof_counts(),
            cast(func.sum(Run.fp).filter(done), BigInteger).label("false_positives"),
            cast(func.sum(Run.fn).filter(done), BigInteger).label("false_negatives"),
        )
        .where(in_scope(view))
        .group_by(Run.config_id)
        .order_by(Run.config_id)
    )
    counted = frame(store, query)
    sums = ["false_positives", "false_negatives"]
    return counted.astype(dict.fromkeys(sums, "Int64"))


def models(store: Store, view: View) -> pd.DataFrame:
    """One row a finished run in scope, in the order of configurations and seeds.

    Returns:
        run_id, config_id, model_seed, accuracy in [0, 1], errors, false_positives,
        false_negatives, solved_length (missing where no test string is so short),
        first_wrong_length (of the shortest test strings that it got wrong, of trained lengths or
        longer; missing where there is none, and of runs that have not learned), failing and picked
        (as 0 or 1), outcome (one of `Outcome`), learned (as 0 or 1; missing where it is
        not known on trained lengths), accuracy_within and accuracy_beyond in [0, 1], on trained
        and on longer lengths; the columns of `with_proofs`, where a proof is stored.
    """
    query = (
        select(*model_columns(view))
        .where(in_scope(view), Run.state == RunState.DONE)
        .order_by(Run.config_id, Run.model_seed)
    )
    return _complete(store, frame(store, query))


def failing_models(store: Store, view: View, limit: int, offset: int = 0) -> pd.DataFrame:
    """Runs that fail, as `models`: those that err on the greatest share of their test first.

    If the view is about errors of one kind, the share of these counts.
    """
    query = _worst_first(view).where(condition_of(view), fails(view))
    return _complete(store, frame(store, query.limit(limit).offset(offset)))


def worst_models(store: Store, view: View, limit: int) -> pd.DataFrame:
    """Finished runs that the view picks, as `models`, the least accurate first."""
    query = _worst_first(view).where(condition_of(view))
    return _complete(store, frame(store, query.limit(limit)))


def count_failing_models(store: Store, view: View) -> int:
    """How many runs `failing_models` has on all its pages."""
    query = select(func.count()).where(in_scope(view), condition_of(view), fails(view))
    with store.begin() as connection:
        return connection.scalars(query).one()


def model(store: Store, run_id: int, view: View | None = None) -> pd.DataFrame:
    """The row that `models` has of a run, with `RANGE_COLUMNS`; none where it is not done or does
    not exist.

    Args:
        run_id: the run, in the scope of the view or not.
        view: says what fails and what has learned, if not as is usual.
    """
    counts = (getattr(Run, name) for name in RANGE_COLUMNS)
    query = select(*model_columns(view or View()), *counts)
    query = query.where(Run.id == run_id, Run.state == RunState.DONE)
    return _complete(store, frame(store, query))


def shortest_tested(store: Store, config_ids: Collection[int]) -> dict[int, int]:
    """The length of the shortest test string of each of these configurations that is tested."""
    with store.begin() as connection:
        tested = tested_lengths(connection, config_ids)
    return {config_id: int(rows[0, 0]) for config_id, rows in tested.items() if len(rows)}


def _complete(store: Store, models: pd.DataFrame) -> pd.DataFrame:
    return with_proofs(store, _with_first_errors(store, models), "run_id")


def _with_first_errors(store: Store, models: pd.DataFrame) -> pd.DataFrame:
    """Models with the length of their shortest errors, and without a solved length where they get
    one of the shortest test strings wrong.

    Up to the length that is stored then there is no test string at all.
    """
    shortest = shortest_tested(store, set(models["config_id"].tolist()))
    least = models["config_id"].map(shortest).fillna(-1)
    solved = models["solved_length"].astype("Int64")
    says = (models["errors"] > 0) & (models["outcome"] != Outcome.NOT_LEARNED)
    # The length that is stored is one less than that of the shortest errors.
    return models.assign(
        solved_length=solved_or_none(solved, least), first_wrong_length=(solved + 1).where(says)
    )


# Models that were trained on other lengths, on the same longer strings.


def longer_lengths(store: Store, config_ids: Collection[int]) -> range | None:
    """The lengths of the longer strings on which these configurations are compared.

    Beyond those that any was trained on, up to the longest that all are tested on; an empty range
    where there are none. Configurations whose trained lengths are not known have no part in it.

    Returns:
        None where the longer strings of each are those of the same lengths.
    """
    with store.begin() as connection:
        texts = config_texts(connection, list(config_ids))
    known = [x for x in map(problem_of, texts.values()) if x is not None]
    own = {
        range(x.trained_lengths.stop, x.longest_tested + 1)
        for x in known
        if x.knows_trained_lengths
    }
    if len(own) < 2:
        return None
    return range(max(x.start for x in own), min(x.stop for x in own))


def judge_on(
    store: Store, models: pd.DataFrame, longer: range | None, below: float, run_id: str = "run_id"
) -> pd.DataFrame:
    """Models with `accuracy_beyond` and `outcome` as they are on longer strings of these lengths.

    Args:
        longer: as `longer_lengths` of their configurations gives them.
        below: the accuracy below which a model that has learned fails on them.
        run_id: the column of their ids.
    """
    if longer is None:
        return models
    with store.begin() as connection:
        scores = length_frame(connection, models[run_id])
    of = scores[(scores["length"] >= longer.start) & (scores["length"] < longer.stop)]
    sums = of.groupby("run_id")[["tested", "wrong"]].sum()
    right = (sums["tested"] - sums["wrong"]) / sums["tested"].where(sums["tested"] > 0)
    beyond = models[run_id].map(right).astype(float).where(models["accuracy_beyond"].notna())
    came_to = np.select(
        [beyond.isna(), beyond < below],
        [Outcome.NOT_KNOWN, Outcome.FAILS_BEYOND],
        Outcome.GENERALIZES,
    )
    judged = models["outcome"].isin([Outcome.GENERALIZES, Outcome.FAILS_BEYOND])
    outcome = models["outcome"].mask(judged, pd.Series(came_to, models.index, dtype=object))
    return models.assign(accuracy_beyond=beyond, outcome=outcome)


def judge_languages_alike(
    store: Store, models: pd.DataFrame, below: float
) -> tuple[pd.DataFrame, list[range]]:
    """Models, those of each language on longer strings of the same lengths, and these lengths,
    where configurations of a language have others of their own.

    Args:
        models: as `models` gives them, and language.
    """
    parts, lengths = [], []
    for _, some in models.groupby("language", sort=False):
        longer = longer_lengths(store, set(some["config_id"].tolist()))
        parts.append(judge_on(store, some, longer, below))
        lengths += [] if longer is None else [longer]
    return (pd.concat(parts).loc[models.index] if lengths else models), lengths


def scores_by_length(store: Store, run_ids: Sequence[int], width: int) -> pd.DataFrame:
    """The confusion of runs on strings of similar length.

    Args:
        width: lengths that make one row: with 10, the lengths 0 to 10, 11 to 20, and so on.

    Returns:
        run_id, first_length, last_length, tn, fp, fn, tp, tested, wrong (strings); and
        right_length_given (strings), edits and target_tokens, where any of the runs is of a
        transduction.
    """
    with store.begin() as connection:
        scores = length_frame(connection, run_ids)
    scores["first_length"] = first_lengths(scores["length"].to_numpy(), width)
    groups = scores.groupby(["run_id", "first_length"])[list(LENGTH_COUNTS)]
    scores = with_outputs(groups.sum(min_count=1).reset_index())
    scores.insert(2, "last_length", last_lengths(scores["first_length"], width))
    return scores


def first_lengths(lengths: Int64[np.ndarray, " row"], width: int) -> Int64[np.ndarray, " row"]:
    """The first of the lengths that are summed up with each; the empty string is with 1."""
    if width == 1:
        return lengths
    return np.asarray(np.where(lengths <= width, 0, (lengths - 1) // width * width + 1))


def last_lengths(first: "pd.Series[int]", width: int) -> "pd.Series[int]":
    """The last of the lengths that are summed up with each of these first ones."""
    return first + width - 1 + ((first == 0) & (width > 1))


def output_shares(store: Store, run_ids: Sequence[int]) -> pd.DataFrame:
    """What the outputs of runs come to over all lengths, a row a run.

    Returns:
        run_id, right_length_given (the share whose output is the target where the target's length
        is imposed) and token_error_rate; missing where a run is not of a transduction.
    """
    with store.begin() as connection:
        scores = length_frame(connection, run_ids)
    sums = scores.groupby("run_id")[["tested", *OUTPUT_COUNTS]].sum(min_count=1).reset_index()
    sums = sums.astype(float).astype({"run_id": int})
    return pd.DataFrame(
        {
            "run_id": sums["run_id"],
            "right_length_given": sums["right_length_given"] / sums["tested"],
            "token_error_rate": sums["edits"] / sums["target_tokens"],
        }
    )


def _worst_first(view: View) -> Select[*tuple[Any, ...]]:
    finished = select(*model_columns(view)).where(in_scope(view), Run.state == RunState.DONE)
    # A share: test sets differ in size.
    return finished.order_by((cast(errors_made(view), Float) / Run.tested).desc(), Run.id)
