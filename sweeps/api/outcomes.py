"""Outcomes of configurations over their seeds."""

import json
import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from seqcls.interpretability.wording import percent, percents
from seqcls.results import DRAWN
from seqcls.theory.predictions import theory_of
from sweeps.api.languages import every_setting
from sweeps.api.selecting import selection_of
from sweeps.grid.budgets import BUDGET_FIELDS
from sweeps.results import BORDER_SHARES, Outcome, OutcomeCounts
from sweeps.statistics.importance import with_every_budget, with_largest_budget
from sweeps.statistics.intervals import median_intervals, selection_effect, wilson
from sweeps.statistics.populations import CLASS, COUNTING, SIZE, language_shares
from sweeps.store.database import Store
from sweeps.store.reads import frames, queries
from sweeps.store.reads.misclassified import accuracy_by_drawn, border_accuracies
from sweeps.store.reads.overview import budget_models, language_names, settings
from sweeps.store.reads.queries import config_texts, names_of
from sweeps.store.reads.selection import Selection, as_list
from sweeps.store.shortcuts import best_shortcuts as best_shortcuts
from sweeps.store.shortcuts import deciding as deciding

MOST_RESAMPLED = 20_000
"""Maximum number of seeds that learned for which a page bootstraps intervals: half a second."""

MOST_BY_DRAWN = 2_000
"""Maximum number of models whose errors are read for how the strings were drawn: a second."""


def configurations(
    store: Store, sweep: str | Sequence[str] | None = None, **chosen: Any
) -> pd.DataFrame:
    """Summarizes configurations, a row each, by the share of seeds that generalize, descending.

    A seed is judged on longer strings only if it has learned: if it is right on strings of its
    trained lengths.

    Args:
        store: the database.
        sweep: only this sweep, or these sweeps.
        chosen: the selection of runs, as for `sweeps.api.runs`: `model_seeds=0`,
            `learned_at=0.95`, `hidden_size=16`.

    Returns:
        name; seeds (finished); judged (with known learning), learned, and learned_low and
        learned_high, the 95% interval of their share (Wilson 1927); judged_beyond (of those that
        learned, tested on longer strings), generalize, and generalize_low and generalize_high
        likewise; accuracy_beyond, the median on longer strings of the seeds that learned, in
        [0, 1], and beyond_low and beyond_high, its 95% interval (bootstrap; missing of fewer than
        six); config_id; and the settings that differ. The interval of no seed is missing.

    Raises:
        UnknownRunError: there is no such sweep.
        ConfigError: there is no such field, or a seed is no seed.
    """
    selection = selection_of(store, [] if sweep is None else as_list(sweep), **chosen)
    runs = frames.runs(store, selection)
    table = _sum_up(runs[runs["picked"]])
    ids = table["config_id"].tolist()
    table["name"] = table["config_id"].map(names_of(store, ids))
    shown = [
        *("name", "seeds", "judged", "learned", "learned_low", "learned_high"),
        *("judged_beyond", "generalize", "generalize_low", "generalize_high"),
        *("accuracy_beyond", "beyond_low", "beyond_high", "config_id"),
    ]
    of_them = settings(store).reindex(ids)
    # As text, since a setting of a foreign model may be a list, which has no hash.
    differ = of_them.loc[:, of_them.astype(str).nunique() > 1]
    return table[shown].join(differ, on="config_id").reset_index(drop=True)


def _sum_up(runs: pd.DataFrame, most: float = math.inf) -> pd.DataFrame:
    """Summarizes runs, a row a configuration, the best first.

    Args:
        most: the maximum number of seeds that learned; of more, medians have no intervals.

    Returns:
        The columns of `frames.configurations`, the intervals of both shares, accuracy_within (the
        median over seeds), accuracy_beyond (over those that learned) with its interval.
    """
    table = frames.configurations(runs)
    for name, total in (("learned", "judged"), ("generalize", "judged_beyond")):
        ends = [wilson(x, n) if n else None for x, n in zip(table[name], table[total], strict=True)]
        table[f"{name}_low"] = [None if x is None else x.low for x in ends]
        table[f"{name}_high"] = [None if x is None else x.high for x in ends]
    learned = runs[runs["learned"].fillna(False).astype(bool)]
    if len(learned) <= most:
        medians = median_intervals(learned, "accuracy_beyond", ["config_id"])
        medians = medians.set_index("config_id")[["median", "low", "high"]]
    else:
        medians = learned.groupby("config_id")["accuracy_beyond"].agg(["median"])
        medians = medians.assign(low=np.nan, high=np.nan)
    medians = medians.set_axis(["accuracy_beyond", "beyond_low", "beyond_high"], axis=1)
    within = runs.groupby("config_id")[["accuracy_within"]].median()
    table = table.join(medians.astype(float), on="config_id").join(within, on="config_id")
    # Of all judged seeds, not of those that learned: few that all generalize are not the best.
    share = table["generalize"] / table["judged"].where(table["judged"] > 0)
    # An unknown share ranks below a share of zero.
    table = table.assign(share=share.fillna(-1.0))
    by = ["share", "learned", "accuracy_beyond", "config_id"]
    table = table.sort_values(by, ascending=[False, False, False, True], ignore_index=True)
    return table.drop(columns="share")


