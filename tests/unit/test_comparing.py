"""Two configurations compared, against published tables and SciPy."""

import math
import re
import tracemalloc
from collections.abc import Iterable
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from sweeps.api.comparisons import QUESTIONS, Compared, ask, chance_of, sentence_of
from sweeps.statistics.chance import agreeing, compare_shares, compare_values
from sweeps.statistics.differences import (
    Outcomes,
    by_length,
    failing_difference,
    median_difference,
    string_differences,
)
from sweeps.statistics.intervals import (
    PairTable,
    fisher,
    mcnemar,
    newcombe,
    paired_newcombe,
    wilson,
)


@pytest.mark.parametrize(
    ("first", "second", "low", "high"),
    [
        # Newcombe (1998a), Statistics in Medicine 17: 873, table II, method 10.
        ((56, 70), (48, 80), 0.0524, 0.3339),
        ((9, 10), (3, 10), 0.1705, 0.8090),
    ],
)
def test_differences_of_shares_are_those_published(
    first: tuple[int, int], second: tuple[int, int], low: float, high: float
) -> None:
    found = newcombe(first, second)
    assert found.value == pytest.approx(first[0] / first[1] - second[0] / second[1])
    assert (found.low, found.high) == pytest.approx((low, high), abs=6e-5)


def test_the_draws_of_many_seeds_are_those_of_one_call_and_stay_small() -> None:
    seeds = 3_000
    values = np.random.default_rng(7).random(seeds)
    tracemalloc.start()
    found = Outcomes(tuple(range(seeds)), values).medians
    kept, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # All draws at once are 48 MB.
    assert most < 25e6
    assert kept < 1e6
    generator = np.random.default_rng(tuple(range(seeds)))
    drawn = generator.multinomial(seeds, np.full(seeds, 1 / seeds), size=3)
    expected = [np.median(np.repeat(values, times)) for times in drawn]
    assert found[:3] == pytest.approx(expected)


def score_limits(count: int, n: int) -> list[float]:
    """The shares whose own standard error reaches the one that was observed: Wilson's limits."""
    z2, share = stats.chi2.ppf(0.95, 1), count / n
    roots = np.roots([1 + z2 / n, -(2 * share + z2 / n), share**2])
    return sorted(float(root.real) for root in roots)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((6, 7), (2, 7)), ((5, 56), (0, 29)), ((0, 10), (0, 20)), ((10, 10), (0, 10)),
        ((7, 8), (3, 8)), ((0, 8), (8, 8)),
    ],
)  # fmt: skip
def test_differences_of_shares_square_and_add_the_score_limits(
    first: tuple[int, int], second: tuple[int, int]
) -> None:
    (one, two), found = (own[0] / own[1] for own in (first, second)), newcombe(first, second)
    (low, high), (other_low, other_high) = score_limits(*first), score_limits(*second)
    assert found.low == pytest.approx(one - two - math.hypot(one - low, other_high - two), abs=1e-7)
    assert found.high == pytest.approx(
        one - two + math.hypot(high - one, two - other_low), abs=1e-7
    )


def test_without_correlation_pairs_are_as_independent_samples() -> None:
    found = paired_newcombe(PairTable(both=6, only_first=6, only_second=4, none=4))
    free = newcombe((12, 20), (10, 20))
    assert (found.low, found.high) == pytest.approx((free.low, free.high))


@pytest.mark.parametrize(
    ("pairs", "low", "high"),
    [
        # Newcombe (1998b), Statistics in Medicine 17: 2635, method 10.
        ((36, 12, 2, 0), 0.0569, 0.3404),
        ((18, 12, 2, 18), 0.0562, 0.3290),
        ((53, 0, 0, 1), -0.0729, 0.0729),
        ((0, 30, 0, 0), 0.8395, 1.0000),
    ],
)
def test_differences_of_paired_shares_are_those_published(
    pairs: tuple[int, int, int, int], low: float, high: float
) -> None:
    found = paired_newcombe(PairTable(*pairs))
    assert (found.low, found.high) == pytest.approx((low, high), abs=6e-5)


