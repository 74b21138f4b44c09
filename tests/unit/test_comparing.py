"""Two configurations compared, against published tables and SciPy."""

import math
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from sweeps.statistics.differences import (
    Outcomes,
    by_length,
    compare,
    failing_difference,
    median_difference,
    string_differences,
)
from sweeps.statistics.intervals import PairTable, mcnemar, newcombe, paired_newcombe, wilson


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


def outcomes(errors: list[int], seeds: list[int] | None = None) -> pd.DataFrame:
    own = seeds or list(range(len(errors)))
    accuracy = [1 - error / 100 for error in errors]
    return pd.DataFrame({"model_seed": own, "accuracy": accuracy, "errors": errors})


def test_a_configuration_compared_with_itself_has_no_difference() -> None:
    own = outcomes([0, 3, 10, 0, 50, 0])
    found = compare(own, own)
    assert found.is_same
    assert found.table == PairTable(3, 0, 0, 3)
    assert found.p_value == 1
    assert found.difference.value == 0
    assert found.difference.low < 0 < found.difference.high
    interval = found.median_difference
    assert (interval.value, interval.low, interval.high) == (0, 0, 0)


def test_seeds_that_only_one_has_are_in_no_pair() -> None:
    found = compare(outcomes([0, 5, 5, 5], [0, 1, 2, 3]), outcomes([0, 0, 7, 9], [1, 2, 3, 9]))
    assert found.table == PairTable(both=1, only_first=2, only_second=0, none=0)
    assert found.runs == (4, 4)
    assert found.failing[0].value == 0.75
    assert not found.is_same


def test_without_a_common_seed_the_samples_are_independent() -> None:
    found = compare(outcomes([0, 5], [0, 1]), outcomes([1, 1], [2, 3]))
    assert not found.paired
    assert found.p_value is None
    free = newcombe((1, 2), (2, 2))
    assert (found.difference.low, found.difference.high) == (free.low, free.high)


def test_medians_are_drawn_pair_by_pair() -> None:
    values = np.random.default_rng(1).normal(size=20)
    seeds = tuple(range(40))
    own, better = Outcomes(seeds[:20], values), Outcomes(seeds[:20], values + 0.1)
    paired = median_difference([better], [own])
    assert (paired.low, paired.value, paired.high) == pytest.approx((0.1, 0.1, 0.1))
    alone = median_difference([better], [Outcomes(seeds[20:], values)])
    assert alone.low < 0 < alone.high
    five, six = (Outcomes(seeds[:n], values[:n]) for n in (5, 6))
    assert math.isnan(median_difference([five], [five]).low)
    assert not math.isnan(median_difference([six], [six]).low)


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
    found = by_length(a, b)
    assert found["length"].tolist() == [1, 2, 3]
    assert found["seeds"].tolist() == [3, 3, 3]
    expected = stats.ttest_rel([1, 0.9, 0.8], [0.6, 0.6, 0.6]).confidence_interval(0.95)
    assert found["difference"].tolist() == pytest.approx([0.3] * 3)
    assert found["low"].tolist() == pytest.approx([expected.low] * 3)
    assert found["high"].tolist() == pytest.approx([expected.high] * 3)


@pytest.mark.parametrize(("wrong", "low"), [([0, 10], None), ([0, 10, 10], -1.0)])
def test_an_interval_of_a_difference_of_accuracies_stays_within_what_there_can_be(
    wrong: list[int], low: float | None
) -> None:
    a, b = (
        pd.DataFrame({"model_seed": range(len(wrong)), "length": 5, "tested": 10, "wrong": some})
        for some in (wrong, 2)
    )
    (row,) = by_length(a, b).to_dict("records")
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
