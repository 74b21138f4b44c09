"""Every statistic against published tables, SciPy, simulations or slower formulations."""

import math
import re
from collections.abc import Iterable
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from sweeps.api.comparisons import Compared
from sweeps.api.questions import QUESTIONS, ask, chance_of, outcomes_of, sentence_of
from sweeps.results import Outcome
from sweeps.statistics.chance import Difference, compare_shares, compare_values
from sweeps.statistics.importance import median_difference, resampled_medians, share_difference
from sweeps.statistics.intervals import (
    CONFIDENCE,
    FEWEST,
    RESAMPLES,
    PairTable,
    clustered_wilson,
    fisher,
    mcnemar,
    median_intervals,
    newcombe,
    paired_newcombe,
    selection_effect,
    wilson,
)
from sweeps.statistics.populations import (
    class_named,
    language_shares,
    median_accuracies,
    settings_apart,
)


def test_newcombe_intervals_equal_the_published_ones() -> None:
    # Newcombe (1998a), Statistics in Medicine 17: 873, table II, method 10.
    for first, second, low, high in (
        ((56, 70), (48, 80), 0.0524, 0.3339),
        ((9, 10), (3, 10), 0.1705, 0.8090),
        ((6, 7), (2, 7), 0.0582, 0.8062),
        ((5, 56), (0, 29), -0.0381, 0.1926),
        ((0, 10), (0, 20), -0.1611, 0.2775),
        ((10, 10), (0, 10), 0.6075, 1.0000),
    ):
        found = newcombe(first, second)
        assert found.value == pytest.approx(first[0] / first[1] - second[0] / second[1])
        assert (found.low, found.high) == pytest.approx((low, high), abs=6e-5)
    # Newcombe (1998b), Statistics in Medicine 17: 2635, method 10.
    for pairs, low, high in (
        ((36, 12, 2, 0), 0.0569, 0.3404),
        ((18, 12, 2, 18), 0.0562, 0.3290),
        ((53, 0, 0, 1), -0.0729, 0.0729),
        ((0, 30, 0, 0), 0.8395, 1.0000),
    ):
        found = paired_newcombe(PairTable(*pairs))
        assert (found.low, found.high) == pytest.approx((low, high), abs=6e-5)
    # Without correlation, pairs are as independent samples.
    found = paired_newcombe(PairTable(both=6, only_first=6, only_second=4, none=4))
    free = newcombe((12, 20), (10, 20))
    assert (found.low, found.high) == pytest.approx((free.low, free.high))


def test_wilson_interval_equals_its_formula() -> None:
    z = stats.norm.ppf(0.975)
    for count, n in ((0, 5), (5, 5), (3, 8), (484, 600)):
        p, found = count / n, wilson(count, n)
        middle = (p + z * z / (2 * n)) / (1 + z * z / n)
        reach = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
        assert (found.low, found.high) == pytest.approx((middle - reach, middle + reach), abs=1e-9)
        assert found.low <= found.value <= found.high


def test_mcnemar_uses_discordant_pairs() -> None:
    assert mcnemar(PairTable(5, 0, 0, 5)) == 1
    assert mcnemar(PairTable(0, 5, 0, 0)) == pytest.approx(2 / 32)
    assert mcnemar(PairTable(9, 1, 9, 3)) == pytest.approx(2 * 11 / 1024)


def seeds_of(values: Iterable[float], first: int = 0) -> dict[int, float]:
    return dict(enumerate(map(float, values), first))


def noisy(seeds: int, mean: float, spread: float, stream: int) -> list[float]:
    drawn = np.random.default_rng(stream).normal(mean, spread, seeds).clip(0, 1).round(4)
    return [float(value) for value in drawn]


NAN = math.nan
PARITY = [0.5249, 0.52, 0.531, 0.518, 0.5233]
START = noisy(12, 0.8, 0.05, 1)
"""The common part of paired seeds."""


