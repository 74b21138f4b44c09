"""Outcomes by setting: a map over two settings, and the importance of each."""

from collections.abc import Collection, Sequence
from itertools import combinations

import pandas as pd

from sweeps.api.outcomes import each_seed_once, settings_read
from sweeps.api.questions import MEASURES as MEASURES
from sweeps.api.questions import measured, why_unpaired
from sweeps.grid.budgets import BUDGET_FIELDS
from sweeps.statistics.importance import importance
from sweeps.statistics.populations import DERIVED, SIZE
from sweeps.store.database import Store
from sweeps.store.reads import frames, queries
from sweeps.store.reads.overview import judge_on
from sweeps.store.reads.overview import longer_lengths as longer_lengths
from sweeps.store.reads.selection import Selection

MOST_VALUES = 30
"""Maximum number of values of a setting that may be an axis of a map."""

MOST_READ = 3_000
"""Maximum number of models whose results at every length are read: a second."""


def axes_of(store: Store, config_ids: Sequence[int]) -> list[str]:
    """Returns the settings with few values in which configurations differ: first the two with the
    most cells, then those that all of them read.
    """
    settings = settings_read(store, config_ids)
    few = [str(x) for x in settings if 1 < settings[x].nunique() <= MOST_VALUES]
    # Fields come before derived settings, and those that all read before the others.
    few = sorted(few, key=lambda x: (x in DERIVED, bool(settings[x].isna().any())))
    read = [x for x in few if settings[x].notna().all() and x not in DERIVED]
    pairs = combinations(read if len(read) > 1 else few, 2)
    most = max(pairs, key=lambda pair: settings.groupby(list(pair)).ngroups, default=())
    return [*most, *(x for x in few if x not in most)]


def judged_alike(
    store: Store, selection: Selection, config_ids: Collection[int]
) -> tuple[pd.DataFrame, range | None]:
    """Returns the finished runs of configurations, judged on the same longer strings.

    Returns:
        The frame of `frames.runs`, and the common lengths where those of configurations differ;
        more than `MOST_READ` runs are judged on their own lengths.
    """
    runs = frames.finished_runs(store, selection)
    runs = runs[runs["config_id"].isin(config_ids)]
    longer = longer_lengths(store, config_ids)
    # Judging on common lengths reads every run's counts by length; the limit bounds that.
    if longer is None or len(runs) > MOST_READ:
        return runs, None
    return judge_on(store, runs, longer, selection.below), longer


def cells(
    store: Store, selection: Selection, config_ids: Sequence[int], fields: Sequence[str]
) -> tuple[pd.DataFrame, int, range | None]:
    """Summarizes the models of each cell of a map.

    Models that do not read one of the fields are in no cell. A seed trained with several budgets
    counts once, with the largest, unless a field is about budgets.

    Returns:
        A frame of the fields, sorted by their values; models, configurations, judged, learned,
        judged_beyond, generalize (models); median, best and worst (accuracies on longer strings of
        those that learned; missing where there is none). Then the number of models in no cell, and
        the lengths of the longer strings, as in `judged_alike`.
    """
    runs, longer = judged_alike(store, selection, config_ids)
    every = each_seed_once(store, runs, fields)
    settings = settings_read(store, list(config_ids))[list(fields)]
    runs = every.join(settings, on="config_id").dropna(subset=list(fields))
    # Only seeds that learned are judged on longer strings.
    beyond = runs["accuracy_beyond"].where(runs["learned"].fillna(False).astype(bool))
    keys = [runs[name] for name in fields]
    grouped = beyond.groupby(keys)
    sums = grouped.agg(median="median", best="max", worst="min")
    sums["models"] = runs.groupby(list(fields)).size()
    sums["configurations"] = runs.groupby(list(fields))["config_id"].nunique()
    counts = frames.configurations(runs, *fields).set_index(list(fields))
    table: pd.DataFrame = sums.join(counts[["judged", "learned", "judged_beyond", "generalize"]])
    return table.reset_index(), len(every) - len(runs), longer


def which_matters(
    store: Store, selection: Selection, config_ids: Sequence[int], measure: str
) -> tuple[pd.DataFrame, range | None]:
    """Computes how far each setting that is read moves a measure.

    Args:
        measure: one of `MEASURES`; on longer strings only seeds that learned count.

    Returns:
        The frame of `importance`, and the lengths of the longer strings, as in `judged_alike`.
    """
    runs, longer = judged_alike(store, selection, config_ids)
    value = measured(runs, selection.below)[measure]
    runs = runs.assign(value=value).dropna(subset=["value"])
    if runs.empty:
        return pd.DataFrame({"moves": []}), longer
    # The number of parameters follows from the other settings.
    settings = settings_read(store, list(config_ids)).drop(columns=SIZE, errors="ignore")
    configs = queries.configs(store, list(config_ids))

    budgets = {*BUDGET_FIELDS}

    def are_strangers(a: int, b: int) -> bool:
        return why_unpaired(configs[a], configs[b]) is not None

    parts = []
    # A seed with two budgets is one model, and counts with each only to compare budgets.
    for by, is_meant in (((), False), (BUDGET_FIELDS, True)):
        some = each_seed_once(store, runs, by)
        found = importance(some, settings, "value", are_strangers, is_share=measure != "beyond")
        about = found.get("fields", pd.Series(dtype=object)).map(lambda x: bool({*x} & budgets))
        parts.append(found[about == is_meant])
    effects = pd.concat(parts)
    return effects.sort_values("moves", ascending=False, kind="stable", ignore_index=True), longer
