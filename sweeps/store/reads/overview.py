"""Settings and languages of configurations; outcomes of models on common longer lengths."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Int64

from seqcls.config import default_fields
from seqcls.fields import language_of
from seqcls.imported import PREFIX, fields_known, in_columns
from sweeps.grid.budgets import models_by_budget
from sweeps.naming import settings_read
from sweeps.results import Outcome, differing_fields, exact_type
from sweeps.store.database import Store
from sweeps.store.reads.queries import config_texts, configs
from sweeps.store.reads.stored import config_of, length_frame, problem_of
from sweeps.store.test_sets import names_of_datasets


def settings(store: Store) -> pd.DataFrame:
    """The fields in which configurations differ: one row a configuration, indexed by config_id.

    A dataset has the name of the file that it was read from.
    """
    names = dataset_names(store)
    texts = tuple(config_texts(store).items())
    # Callers add columns, which must not reach the cached frame.
    return _settings_of(texts, tuple(names.items())).copy(deep=False)


@lru_cache(maxsize=4)
def _settings_of(
    texts: tuple[tuple[int, str], ...], datasets: tuple[tuple[str, str], ...]
) -> pd.DataFrame:
    # Cached, since pages call it whenever a run has ended.
    names, defaults, fields = dict(datasets), default_fields(), []
    for config_id, text in texts:
        stored = {**defaults, **json.loads(text)}
        known = fields_known(config_of(config_id, text)) if stored["imported"] else stored
        digest = stored["dataset"]
        fields.append({**known, "dataset": names.get(digest, digest)})
    index = pd.Index([config_id for config_id, _ in texts], name="config_id")
    columns = None if fields else list(defaults)
    table = pd.DataFrame(in_columns(fields), index=index, columns=columns, dtype=object)
    foreign = table.columns[table.columns.str.startswith(PREFIX)]
    # One missing value for an absent setting and for None.
    table[foreign] = table[foreign].fillna(np.nan)
    varying = table[differing_fields(table)]
    # Whole numbers stay objects beside missing values, and beside floats that cannot hold them.
    whole = [
        name
        for name in varying
        if not varying[name].hasnans and exact_type(varying[name]) != "object"
    ]
    return varying.astype({name: varying[name].infer_objects().dtype for name in whole})


def budget_models(store: Store) -> list[dict[int, int]]:
    """The models with several budgets, as `sweeps.grid.budgets.models_by_budget` returns them."""
    return models_by_budget({key: json.loads(x) for key, x in config_texts(store).items()})


def language_names(store: Store) -> dict[int, str]:
    """The name of each configuration's language, by config_id."""
    names = dataset_names(store)
    return {key: language_of(json.loads(text), names) for key, text in config_texts(store).items()}


def settings_of(store: Store, config_ids: Sequence[int]) -> dict[int, dict[str, Any]]:
    """The settings that configurations read, as `sweeps.naming.settings_read` returns them."""
    return settings_read(configs(store, config_ids), dataset_names(store))


def dataset_names(store: Store) -> dict[str, str]:
    """Unique names of datasets, by digest."""
    with store.read() as connection:
        return names_of_datasets(connection)


# Models that were trained on different lengths, judged on the same longer ones.


def longer_lengths(store: Store, config_ids: Collection[int]) -> range | None:
    """The lengths of the longer strings on which these configurations are compared.

    Beyond those that any was trained on, up to the longest that all are tested on; an empty range
    if there are none. Configurations whose trained lengths are unknown are ignored.

    Returns:
        None if the longer strings of all have the same lengths.
    """
    return longer_of(own_longer(config_texts(store, list(config_ids))).values())


def own_longer(texts: Mapping[int, str]) -> dict[int, range]:
    """The tested lengths above the trained ones, by id of the configurations whose trained lengths
    are known.

    Args:
        texts: the stored fields, as JSON, by id.
    """
    known = ((key, problem_of(text)) for key, text in texts.items())
    return {
        key: range(x.trained_lengths.stop, x.longest_tested + 1)
        for key, x in known
        if x is not None and x.config.knows_trained_lengths
    }


def longer_of(lengths: Iterable[range]) -> range | None:
    """The intersection of these ranges; None if all are the same."""
    own = set(lengths)
    if len(own) < 2:
        return None
    return range(max(x.start for x in own), min(x.stop for x in own))


def judge_on(
    store: Store, models: pd.DataFrame, longer: range | None, below: float
) -> pd.DataFrame:
    """Models with `accuracy_beyond` and `outcome` on longer strings of these lengths.

    Args:
        longer: the result of `longer_lengths` for their configurations.
        below: the accuracy below which a model that has learned fails on them.
    """
    if longer is None:
        return models
    scores = length_frame(store, models["run_id"])
    on_longer = scores[(scores["length"] >= longer.start) & (scores["length"] < longer.stop)]
    sums = on_longer.groupby("run_id")[["tested", "wrong"]].sum()
    right = (sums["tested"] - sums["wrong"]) / sums["tested"].where(sums["tested"] > 0)
    beyond = models["run_id"].map(right).astype(float).where(models["accuracy_beyond"].notna())
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
    """Models, those of each language judged on the same longer lengths; and these lengths, for each
    language whose configurations have different ones.

    Args:
        models: a frame of finished runs with their language.
    """
    parts, lengths = [], []
    for _, some in models.groupby("language", sort=False):
        longer = longer_lengths(store, set(some["config_id"].tolist()))
        parts.append(judge_on(store, some, longer, below))
        lengths += [] if longer is None else [longer]
    return (pd.concat(parts).loc[models.index] if lengths else models), lengths


def first_lengths(lengths: Int64[np.ndarray, " row"], width: int) -> Int64[np.ndarray, " row"]:
    """The first length of the bin of each length; the bin of 1 includes the empty string."""
    if width == 1:
        return lengths
    return np.asarray(np.where(lengths <= width, 0, (lengths - 1) // width * width + 1))


def last_lengths(first: "pd.Series[int]", width: int) -> "pd.Series[int]":
    """The last lengths of the bins with these first lengths."""
    return first + width - 1 + ((first == 0) & (width > 1))
