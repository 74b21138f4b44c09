"""Which setting moves the share of failing models most, and how sure that is."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from seqcls.config import RunConfig
from seqcls.fields_read import fields_unread
from sweeps.cost import is_here

DRAWS = 2000
CONFIDENCE = 0.95

COLUMNS = [
    "fields",
    "field",
    "moves",
    "low",
    "high",
    "worst",
    "worst_share",
    "best",
    "best_share",
    "values",
]


def without_unread(settings: pd.DataFrame, configs: Mapping[int, RunConfig]) -> pd.DataFrame:
    """Settings, missing where the configuration's own language and network do not read them.

    Args:
        settings: a column a setting, indexed by config_id.
        configs: the configurations by their id.
    """
    kept = settings.astype(object)
    for config_id, config in configs.items():
        unread = fields_unread(config) if is_here(config) else frozenset()
        names = [name for name in kept if name in unread]
        if names:
            kept.loc[config_id, names] = None
    return kept


def importance(models: pd.DataFrame, settings: pd.DataFrame) -> pd.DataFrame:
    """For each setting, how far the failing shares of its values lie apart.

    A value's share is the mean over the configurations that have it, so that one with many seeds
    weighs as much as one with few. The interval is that of the difference between the worst and
    the best value: each configuration's share is drawn from its posterior (Jeffreys' prior), so
    that eight failures of eight seeds leave some doubt too.

    Args:
        models: one row a finished model: config_id, failing (0 or 1).
        settings: a column a setting, indexed by config_id; those of one value are left out, and
            configurations where one is missing have no part in it.

    Returns:
        One row a setting, the one that moves most first: fields (its name; several, where they
        differ only together), field (as text); moves, low, high (differences of shares); worst,
        worst_share, best, best_share; values (how many).
    """
    counts = models.groupby("config_id")["failing"].agg(["sum", "size"])
    own = settings.loc[counts.index]
    shares = (counts["sum"] / counts["size"]).to_numpy(dtype=np.float64)
    failing, seeds = (counts[name].to_numpy(dtype=np.float64) for name in ("sum", "size"))
    generator = np.random.default_rng(0)
    drawn = generator.beta(failing + 0.5, seeds - failing + 0.5, size=(DRAWS, len(counts)))
    rows = [_row(names, own[list(names)], shares, drawn) for names in _together(own)]
    frame = pd.DataFrame(rows, columns=COLUMNS)
    return frame.sort_values("moves", ascending=False, kind="stable", ignore_index=True)


def _together(settings: pd.DataFrame) -> Iterator[tuple[str, ...]]:
    """The settings that differ; those that tell the same configurations apart, together."""
    apart: dict[bytes, list[str]] = {}
    for name in settings:
        if settings[name].nunique() > 1:
            codes = pd.factorize(settings[name])[0]
            apart.setdefault(codes.tobytes(), []).append(str(name))
    yield from map(tuple, apart.values())


def _row(
    names: Sequence[str], own: pd.DataFrame, shares: np.ndarray, drawn: np.ndarray
) -> dict[str, object]:
    """Settings that go together: `shares` of shape (configuration), `drawn` (draw, the same)."""
    known = own.notna().all(axis=1).to_numpy()
    values = pd.Series(
        [", ".join(map(str, row)) for row in own.to_numpy(dtype=object)], index=own.index
    ).where(known)
    places = {value: np.flatnonzero(values == value) for value in sorted(values.dropna().unique())}
    means = {value: float(shares[own].mean()) for value, own in places.items()}
    worst = max(means, key=lambda value: means[value])
    best = min((value for value in means if value != worst), key=lambda value: means[value])
    differences = drawn[:, places[worst]].mean(axis=1) - drawn[:, places[best]].mean(axis=1)
    outside = (1 - CONFIDENCE) / 2
    low, high = np.quantile(differences, [outside, 1 - outside])
    moves = means[worst] - means[best]
    return {
        "fields": tuple(names),
        "field": ", ".join(names),
        "moves": moves,
        "low": min(float(low), moves),
        "high": max(float(high), moves),
        "worst": str(worst),
        "worst_share": means[worst],
        "best": str(best),
        "best_share": means[best],
        "values": len(places),
    }
