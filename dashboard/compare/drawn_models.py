"""What the page Compare draws of each model."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dashboard import data
from dashboard.compare import lengths
from dashboard.words import names
from seqcls.kinds import Measure
from sweeps.store.reading.selection import View

MAX_ROWS, MAX_MODELS = 20, 1_000
"""Configurations in the charts that have a row for each, and models in these charts."""


def _all(view: View, config_ids: tuple[int, ...]) -> pd.DataFrame:
    models = data.models(view)
    return models[(models["picked"] > 0) & models["config_id"].isin(config_ids)]


@data.shared
def counts(view: View, config_ids: tuple[int, ...]) -> dict[int, int]:
    """How many models the view picks of each of these configurations that has any."""
    numbers = _all(view, config_ids)["config_id"].value_counts()
    return dict(zip(numbers.index.tolist(), numbers.tolist(), strict=True))


@data.shared
def models(view: View, config_ids: tuple[int, ...], most: int | None) -> pd.DataFrame:
    """These models, with the names of their configurations.

    Args:
        view: picks the models.
        config_ids: their configurations.
        most: of each configuration, evenly from its worst to its best; all where it is None.
    """
    drawn = _all(view, config_ids)
    if most is not None:
        drawn = pd.concat(_spread(seeds, most) for _, seeds in drawn.groupby("config_id"))
    return drawn.assign(configuration=drawn["config_id"].map(names.configuration_names(config_ids)))


def by_seed(view: View, config_ids: tuple[int, ...]) -> pd.DataFrame:
    """Reads `models`, up to `MAX_MODELS`, for the charts of every seed: with `jitter` in [-1, 1].

    It follows from the seed, so that the same models always lie at the same place.
    """
    is_many = sum(counts(view, config_ids).values()) > MAX_MODELS
    drawn = models(view, config_ids, MAX_MODELS if is_many else None).drop(
        columns=["failing", "picked"]
    )
    return drawn.assign(jitter=(drawn["model_seed"] * 0.618034) % 1 * 2 - 1)


def _spread(models: pd.DataFrame, most: int) -> pd.DataFrame:
    places = np.linspace(0, len(models) - 1, min(len(models), most)).round().astype(int)
    return models.sort_values("accuracy").iloc[np.unique(places)]


@data.shared
def points(
    view: View, config_ids: tuple[int, ...], most: int | None, width: int, measure: str
) -> pd.DataFrame:
    """The points of a line for each of `models`: as `lengths.points`, with model_seed and name."""
    drawn = models(view, config_ids, most)[["run_id", "model_seed", "configuration"]]
    scores = data.scores_by_length(tuple(drawn["run_id"]), width)
    return lengths.points(scores, measure).merge(drawn, on="run_id")


@dataclass(frozen=True, eq=False)
class Lines:
    """Lines of models, and medians of configurations, against length."""

    given: tuple[Any, ...]
    """What `accuracy_by_length` draws: points, medians, limits, the measure's title, colors."""
    most: int | None
    """Models of each configuration that have a line; None where all have."""

    @property
    def colors(self) -> dict[str, str]:
        """The color of each configuration, by its name."""
        *_, colors = self.given
        return dict(colors)


def lines(view: View, config_ids: tuple[int, ...], measure: Measure, width: int) -> Lines | None:
    """The lines of a measure; None where no model has a point.

    Args:
        view: picks the models.
        config_ids: their configurations, no more than there are colors.
        measure: one of `lengths.offered`.
        width: lengths that make one point.
    """
    middle = lengths.medians(view, config_ids, width, measure.name)
    if middle.empty:
        return None
    most = lengths.most_drawn(counts(view, config_ids), middle["middle"].nunique())
    named = names.configuration_names(config_ids)
    color_of = names.colors(config_ids)
    colors = {named[config_id]: color_of[config_id] for config_id in config_ids}
    seeds = points(view, config_ids, most, width, measure.name)
    return Lines((seeds, middle, lengths.limits(config_ids), measure.title, colors), most)
