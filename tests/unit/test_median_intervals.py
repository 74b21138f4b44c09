"""Bootstrap intervals of medians, against the same thing done one draw at a time."""

import numpy as np
import pandas as pd
import pytest

from sweeps.statistics.intervals import CONFIDENCE, FEWEST, RESAMPLES, median_intervals


def slow_interval(values: list[float]) -> tuple[float, float]:
    """The same draws, each with its own median."""
    generator = np.random.default_rng(0)
    draws = generator.integers(len(values), size=(RESAMPLES, len(values)))
    medians = [float(np.median([values[place] for place in draw])) for draw in draws]
    low, high = np.quantile(medians, [0.025, 0.975])
    return float(low), float(high)


def test_it_is_the_middle_of_the_medians_of_many_draws() -> None:
    groups = {
        "even": [0.3, 0.9, 0.5, 0.8, 0.2, 0.4],
        "odd": [1.0, 0.2, 0.7, 0.9, 0.1, 0.3, 0.8],
        "more": [0.1, 0.4, 0.6, 0.6, 0.2, 0.5],
    }
    frame = pd.DataFrame(
        [(name, value) for name, values in groups.items() for value in values],
        columns=["group", "value"],
    )
    found = median_intervals(frame, "value", ["group"]).set_index("group")
    for name, values in groups.items():
        row = found.loc[name]
        assert row["n"] == len(values)
        assert row["median"] == pytest.approx(np.median(values))
        # The draws are of ranks, so the slow way has to draw from the sorted values.
        assert (row["low"], row["high"]) == pytest.approx(slow_interval(sorted(values)))


def test_a_few_seeds_have_a_median_and_no_interval() -> None:
    few = pd.DataFrame({"g": [1, 2, 2, 2, 2, 2], "v": [0.5, 0.1, 0.2, 0.3, 0.4, 0.5]})
    found = median_intervals(few, "v", ["g"])
    assert found["median"].tolist() == [0.5, 0.3]
    assert found[["low", "high"]].isna().all(axis=None)
    # The range of five covers the median 15 times in 16, that of six 31 times in 32.
    assert 1 - 2 ** (1 - (FEWEST - 1)) < CONFIDENCE <= 1 - 2 ** (1 - FEWEST)


def test_values_that_are_missing_count_in_no_group() -> None:
    frame = pd.DataFrame({"g": [1, 1, 2], "v": [0.5, None, None]})
    found = median_intervals(frame, "v", ["g"])
    assert found[["g", "n"]].to_numpy().tolist() == [[1, 1]]


def test_the_same_values_give_the_same_interval_whoever_else_is_there() -> None:
    alone = pd.DataFrame({"g": 1, "v": [0.2, 0.4, 0.9, 0.1, 0.5, 0.7]})
    among = pd.concat([alone, pd.DataFrame({"g": 2, "v": np.linspace(0, 1, 300)})])
    one = median_intervals(alone, "v", ["g"])
    pd.testing.assert_frame_equal(median_intervals(among, "v", ["g"]).head(1), one)


def test_no_values_give_no_groups() -> None:
    assert median_intervals(pd.DataFrame({"g": [], "v": []}), "v", ["g"]).empty


def test_a_configuration_is_the_median_of_its_seeds_and_never_their_pooled_strings() -> None:
    accuracies = pd.DataFrame({"config_id": 1, "accuracy": [1.0] * 4 + [0.4] * 2})
    (summary,) = median_intervals(accuracies, "accuracy", ["config_id"]).to_dict("records")
    # Pooled it would be 0.8.
    assert (summary["n"], summary["median"]) == (6, 1.0)
    assert (summary["low"], summary["high"]) == (0.4, 1.0)