def counts_of(store: Store, selection: Selection) -> pd.DataFrame:
    """Returns the configurations with a picked finished model, by id: name, and the counts of
    `frames.configurations` over all seeds in scope.
    """
    table = frames.configurations(frames.runs(store, selection))
    return _with_names(store, table)


def _with_names(store: Store, table: pd.DataFrame) -> pd.DataFrame:
    table = table[(table["seeds"] > 0) & (table["picked"] > 0)].reset_index(drop=True)
    names = names_of(store, table["config_id"].tolist())
    table.insert(0, "name", table["config_id"].map(names).astype(object))
    return table


def configurations_of(store: Store, selection: Selection) -> pd.DataFrame:
    """Returns the rows of `counts_of` with the columns of `configurations`, the best first.

    Returns:
        And fails_from and fails_to (the least and the greatest length of a first error of those
        that fail beyond, trained lengths included); shortcut_reader, shortcut_within and
        shortcut_beyond (accuracies of the best shortcut reader of its test); theory (the verdict
        whether some weights recognize the language); counting (the level of the language, or
        outside); num_parameters; selection (the excess of the best seed over the mean on longer
        strings, in words).
    """
    runs = frames.runs(store, selection)
    table = _with_names(store, _sum_up(runs, MOST_RESAMPLED))
    ids = table["config_id"].tolist()
    first = (runs["solved_length"] + 1).where(runs["outcome"] == Outcome.FAILS_BEYOND)
    spans = first.groupby(runs["config_id"]).agg(fails_from="min", fails_to="max")
    table = table.join(spans.astype("Int64"), on="config_id")
    texts = config_texts(store, ids)
    theory = {key: theory_of(json.loads(text)) for key, text in texts.items()}
    table["theory"] = [theory[x].first.verdict for x in ids]
    table[COUNTING] = [x.name if (x := theory[y].language.counting) else None for y in ids]
    sizes = queries.sizes_of(store, ids)
    table[SIZE] = pd.array([sizes[x] for x in ids], dtype="Int64")
    table["selection"] = table["config_id"].map(_selection_effects(runs)).astype(object)
    best = best_shortcuts(store, ids).set_index("config_id")[["reader", "within", "beyond"]]
    return table.join(best.add_prefix("shortcut_"), on="config_id")


def _selection_effects(runs: pd.DataFrame) -> dict[Hashable, str]:
    """Returns the excess of the best of the seeds that learned over their mean on longer strings,
    by configuration; nothing for more than `MOST_BY_DRAWN` models.
    """
    learned = runs[runs["learned"].fillna(False).astype(bool)].dropna(subset=["accuracy_beyond"])
    texts: dict[Hashable, str] = {}
    if len(learned) <= MOST_BY_DRAWN:
        for config_id, own in learned.groupby("config_id")["accuracy_beyond"]:
            effect = selection_effect(own.to_numpy(dtype=np.float64))
            ends = f" ({percents(effect.low, effect.high, 1)})" if effect.low == effect.low else ""
            texts[config_id] = f"{percent(effect.value, 1)}{ends}" if len(own) > 1 else ""
    return texts


