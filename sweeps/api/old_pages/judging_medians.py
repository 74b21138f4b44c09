"""The results of each configuration's seeds: medians, and which of them fail."""

from typing import Any

import pandas as pd

from sweeps.results import Outcome
from sweeps.statistics.intervals import median_intervals


def medians(models: pd.DataFrame, listed: int) -> pd.DataFrame:
    """One row a configuration that has a finished run.

    Args:
        models: the runs, as `overview.models` gives them.
        listed: how many seeds are named at most.

    Returns:
        config_id, median_accuracy, low and high (its 95% interval, missing where there are too few
        runs), median_solved_length (of the runs that have learned, and of those of which that is
        not known; missing where there are none, or half of them or more solve no length of which
        there are test strings), and the first failing_seeds, unlearned_seeds and beyond_seeds
        (that fail, have not learned, and fail beyond), in order (lists).
    """
    accuracies = median_intervals(models, "accuracy", ["config_id"])
    # A run that solves no tested length is below all that do; no median is said of those alone.
    # Of a model that has not learned, how long the strings are that it is right on says nothing.
    # Medians may lie between two lengths: they are fractions, and so is what they are held against.
    lengths = models.loc[models["outcome"] != Outcome.NOT_LEARNED, ["config_id", "solved_length"]]
    lengths = lengths.astype({"solved_length": float})
    by_config = lengths.assign(least=lengths["solved_length"].fillna(-1)).groupby("config_id")
    solved = by_config["least"].median()
    solved = solved.where(solved >= by_config["solved_length"].min())
    seeds = {
        "failing_seeds": _first_seeds(models[models["failing"] > 0], listed),
        "unlearned_seeds": _first_seeds(models[models["outcome"] == Outcome.NOT_LEARNED], listed),
        "beyond_seeds": _first_seeds(models[models["outcome"] == Outcome.FAILS_BEYOND], listed),
    }
    config_ids = accuracies["config_id"]
    return pd.DataFrame(
        {
            "config_id": config_ids,
            "median_accuracy": accuracies["median"],
            "low": accuracies["low"],
            "high": accuracies["high"],
            "median_solved_length": config_ids.map(solved),
            **{name: [of.get(key, []) for key in config_ids] for name, of in seeds.items()},
        }
    )


def _first_seeds(models: pd.DataFrame, listed: int) -> "pd.Series[Any]":
    """The first model seeds of each configuration, in order, by config_id."""
    ordered = models.sort_values(["config_id", "model_seed"])[["config_id", "model_seed"]]
    return ordered.groupby("config_id")["model_seed"].agg(lambda few: few.head(listed).tolist())