@pytest.mark.parametrize(
    ("first", "second", "paired", "p_value", "is_more"),
    [
        # Effects, which are there.
        pytest.param(PARITY, [1.0] * 5, False, 2 / 252, True, id="coin against right, 5 and 5"),
        pytest.param([0.9] * 4, [1.0] * 4, False, 2 / 70, True, id="4 and 4 apart"),
        pytest.param([*PARITY, 0.53], [1.0] * 6, True, 2 / 64, True, id="6 pairs, all one way"),
        pytest.param(START, [x - 0.01 for x in START], True, 2 / 4096, True, id="small, in pairs"),
        pytest.param(START, [x - 0.01 for x in START], False, None, False, id="small, unpaired"),
        # Nothing but chance.
        pytest.param([1, 1, 1, 0.9999], [1.0] * 4, True, 1.0, False, id="one error in 10,000"),
        # Too few to decide, whatever the values.
        pytest.param([0.856] * 3, [0.977] * 3, False, 0.1, False, id="forest against GRU, 3 and 3"),
        pytest.param(PARITY, [1.0] * 5, True, 0.0625, False, id="5 pairs, all one way"),
        pytest.param([0.5], [1.0], False, 1.0, False, id="1 and 1"),
        # Equal values, of which there are many where models are right on every string.
        pytest.param([1.0] * 12, [1.0] * 6 + [0.7] * 6, True, 2 / 64, True, id="half of pairs tie"),
        pytest.param([1.0] * 7, [1.0] * 5 + [0.7] * 2, False, None, False, id="most are tied"),
        # What is not known does not count.
        pytest.param([NAN, *PARITY], [1.0] * 5 + [NAN], False, 2 / 252, True, id="NaN, unpaired"),
        pytest.param([*PARITY, 0.5, NAN], [1.0] * 6 + [NAN], True, 2 / 64, True, id="NaN in both"),
    ],
)
def test_comparison_of_accuracies_has_the_exact_p_value(
    first: list[float], second: list[float], paired: bool, p_value: float | None, is_more: bool
) -> None:
    found = compare_values(seeds_of(first), seeds_of(second), paired=paired)
    assert found.is_decided == is_more
    interval = found.interval
    # No interval contradicts its verdict.
    assert is_more == (interval.low > 0 or interval.high < 0)
    assert not interval.value < interval.low
    assert not interval.value > interval.high
    if p_value is not None:
        assert found.p_value == pytest.approx(p_value, abs=1e-9 if p_value > 2e-4 else 2e-4)
    assert found.p_value is not None
    assert found.p_value >= found.least_p
    # The other way around it is the same, with its sign changed.
    other = compare_values(seeds_of(second), seeds_of(first), paired=paired)
    if "exact" in found.method:
        assert other.p_value == pytest.approx(found.p_value)
        ends = (-other.interval.high, -other.interval.low)
        assert (interval.low, interval.high) == pytest.approx(ends, abs=1e-8, nan_ok=True)


def test_comparison_of_shares_has_the_exact_p_value() -> None:
    for first, second, paired, p_value in (
        ((0, 5), (5, 5), False, 2 / 252),
        ((0, 5), (5, 5), True, 0.0625),
        ((0, 6), (6, 6), True, 2 / 64),
        ((1, 8), (8, 8), True, 2 / 128),
        ((1, 8), (8, 8), False, 0.0014),
        ((0, 3), (3, 3), False, 0.1),
        ((8, 8), (7, 8), False, 1.0),
        ((4, 8), (4, 8), True, 1.0),
        ((10, 40), (30, 40), False, 1.5e-5),
    ):
        found = compare_counts(first, second, paired)
        assert found.p_value == pytest.approx(p_value, abs=1e-4)
        assert found.is_decided == (p_value <= 0.05)
        assert found.counts == (first, second)


def compare_counts(first: tuple[int, int], second: tuple[int, int], paired: bool) -> Difference:
    sides = [seeds_of([1.0] * count + [0.0] * (n - count)) for count, n in (first, second)]
    return compare_shares(sides[0], sides[1], paired=paired)


