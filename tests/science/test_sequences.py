"""Anytime-valid intervals, and the seeds that they require."""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, stats

from sweeps.grid.seeds import HOPELESS, Until
from sweeps.grid.spec import SweepSpec, parse_spec
from sweeps.results import OutcomeCounts
from sweeps.statistics.intervals import PairTable
from sweeps.statistics.sequences import (
    difference_sequence,
    paired_difference_sequence,
    share_limits,
    share_sequence,
)

STUDIES = 1_500
MAX_SEEDS = 400
ALPHA = 0.05


@pytest.mark.parametrize("share", [0.02, 0.5])
def test_anytime_interval_covers_the_share_in_19_of_20_studies(
    share: float,
) -> None:
    rng = np.random.default_rng(int(100 * share))
    n = np.arange(1, MAX_SEEDS + 1)
    counts = (rng.random((STUDIES, MAX_SEEDS)) < share).cumsum(axis=1)
    # The limits of every count of every number of seeds.
    every = np.arange(MAX_SEEDS + 1)
    limits = share_limits(np.minimum(every[None, :], every[:, None]), every[:, None])
    low, high = (limit[n, counts] for limit in limits)
    covers = (low <= share) & (share <= high)
    # Whoever stops at the worst of all moments, and whoever stops once it is narrow enough.
    assert covers.all(axis=1).mean() >= 1 - ALPHA
    narrow = high - low <= 0.2
    stopped = np.where(narrow.any(axis=1), narrow.argmax(axis=1), MAX_SEEDS - 1)
    assert covers[np.arange(STUDIES), stopped].mean() >= 1 - ALPHA
    # An interval for a fixed number of seeds is wrong far more often, if one looks each time.
    z = stats.norm.ppf(1 - ALPHA / 2)
    middle = (counts + z**2 / 2) / (n + z**2)
    reach = z / (n + z**2) * np.sqrt(counts * (n - counts) / n + z**2 / 4)
    assert (np.abs(middle - share) <= reach).all(axis=1).mean() < 0.85


@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.2, 0.8)])
def test_anytime_test_of_two_shares_errs_in_1_of_20_studies(
    shares: tuple[float, float],
) -> None:
    rng = np.random.default_rng(7)
    n = np.arange(1, 151)
    counts = [(rng.random((STUDIES, len(n))) < share).cumsum(axis=1) for share in shares]
    # Both likelihoods at the share of all, which is where they are likeliest if it is one.
    from scipy.special import betaln, xlog1py, xlogy

    both = counts[0] + counts[1]
    one = xlogy(both, both / (2 * n)) + xlog1py(2 * n - both, -both / (2 * n))
    mixed = sum(betaln(k + 0.5, n - k + 0.5) - betaln(0.5, 0.5) for k in counts)
    apart = mixed - one >= math.log(1 / ALPHA)
    if shares[0] == shares[1]:
        assert apart.any(axis=1).mean() <= ALPHA
    else:
        assert apart.any(axis=1).mean() > 0.99
    for study, at in itertools.product(range(3), (5, 40, 149)):
        found = difference_sequence(*((int(k[study, at]), int(n[at])) for k in counts))
        assert (found.low > 0 or found.high < 0) == apart[study, at]


UNLIKE, ALIKE = (0.0, 0.5, 0.5, 0.0), (0.45, 0.05, 0.05, 0.45)


@pytest.mark.parametrize("cells", [UNLIKE, ALIKE, (0.1, 0.6, 0.1, 0.2)])
def test_anytime_test_of_pairs_errs_in_1_of_20_studies(
    cells: tuple[float, ...],
) -> None:
    from scipy.special import betaln, gammaln, xlogy

    n = np.arange(1, 151)
    drawn = np.random.default_rng(11).choice(4, size=(STUDIES, len(n)), p=cells)
    first, second = ((drawn == cell).cumsum(axis=1) for cell in (1, 2))
    same = n - first - second
    mixture = sum(gammaln(k + 0.5) - gammaln(0.5) for k in (first, second, same))
    mixture = mixture + gammaln(1.5) - gammaln(n + 1.5)
    # No difference is likeliest where those that are unlike are half of either.
    unlike = (first + second) / 2
    none = xlogy(2 * unlike, unlike / n) + xlogy(same, same / n)
    apart = mixture - none >= math.log(1 / ALPHA)
    for study, at in itertools.product(range(3), (5, 40, 149)):
        both, one, other = (int(k[study, at]) for k in (same, first, second))
        found = paired_difference_sequence(PairTable(both, one, other, 0))
        assert (found.low > 0 or found.high < 0) == apart[study, at]
        assert found.value == pytest.approx((one - other) / n[at])
    if cells[1] != cells[2]:
        assert apart.any(axis=1).mean() > 0.99
    else:
        assert apart.any(axis=1).mean() <= ALPHA
    # If pairs were taken as independent, unlike ones would be found different by chance.
    if cells == UNLIKE:
        mixed = 2 * (betaln(first + 0.5, second + 0.5) - betaln(0.5, 0.5))
        assert (mixed - 2 * n * math.log(0.5) >= math.log(1 / ALPHA)).any(axis=1).mean() > ALPHA


