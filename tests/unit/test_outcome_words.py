"""What is said of models that learned or did not, and generalize or do not."""

import pandas as pd
import pytest

from dashboard.words.outcomes import OutcomeCounts, describe_counts, details, headline, meaning
from seqcls.kinds import KINDS
from sweeps.statistics.intervals import wilson

SHIPPED = OutcomeCounts(43, 43, 41, 41, 27)


def test_a_headline_says_how_many_learned_and_how_many_of_those_generalize() -> None:
    assert headline(SHIPPED) == (
        "41 of 43 models learned the trained lengths; of these 27 generalize to longer strings."
    )
    said = details(SHIPPED)
    learned, generalize = wilson(41, 43), wilson(27, 41)
    assert f"Learned: 95% (95% interval {learned.low:.0%} to {learned.high:.0%})." in said
    share = f"66% ({generalize.low:.0%} to {generalize.high:.0%})"
    assert f"Of those that learned, generalize: {share}." in said
    assert "14 learned and fail beyond." in said
    assert "2 have not learned: their errors on longer strings say nothing about length." in said


def test_of_models_that_have_not_learned_nothing_is_said_about_length() -> None:
    counts = OutcomeCounts(5, 5, 0, 0, 0)
    assert headline(counts).startswith("0 of 5 models learned the trained lengths, so nothing is")
    assert "generalize" not in headline(counts) + details(counts) + describe_counts(counts)


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ((5, 5, 3, 3, 2), "3 of 5 models learned; of these 2 generalize"),
        ((5, 5, 3, 3, 1), "3 of 5 models learned; of these 1 generalizes"),
        ((5, 5, 3, 3, 0), "3 of 5 models learned; of these 0 generalize"),
        ((5, 5, 0, 0, 0), "0 of 5 models learned"),
        ((5, 5, 4, 0, 0), "4 of 5 models learned; whether they generalize is not known"),
        ((5, 0, 0, 0, 0), "whether 5 models learned is not known"),
        ((9, 7, 5, 3, 2), "5 of 7 models learned; 2 of the 3 that are tested beyond generalize"),
    ],
)
def test_a_clause_says_both_shares(counts: tuple[int, ...], said: str) -> None:
    assert describe_counts(OutcomeCounts(*counts)) == said


def test_what_is_not_known_is_in_no_share() -> None:
    counts = OutcomeCounts(9, 7, 5, 3, 2)
    assert "Of 2 more it is not known." in details(counts)
    assert "Of those that learned, generalize: 67%" in details(counts)
    assert "whether they generalize to longer strings" in headline(OutcomeCounts(5, 5, 4, 0, 0))
    unknown = OutcomeCounts(5, 0, 0, 0, 0)
    assert headline(unknown) == "Whether these 5 models learned the trained lengths is not known."
    assert details(unknown) == ""


def test_counts_are_summed_over_configurations() -> None:
    names = ["seeds", "judged", "learned", "judged_beyond", "generalize"]
    table = pd.DataFrame([[5, 5, 3, 3, 2], [4, 4, 4, 4, 0]], columns=names)
    assert OutcomeCounts.of(table) == OutcomeCounts(9, 9, 7, 7, 2)
    assert OutcomeCounts.of(table.head(0)) == OutcomeCounts(0, 0, 0, 0, 0)


def test_what_the_outcomes_mean_follows_the_thresholds_and_the_task() -> None:
    assert "right on less than 99% of strings of trained lengths" in meaning()
    assert "right on all longer strings" in meaning()
    said = meaning(KINDS["transduction"]().words, 0.975, 0.9)
    assert "right on less than 97.5% of inputs" in said
    assert "right on at least 90% of longer inputs" in said