def test_agreement_of_pairs_narrows_the_interval() -> None:
    wide = paired_newcombe(PairTable(both=25, only_first=25, only_second=25, none=25))
    narrow = paired_newcombe(PairTable(both=49, only_first=1, only_second=1, none=49))
    assert narrow.high - narrow.low < (wide.high - wide.low) / 3


@pytest.mark.parametrize(("count", "n"), [(0, 5), (5, 5), (3, 8), (484, 600)])
def test_shares_have_wilsons_interval(count: int, n: int) -> None:
    z, p = stats.norm.ppf(0.975), count / n
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    reach = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    found = wilson(count, n)
    assert (found.low, found.high) == pytest.approx((middle - reach, middle + reach), abs=1e-9)
    assert found.low <= found.value <= found.high


def test_mcnemar_counts_the_pairs_that_disagree() -> None:
    assert mcnemar(PairTable(5, 0, 0, 5)) == 1
    assert mcnemar(PairTable(0, 5, 0, 0)) == pytest.approx(2 / 32)
    assert mcnemar(PairTable(9, 1, 9, 3)) == pytest.approx(2 * 11 / 1024)


def seeds_of(values: Iterable[float], first: int = 0) -> Outcomes:
    known = np.array([*values], dtype=float)
    return Outcomes(tuple(range(first, first + len(known))), known)


def noisy(seeds: int, mean: float, spread: float, stream: int) -> list[float]:
    drawn = np.random.default_rng(stream).normal(mean, spread, seeds).clip(0, 1).round(4)
    return [float(value) for value in drawn]


NAN = math.nan
PARITY = [0.5249, 0.52, 0.531, 0.518, 0.5233]
START = noisy(12, 0.8, 0.05, 1)
"""What seeds have in common where they are pairs."""


