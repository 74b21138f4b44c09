"""The table of configurations: what their seeds come to."""

import pandas as pd

from dashboard import data, names
from sweeps.bootstrap import median_intervals
from sweeps.store.overview import View

MEASURES = [
    "seeds",
    "unfinished",
    "failed",
    "failing",
    "failing_share",
    "failing_seeds",
    "median_accuracy",
    "interval",
    "median_solved_length",
    "false_positives",
    "false_negatives",
]


MAX_LISTED = 12
"""Seeds that are named in a cell of the table."""


def table(view: View) -> pd.DataFrame:
    """One row a configuration that the view leaves, the worst first.

    Returns:
        config_id, sweeps (names, joined), `MEASURES`, and the settings that differ. What no
        finished run tells is missing. Shares and medians are those of all seeds in scope.
    """
    counts = data.configurations(view)
    summed = _with_medians(counts, data.models(view))
    summed = summed[summed["picked"] > 0].sort_values(
        ["failing_share", "median_accuracy"],
        ascending=[False, True],
        kind="stable",
        ignore_index=True,
    )
    config_ids = summed["config_id"].tolist()
    summed["sweeps"] = names.sweep_names(config_ids, data.memberships()).to_numpy()
    settings = data.settings().loc[config_ids].reset_index(drop=True)
    settings = settings.loc[:, [name for name in settings if settings[name].nunique() > 1]]
    return summed[["config_id", "sweeps", *MEASURES]].join(settings)


def _with_medians(counts: pd.DataFrame, models: pd.DataFrame) -> pd.DataFrame:
    counts["failing_share"] = counts["failing"] / counts["seeds"].where(counts["seeds"] > 0)
    medians = median_intervals(models, "accuracy", ["config_id"])
    medians = medians.rename(columns={"median": "median_accuracy"})
    medians["interval"] = [
        None if pd.isna(low) else f"{low:.1%} to {high:.1%}"
        for low, high in zip(medians["low"], medians["high"], strict=True)
    ]
    solved = models.groupby("config_id")["solved_length"].median().rename("median_solved_length")
    seeds = _failing_seeds(models)
    counts["failing_seeds"] = [seeds.get(config_id, "") for config_id in counts["config_id"]]
    kept = medians[["config_id", "median_accuracy", "interval"]]
    return counts.merge(kept, how="left").merge(solved, how="left", on="config_id")


def _failing_seeds(models: pd.DataFrame) -> dict[int, str]:
    """The seeds that fail, in order, as text; by config_id."""
    failing = models[models["failing"] > 0].sort_values(["config_id", "model_seed"])
    return {int(str(key)): _listed(own) for key, own in failing.groupby("config_id")["model_seed"]}


def _listed(seeds: "pd.Series[int]") -> str:
    more = [f"and {len(seeds) - MAX_LISTED} more"] if len(seeds) > MAX_LISTED else []
    return ", ".join([*map(str, seeds.head(MAX_LISTED)), *more])