def test_interval_of_shares_agrees_with_the_exact_test() -> None:
    for n, m in ((4, 4), (3, 7)):
        for count, other in product(range(n + 1), range(m + 1)):
            for paired in (True, False):
                found = compare_counts((count, n), (other, m), paired)
                is_more = found.interval.low > 0 or found.interval.high < 0
                assert found.is_decided == is_more == ((found.p_value or 1) <= 0.05)


def scipys(a: Any, b: Any, alternative: str, *, paired: bool) -> float:
    """SciPy's p-value by all permutations; sums of whole numbers are exact."""

    def unlike(x: Any, y: Any, axis: int) -> Any:
        return x.sum(axis) * len(b) - y.sum(axis) * len(a)

    statistic: Any = (lambda x, axis: x.sum(axis)) if paired else unlike
    sides = (a - b,) if paired else (a, b)
    kind = "samples" if paired else "independent"
    how: dict[str, Any] = {"permutation_type": kind, "alternative": alternative}
    test = stats.permutation_test(sides, statistic, n_resamples=np.inf, vectorized=True, **how)
    return float(test.pvalue)


@pytest.mark.parametrize("paired", [False, True])
def test_permutation_test_and_interval_equal_scipy(
    paired: bool,
) -> None:
    rng = np.random.default_rng(8)
    for n in (5, 6, 7):
        # Whole numbers of hundredths, of which many are equal.
        a, b = rng.integers(90, 100, n), rng.integers(80, 100, n if paired else n + 1)
        found = compare_values(seeds_of(a / 100), seeds_of(b / 100), paired=paired)
        one = [scipys(a, b, side, paired=paired) for side in ("greater", "less")]
        assert found.p_value == pytest.approx(min(1, 2 * min(one)))
        assert paired or "by doubling" in found.method
        apart = compare_values(seeds_of(a * 0.0 + 2), seeds_of(b * 0.0 + 1), paired=paired)
        ways = 2**n if paired else math.comb(2 * n + 1, n)
        assert apart.p_value == pytest.approx(2 / ways) == apart.least_p
        if math.isnan(found.interval.low):
            continue
        # Moved by a little more or less than its ends; by sixty-fourths, sums are exact again.
        ends = ("greater", 100 * found.interval.low, -1), ("less", 100 * found.interval.high, 1)
        for side, end, outwards in ends:
            last = (math.floor if outwards < 0 else math.ceil)(64 * end)
            inner = (math.ceil if outwards < 0 else math.floor)(64 * end)
            beyond, within = (
                scipys(a - x / 64, b, side, paired=paired)
                for x in (last + outwards, inner - outwards)
            )
            assert beyond <= 0.025 < within


def test_drawn_permutations_are_reproducible() -> None:
    a, b = (seeds_of(noisy(60, mean, 0.05, int(100 * mean))) for mean in (0.8, 0.82))
    for paired, true in ((True, stats.ttest_rel), (False, stats.ttest_ind)):
        found = compare_values(a, b, paired=paired)
        assert found == compare_values(a, b, paired=paired)
        assert "9,999 draws" in found.method
        other = true([*a.values()], [*b.values()])
        assert found.p_value == pytest.approx(other.pvalue, abs=0.01)
        ends = other.confidence_interval(0.95)
        assert (found.interval.low, found.interval.high) == pytest.approx(ends, abs=2e-3)


@pytest.mark.parametrize(("paired", "pairs"), [(True, 6), (False, 4)])
def test_too_few_seeds_are_reported_with_the_number_that_decides(paired: bool, pairs: int) -> None:
    few = pairs - 1
    for compared in (compare_values, compare_shares):
        found = compared(seeds_of([0.0] * few), seeds_of([1.0] * few), paired=paired)
        assert not found.can_decide
        assert (found.enough, found.to_decide) == (pairs, pairs)
        assert found.least_p == found.p_value
        text = chance_of(found)
        assert f"p = {found.least_p:.3g}" in text
        assert f"about {pairs}" in text
        decided = compared(seeds_of([0.0] * pairs), seeds_of([1.0] * pairs), paired=paired)
        assert decided.is_decided
        assert decided.to_decide is None


