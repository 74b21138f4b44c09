"""Populations of languages: shares of classes that networks learn."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import pandas as pd

from seqcls.config import RunConfig
from seqcls.errors import ConfigError, Parameter
from seqcls.fields import language_fields
from seqcls.interpretability.wording import percent, percents
from seqcls.problem import obstacle_of, unread_fields
from seqcls.text import nearest
from seqcls.theory.classes import class_names
from seqcls.theory.predictions import theory_of
from sweeps.api.selecting import selection_of
from sweeps.results import BORDER_SHARES, of_learned
from sweeps.statistics.populations import (
    ACCURACIES,
    BORDER,
    CLASS,
    COUNTING,
    class_named,
    language_shares,
    median_accuracies,
    settings_apart,
    without_unread,
)
from sweeps.store.database import Store
from sweeps.store.reads import frames, overview, queries
from sweeps.store.reads.misclassified import accuracy_by_drawn, border_accuracies
from sweeps.store.reads.selection import Selection, as_list
from sweeps.store.reads.stored import read_config
from sweeps.store.shortcuts import best_shortcut, shortcut_scores, shortcuts_by_drawn
from sweeps.store.test_sets import stored_datasets

MOST_BY_DRAWN = 5_000
"""Maximum number of models whose errors are read for how the strings were drawn."""


@dataclass(frozen=True, eq=False)
class Populations:
    """Outcomes of configurations that differ only in the language."""

    by: list[str]
    """The settings that distinguish populations."""
    table: pd.DataFrame
    """The shares, as in `sweeps.statistics.populations.language_shares`; and median accuracies, as
    in `median_accuracies`, where a test has border strings and there are no more than
    `MOST_BY_DRAWN` models."""
    longer: Sequence[range] = ()
    """The common lengths of the longer strings of a language, where those of its models differ."""

    def texts(self) -> pd.DataFrame:
        """Formats the table: shares and accuracies in percent, with intervals."""
        table = self.table
        shown = table[[*self.by, "languages", "seeds"]].astype({"languages": int})
        if COUNTING in table and COUNTING not in self.by and table[COUNTING].any():
            shown[COUNTING] = table[COUNTING]
        for part in ("learned", "generalize"):
            ends = zip(table[f"{part}_low"], table[f"{part}_high"], strict=True)
            shown[part] = [_percent(share) for share in table[part]]
            shown[f"{part}_95%"] = ["" if pd.isna(x[0]) else percents(*x, 0) for x in ends]
        accuracies = {x: table[x].map(_percent) for x in ACCURACIES if x in table}
        return shown.assign(**accuracies)


def _tell_levels(levels: "pd.Series[Any]") -> str:
    """Counts languages by level, as `level 0: 8, outside: 2`."""
    counts = levels.value_counts().sort_index()
    return ", ".join(f"{name}: {number}" for name, number in counts.items())


def _percent(share: float) -> str:
    return "" if pd.isna(share) else percent(share)


def populations(
    store: Store,
    sweep: str | Sequence[str] | None = None,
    by: str | Sequence[str] = (),
    **chosen: Any,
) -> Populations:
    """Computes the shares of languages learned and generalized on, over populations of them.

    Args:
        sweep: only this sweep, or these.
        by: the settings that distinguish populations; by default the fewest that do, the class of
            the languages (`language_class`) first.
        chosen: the selection of runs, as for `sweeps.api.selecting.selection_of`: `below=0.9`.
            Filters by results are ignored, so that shares are of all languages.

    Raises:
        UnknownRunError: there is no such sweep.
        ConfigError: there is no such setting in which its configurations differ.
    """
    by = tuple(as_list(by))
    selection = selection_of(store, [] if sweep is None else as_list(sweep), **chosen)
    # A share of runs selected by their results would only show the selection.
    scope = replace(selection, failing=False, outcomes=())
    models = frames.finished_runs(store, scope).sort_values(["config_id", "model_seed"])
    ids = [int(x) for x in models["config_id"].drop_duplicates()]
    tasks = pd.Series({x: y.task for x, y in queries.configs(store, ids).items()}, dtype=object)
    settings = every_setting(store, ids).assign(task=tasks)
    levels = settings[COUNTING]
    unasked = [] if COUNTING in by else [COUNTING]
    settings = settings.drop(columns=[*unasked, *[CLASS] * (settings[CLASS].nunique() < 2)])
    for name in by:
        if name not in settings:
            raise ConfigError(Parameter("by", name), f": {nearest(name, list(map(str, settings)))}")
    grouping = list(by) or settings_apart(settings, tasks.unique().tolist()) or ["task"]
    # All as text: groupby leaves out missing values and cannot sort mixed types.
    groups = settings[grouping].astype(object).where(settings[grouping].notna(), "").astype(str)
    groups["language"] = pd.Series(overview.language_names(store))
    models = models.join(groups, on="config_id")
    alike, longer = overview.judge_languages_alike(store, models, selection.below)
    shares = language_shares(alike, grouping)
    if COUNTING not in grouping:
        found = groups.assign(level=levels).drop_duplicates([*grouping, "language"])
        level_texts = found.groupby(grouping)["level"].agg(_tell_levels).rename(COUNTING)
        shares = shares.merge(level_texts.reset_index(), on=grouping, how="left")
    table = shares.merge(_accuracies(store, models, grouping), on=grouping, how="left")
    return Populations(grouping, table, longer)


def every_setting(store: Store, config_ids: Sequence[int]) -> pd.DataFrame:
    """Returns the settings of configurations, indexed by config_id: missing where they are not
    read; and the class of each language (`CLASS`) and its counting (`COUNTING`).
    """
    unread = {x: _unread(text) for x, text in queries.config_texts(store, config_ids).items()}
    read = without_unread(overview.settings(store).loc[list(config_ids)], unread)
    languages = pd.Series(overview.language_names(store)).reindex(read.index)
    # Theory is computed once for each language, not for each configuration.
    first = languages.drop_duplicates()
    configs = queries.configs(store, first.index.tolist())
    levels = pd.Series({x: counting_of(config) for x, config in configs.items()}, dtype=object)
    for name, of_first in ((CLASS, classes_of(store, configs)), (COUNTING, levels)):
        known = dict(zip(first, of_first.reindex(first.index), strict=True))
        read[name] = languages.map(known).astype(object)
    return read


@lru_cache(maxsize=2**14)
def _unread(text: str) -> frozenset[str]:
    # Cached, since pages read all configurations whenever a run has ended.
    return unread_fields(read_config(text))


def classes_of(store: Store, configs: Mapping[int, RunConfig]) -> "pd.Series[Any]":
    """Returns the class of the language of each configuration, by id; missing where undecided.

    It is the class in the configuration, else in the name of a file, else the decided one.
    """
    named = {digest: class_named(name) for digest, name in stored_datasets(store).items()}
    found = {x: _class_of(config, named) for x, config in configs.items()}
    return pd.Series(found, dtype=object)


def counting_of(config: RunConfig) -> str | None:
    """Returns the counting level of a configuration's language, as `level 1`, or `outside`; None
    where it is not regular or not decided.
    """
    if obstacle_of(config) is not None:
        return None
    counting = theory_of(dict(config)).language.counting
    return None if counting is None else counting.name


def _class_of(config: RunConfig, named: Mapping[str, str | None]) -> str | None:
    if obstacle_of(config) is not None:
        return None
    if CLASS in language_fields(config.task):
        return str(config.language_class)
    return named.get(config.dataset) or class_names(theory_of(dict(config)).language)


def _accuracies(store: Store, models: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    none = pd.DataFrame(columns=by)
    # This reads the errors of every run, string by string.
    if len(models) > MOST_BY_DRAWN:
        return none
    first = models.drop_duplicates("config_id")
    ids = first["config_id"].tolist()
    read = shortcuts_by_drawn(store, ids)
    run_ids = models["run_id"].tolist()
    tested = accuracy_by_drawn(store, run_ids)
    if not tested["drawn"].isin(BORDER).any():
        return none
    best = best_shortcut(shortcut_scores(store, ids)).drop_duplicates("config_id")
    read = read.merge(best[["config_id", "reader"]]).merge(first[["config_id", "language", *by]])
    of_models = models[["run_id", "language", *by]].assign(name="")
    kinds = border_accuracies(store, Selection(run_ids=tuple(run_ids)))
    kinds = of_learned(kinds, models.set_index("run_id")["outcome"])
    # A share counts as one string that is right to a fraction: one sum serves all rows.
    kinds = kinds.melt("run_id", list(BORDER_SHARES), "drawn", "right").assign(tested=1)
    counts = [
        of_models.merge(tested.assign(right=tested["tested"] - tested["wrong"])),
        of_models.merge(kinds.dropna(subset=["right"])),
        read.assign(name="reader_", run_id=read["config_id"]),
    ]
    return median_accuracies(pd.concat(counts), by)
