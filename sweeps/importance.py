"""Which setting moves the share of failing models most, and how sure that is."""

import numpy as np
import pandas as pd

DRAWS = 2000
CONFIDENCE = 0.95

COLUMNS = ["field", "moves", "low", "high", "worst", "worst_share", "best", "best_share", "values"]


def importance(models: pd.DataFrame, settings: pd.DataFrame) -> pd.DataFrame:
    """For each setting, how far the failing shares of its values lie apart.

    A value's share is the mean over the configurations that have it, so that one with many seeds
    weighs as much as one with few. The interval is that of the difference between the worst and
    the best value: each configuration's share is drawn from its posterior (Jeffreys' prior), so
    that eight failures of eight seeds leave some doubt too.

    Args:
        models: one row a finished model: config_id, failing (0 or 1).
        settings: a column a setting, indexed by config_id; those of one value are left out.

    Returns:
        One row a setting, the one that moves most first: field; moves, low, high (differences of
        shares); worst, worst_share, best, best_share; values (how many).
    """
    counts = models.groupby("config_id")["failing"].agg(["sum", "size"])
    own = settings.loc[counts.index]
    shares = (counts["sum"] / counts["size"]).to_numpy(dtype=np.float64)
    failing, seeds = (counts[name].to_numpy(dtype=np.float64) for name in ("sum", "size"))
    generator = np.random.default_rng(0)
    drawn = generator.beta(failing + 0.5, seeds - failing + 0.5, size=(DRAWS, len(counts)))
    rows = [_row(str(name), own[name], shares, drawn) for name in own if own[name].nunique() > 1]
    frame = pd.DataFrame(rows, columns=COLUMNS)
    return frame.sort_values("moves", ascending=False, kind="stable", ignore_index=True)


def _row(
    name: str, values: "pd.Series[str]", shares: np.ndarray, drawn: np.ndarray
) -> dict[str, object]:
    """One setting: `shares` are of shape (configuration), `drawn` of (draw, configuration)."""
    places = {value: np.flatnonzero(values == value) for value in sorted(values.unique())}
    means = {value: float(shares[own].mean()) for value, own in places.items()}
    worst = max(means, key=lambda value: means[value])
    best = min((value for value in means if value != worst), key=lambda value: means[value])
    differences = drawn[:, places[worst]].mean(axis=1) - drawn[:, places[best]].mean(axis=1)
    outside = (1 - CONFIDENCE) / 2
    low, high = np.quantile(differences, [outside, 1 - outside])
    moves = means[worst] - means[best]
    return {
        "field": name,
        "moves": moves,
        "low": min(float(low), moves),
        "high": max(float(high), moves),
        "worst": str(worst),
        "worst_share": means[worst],
        "best": str(best),
        "best_share": means[best],
        "values": len(places),
    }