def test_suggested_number_of_seeds_has_80_percent_power() -> None:
    few = seeds_of([1.0] * 5 + [0.0] * 3), seeds_of([1.0] * 2 + [0.0] * 6)
    found = compare_shares(*few, paired=False)
    assert found.to_decide is not None
    assert 15 < found.to_decide < 60
    rng = np.random.default_rng(3)

    def decided(seeds: int) -> float:
        counts = rng.binomial(seeds, [5 / 8, 2 / 8], size=(400, 2))
        p_values = [fisher((int(k), seeds), (int(x), seeds)) for k, x in counts]
        return float(np.mean(np.array(p_values) <= 0.05))

    assert 0.7 < decided(found.to_decide) < 0.9
    assert decided(found.to_decide // 3) < 0.6


def test_few_common_seeds_are_not_paired() -> None:
    some, more = seeds_of([0.5] * 8), seeds_of([1.0] * 8, first=5)
    assert compare_values(some, more, paired=True).seeds == (8, 8)
    assert not compare_values(some, more, paired=True).paired
    assert compare_values(some, seeds_of([1.0] * 8, first=2), paired=True).seeds == (6, 6)
    alone = compare_values(some, seeds_of([]), paired=True)
    assert (alone.p_value, alone.is_decided) == (None, False)
    assert math.isnan(alone.interval.value)


def test_median_differences_are_resampled_in_pairs() -> None:
    values = np.random.default_rng(1).normal(size=20)
    own, better = seeds_of(values), seeds_of(values + 0.1)
    paired = median_difference([better], [own], paired=True)
    assert (paired.low, paired.value, paired.high) == pytest.approx((0.1, 0.1, 0.1))
    alone = median_difference([better], [seeds_of(values, first=20)], paired=True)
    strangers = median_difference([better], [own], paired=False)
    assert alone.low < 0 < alone.high
    assert strangers.low < 0 < strangers.high
    five, six = (seeds_of(values[:n]) for n in (5, 6))
    assert math.isnan(median_difference([five], [five], paired=True).low)
    assert not math.isnan(median_difference([six], [six], paired=True).low)


def test_resampled_medians_equal_the_scipy_bootstrap() -> None:
    for n in (8, 9):
        values = np.random.default_rng(n).normal(size=n)
        medians = resampled_medians(tuple(range(n)), tuple(values), apart=False)
        found = np.quantile(medians, [0.025, 0.25, 0.75, 0.975])
        drawn = stats.bootstrap(
            (values,), np.median, n_resamples=20_000, rng=np.random.default_rng(1)
        ).bootstrap_distribution
        expected = np.quantile(drawn, [0.025, 0.25, 0.75, 0.975])
        # Medians of so few are steps: a quantile is one of them, or the next.
        assert found == pytest.approx(expected, abs=0.15)


def test_share_difference_of_equal_groups_is_pooled() -> None:
    bad, good = ([seeds_of(np.arange(8) < failing) for failing in own] for own in ((8, 6), (3, 1)))
    found = share_difference(bad, good, paired=False)
    pooled = newcombe((14, 16), (4, 16))
    assert (found.low, found.high) == pytest.approx((pooled.low, pooled.high))
    paired = share_difference(bad, good, paired=True)
    table = paired_newcombe(PairTable(both=4, only_first=10, only_second=0, none=2))
    assert (paired.low, paired.high) == pytest.approx((table.low, table.high))


def planted(within: Iterable[float], beyond: Iterable[float], first: int = 0) -> pd.DataFrame:
    """Finished runs of one configuration, by their accuracies on trained and on longer lengths."""
    runs = pd.DataFrame({"accuracy_within": [*within], "accuracy_beyond": [*beyond]}, dtype=float)
    runs["model_seed"], learned = range(first, first + len(runs)), runs["accuracy_within"] >= 0.99
    came_to = np.where(runs["accuracy_beyond"] < 1, "fails beyond", "generalizes")
    runs["outcome"] = np.where(learned, came_to, "not learned")
    runs["accuracy"] = (runs["accuracy_within"] + runs["accuracy_beyond"]) / 2
    return runs


def imported_runs(accuracies: Iterable[float]) -> pd.DataFrame:
    """Imported runs, whose training lengths are unknown."""
    known = [*accuracies]
    runs = planted([NAN] * len(known), [NAN] * len(known))
    return runs.assign(accuracy=known, outcome="not known")


def generalizing(seeds: int) -> pd.DataFrame:
    return planted([1.0] * seeds, [1.0] * seeds)


def failing(seeds: int, stream: int = 9) -> pd.DataFrame:
    return planted([1.0] * seeds, noisy(seeds, 0.6, 0.03, stream))


BEYOND, WITHIN, LEARNED = "accuracy on longer strings", "accuracy on trained", "share that learned"
GENERALIZES, ALL_STRINGS, FAILS = "share that generalizes", "accuracy on all", "share that fails"
NOTHING, CHANCE, TOO_FEW = "No difference", "Chance alone may explain", "Too few seeds to tell"
UNLEARNED = planted(noisy(8, 0.7, 0.05, 3), noisy(8, 0.6, 0.05, 4))
HALF_LEARNED = pd.concat([failing(6), planted([0.5] * 6, [0.0] * 6, first=6)])
STEADY, LESS = (planted([1.0] * 12, [x - less for x in START]) for less in (0, 0.01))

PLANTED: list[tuple[pd.DataFrame, pd.DataFrame, bool, str | dict[str, int]]] = [
    (generalizing(8), generalizing(8), True, NOTHING),
    (failing(8), failing(8, stream=10), False, CHANCE),
    (STEADY, LESS, False, CHANCE),
    (STEADY, LESS, True, {BEYOND: 0}),
    (generalizing(8), planted([1] * 8, [0.9999] + [1] * 7), True, CHANCE),
    (failing(3), generalizing(3), False, TOO_FEW),
    (failing(5), generalizing(5), True, TOO_FEW),
    (failing(6), generalizing(6), True, {GENERALIZES: 1, BEYOND: 1}),
    (generalizing(12), failing(2), False, {GENERALIZES: 0, BEYOND: 0}),
    (failing(8), UNLEARNED, False, {LEARNED: 0, WITHIN: 0}),
    # Of pairs, those of which both have learned.
    (HALF_LEARNED, failing(12), True, {LEARNED: 1, WITHIN: 1}),
    (imported_runs([0.9] * 8), imported_runs([1.0] * 8), False, {ALL_STRINGS: 1, FAILS: 0}),
]
"""Two configurations, whether their seeds are pairs, and what is true: which side has more."""


@pytest.mark.parametrize(("first", "second", "paired", "truth"), PLANTED)
def test_verdict_on_planted_seeds_is_true(
    first: pd.DataFrame, second: pd.DataFrame, paired: bool, truth: str | dict[str, int]
) -> None:
    found = compared((first, second), paired)
    verdict = found.verdict()
    more = {} if isinstance(truth, str) else truth
    assert verdict.startswith(truth if isinstance(truth, str) else "Significant differences")
    for name, side in more.items():
        assert re.search(f"{name}[^;]* \\({'ab'[side]} has more\\)", verdict)
    assert verdict.count("has more") == len(more)
    for name, question in found.questions.items():
        is_more = any(QUESTIONS[name].startswith(x) for x in more)
        interval = question.interval
        assert is_more == (interval.low > 0 or interval.high < 0)
        assert is_more == ("significant" in sentence_of(name, question))
        assert is_more == (question.p_value is not None and question.p_value <= 0.05)
    # The other way around it is the same, with the sides exchanged.
    other = compared((second, first), paired).verdict(("b", "a"))
    assert other == verdict or not more


def compared(sides: tuple[pd.DataFrame, pd.DataFrame], paired: bool) -> Compared:
    """The comparison of two configurations by their seeds alone."""
    none = pd.DataFrame()
    first, second = (outcomes_of(side.assign(config_id=1), 1.0)[1] for side in sides)
    return Compared(
        ("a", "b"), ("a", "b"), (1, 2), {}, (len(sides[0]), len(sides[1])),
        None if paired else "their sizes differ", ask(first, second, paired=paired),
        none, None, none, {},
    )  # fmt: skip


def test_median_interval_is_computed_per_group() -> None:
    groups = {
        "even": [0.3, 0.9, 0.5, 0.8, 0.2, 0.4],
        "odd": [1.0, 0.2, 0.7, 0.9, 0.1, 0.3, 0.8],
        # Pooled it would be 0.8.
        "tied": [1.0] * 4 + [0.4] * 2,
        "five": [0.1, 0.2, 0.3, 0.4, 0.5],
    }
    pairs = [(name, value) for name, values in groups.items() for value in (*values, math.nan)]
    frame = pd.DataFrame([*pairs, ("none", math.nan)], columns=["group", "value"])
    found = median_intervals(frame, "value", ["group"]).set_index("group")
    assert found["n"].to_dict() == {name: len(values) for name, values in groups.items()}
    for name, values in groups.items():
        row = found.loc[name]
        assert row["median"] == pytest.approx(np.median(values))
        if len(values) < FEWEST:
            assert row[["low", "high"]].isna().all()
            continue
        # The draws are of ranks, so another way has to draw from the sorted values.
        drawn = np.random.default_rng(0).integers(len(values), size=(RESAMPLES, len(values)))
        expected = np.quantile(np.median(np.sort(values)[drawn], axis=1), [0.025, 0.975])
        assert (row["low"], row["high"]) == pytest.approx(tuple(expected))
    # The range of five covers the median 15 times in 16, that of six 31 times in 32.
    assert 1 - 2 ** (1 - (FEWEST - 1)) < CONFIDENCE <= 1 - 2 ** (1 - FEWEST)
    assert median_intervals(frame.head(0), "value", ["group"]).empty


def test_selection_effect_equals_all_resamples() -> None:
    five = selection_effect(np.array([0.2, 0.9, 0.4, 0.1, 0.4]))
    assert five.value == pytest.approx(0.5)
    assert math.isnan(five.low)
    assert math.isnan(five.high)
    values = [0.3, 0.9, 0.5, 0.8, 0.2, 0.4]
    # All resamples that there are, each as likely.
    resamples = np.array(list(product(values, repeat=6)))
    gaps = resamples.max(axis=1) - resamples.mean(axis=1)
    found = selection_effect(np.array(values))
    assert found.value == pytest.approx(0.9 - np.mean(values))
    assert (found.low, found.high) == pytest.approx(np.quantile(gaps, [0.025, 0.975]), abs=0.02)
    alike = selection_effect(np.full(8, 0.7))
    assert (alike.value, alike.low, alike.high) == pytest.approx((0, 0, 0))


SEEDS = 3


@pytest.mark.parametrize("languages", [5, 20])
@pytest.mark.parametrize("alike", ["all seeds", "some", "none"])
def test_clustered_interval_covers_the_share(languages: int, alike: str) -> None:
    rng, held, pooled = np.random.default_rng(0), [], []
    for share in rng.uniform(0.1, 0.9, 600):
        own = {
            "all seeds": (rng.random(languages) < share).astype(float),
            "some": rng.beta(share, 1 - share, languages),
            "none": np.full(languages, share),
        }[alike]
        counts = rng.binomial(SEEDS, own).tolist()
        found = clustered_wilson(counts, [SEEDS] * languages)
        held.append(found.low <= share <= found.high)
        of_seeds = wilson(sum(counts), SEEDS * languages)
        pooled.append(of_seeds.low <= share <= of_seeds.high)
    assert np.mean(held) >= 0.94
    if alike == "all seeds":
        assert np.mean(pooled) < 0.85, "an interval over seeds would say too much"


def test_clustered_interval_uses_korn_graubard_sample_size() -> None:
    counts = np.array([3, 2, 1, 2, 3, 2])
    share, error = (counts / SEEDS).mean(), stats.sem(counts / SEEDS)
    reach = error * stats.t.ppf(0.975, len(counts) - 1) / stats.norm.ppf(0.975)
    effective = share * (1 - share) / reach**2
    assert len(counts) < effective < counts.size * SEEDS
    found, expected = clustered_wilson(counts, [SEEDS] * 6), wilson(share * effective, effective)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


def test_clustered_interval_is_bounded_by_languages_and_seeds() -> None:
    agree = clustered_wilson([3, 3, 0, 3, 0, 3], [3] * 6)
    of_languages = wilson(4, 6)
    assert agree.value == pytest.approx(4 / 6)
    assert agree.low == pytest.approx(of_languages.low)
    assert agree.high == pytest.approx(of_languages.high)
    assert clustered_wilson([3] * 6, [3] * 6) == wilson(6, 6)
    assert clustered_wilson([1] * 6, [2] * 6) == wilson(6, 12)
    assert clustered_wilson([2], [4]) == wilson(0.5, 1)
    # A language counts by its share, however many seeds it has.
    assert clustered_wilson([9, 0], [9, 1]).value == 0.5


CAME_TO = {
    "g": (Outcome.GENERALIZES, 1), "b": (Outcome.FAILS_BEYOND, 1),
    "n": (Outcome.NOT_LEARNED, 0), "?": (Outcome.NOT_KNOWN, None),
}  # fmt: skip


def models_of(network: str, **languages: str) -> list[dict[str, Any]]:
    """Models by language, each a letter for its outcome."""
    return [
        {"network": network, "language": language, "outcome": outcome.value, "learned": learned}
        for language, letters in languages.items()
        for outcome, learned in map(CAME_TO.__getitem__, letters)
    ]


def test_language_shares_average_over_seeds_first() -> None:
    models = models_of("lstm", a="ggg", b="gbn", c="nnn", d="???")
    models += [*models_of("rnn", a="nn", b="nn"), *models_of("alone", a="gg")]
    lstm, rnn = language_shares(pd.DataFrame(models), ["network"]).to_dict("records")
    assert (lstm["network"], lstm["languages"], lstm["seeds"]) == ("lstm", 4, 12)
    assert (lstm["learned"], lstm["learned_languages"]) == (pytest.approx((1 + 2 / 3) / 3), 3)
    assert (lstm["generalize"], lstm["generalize_languages"]) == (pytest.approx((1 + 1 / 2) / 2), 2)
    assert lstm["learned_low"] < lstm["learned"] < lstm["learned_high"]
    # Unlearned models have no share that generalizes.
    assert (rnn["learned"], rnn["generalize_languages"]) == (0, 0)
    assert np.isnan(rnn["generalize"])


def test_populations_are_distinguished_by_the_fewest_settings() -> None:
    settings = pd.DataFrame(
        {"hidden_size": [8, 8, 16, 16], "architecture": ["rnn", "rnn", "lstm", "lstm"],
         "pattern": ["a*", "b*", "a*", "b*"], "readout": [None, None, "mean", "mean"]}
    )  # fmt: skip
    assert settings_apart(settings, ["regular"]) == ["architecture"]
    settings["language_class"] = ["SL", "SP", "SL", "SP"]
    assert settings_apart(settings, ["regular"]) == ["language_class", "architecture"]
    settings["architecture"] = "rnn"
    assert settings_apart(settings, ["regular"]) == ["language_class", "hidden_size"]
    # A file of the benchmark names its class.
    assert class_named("04.03.TcoSL.2.1.0_Train.txt") == "TcoSL"
    assert class_named("64.64.Zp.5.1.9.att") == "Zp"
    assert class_named("words.csv") is None


def test_border_accuracy_is_a_median_over_languages() -> None:
    counts = pd.DataFrame(
        [
            {"name": "", "language": language, "run_id": run, "drawn": drawn}
            | {"network": "rnn", "tested": 10, "right": right}
            for language, run, right in (("a", 1, 10), ("a", 2, 8), ("a", 3, 2), ("b", 4, 6))
            for drawn in ("positive", "uniform", "border", "edited")
        ]
    )
    (found,) = median_accuracies(counts, ["network"]).to_dict("records")
    assert found == {"random": pytest.approx(0.7), "border": pytest.approx(0.7)}
