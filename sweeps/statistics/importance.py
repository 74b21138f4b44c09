"""Which setting changes the results of one language's models most, and how sure that is.

A configuration weighs the same however many seeds it has.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
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
"""Seeds of all configurations at most of whose medians there is an interval: a second or two."""


def share_difference(
    a: Sequence[Outcomes], b: Sequence[Outcomes], *, paired: bool
) -> ConfidenceInterval:
    """The mean share of the first configurations less that of the second, by Newcombe.

    Args:
        a: whether each seed does well (0 or 1).
        paired: whether each configuration has the same seeds as the one at its place in the other.
    """
    if paired:
        pairs = [table_of(*pair) for pair in zip(a, b, strict=True)]
        return paired_newcombe(_pooled_table(pairs))
    return newcombe(_weigh(a), _weigh(b))


def median_difference(
    a: Sequence[Outcomes], b: Sequence[Outcomes], *, paired: bool
) -> ConfidenceInterval:
    """The mean median of the first configurations less that of the second, by bootstrap.

    Seeds are drawn. The same values give the same interval (percentiles); a configuration of fewer
    than `FEWEST` seeds gives none, and neither do more than `MOST_DRAWN` seeds.

    Args:
        a: the outcome of each seed.
        paired: whether the same seeds are drawn in configurations that have the same, so that those
            are compared seed by seed; else the two sides are drawn apart.
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


def _pooled_table(tables: Sequence[PairTable]) -> PairTable:
    n = _seeds_worth([x.pairs for x in tables])
    return PairTable(
        *(
            n * float(np.mean([getattr(x, cell.name) / x.pairs for x in tables]))
            for cell in fields(PairTable)
        )
    )


def _weigh(outcomes: Sequence[Outcomes]) -> tuple[float, float]:
    n = _seeds_worth([len(x) for x in outcomes])
    return n * float(np.mean([values_of(x).mean() for x in outcomes])), n


def _seeds_worth(counts: Sequence[float]) -> float:
    """How many seeds tell as much as a mean over configurations; of equal numbers, their sum."""
    # The number of configurations times the harmonic mean of their seeds.
    return len(counts) ** 2 / sum(1 / n for n in counts)


@lru_cache(maxsize=1024)
def resampled_medians(seeds: tuple[int, ...], values: tuple[float, ...], *, apart: bool) -> Floats:
    """The medians of bootstrap resamples: the same seeds are drawn wherever there are such.

    Args:
        apart: whether they are drawn independently of those of the same seeds.
    """
    order = np.argsort(values, kind="stable")
    ranked, last = np.array(values)[order], len(order) - 1
    # No configuration has a seed twice, so that these are nobody's numbers.
    drawn = _draws((*seeds, seeds[-1]) if apart else seeds, len(seeds))
    # How often each value was drawn, in their order, tells which are in the middle.
    up_to = np.cumsum(drawn[:, order], axis=1, dtype=np.int32)
    middle = [ranked[(up_to <= rank).sum(axis=1)] for rank in (last // 2, (last + 1) // 2)]
    medians: Floats = (middle[0] + middle[1]) / 2
    return medians


@lru_cache(maxsize=4)
def _draws(entropy: tuple[int, ...], n: int) -> npt.NDArray[np.uint16]:
    """How often each of n seeds is in each resample."""
    generator, drawn = np.random.default_rng(entropy), np.empty((RESAMPLES, n), dtype=np.uint16)
    at_once = max(1, MOST_AT_ONCE // n)
    for start in range(0, RESAMPLES, at_once):
        # However they are divided, the same are drawn.
        some = drawn[start : start + at_once]
        some[:] = generator.multinomial(n, np.full(n, 1 / n), size=len(some))
    return drawn


def with_largest_budget(models: pd.DataFrame, budgets: Iterable[Mapping[int, int]]) -> pd.DataFrame:
    """Models of which each seed is there once, with the largest budget that it was trained with,
    as if of the configuration of the smallest.

    Args:
        models: one row a finished model: config_id, model_seed.
        budgets: the configurations that are one model, by budget, the smallest first.
    """
    first: dict[int, int] = {}
    place: dict[int, int] = {}
    for there in _there(models, budgets):
        first |= dict.fromkeys(there, there[0])
        place |= {config_id: number for number, config_id in enumerate(there)}
    ids = [int(x) for x in models["config_id"]]
    joined = models.assign(config_id=[first.get(x, x) for x in ids])
    # Sorted by budget, so that the last one, which stays, is the largest.
    later = joined.iloc[np.argsort([place.get(x, 0) for x in ids], kind="stable")]
    return later.drop_duplicates(["config_id", "model_seed"], keep="last").sort_index()


def with_every_budget(models: pd.DataFrame, budgets: Iterable[Mapping[int, int]]) -> pd.DataFrame:
    """Models with those besides that learned with a smaller budget, and so were not trained again:
    with a larger one they count as they are.

    Args:
        models: as `with_largest_budget`, and learned (0 or 1).
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
    """The configurations of each model that have rows, the smallest budget first, where several."""
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
    """For each setting, how far its worst and its best value lie apart.

    What a value comes to is the mean over the configurations that have it, so that one with many
    seeds weighs as much as one with few.

    Args:
        models: one row a finished model of one language: config_id, model_seed, and the column.
        column: of which more is better: whether a model did well (0 or 1), or its accuracy.
        settings: a column a setting, indexed by config_id; those of one value are left out, and
            configurations where one is missing have no part in it.
        are_strangers: whether seeds of two configurations, by id, share nothing but their number.
        is_share: whether the seeds of a configuration are summed up by their share; else by their
            median.

    Returns:
        One row a setting, the one that moves most first: fields (its name; several, where they
        differ only together), field (as text); moves (the difference, not below 0), low, high
        (its 95% interval, which knows nothing of the choice of the two values; missing where seeds
        are too few); worst, at_worst, best, at_best; values (how many); paired (whether the same
        seeds are compared), alike (whether the configurations compared differ in nothing else).
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
    """The settings that differ; those that tell the same configurations apart, together."""
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
    """Settings that go together: their worst and their best value."""
    known = settings[settings[list(names)].notna().all(axis=1)]
    values = pd.Series(
        [", ".join(map(str, row)) for row in known[list(names)].to_numpy(dtype=object)],
        index=known.index,
    )
    # In the order of their other settings, so that those that differ in nothing else meet.
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
    # Another value than the worst, even where all are as good.
    best = max((x for x in means if x != worst), key=means.__getitem__)
    alike = (
        others_by_value[worst].tolist() == others_by_value[best].tolist()
        and others_by_value[worst].is_unique
    )
    ids = [others_by_value[value].index.tolist() for value in (worst, best)]
    bad, good = ([outcomes[i] for i in config_ids] for config_ids in ids)
    # Of several that have no partners each is held against one: what makes strangers is a setting.
    met = zip(*ids, strict=True) if alike else ((x, ids[1][0]) for x in ids[0])
    strangers = any(are_strangers(*pair) for pair in met)
    paired = alike and all(x.keys() == y.keys() for x, y in zip(bad, good, strict=True))
    paired = paired and not strangers
    if is_share:
        interval = share_difference(good, bad, paired=paired)
    else:
        # Only where all have the same seeds are they really compared seed by seed.
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
