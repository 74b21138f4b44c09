"""Which setting changes the results of one language's models most, and how sure that is."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from seqcls.config import RunConfig
from seqcls.fields.fields_read import fields_unread
from seqcls.problem import obstacle_of
from sweeps.statistics.differences import Outcomes, failing_difference, median_difference


@dataclass(frozen=True)
class Measure:
    """What the seeds of a configuration are summed up by."""

    column: str
    """The column with a row for each model."""
    fails: bool = False
    """Whether it is a share of failing seeds, of which less is better; else a median."""

    def of(self, outcomes: Outcomes) -> float:
        return outcomes.share if self.fails else outcomes.median


MEASURES = {
    "Median accuracy": Measure("accuracy"),
    "Median solved length": Measure("solved_length"),
    "Failing share": Measure("failing", fails=True),
}


def without_unread(settings: pd.DataFrame, configs: Mapping[int, RunConfig]) -> pd.DataFrame:
    """Settings, missing where the configuration's own language and network do not read them.

    Args:
        settings: a column a setting, indexed by config_id.
        configs: the configurations by their id.
    """
    nothing = frozenset[str]()
    unread = {
        config_id: fields_unread(config) if obstacle_of(config) is None else nothing
        for config_id, config in configs.items()
    }
    mask = [[name in unread.get(key, nothing) for name in settings] for key in settings.index]
    return settings.astype(object).mask(np.array(mask, dtype=bool).reshape(settings.shape), None)


def importance(models: pd.DataFrame, settings: pd.DataFrame, measure: Measure) -> pd.DataFrame:
    """For each setting, how far its worst and its best value lie apart.

    What a value comes to is the mean over the configurations that have it, so that one with many
    seeds weighs as much as one with few.

    Args:
        models: one row a finished model of one language: config_id, model_seed, and the column
            of the measure.
        settings: a column a setting, indexed by config_id; those of one value are left out, and
            configurations where one is missing have no part in it.
        measure: what the seeds of a configuration are summed up by.

    Returns:
        One row a setting, the one that moves most first: fields (its name; several, where they
        differ only together), field (as text); moves (the difference, not below 0), low, high
        (its 95% interval, which knows nothing of the choice of the two values; missing where seeds
        are too few); worst, at_worst, best, at_best; values (how many); paired (whether the same
        seeds are compared), alike (whether the configurations compared differ in nothing else).
    """
    outcomes = {
        int(str(config_id)): Outcomes.of(rows, measure.column)
        for config_id, rows in models.groupby("config_id")
    }
    known = settings.loc[list(outcomes)]
    rows = [_row(names, known, outcomes, measure) for names in _together(known)]
    frame = pd.DataFrame(rows or {"moves": []})
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
    names: Sequence[str], settings: pd.DataFrame, outcomes: Mapping[int, Outcomes], measure: Measure
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
    places = {value: others[values == value].sort_values() for value in sorted(values.unique())}
    means = {
        value: float(np.mean([measure.of(outcomes[i]) for i in group.index]))
        for value, group in places.items()
    }
    sign = 1 if measure.fails else -1
    worst = max(means, key=lambda value: sign * means[value])
    best = min((x for x in means if x != worst), key=lambda value: sign * means[value])
    alike = places[worst].tolist() == places[best].tolist() and places[worst].is_unique
    bad, good = ([outcomes[i] for i in places[value].index] for value in (worst, best))
    paired = alike and all(x.seeds == y.seeds for x, y in zip(bad, good, strict=True))
    if measure.fails:
        interval = failing_difference(bad, good, paired=paired)
    else:
        interval = median_difference(good, bad)
        paired = len({x.seeds for x in (*bad, *good)}) == 1
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
        "values": len(places),
        "paired": paired,
        "alike": alike,
    }
