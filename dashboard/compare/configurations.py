"""The table of configurations: the results of their seeds."""

import pandas as pd

from dashboard import data
from dashboard.words import names
from seqcls.interpretability.rounded import percents
from sweeps.statistics.intervals import wilson
from sweeps.store.reading.selection import View

MAX_LISTED = 12
"""Seeds that are named in a cell of the table."""


@data.shared
def table(view: View) -> pd.DataFrame:
    """One row a configuration that the view leaves, the worst first.

    Returns:
        config_id; seeds, unfinished, failed; failing, failing_share, failing_interval,
        failing_seeds; median_accuracy, interval, median_solved_length; false_positives,
        false_negatives; sweeps (names, joined), predicted, and the settings that differ. What no
        finished run tells is missing. Shares and medians are of all seeds in scope.
    """
    counts = data.configurations(view)
    summed = _with_medians(counts, data.medians(view, MAX_LISTED))
    summed = summed[summed["picked"] > 0].sort_values(
        ["failing_share", "median_accuracy"],
        ascending=[False, True],
        kind="stable",
        ignore_index=True,
    )
    config_ids = summed["config_id"].tolist()
    summed["sweeps"] = names.sweep_names(config_ids, data.memberships()).to_numpy()
    predicted = data.predictions(tuple(config_ids))
    summed["predicted"] = [predicted[config_id].verdict for config_id in config_ids]
    settings = names.settings_that_differ(config_ids).reset_index(drop=True)
    return summed.drop(columns="picked").join(settings)


def _with_medians(counts: pd.DataFrame, medians: pd.DataFrame) -> pd.DataFrame:
    counts["failing_share"] = counts["failing"] / counts["seeds"].where(counts["seeds"] > 0)
    counts["failing_interval"] = [
        _wilson(int(failing), int(seeds)) if seeds else None
        for failing, seeds in zip(counts["failing"], counts["seeds"], strict=True)
    ]
    medians["interval"] = [
        None if pd.isna(low) else percents(low, high)
        for low, high in zip(medians["low"], medians["high"], strict=True)
    ]
    merged = counts.merge(medians.drop(columns=["low", "high"]), how="left")
    merged["failing_seeds"] = [
        _listed(seeds, failing) if failing else ""
        for seeds, failing in zip(merged["failing_seeds"], merged["failing"], strict=True)
    ]
    return merged


def _wilson(failing: int, seeds: int) -> str:
    share = wilson(failing, seeds)
    return percents(share.low, share.high, 0)


def _listed(seeds: list[int], failing: int) -> str:
    """The first seeds that fail, of so many."""
    more = [f"and {failing - len(seeds)} more"] if failing > len(seeds) else []
    return ", ".join([*map(str, seeds), *more])