@pytest.mark.parametrize(("count", "n"), [(0, 3), (2, 5), (23, 23)])
def test_mixture_is_the_mean_likelihood_over_shares(count: int, n: int) -> None:
    prior = stats.beta(0.5, 0.5)
    mean = integrate.quad(lambda u: stats.binom.pmf(count, n, prior.ppf(u)), 0, 1)[0]
    found = share_sequence(count, n)
    ends = [x for x in (found.low, found.high) if 0 < x < 1]
    assert ends
    for end in ends:
        assert stats.binom.pmf(count, n, end) == pytest.approx(ALPHA * mean, rel=1e-4)
    nothing = share_sequence(0, 0)
    assert (nothing.low, nothing.high) == (0, 1)


def test_until_rule_is_parsed_in_every_spelling() -> None:
    for text, share, within in (
        ("share ± 10 %", "generalizes", 0.1),
        ("generalizes ±10%", "generalizes", 0.1),
        ("learned +- 2.5 %", "learned", 0.025),
        (" learned +/- 5% ", "learned", 0.05),
        ("share apart", "generalizes", None),
    ):
        assert Until.parse(text) == Until(share, within)


def spec(until: str, **more: object) -> SweepSpec:
    return parse_spec({"name": "few", "model_seeds": "0..4", "until": until, **more})


def test_seeds_are_added_until_every_interval_is_narrow_enough() -> None:
    until = Until.parse("share ± 10 %")
    for share in (0.0, 0.5, 1.0):
        seeds = 5
        while True:
            right = round(share * seeds)
            counts = OutcomeCounts(seeds, seeds, seeds, seeds, right)
            (needed,) = until.seeds_needed([counts], 500)
            interval = share_sequence(right, seeds)
            reach = max(interval.value - interval.low, interval.high - interval.value)
            assert (needed > seeds) == (reach > 0.1)
            assert needed <= 2 * seeds + 2
            if needed == seeds:
                break
            seeds = needed
        assert seeds <= {0.0: 80, 0.5: 450, 1.0: 80}[share]
    # A configuration that is known well enough gets no more, and none gets more than the most.
    known, unknown = OutcomeCounts(60, 60, 60, 60, 60), OutcomeCounts(60, 60, 60, 60, 30)
    assert until.seeds_needed([known, unknown], 80) == [60, 80]
    assert until.seeds_needed([known, unknown], 60) == [60, 60]
    assert until.seeds_needed([known, unknown], 10) == [60, 60]


def test_no_seeds_are_added_where_they_cannot_help() -> None:
    until = Until.parse("share ± 10 %")
    assert until.seeds_needed([OutcomeCounts(HOPELESS, HOPELESS)], 500) == [HOPELESS]
    assert until.seeds_needed([OutcomeCounts(HOPELESS - 1, HOPELESS - 1)], 500) != [HOPELESS - 1]
    # Most of these failed in training.
    assert until.seeds_needed([OutcomeCounts(10, 4, 4, 4, 4)], 500) == [10]


def test_seeds_are_added_until_two_configurations_differ() -> None:
    until = Until.parse("learned apart")
    assert until.seeds_needed([OutcomeCounts(5, 5, 5), OutcomeCounts(5, 5, 5)], 500) == [8, 8]
    assert until.seeds_needed([OutcomeCounts(5, 5, 5), OutcomeCounts(5, 5, 0)], 500) == [5, 5]


def test_specification_with_more_seeds_keeps_the_earlier_ones() -> None:
    grid = spec("learned ± 5 %", axes={"hidden_size": [2, 4]}, fixed={"num_letters": 4})
    alike = grid.with_seeds([8, 8])
    assert [list(seeds) for _, seeds in alike.members()] == [list(range(8))] * 2
    assert '"axes":{"hidden_size":[2,4]}' in alike.submitted
    apart = alike.with_seeds([8, 11])
    assert [config.key for config in apart.configs()] == [config.key for config in grid.configs()]
    assert [len(seeds) for _, seeds in apart.members()] == [8, 11]
    assert apart.until == "learned ± 5 %"
    further = apart.with_seeds([9, 11])
    assert [list(seeds) for _, seeds in further.members()] == [list(range(9)), list(range(11))]
    listed = parse_spec({"name": "few", "model_seeds": [3, 7], "until": "learned ± 5 %"})
    assert [list(seeds) for _, seeds in listed.with_seeds([4]).members()] == [[3, 7, 8, 9]]
