"""Configurations by their settings: as a map of two, and which of them matters most."""

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
"""Values of a setting that is an axis of a map."""

MOST_READ = 3_000
"""Models at most whose results at every length are read: a second."""


def axes_of(store: Store, config_ids: Sequence[int]) -> list[str]:
    """The settings of few values in which configurations differ: first the two that have the most
    cells, then those that all of them read.
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
    """The finished runs of configurations, on longer strings that are the same for all.

    Returns:
        The frame of `frames.runs`, and the lengths of these strings where configurations have
        others of their own; of more than `MOST_READ` runs each is judged on its own.
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
    """What the models of each cell of a map come to.

    Models that do not read one of the fields are in no cell; a seed that was trained with several
    budgets counts once, with the largest, where no field is about budgets.

    Returns:
        The fields, sorted by their values; models, configurations, judged, learned, judged_beyond,
        generalize (models); median, best and worst (accuracies on longer strings of those that
        learned; missing where there is none). And how many models are in no cell, and the lengths
        of the longer strings, as `judged_alike` gives them.
    """
    runs, longer = judged_alike(store, selection, config_ids)
    every = each_seed_once(store, runs, fields)
    settings = settings_read(store, list(config_ids))[list(fields)]
    runs = every.join(settings, on="config_id").dropna(subset=list(fields))
    # A seed that has not learned says nothing of longer strings.
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
    """How far each setting that is read moves a measure, as `importance` has it.

    Args:
        measure: one of `MEASURES`; of longer strings only seeds that learned are asked.

    Returns:
        And the lengths of the longer strings, as `judged_alike` gives them.
    """
    runs, longer = judged_alike(store, selection, config_ids)
    value = measured(runs, selection.below)[measure]
    runs = runs.assign(value=value).dropna(subset=["value"])
    if runs.empty:
        return pd.DataFrame({"moves": []}), longer
    # How many parameters there are follows from settings, of which each stands for itself.
    settings = settings_read(store, list(config_ids)).drop(columns=SIZE, errors="ignore")
    configs = queries.configs(store, list(config_ids))

    budgets = {*BUDGET_FIELDS}

    def are_strangers(a: int, b: int) -> bool:
        return why_unpaired(configs[a], configs[b]) is not None

    parts = []
    # A seed with two budgets is one model: only to compare budgets does it count with each.
    for by, is_meant in (((), False), (BUDGET_FIELDS, True)):
        some = each_seed_once(store, runs, by)
        found = importance(some, settings, "value", are_strangers, is_share=measure != "beyond")
        about = found.get("fields", pd.Series(dtype=object)).map(lambda x: bool({*x} & budgets))
        parts.append(found[about == is_meant])
    effects = pd.concat(parts)
    return effects.sort_values("moves", ascending=False, kind="stable", ignore_index=True), longer
