"""Importance of settings for the results of one language's models, with intervals.

All configurations have the same weight, whatever their number of seeds.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pandas as pd

from sweeps.statistics.differences import Floats, Outcomes, table_of, values_of
from sweeps.statistics.intervals import (
    FEWEST,
    MOST_AT_ONCE,
    RESAMPLES,
    TAIL,
    ConfidenceInterval,
    PairTable,
    newcombe,
    paired_newcombe,
)

MOST_DRAWN = 10_000
"""The number of seeds in all up to which medians have an interval: it takes a second or two."""


def share_difference(
    a: Sequence[Outcomes], b: Sequence[Outcomes], *, paired: bool
) -> ConfidenceInterval:
    """The mean share of the first configurations less that of the second, by Newcombe.

    Args:
        a, b: 0 or 1 for each seed.
        paired: True if each configuration has the same seeds as that of the other's same index.
    """
    if not paired:
        return newcombe(_weigh(a), _weigh(b))
    tables = [table_of(*pair) for pair in zip(a, b, strict=True)]
    cells = np.mean([np.array(astuple(x)) / x.pairs for x in tables], axis=0)
    return paired_newcombe(PairTable(*(_seeds_worth([x.pairs for x in tables]) * cells).tolist()))


def median_difference(
    a: Sequence[Outcomes], b: Sequence[Outcomes], *, paired: bool
) -> ConfidenceInterval:
    """The mean median of the first configurations less that of the second, by bootstrap of seeds.

    The interval (percentiles) is reproducible; it is NaN if a configuration has fewer than `FEWEST`
    seeds, or all have more than `MOST_DRAWN`.

    Args:
        a, b: the outcome of each seed.
        paired: True to draw the same seeds in configurations with equal seeds, which compares them
            seed by seed; else the two sides are drawn independently.
    """
    medians = [np.mean([np.median(values_of(x)) for x in side]) for side in (a, b)]
    value = float(medians[0] - medians[1])
    sizes = [len(x) for x in (*a, *b)]
    if min(sizes) < FEWEST or sum(sizes) > MOST_DRAWN:
        return ConfidenceInterval(value, np.nan, np.nan)
    first, second = (
        np.mean([resampled_medians((*x,), (*x.values(),), apart=apart) for x in side], axis=0)
        for side, apart in ((a, False), (b, not paired))
    )
    low, high = np.quantile(first - second, [TAIL, 1 - TAIL])
    return ConfidenceInterval(value, float(low), float(high))


def _weigh(outcomes: Sequence[Outcomes]) -> tuple[float, float]:
    n = _seeds_worth([len(x) for x in outcomes])
    return n * float(np.mean([values_of(x).mean() for x in outcomes])), n


def _seeds_worth(counts: Sequence[float]) -> float:
    """The effective number of seeds of a mean over configurations; for equal numbers, their sum."""
    # The number of configurations times the harmonic mean of their seeds.
    return len(counts) ** 2 / sum(1 / n for n in counts)


@lru_cache(maxsize=1024)
def resampled_medians(seeds: tuple[int, ...], values: tuple[float, ...], *, apart: bool) -> Floats:
    """The medians of bootstrap resamples, drawn alike for equal seeds.

    Args:
        apart: True to draw independently of other configurations with the same seeds.
    """
    order = np.argsort(values, kind="stable")
    ranked, last = np.array(values)[order], len(order) - 1
    # No configuration has a seed twice, so that no other one has this entropy.
    drawn = _draws((*seeds, seeds[-1]) if apart else seeds, len(seeds))
    # The cumulated counts of the ranked values determine the middle ones.
    up_to = np.cumsum(drawn[:, order], axis=1, dtype=np.int32)
    middle = [ranked[(up_to <= rank).sum(axis=1)] for rank in (last // 2, (last + 1) // 2)]
    medians: Floats = (middle[0] + middle[1]) / 2
    return medians


@lru_cache(maxsize=4)
def _draws(entropy: tuple[int, ...], n: int) -> npt.NDArray[np.uint16]:
    """The counts of each of n seeds in each resample, of shape (resample, seed)."""
    generator, drawn = np.random.default_rng(entropy), np.empty((RESAMPLES, n), dtype=np.uint16)
    at_once = max(1, MOST_AT_ONCE // n)
    for start in range(0, RESAMPLES, at_once):
        # The draws do not depend on the size of the chunks.
        some = drawn[start : start + at_once]
        some[:] = generator.multinomial(n, np.full(n, 1 / n), size=len(some))
    return drawn


def with_largest_budget(models: pd.DataFrame, budgets: Iterable[Mapping[int, int]]) -> pd.DataFrame:
    """Models with one row for each seed, that of the largest budget that it was trained with, under
    the configuration of the smallest.

    Args:
        models: one row a finished model: config_id, model_seed.
        budgets: for each model its configurations by budget, the smallest first.
    """
    places = {
        config_id: (there[0], place)
        for there in _there(models, budgets)
        for place, config_id in enumerate(there)
    }
    found = [places.get(int(x), (int(x), 0)) for x in models["config_id"]]
    joined = models.assign(config_id=[first for first, _ in found])
    # Sorted by budget, so that the last one, which stays, is the largest.
    later = joined.iloc[np.argsort([place for _, place in found], kind="stable")]
    return later.drop_duplicates(["config_id", "model_seed"], keep="last").sort_index()


def with_every_budget(models: pd.DataFrame, budgets: Iterable[Mapping[int, int]]) -> pd.DataFrame:
    """Models with further rows for those that learned with a smaller budget, and so were not
    trained again: they count unchanged with each larger one.

    Args:
        models: as in `with_largest_budget`, with learned (0 or 1).
        budgets: as in `with_largest_budget`.
    """
    parts = [models]
    for there in _there(models, budgets):
        latest = models[models["config_id"] == there[0]]
        for config_id in there[1:]:
            here = models[models["config_id"] == config_id]
            left = latest[~latest["model_seed"].isin(here["model_seed"])]
            carried = left[left["learned"] == 1].assign(config_id=config_id)
            parts.append(carried)
            latest = pd.concat([here, carried])
    return pd.concat(parts, ignore_index=True)


def _there(models: pd.DataFrame, budgets: Iterable[Mapping[int, int]]) -> Iterator[list[int]]:
    """Yields, for each model with rows of several budgets, their configurations, smallest first."""
    known = set(models["config_id"])
    for model in budgets:
        there = [config_id for config_id in model.values() if config_id in known]
        if len(there) > 1:
            yield there


def importance(
    models: pd.DataFrame,
    settings: pd.DataFrame,
    column: str,
    are_strangers: Callable[[int, int], bool] = lambda _a, _b: False,
    *,
    is_share: bool = True,
) -> pd.DataFrame:
    """The difference between the best and the worst value of each setting.

    The score of a value is the mean over its configurations, so that those with many seeds weigh as
    much as those with few.

    Args:
        models: one row a finished model of one language: config_id, model_seed, and the column.
        column: a score where more is better: success (0 or 1), or an accuracy.
        settings: a column a setting, indexed by config_id; those of one value are left out, and
            for each setting the configurations where it is missing.
        are_strangers: True if equal seeds of two configurations, by id, start different models.
        is_share: True to summarize the seeds of a configuration by their share; else by their
            median.

    Returns:
        One row a setting, sorted by decreasing difference: fields (its name; several, where they
        differ only together), field (as text); moves (the difference, not below 0), low, high
        (its 95% interval, without a correction for the choice of the two values; missing with too
        few seeds); worst, at_worst, best, at_best; values (their number); paired (True if equal
        seeds are compared), alike (True if the compared configurations differ in nothing else).
    """
    outcomes = {
        int(str(config_id)): dict(zip(rows["model_seed"], rows[column].astype(float), strict=True))
        for config_id, rows in models.sort_values("model_seed").groupby("config_id")
    }
    known = settings.loc[list(outcomes)]
    rows = [
        _row(names, known, outcomes, are_strangers, is_share=is_share) for names in _together(known)
    ]
    frame = pd.DataFrame(rows or {"moves": []})
    return frame.sort_values("moves", ascending=False, kind="stable", ignore_index=True)


def _together(settings: pd.DataFrame) -> Iterator[tuple[str, ...]]:
    """Yields the settings that differ, together with others that split configurations alike."""
    apart: dict[bytes, list[str]] = {}
    for name in settings:
        if settings[name].nunique() > 1:
            # Codes in the order of appearance are equal where two settings split alike.
            codes = pd.factorize(settings[name])[0]
            apart.setdefault(codes.tobytes(), []).append(str(name))
    yield from map(tuple, apart.values())


def _row(
    names: Sequence[str],
    settings: pd.DataFrame,
    outcomes: Mapping[int, Outcomes],
    are_strangers: Callable[[int, int], bool],
    *,
    is_share: bool,
) -> dict[str, object]:
    """The row of `importance` for settings that go together."""
    known = settings[settings[list(names)].notna().all(axis=1)]
    values = pd.Series(
        [", ".join(map(str, row)) for row in known[list(names)].to_numpy(dtype=object)],
        index=known.index,
    )
    # Sorted by their other settings, so that those that differ in nothing else have equal indices.
    rest = known.drop(columns=list(names)).to_numpy(dtype=object)
    others = pd.Series([repr(row.tolist()) for row in rest], index=known.index)
    others_by_value = {
        value: others[values == value].sort_values() for value in sorted(values.unique())
    }
    summed = np.mean if is_share else np.median
    means = {
        value: float(np.mean([summed(values_of(outcomes[i])) for i in group.index]))
        for value, group in others_by_value.items()
    }
    worst = min(means, key=means.__getitem__)
    # Another value than the worst, even if all are equally good.
    best = max((x for x in means if x != worst), key=means.__getitem__)
    alike = (
        others_by_value[worst].tolist() == others_by_value[best].tolist()
        and others_by_value[worst].is_unique
    )
    ids = [others_by_value[value].index.tolist() for value in (worst, best)]
    bad, good = ([outcomes[i] for i in config_ids] for config_ids in ids)
    # Without partners, each is compared with one: strangers are a matter of settings.
    met = zip(*ids, strict=True) if alike else ((x, ids[1][0]) for x in ids[0])
    strangers = any(are_strangers(*pair) for pair in met)
    paired = alike and all(x.keys() == y.keys() for x, y in zip(bad, good, strict=True))
    paired = paired and not strangers
    if is_share:
        interval = share_difference(good, bad, paired=paired)
    else:
        # They are compared seed by seed only if all have the same seeds.
        paired = len({(*x,) for x in (*bad, *good)}) == 1 and not strangers
        interval = median_difference(good, bad, paired=not strangers)
    return {
        "fields": tuple(names),
        "field": ", ".join(names),
        "moves": interval.value,
        "low": interval.low,
        "high": interval.high,
        "worst": worst,
        "at_worst": means[worst],
        "best": best,
        "at_best": means[best],
        "values": len(others_by_value),
        "paired": paired,
        "alike": alike,
    }