def accuracies_by_drawn(store: Store, selection: Selection) -> pd.DataFrame:
    """Computes the accuracy by how strings were drawn: medians over the seeds that learned.

    Returns:
        config_id, and a column for each of `seqcls.results.DRAWN` that the tests have; and those of
        `BORDER_SHARES` that are known. Nothing for more than `MOST_BY_DRAWN` models.
    """
    runs = frames.finished_runs(store, selection)
    runs = runs[runs["learned"].fillna(False).astype(bool)]
    if len(runs) > MOST_BY_DRAWN:
        return pd.DataFrame({"config_id": []}, dtype=int)
    counts = accuracy_by_drawn(store, runs["run_id"].tolist())
    counts["right"] = 1 - counts["wrong"] / counts["tested"]
    wide = counts.pivot(index="run_id", columns="drawn", values="right")
    of_pairs = border_accuracies(store, Selection(run_ids=tuple(runs["run_id"].tolist())))
    wide = wide.join(of_pairs.set_index("run_id")[list(BORDER_SHARES)], how="outer")
    medians = wide.groupby(runs.set_index("run_id")["config_id"]).median()
    known = [x for x in (*DRAWN, *BORDER_SHARES) if x in medians and medians[x].notna().any()]
    return medians[known].reset_index()


def settings_read(store: Store, config_ids: Sequence[int]) -> pd.DataFrame:
    """Returns the settings in which configurations differ, indexed by config_id: missing where one
    does not read them; and the class of each language, its counting and the number of parameters,
    where they differ.
    """
    read = every_setting(store, config_ids)
    # An undecided class does not distinguish languages.
    read = read.drop(columns=[x for x in (CLASS, COUNTING) if read[x].nunique() < 2])
    read[SIZE] = pd.Series(queries.sizes_of(store, list(config_ids)), dtype="Int64")
    return read.loc[:, read.astype(str).nunique() > 1]


def each_seed_once(store: Store, runs: pd.DataFrame, by: Sequence[str] = ()) -> pd.DataFrame:
    """Returns one run of each seed that was trained with several budgets: that of the largest, in
    the configuration of the smallest; all of them where `by` has a field about budgets.

    Args:
        runs: finished ones, as in `frames.runs`.
        by: the settings that distinguish runs.
    """
    choose = with_every_budget if {*by} & {*BUDGET_FIELDS} else with_largest_budget
    return choose(runs, budget_models(store))


def count_outcomes(store: Store, selection: Selection) -> OutcomeCounts:
    """Counts outcomes of the seeds in scope; one with several budgets once, with its largest."""
    runs = each_seed_once(store, frames.finished_runs(store, selection))
    return OutcomeCounts.from_configurations(frames.configurations(runs))


def groups(
    store: Store, selection: Selection, by: str, config_ids: Sequence[int] | None = None
) -> pd.DataFrame:
    """Summarizes configurations by a setting, or by the class of their languages.

    Each configuration has the same weight, or each language where there are several; more seeds
    only make its share more certain (`sweeps.statistics.intervals.clustered_wilson`).

    Args:
        by: a column of `settings_read`.
        config_ids: the configurations; by default, all in scope.

    Returns:
        value, those first that generalize most: members (configurations) or languages, seeds,
        judged, learned, judged_beyond and generalize (seeds), learned_share and generalize_share
        (means over members) with their intervals (_low, _high), and accuracy_beyond (the median
        over the seeds that learned).
    """
    runs = frames.finished_runs(store, selection)
    if config_ids is not None:
        runs = runs[runs["config_id"].isin(config_ids)]
    values = settings_read(store, runs["config_id"].unique().tolist()).get(by)
    if values is None:
        return pd.DataFrame()
    runs = each_seed_once(store, runs, [by])
    runs = runs.assign(value=runs["config_id"].map(values.dropna().astype(str)))
    runs = runs.dropna(subset=["value"])
    languages = runs["config_id"].map(language_names(store))
    several = languages.nunique() > 1
    members = languages if several else runs["config_id"].astype(str)
    shares = language_shares(runs.assign(language=members), ["value"], least=1)
    names = {x: f"{x}_share" for x in ("learned", "generalize")}
    shares = shares.rename(columns=names if several else {"languages": "members", **names})
    counts = frames.configurations(runs, "value")
    learned = runs[runs["learned"].fillna(False).astype(bool)]
    table = shares[[x for x in shares if not str(x).endswith("_languages")]].merge(
        counts[["value", "judged", "learned", "judged_beyond", "generalize"]], on="value"
    )
    medians = learned.groupby("value")["accuracy_beyond"].median()
    table["accuracy_beyond"] = table["value"].map(medians).astype(float)
    # The product is approximately the share of all seeds that learn and generalize.
    best = table["generalize_share"] * table["learned_share"]
    order = best.fillna(-1.0).sort_values(ascending=False, kind="stable").index
    return table.loc[order].reset_index(drop=True)
