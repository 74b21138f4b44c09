"""The results of each configuration's seeds: medians, and which of them fail."""

import pandas as pd

from sweeps.statistics.median_intervals import median_intervals


def medians(models: pd.DataFrame, listed: int) -> pd.DataFrame:
    """One row a configuration that has a finished run.

    Args:
        models: the runs, as `overview.models` gives them.
        listed: how many seeds are named at most.

    Returns:
        config_id, median_accuracy, low and high (its 95% interval, missing where there are too few
        runs), median_solved_length (missing where half of the runs or more solve no length of
        which there are test strings), and the first failing_seeds, in order (a list).
    """
    # Medians may lie between two lengths: they are fractions, and so is what they are held against.
    models = models.assign(solved_length=models["solved_length"].astype(float))
    accuracies = median_intervals(models, "accuracy", ["config_id"])
    # A run that solves no tested length is below all that do; no median is said of those alone.
    by_config = models.assign(least=models["solved_length"].fillna(-1)).groupby("config_id")
    solved = by_config["least"].median()
    solved = solved.where(solved >= by_config["solved_length"].min())
    failing = models[models["failing"] > 0].sort_values(["config_id", "model_seed"])
    seeds = failing.groupby("config_id")["model_seed"].agg(
        lambda group: group.head(listed).tolist()
    )
    config_ids = accuracies["config_id"]
    return pd.DataFrame(
        {
            "config_id": config_ids,
            "median_accuracy": accuracies["median"],
            "low": accuracies["low"],
            "high": accuracies["high"],
            "median_solved_length": config_ids.map(solved),
            "failing_seeds": [seeds.get(config_id, []) for config_id in config_ids],
        }
    )
