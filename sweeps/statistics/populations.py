"""Populations: configurations that differ only by the language, summarized over languages.

Shares of a class of languages are means over languages: all have the same weight, and more seeds of
one make only its own share more certain.
"""

import math
import re
from collections.abc import Mapping, Sequence, Set
from typing import Any

import numpy as np
import pandas as pd

from seqcls.fields import language_fields
from sweeps.results import BORDER_SHARES, GENERALIZING, JUDGED_BEYOND
from sweeps.statistics.intervals import clustered_wilson, wilson

CLASS = "language_class"
"""The setting that names the class of a language: the only one among those that define a language
that distinguishes populations."""

COUNTING, SIZE = "counting", "num_parameters"
DERIVED = (COUNTING, SIZE)
"""Properties derived from settings, which distinguish configurations like settings."""

FIRST = (CLASS, "task", "architecture", "positions")
"""Settings that name a population in preference to others that distinguish it as well."""

BORDER, RANDOM = ("border",), ("positive", "uniform")
"""Ways of drawing test strings: at the border of the language, or anywhere."""

_OF_BENCHMARK = re.compile(r"\d+\.\d+\.([A-Za-z]+)\.\d+\.\d+\.\d+")
"""The name of a language of MLRegTest, with its class."""


def class_named(name: str) -> str | None:
    """The class of a language by a file's name in MLRegTest; None for other names."""
    found = _OF_BENCHMARK.match(name)
    return None if found is None else found[1]


def settings_apart(settings: pd.DataFrame, tasks: Sequence[str]) -> list[str]:
    """The settings that distinguish populations, chosen greedily, those of `FIRST` before others.

    Args:
        settings: one row a configuration; missing where it does not read a setting.
        tasks: the tasks of the configurations; the fields that define their languages are not
            chosen, except the class.
    """
    defining = {x for task in tasks for x in language_fields(task)} - set(FIRST)
    others = [str(name) for name in settings if name not in (*FIRST, *defining)]
    chosen: list[str] = []
    number = 1
    for name in [*(x for x in FIRST if x in settings), *others]:
        groups = settings.groupby([*chosen, name], dropna=False, sort=False).ngroups
        # A setting that splits no group further is redundant.
        if groups > number:
            chosen, number = [*chosen, name], groups
    return chosen


def without_unread(settings: pd.DataFrame, unread: Mapping[int, Set[str]]) -> pd.DataFrame:
    """Settings, set to None where the configuration's language and network do not read them.

    Args:
        settings: a column a setting, indexed by config_id.
        unread: the settings that each configuration does not read, by config_id.
    """
    nothing = frozenset[str]()
    mask = [[name in unread.get(key, nothing) for name in settings] for key in settings.index]
    return settings.astype(object).mask(np.array(mask, dtype=bool).reshape(settings.shape), None)


def language_shares(models: pd.DataFrame, by: Sequence[str], least: int = 2) -> pd.DataFrame:
    """Mean shares, over languages, of seeds that learned, and of those that generalize.

    Each language counts by a share of its seeds: learned of those judged, and generalize of those
    that learned.

    Args:
        models: one row a tested model: the columns of `by`, language, learned (0 or 1; missing
            where unknown) and outcome.
        by: the grouping columns.
        least: the minimum of languages of a group. With one alone, intervals are over its seeds.

    Returns:
        One row a group, sorted: the columns of `by`; languages, seeds (models); learned and
        generalize, the means over languages, each with its interval (learned_low, learned_high, …;
        `clustered_wilson`); learned_languages and generalize_languages, the numbers of languages
        where it is known. Shares of no language are missing.
    """
    beyond = models["outcome"].isin(JUDGED_BEYOND)
    generalize = models["outcome"].isin(GENERALIZING).where(beyond).astype("Float64")
    known = models.assign(learned=models["learned"].astype("Float64"), generalize=generalize)
    parts = ("learned", "generalize")
    languages = known.groupby([*by, "language"])[[*parts]].agg(["sum", "count", "size"])
    rows: list[list[Any]] = []
    for key, group in languages.groupby(level=list(by), sort=True):
        if len(group) < least:
            continue
        row = [*key, len(group), int(group["learned", "size"].sum())]
        for part in parts:
            own = group[part][group[part]["count"] > 0].astype(float)
            if len(group) > 1:
                share = clustered_wilson(own["sum"], own["count"])
            else:
                share = wilson(own["sum"].sum(), own["count"].sum())
            row += [share.value, share.low, share.high] if len(own) else [math.nan] * 3
            row.append(len(own))
        rows.append(row)
    columns = [f"{part}{end}" for part in parts for end in ("", "_low", "_high", "_languages")]
    return pd.DataFrame(rows, columns=[*by, "languages", "seeds", *columns])


ACCURACIES = ("random", "border", *BORDER_SHARES, "reader_random", "reader_border")
"""Columns of `median_accuracies`: of models, and of the best shortcut reader."""


def median_accuracies(counts: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Accuracies on random and border strings: medians over languages of medians over seeds.

    Args:
        counts: one row a model or reader and way of drawing: the columns of `by`, language, name
            (empty, or `reader_`), run_id, drawn (or a name of `BORDER_SHARES`), tested and right
            (strings).
        by: the grouping columns.

    Returns:
        The known columns of `ACCURACIES`, indexed by the columns of `by`.
    """
    ways = {x: x for x in BORDER_SHARES}
    ways |= {**dict.fromkeys(RANDOM, "random"), **dict.fromkeys(BORDER, "border")}
    counts = counts.assign(part=counts["name"] + counts["drawn"].map(ways)).dropna(subset=["part"])
    keys = [*by, "part"]
    sums = counts.groupby([*keys, "language", "run_id"])[["tested", "right"]].sum()
    of_languages = (sums["right"] / sums["tested"]).groupby([*keys, "language"]).median()
    wide: pd.DataFrame = of_languages.groupby(keys).median().unstack()
    return wide[[x for x in ACCURACIES if x in wide]]
