"""What pages call things: configurations, durations, lengths."""

import pandas as pd
import pytest

from dashboard.compare.lengths import points
from dashboard.words.clock import clock
from dashboard.words.names import told_apart
from sweeps.durations import spoken

SETTINGS = pd.DataFrame(
    {"hidden_size": [2, 2, 4], "heads": [1, 2, 1]}, index=pd.Index([1, 2, 3], name="config_id")
)


def of(*pairs: tuple[int, str]) -> pd.DataFrame:
    return pd.DataFrame(pairs, columns=["config_id", "sweep"])


def test_sweeps_name_configurations_where_they_tell_them_apart() -> None:
    members = of((1, "one"), (2, "two"), (2, "three"), (3, "four"))
    assert told_apart([3, 1, 2], members, SETTINGS) == {3: "four", 1: "one", 2: "two, three"}


def test_settings_tell_configurations_of_one_sweep_apart() -> None:
    members = of((1, "grid"), (2, "grid"), (3, "grid"))
    assert told_apart([1, 2], members, SETTINGS) == {1: "heads=1", 2: "heads=2"}
    assert told_apart([1, 2, 3], members, SETTINGS) == {
        1: "hidden_size=2, heads=1",
        2: "hidden_size=2, heads=2",
        3: "hidden_size=4, heads=1",
    }


def test_sweeps_and_settings_are_named_where_neither_is_enough() -> None:
    members = of((1, "grid"), (2, "grid"), (3, "other"))
    assert told_apart([1, 2, 3], members, SETTINGS) == {
        1: "grid, heads=1",
        2: "grid, heads=2",
        3: "other",
    }


def test_a_configuration_of_no_sweep_has_a_name_too() -> None:
    assert told_apart([1, 3], of((1, "one")), SETTINGS) == {1: "one", 3: "no sweep"}


SCORES = pd.DataFrame(
    {
        "run_id": [7, 7],
        "first_length": [1, 11],
        "last_length": [10, 20],
        "tn": [4, 3],
        "fp": [0, 1],
        "fn": [0, 2],
        "tp": [0, 6],
        "tested": [4, 12],
        "wrong": [0, 3],
    }
)


@pytest.mark.parametrize(
    ("measure", "values", "strings"),
    [
        ("accuracy", [1.0, 9 / 12], [4, 12]),
        ("false_positive_rate", [0.0, 1 / 4], [4, 4]),
        # There is no positive string among the shortest: no share can be taken of none.
        ("false_negative_rate", [2 / 8], [8]),
    ],
)
def test_a_share_by_length_is_of_the_strings_that_it_is_about(
    measure: str, values: list[float], strings: list[int]
) -> None:
    found = points(SCORES, measure)
    assert found["value"].tolist() == pytest.approx(values)
    assert found["strings"].tolist() == strings
    assert found["lengths"].tolist()[-1] == "11 to 20"


def test_durations_are_said_in_their_largest_sensible_unit() -> None:
    said = ["under a second", "1 second", "40 seconds", "2 minutes", "1 hour and 30 minutes"]
    assert [spoken(x) for x in (0.2, 1, 40, 120, 5400)] == said
    # A damaged database may name any number.
    assert [spoken(x) for x in (2.0**63, float("inf"))] == ["over a century"] * 2


def test_times_are_shown_in_utc() -> None:
    assert clock("2026-11-21T10:00:00.123+02:00") == "2026-11-21 08:00:00 UTC"
    assert clock(None) == "not yet"
