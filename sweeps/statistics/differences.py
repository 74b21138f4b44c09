"""How groups of configurations differ over their seeds, and how sure that is.

A configuration weighs the same however many seeds it has. Whether two single ones differ by more
than chance explains, `sweeps.statistics.chance` tests.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt
import pandas as pd

from seqcls.config import RunConfig
from seqcls.problem import unread_fields
from sweeps.statistics.intervals import (
    CONFIDENCE,
    FEWEST,
    MOST_AT_ONCE,
    RESAMPLES,
    TAIL,
    ConfidenceInterval,
    PairTable,
    newcombe,
    paired_newcombe,
)

MOST_KEPT = 100
"""Seeds whose draws are kept for other configurations of the same: 400 kB, of 64 such sets."""


@dataclass(frozen=True, eq=False)
class Outcomes:
    """The outcome of each seed of a configuration."""

    seeds: tuple[int, ...]
    values: npt.NDArray[np.float64]

    @classmethod
    def of(cls, runs: pd.DataFrame, column: str) -> "Outcomes":
        """A column of a configuration's runs, by model_seed."""
        by_seed = runs.sort_values("model_seed")
        return cls(
            tuple(by_seed["model_seed"].astype(int)), by_seed[column].to_numpy(dtype=np.float64)
        )

    @property
    def known_seeds(self) -> tuple[int, ...]:
        """Those whose outcome is known."""
        known = zip(self.seeds, self.values.tolist(), strict=True)
        return tuple(seed for seed, value in known if value == value)

    def of_seeds(self, seeds: Collection[int]) -> "Outcomes":
        """Those of these seeds."""
        kept = [place for place, seed in enumerate(self.seeds) if seed in seeds]
        return Outcomes(tuple(self.seeds[place] for place in kept), self.values[kept])

    @property
    def share(self) -> float:
        return float(self.values.mean())

    @property
    def median(self) -> float:
        return float(np.median(self.values))

    @cached_property
    def medians(self) -> npt.NDArray[np.float64]:
        """The medians of bootstrap resamples: the same seeds are drawn wherever there are such."""
        return self._medians(self.seeds)

    @cached_property
    def medians_apart(self) -> npt.NDArray[np.float64]:
        """Those of other resamples, drawn independently of `medians` of the same seeds."""
        # No configuration has a seed twice, so that these are nobody's numbers.
        return self._medians((*self.seeds, self.seeds[-1]))

    def _medians(self, entropy: tuple[int, ...]) -> npt.NDArray[np.float64]:
        order = np.argsort(self.values, kind="stable")
        last = len(order) - 1
        ranked = self.values[order]
        medians = []
        draws = _kept_draws if len(self.seeds) <= MOST_KEPT else _draws
        for drawn in draws(entropy, len(self.seeds)):
            up_to = np.cumsum(drawn[:, order], axis=1, dtype=np.int32)
            middle = [(up_to <= rank).sum(axis=1) for rank in (last // 2, (last + 1) // 2)]
            medians.append((ranked[middle[0]] + ranked[middle[1]]) / 2)
        return np.concatenate(medians)


def failing_difference(
    a: Sequence[Outcomes], b: Sequence[Outcomes], *, paired: bool
) -> ConfidenceInterval:
    """The mean failing share of the first configurations less that of the second, by Newcombe.

    Args:
        a: whether each seed fails (0 or 1).
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
    than `FEWEST` seeds gives none.

    Args:
        a: the outcome of each seed.
        paired: whether the same seeds are drawn in configurations that have the same, so that those
            are compared seed by seed; else the two sides are drawn apart.
    """
    value = float(np.mean([x.median for x in a]) - np.mean([x.median for x in b]))
    if min(len(x.seeds) for x in (*a, *b)) < FEWEST:
        return ConfidenceInterval(value, np.nan, np.nan)
    first = np.mean([x.medians for x in a], axis=0)
    second = np.mean([x.medians if paired else x.medians_apart for x in b], axis=0)
    low, high = np.quantile(first - second, [TAIL, 1 - TAIL])
    return ConfidenceInterval(value, float(low), float(high))


def table_of(a: Outcomes, b: Outcomes) -> PairTable:
    """In how many seeds both fail, only the first, only the second, and none."""
    first, second = a.values > 0, b.values > 0
    return PairTable(
        both=int((first & second).sum()),
        only_first=int((first & ~second).sum()),
        only_second=int((~first & second).sum()),
        none=int((~first & ~second).sum()),
    )


def _pooled_table(tables: Sequence[PairTable]) -> PairTable:
    n = _seeds_worth([x.pairs for x in tables])
    return PairTable(
        *(
            n * float(np.mean([getattr(x, cell.name) / x.pairs for x in tables]))
            for cell in fields(PairTable)
        )
    )


def _weigh(outcomes: Sequence[Outcomes]) -> tuple[float, float]:
    n = _seeds_worth([len(x.seeds) for x in outcomes])
    return n * float(np.mean([x.share for x in outcomes])), n


def _seeds_worth(counts: Sequence[float]) -> float:
    """How many seeds tell as much as a mean over configurations; of equal numbers, their sum."""
    return len(counts) ** 2 / sum(1 / n for n in counts)


@lru_cache(maxsize=64)
def _kept_draws(entropy: tuple[int, ...], n: int) -> tuple[npt.NDArray[np.integer], ...]:
    # Of so few seeds none is drawn more often than two bytes can say.
    return tuple(drawn.astype(np.uint16) for drawn in _draws(entropy, n))


def _draws(entropy: tuple[int, ...], n: int) -> Iterator[npt.NDArray[np.integer]]:
    generator = np.random.default_rng(entropy)
    at_once = max(1, MOST_AT_ONCE // n)
    for start in range(0, RESAMPLES, at_once):
        # However they are divided, the same are drawn.
        size = min(at_once, RESAMPLES - start)
        yield generator.multinomial(n, np.full(n, 1 / n), size=size)


# Two configurations at every length, and on every string.

SIDES = ("a", "b")

FEWEST_OF_A_MEAN = 3
"""Seeds that a mean needs for an interval. Two have one degree of freedom, with which Student's t
reaches nine times their standard deviation: mostly beyond all that a difference of shares can be.
"""


def by_length(a: pd.DataFrame, b: pd.DataFrame, *, paired: bool) -> pd.DataFrame:
    """The accuracy of both at every length, and their difference.

    Args:
        a: one row a run and length of the first: model_seed, length, tested, wrong (strings).
        paired: whether the same seed makes a pair; then only seeds that both have count.

    Returns:
        One row a length of which both have strings: length, seeds (the fewer of both),
        accuracy_a and accuracy_b (means over seeds, in [0, 1]), difference, low and high (the
        interval of the mean difference by Student's t over pairs, else by Welch's, within [-1, 1]
        as a difference of shares is; missing with fewer than `FEWEST_OF_A_MEAN` seeds).
    """
    sides = [_accuracy_by_length(each) for each in (a, b)]
    if paired:
        pairs = sides[0].merge(sides[1], on=["model_seed", "length"], suffixes=("_a", "_b"))
        pairs["difference"] = pairs["accuracy_a"] - pairs["accuracy_b"]
        groups = pairs.groupby("length", sort=True)
        means = groups[["accuracy_a", "accuracy_b", "difference"]].mean()
        means.insert(0, "seeds", groups.size())
        error = groups["difference"].std() / np.sqrt(means["seeds"])
        freedom = means["seeds"] - 1
    else:
        first, second = (
            side.groupby("length", sort=True)["accuracy"].agg(["size", "mean", "var"])
            for side in sides
        )
        both = first.merge(second, left_index=True, right_index=True, suffixes=("_a", "_b"))
        means = pd.DataFrame(
            {
                "seeds": both[["size_a", "size_b"]].min(axis=1),
                "accuracy_a": both["mean_a"],
                "accuracy_b": both["mean_b"],
                "difference": both["mean_a"] - both["mean_b"],
            }
        )
        a_part, b_part = (both[f"var_{x}"] / both[f"size_{x}"] for x in SIDES)
        error = np.sqrt(a_part + b_part)
        # Welch (1947); where neither varies there is nothing to be free.
        parts = a_part**2 / (both["size_a"] - 1) + b_part**2 / (both["size_b"] - 1)
        freedom = (error**4 / parts).where(parts > 0, 1.0)
    from scipy import stats

    reach = stats.t.ppf((1 + CONFIDENCE) / 2, np.maximum(freedom, 1)) * error
    reach = reach.where(means["seeds"] >= FEWEST_OF_A_MEAN)
    return means.assign(
        low=(means["difference"] - reach).clip(lower=-1.0),
        high=(means["difference"] + reach).clip(upper=1.0),
    ).reset_index()


def string_differences(a: pd.DataFrame, b: pd.DataFrame) -> pd.DataFrame:
    """The strings that the two do not get wrong equally often.

    Args:
        a: one row a run and misclassified string of the first: string, length, label.
        b: likewise of the second, tested on the same strings.

    Returns:
        string, length, label (and target, where what is right is no label), wrong_a and wrong_b
        (runs), the greatest difference first.
    """
    counted = [
        errors.groupby("string").size().rename(f"wrong_{side}")
        for errors, side in zip((a, b), SIDES, strict=True)
    ]
    counts = pd.concat(counted, axis=1).fillna(0).astype(int)
    # A group by labels would leave out the strings that have none.
    strings = pd.concat([a, b]).drop_duplicates("string").set_index("string")
    named = ["length", "label", *strings.columns.intersection(["target"])]
    counts = strings[named].join(counts, how="inner").rename_axis("string").reset_index()
    counts = counts[counts["wrong_a"] != counts["wrong_b"]]
    order = (counts["wrong_a"] - counts["wrong_b"]).abs()
    counts = counts.assign(order=-order).sort_values(["order", "length", "string"])
    return counts.drop(columns="order").reset_index(drop=True)


def _accuracy_by_length(scores: pd.DataFrame) -> pd.DataFrame:
    counts = scores.groupby(["model_seed", "length"])[["tested", "wrong"]].sum()
    right = (counts["tested"] - counts["wrong"]) / counts["tested"]
    return right.rename("accuracy").reset_index()


# Which setting changes the results of one language's models most, and how sure that is.


@dataclass(frozen=True)
class ImportanceMeasure:
    """What the seeds of a configuration are summed up by."""

    column: str
    """The column with a row for each model."""
    fails: bool = False
    """Whether it is a share of failing seeds, of which less is better; else a median."""
    succeeds: bool = False
    """Whether it is a share of seeds that did well, of which more is better."""

    @property
    def is_share(self) -> bool:
        return self.fails or self.succeeds

    def of(self, outcomes: Outcomes) -> float:
        return outcomes.share if self.is_share else outcomes.median


MEASURES = {
    "Median accuracy": ImportanceMeasure("accuracy"),
    "Median solved length": ImportanceMeasure("solved_length"),
    "Failing share": ImportanceMeasure("failing", fails=True),
    "Share that learned": ImportanceMeasure("learned", succeeds=True),
    "Share that generalizes": ImportanceMeasure("generalizes", succeeds=True),
}


def without_unread(settings: pd.DataFrame, configs: Mapping[int, RunConfig]) -> pd.DataFrame:
    """Settings, missing where the configuration's own language and network do not read them.

    Args:
        settings: a column a setting, indexed by config_id.
    """
    nothing = frozenset[str]()
    of_each = {config_id: unread_fields(config) for config_id, config in configs.items()}
    mask = [[name in of_each.get(key, nothing) for name in settings] for key in settings.index]
    return settings.astype(object).mask(np.array(mask, dtype=bool).reshape(settings.shape), None)


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
    measure: ImportanceMeasure,
    are_strangers: Callable[[int, int], bool] = lambda _a, _b: False,
) -> pd.DataFrame:
    """For each setting, how far its worst and its best value lie apart.

    What a value comes to is the mean over the configurations that have it, so that one with many
    seeds weighs as much as one with few.

    Args:
        models: one row a finished model of one language: config_id, model_seed, and the column
            of the measure.
        settings: a column a setting, indexed by config_id; those of one value are left out, and
            configurations where one is missing have no part in it.
        are_strangers: whether seeds of two configurations, by id, share nothing but their number.

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
    rows = [_row(names, known, outcomes, measure, are_strangers) for names in _together(known)]
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
    names: Sequence[str],
    settings: pd.DataFrame,
    outcomes: Mapping[int, Outcomes],
    measure: ImportanceMeasure,
    are_strangers: Callable[[int, int], bool],
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
    ids = [places[value].index.tolist() for value in (worst, best)]
    bad, good = ([outcomes[i] for i in each] for each in ids)
    # Of several that have no partners each is held against one: what makes strangers is a setting.
    met = zip(*ids, strict=True) if alike else ((x, ids[1][0]) for x in ids[0])
    strangers = any(are_strangers(*pair) for pair in met)
    paired = alike and all(x.seeds == y.seeds for x, y in zip(bad, good, strict=True))
    paired = paired and not strangers
    if measure.fails:
        interval = failing_difference(bad, good, paired=paired)
    elif measure.succeeds:
        interval = failing_difference(good, bad, paired=paired)
    else:
        paired = len({x.seeds for x in (*bad, *good)}) == 1 and not strangers
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
        "values": len(places),
        "paired": paired,
        "alike": alike,
    }