@pytest.mark.parametrize(
    ("first", "second", "paired", "p_value", "is_more"),
    [
        # Effects, which are there.
        pytest.param(PARITY, [1.0] * 5, False, 2 / 252, True, id="coin against right, 5 and 5"),
        pytest.param([0.9] * 4, [1.0] * 4, False, 2 / 70, True, id="4 and 4 apart"),
        pytest.param([*PARITY, 0.53], [1.0] * 6, True, 2 / 64, True, id="6 pairs, all one way"),
        pytest.param([1.0] * 9, [0.8], False, 2 / 10, False, id="9 against 1, all apart"),
        pytest.param([1.0] * 39, [0.8], False, 2 / 40, True, id="39 against 1, all apart"),
        pytest.param([0.9] * 3, [1.0] * 5, False, 2 / 56, True, id="3 and 5 apart"),
        pytest.param(START, [x - 0.01 for x in START], True, 2 / 4096, True, id="small, in pairs"),
        pytest.param(START, [x - 0.01 for x in START], False, None, False, id="small, unpaired"),
        pytest.param(noisy(30, 0.9, 0.02, 2), noisy(30, 0.86, 0.02, 3), False, 2e-4, True, id="30"),
        # Nothing but chance.
        pytest.param([0.8] * 8, [0.8] * 8, True, 1.0, False, id="the same"),
        pytest.param(noisy(8, 0.8, 0.1, 4), noisy(8, 0.8, 0.1, 5), False, None, False, id="noise"),
        pytest.param(noisy(50, 0.8, 0.1, 6), noisy(50, 0.8, 0.1, 8), True, None, False, id="50"),
        pytest.param([1, 1, 1, 0.9999], [1.0] * 4, True, 1.0, False, id="one error in 10,000"),
        pytest.param([1.0] * 8, [0.0] + [1.0] * 7, False, 1.0, False, id="one of 8 collapsed"),
        # Too few to tell, whatever they come to.
        pytest.param([0.856] * 3, [0.977] * 3, False, 0.1, False, id="forest against GRU, 3 and 3"),
        pytest.param(PARITY, [1.0] * 5, True, 0.0625, False, id="5 pairs, all one way"),
        pytest.param([0.5], [1.0], False, 1.0, False, id="1 and 1"),
        # Equal values, of which there are many where models are right on every string.
        pytest.param([1.0] * 12, [1.0] * 6 + [0.7] * 6, True, 2 / 64, True, id="half of pairs tie"),
        pytest.param([1.0] * 7, [1.0] * 2 + [0.7] * 5, False, 2 * 36 / 3432, True, id="ties apart"),
        pytest.param([1.0] * 7, [1.0] * 5 + [0.7] * 2, False, None, False, id="most are tied"),
        # What is not known does not count.
        pytest.param([NAN, *PARITY], [1.0] * 5 + [NAN], False, 2 / 252, True, id="NaN, unpaired"),
        pytest.param([*PARITY, 0.5, NAN], [1.0] * 7, True, 2 / 64, True, id="NaN leaves 6 pairs"),
        pytest.param([*PARITY, 0.5, NAN], [1.0] * 6 + [NAN], True, 2 / 64, True, id="NaN in both"),
    ],
)
def test_whether_accuracies_differ_by_more_than_chance_is_answered_rightly(
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


@pytest.mark.parametrize(
    ("first", "second", "paired", "p_value", "is_more"),
    [
        ((0, 5), (5, 5), False, 2 / 252, True),
        ((0, 5), (5, 5), True, 0.0625, False),
        ((0, 6), (6, 6), True, 2 / 64, True),
        ((1, 8), (8, 8), True, 2 / 128, True),
        ((1, 8), (8, 8), False, 0.0014, True),
        ((0, 3), (3, 3), False, 0.1, False),
        ((8, 8), (7, 8), False, 1.0, False),
        ((4, 8), (4, 8), True, 1.0, False),
        ((10, 40), (30, 40), False, 1.5e-5, True),
    ],
)
def test_whether_shares_differ_by_more_than_chance_is_answered_rightly(
    first: tuple[int, int],
    second: tuple[int, int],
    paired: bool,
    p_value: float,
    is_more: bool,
) -> None:
    sides = [seeds_of([1.0] * count + [0.0] * (n - count)) for count, n in (first, second)]
    found = compare_shares(sides[0], sides[1], paired=paired)
    assert found.is_decided == is_more == (found.interval.low > 0 or found.interval.high < 0)
    assert found.p_value == pytest.approx(p_value, abs=1e-4)
    assert found.counts == (first, second)


def test_no_interval_of_a_difference_of_shares_contradicts_its_exact_test() -> None:
    for n, m in ((3, 3), (4, 4), (5, 5), (5, 8), (8, 8), (2, 12)):
        for first, second in product(range(n + 1), range(m + 1)):
            p_value = fisher((first, n), (second, m))
            found = agreeing(newcombe((first, n), (second, m)), p_value)
            assert (p_value <= 0.05) == (found.low > 0 or found.high < 0)
    for n in range(1, 11):
        for cells in (x for x in product(range(n + 1), repeat=4) if sum(x) == n):
            table = PairTable(*cells)
            found = agreeing(paired_newcombe(table), mcnemar(table))
            assert (mcnemar(table) <= 0.05) == (found.low > 0 or found.high < 0)


@pytest.mark.parametrize("paired", [False, True])
def test_a_permutation_test_is_scipys_and_its_interval_what_it_does_not_rule_out(
    paired: bool,
) -> None:
    rng = np.random.default_rng(8)
    for n in (5, 6, 7):
        # Whole numbers of hundredths, of which many are equal; SciPy's sums of them are exact.
        a, b = rng.integers(90, 100, n), rng.integers(80, 100, n if paired else n + 1)

        def p_values(less: float, a: Any = a, b: Any = b) -> list[float]:
            of = (a - b - less,) if paired else (a - less, b)
            statistic = (
                (lambda x, axis: x.sum(axis=axis))
                if paired
                else (lambda x, y, axis: x.sum(axis) * len(b) - y.sum(axis) * len(a))
            )
            return [
                float(
                    stats.permutation_test(
                        of,
                        statistic,
                        permutation_type="samples" if paired else "independent",
                        alternative=alternative,
                        n_resamples=np.inf,
                        vectorized=True,
                    ).pvalue
                )
                for alternative in ("greater", "less")
            ]

        found = compare_values(seeds_of(a / 100), seeds_of(b / 100), paired=paired)
        assert found.p_value == pytest.approx(min(1, 2 * min(p_values(0))))
        if math.isnan(found.interval.low):
            continue
        # Moved by a little more or less than its ends; by sixty-fourths, sums are exact again.
        low, high = 100 * found.interval.low, 100 * found.interval.high
        step = 1 / 64
        down, up = math.floor(low / step) * step - step, math.ceil(high / step) * step + step
        assert p_values(down)[0] <= 0.025 < p_values(math.ceil(low / step) * step + step)[0]
        assert p_values(up)[1] <= 0.025 < p_values(math.floor(high / step) * step - step)[1]


def test_of_unequal_groups_a_permutation_test_is_twice_the_smaller_side_as_scipys() -> None:
    rng = np.random.default_rng(3)
    for n, m in product(range(2, 7), repeat=2):
        apart = (np.arange(n) + 90, np.arange(m) + 80)
        for a, b in (apart, (rng.integers(80, 99, n), rng.integers(80, 99, m))):
            expected = stats.permutation_test(
                (a, b),
                lambda x, y, axis, m=m, n=n: x.sum(axis) * m - y.sum(axis) * n,
                alternative="two-sided",
                n_resamples=np.inf,
                vectorized=True,
            ).pvalue
            found = compare_values(seeds_of(a / 100), seeds_of(b / 100), paired=False)
            assert found.p_value == pytest.approx(float(expected))
            assert found.method == "exact permutation test, two-sided by doubling"
        least = compare_values(seeds_of(apart[0] / 100), seeds_of(apart[1] / 100), paired=False)
        assert least.p_value == pytest.approx(min(1, 2 / math.comb(n + m, n)))
        assert least.p_value == pytest.approx(least.least_p)


def test_of_many_seeds_permutations_are_drawn_and_the_same_each_time() -> None:
    a, b = (seeds_of(noisy(60, mean, 0.05, int(100 * mean))) for mean in (0.8, 0.82))
    for paired, true in ((True, stats.ttest_rel), (False, stats.ttest_ind)):
        found = compare_values(a, b, paired=paired)
        assert found == compare_values(a, b, paired=paired)
        assert "9,999 draws" in found.method
        other = true(a.values, b.values)
        assert found.p_value == pytest.approx(other.pvalue, abs=0.01)
        ends = other.confidence_interval(0.95)
        assert (found.interval.low, found.interval.high) == pytest.approx(ends, abs=2e-3)


@pytest.mark.parametrize(("paired", "pairs"), [(True, 6), (False, 4)])
def test_it_is_said_what_so_few_seeds_can_show_and_how_many_would_decide(
    paired: bool, pairs: int
) -> None:
    few = pairs - 1
    for compared in (compare_values, compare_shares):
        found = compared(seeds_of([0.0] * few), seeds_of([1.0] * few), paired=paired)
        assert not found.can_decide
        assert (found.enough, found.to_decide) == (pairs, pairs)
        assert found.least_p == found.p_value
        text = chance_of(found)
        assert f"cannot go below p = {found.least_p:.3g}: train more; about {pairs}" in text
        decided = compared(seeds_of([0.0] * pairs), seeds_of([1.0] * pairs), paired=paired)
        assert decided.is_decided
        assert decided.to_decide is None


def test_so_many_seeds_decide_in_four_of_five_studies() -> None:
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


def test_pairs_of_few_seeds_leave_no_others_out() -> None:
    some, more = seeds_of([0.5] * 8), seeds_of([1.0] * 8, first=5)
    assert compare_values(some, more, paired=True).seeds == (8, 8)
    assert not compare_values(some, more, paired=True).paired
    assert compare_values(some, seeds_of([1.0] * 8, first=2), paired=True).seeds == (6, 6)
    alone = compare_values(some, seeds_of([]), paired=True)
    assert (alone.p_value, alone.is_decided) == (None, False)
    assert math.isnan(alone.interval.value)


def test_medians_are_drawn_pair_by_pair() -> None:
    values = np.random.default_rng(1).normal(size=20)
    seeds = tuple(range(40))
    own, better = Outcomes(seeds[:20], values), Outcomes(seeds[:20], values + 0.1)
    paired = median_difference([better], [own], paired=True)
    assert (paired.low, paired.value, paired.high) == pytest.approx((0.1, 0.1, 0.1))
    alone = median_difference([better], [Outcomes(seeds[20:], values)], paired=True)
    strangers = median_difference([better], [own], paired=False)
    assert alone.low < 0 < alone.high
    assert strangers.low < 0 < strangers.high
    five, six = (Outcomes(seeds[:n], values[:n]) for n in (5, 6))
    assert math.isnan(median_difference([five], [five], paired=True).low)
    assert not math.isnan(median_difference([six], [six], paired=True).low)


def test_resampled_medians_are_those_of_scipys_bootstrap() -> None:
    for n in (8, 9):
        values = np.random.default_rng(n).normal(size=n)
        found = np.quantile(Outcomes(tuple(range(n)), values).medians, [0.025, 0.25, 0.75, 0.975])
        drawn = stats.bootstrap(
            (values,), np.median, n_resamples=20_000, rng=np.random.default_rng(1)
        ).bootstrap_distribution
        expected = np.quantile(drawn, [0.025, 0.25, 0.75, 0.975])
        # Medians of so few are steps: a quantile is one of them, or the next.
        assert found == pytest.approx(expected, abs=0.15)


def test_configurations_that_weigh_the_same_are_compared_as_one_pool_where_seeds_are_as_many() -> (
    None
):
    def outcomes_of(failing: int) -> Outcomes:
        return Outcomes(tuple(range(8)), (np.arange(8) < failing).astype(float))

    bad, good = ([outcomes_of(x) for x in own] for own in ((8, 6), (3, 1)))
    found = failing_difference(bad, good, paired=False)
    pooled = newcombe((14, 16), (4, 16))
    assert (found.low, found.high) == pytest.approx((pooled.low, pooled.high))
    paired = failing_difference(bad, good, paired=True)
    table = paired_newcombe(PairTable(both=4, only_first=10, only_second=0, none=2))
    assert (paired.low, paired.high) == pytest.approx((table.low, table.high))


def test_accuracy_by_length_has_the_difference_and_its_band() -> None:
    a, b = (
        pd.DataFrame(
            [
                {"model_seed": seed, "length": length, "tested": 10, "wrong": wrong}
                for seed, wrong in enumerate(errors)
                for length in (1, 2, 3)
            ]
        )
        for errors in ([0, 1, 2], [4, 4, 4])
    )
    found = by_length(a, b, paired=True)
    assert found["length"].tolist() == [1, 2, 3]
    assert found["seeds"].tolist() == [3, 3, 3]
    expected = stats.ttest_rel([1, 0.9, 0.8], [0.6, 0.6, 0.6]).confidence_interval(0.95)
    assert found["difference"].tolist() == pytest.approx([0.3] * 3)
    assert found["low"].tolist() == pytest.approx([expected.low] * 3)
    assert found["high"].tolist() == pytest.approx([expected.high] * 3)
    free = by_length(
        a, b[b["model_seed"] < 2].assign(wrong=lambda x: 4 + x["model_seed"]), paired=False
    )
    assert free["low"].isna().all()
    free = by_length(a, b.assign(wrong=lambda x: 4 + x["model_seed"] % 2), paired=False)
    expected = stats.ttest_ind([1, 0.9, 0.8], [0.6, 0.5, 0.6], equal_var=False)
    ends = expected.confidence_interval(0.95)
    assert free["low"].tolist() == pytest.approx([ends.low] * 3)
    assert free["high"].tolist() == pytest.approx([ends.high] * 3)


@pytest.mark.parametrize(("wrong", "low"), [([0, 10], None), ([0, 10, 10], -1.0)])
def test_an_interval_of_a_difference_of_accuracies_stays_within_what_there_can_be(
    wrong: list[int], low: float | None
) -> None:
    a, b = (
        pd.DataFrame({"model_seed": range(len(wrong)), "length": 5, "tested": 10, "wrong": some})
        for some in (wrong, 2)
    )
    (row,) = by_length(a, b, paired=True).to_dict("records")
    assert row["seeds"] == len(wrong)
    if low is None:
        assert math.isnan(row["low"]), "of two seeds there is none"
        assert math.isnan(row["high"])
    else:
        assert row["low"] == low < row["difference"] < row["high"] <= 1


def test_strings_that_one_gets_wrong_more_often_are_listed() -> None:
    a, b = (
        pd.DataFrame({"string": own, "length": [len(x) for x in own], "label": 1})
        for own in (["ab", "ab", "b", "ba"], ["b", "abab", "ba", "ba", "ba"])
    )
    found = string_differences(a, b)
    assert found["string"].tolist() == ["ab", "ba", "abab"]
    assert found[["wrong_a", "wrong_b"]].to_numpy().tolist() == [[2, 0], [1, 3], [0, 1]]


def planted(within: Iterable[float], beyond: Iterable[float], first: int = 0) -> pd.DataFrame:
    """Finished runs of one configuration, by their accuracies on trained and on longer lengths."""
    runs = pd.DataFrame({"accuracy_within": [*within], "accuracy_beyond": [*beyond]}, dtype=float)
    runs["model_seed"], learned = range(first, first + len(runs)), runs["accuracy_within"] >= 0.99
    came_to = np.where(runs["accuracy_beyond"] < 1, "fails beyond", "generalizes")
    runs["outcome"] = np.where(learned, came_to, "not learned")
    runs["accuracy"] = (runs["accuracy_within"] + runs["accuracy_beyond"]) / 2
    return runs


def elsewhere(accuracies: Iterable[float]) -> pd.DataFrame:
    """Runs of which nobody knows what they were trained on."""
    known = [*accuracies]
    runs = planted([NAN] * len(known), [NAN] * len(known))
    return runs.assign(accuracy=known, outcome="not known")


def right(seeds: int, first: int = 0) -> pd.DataFrame:
    return planted([1.0] * seeds, [1.0] * seeds, first)


def failing(seeds: int, mean: float = 0.6, spread: float = 0.03, stream: int = 9) -> pd.DataFrame:
    return planted([1.0] * seeds, noisy(seeds, mean, spread, stream))


def some_right(right_seeds: int, seeds: int, stream: int = 9) -> pd.DataFrame:
    wrong = noisy(seeds - right_seeds, 0.7, 0.05, stream)
    return planted([1.0] * seeds, [1.0] * right_seeds + wrong)


def steady(less: float) -> pd.DataFrame:
    return planted([1.0] * 12, [x - less for x in START])


BEYOND, WITHIN, LEARNED = "accuracy on longer strings", "accuracy on trained", "share that learned"
GENERALIZES, ALL_STRINGS, FAILS = "share that generalizes", "accuracy on all", "share that fails"
NOTHING, CHANCE, FEW = "No difference", "Chance alone may explain", "Too few seeds to tell"
UNLEARNED = planted(noisy(8, 0.7, 0.05, 3), noisy(8, 0.6, 0.05, 4))


@pytest.mark.parametrize(
    ("first", "second", "paired", "truth"),
    [
        pytest.param(right(8), right(8), True, NOTHING, id="all right, pairs"),
        pytest.param(right(8), right(3, 20), False, NOTHING, id="all right, 8 and 3"),
        pytest.param(failing(8), failing(8, stream=10), False, CHANCE, id="the same, 8 and 8"),
        pytest.param(failing(12), failing(12, stream=11), True, CHANCE, id="the same, 12 pairs"),
        pytest.param(some_right(20, 40), some_right(20, 40, 5), False, CHANCE, id="half of 40"),
        pytest.param(right(8), planted([1] * 8, [0.9999] + [1] * 7), True, CHANCE, id="1 error"),
        pytest.param(right(8), planted([1] * 8, [0] + [1] * 7), False, CHANCE, id="1 collapsed"),
        pytest.param(steady(0), steady(0.01), False, CHANCE, id="1% apart, not paired"),
        pytest.param(steady(0), steady(0.01), True, {BEYOND: 0}, id="1% apart, 12 pairs"),
        pytest.param(failing(1), right(1), False, FEW, id="1 and 1, all apart"),
        pytest.param(failing(3), right(3), False, FEW, id="3 and 3, all apart"),
        pytest.param(failing(5), right(5), True, FEW, id="5 pairs, all apart"),
        pytest.param(failing(6), right(6), True, {GENERALIZES: 1, BEYOND: 1}, id="6 pairs"),
        pytest.param(failing(4), right(4), False, {GENERALIZES: 1, BEYOND: 1}, id="4 and 4"),
        pytest.param(right(12), failing(2), False, {GENERALIZES: 0, BEYOND: 0}, id="12 and 2"),
        pytest.param(right(60), failing(1), False, {GENERALIZES: 0}, id="60 and 1"),
        pytest.param(
            some_right(1, 8), right(8), False, {GENERALIZES: 1, BEYOND: 1}, id="1 of 8 and all"
        ),
        pytest.param(
            some_right(10, 40), some_right(30, 40, 5), True, {GENERALIZES: 1, BEYOND: 1}, id="40"
        ),
        pytest.param(UNLEARNED, right(8), True, {LEARNED: 1, WITHIN: 1}, id="none learned"),
        pytest.param(failing(8), UNLEARNED, False, {LEARNED: 0, WITHIN: 0}, id="learned no more"),
        pytest.param(
            pd.concat([failing(6), planted([0.5] * 6, [0.0] * 6, first=6)]), failing(12), True,
            {LEARNED: 1, WITHIN: 1}, id="half learned, of pairs those of which both did",
        ),
        pytest.param(
            elsewhere([0.9] * 8), elsewhere([1.0] * 8), False, {ALL_STRINGS: 1, FAILS: 0},
            id="trained elsewhere",
        ),
        pytest.param(elsewhere([0.9] * 3), elsewhere([1.0] * 3), False, FEW, id="3, elsewhere"),
    ],
)  # fmt: skip
def test_a_verdict_on_planted_seeds_is_true_and_no_interval_contradicts_it(
    first: pd.DataFrame, second: pd.DataFrame, paired: bool, truth: str | dict[str, int]
) -> None:
    found = compared((first, second), paired)
    said, sides = found.verdict(), ("a", "b")
    if isinstance(truth, str):
        assert said.startswith(truth)
    else:
        named = [f"{name}.* \\({sides[side]} has more\\)" for name, side in truth.items()]
        assert re.fullmatch(f"More than chance explains: {'; '.join(named)}\\.", said)
    more = [] if isinstance(truth, str) else [*truth]
    for name, question in found.questions.items():
        is_more = any(QUESTIONS[name].startswith(x) for x in more)
        interval = question.interval
        assert is_more == (interval.low > 0 or interval.high < 0)
        told = sentence_of(name, question)
        assert is_more == ("more than chance explains" in told)
        assert is_more == (question.p_value is not None and question.p_value <= 0.05)
    # The other way around it is the same, with the sides exchanged.
    other = compared((second, first), paired).verdict(("b", "a"))
    assert other == said or not isinstance(truth, dict)


def compared(sides: tuple[pd.DataFrame, pd.DataFrame], paired: bool) -> Compared:
    """What is said of two configurations of which the seeds alone are known."""
    none = pd.DataFrame()
    return Compared(
        ("a", "b"), ("a", "b"), (1, 2), {}, (len(sides[0]), len(sides[1])),
        None if paired else "their sizes differ", ask(sides, 1.0, paired=paired),
        none, None, none, {},
    )  # fmt: skip
