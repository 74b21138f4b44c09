"""What is said of models that learned or did not, and generalize or do not."""

import pandas as pd
import pytest

from dashboard.words.outcomes import (
    OutcomeCounts,
    describe_counts,
    describe_model,
    describe_outcomes,
    details,
    headline,
    meaning,
)
from seqcls.kinds import KINDS
from sweeps.results import Outcome
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
        ((1, 1, 1, 1, 1), "the only model learned and generalizes"),
        ((1, 1, 1, 1, 0), "the only model learned and fails beyond"),
        ((1, 1, 1, 0, 0), "the only model learned; whether it generalizes is not known"),
        ((1, 1, 0, 0, 0), "the only model has not learned"),
        ((1, 0, 0, 0, 0), "whether the only model learned is not known"),
        ((0, 0, 0, 0, 0), "no model is tested"),
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


def row(outcome: str, **more: object) -> dict[str, object]:
    """A model of which all is right but what is given."""
    right = {"accuracy_within": 1.0, "accuracy_beyond": 1.0, "tested_within": 200}
    return {"outcome": outcome, **right, "within_from": "test", **more}


TRAINED = range(1, 21)


def test_a_model_fails_from_a_length_on_only_if_it_learned() -> None:
    fails = row(Outcome.FAILS_BEYOND, accuracy_beyond=0.69)
    assert describe_model(fails, 23, TRAINED) == (
        "Fails beyond: it learned the trained lengths (1 to 20) and fails from length 23 on; it "
        "misclassifies 31% of longer test strings."
    )
    said = describe_model({**fails, "accuracy_within": 0.996}, 23, TRAINED)
    assert "31% of longer test strings, and misclassifies 0.4% of test strings of trained" in said
    not_learned = row(Outcome.NOT_LEARNED, accuracy_within=0.88, accuracy_beyond=0.5)
    assert describe_model(not_learned, None, TRAINED) == (
        "Not learned: it misclassifies 12% of test strings of trained lengths (1 to 20). What it "
        "does on longer strings says nothing about length."
    )
    by_validation = {**not_learned, "within_from": "validation"}
    words = KINDS["transduction"]().words
    assert describe_model(by_validation, None, range(10, 11), words).startswith(
        "Not learned: it gets 12% of validation inputs of trained lengths (10) wrong."
    )


def test_a_model_that_generalizes_may_have_errors_at_the_thresholds() -> None:
    within = row(Outcome.GENERALIZES, accuracy_within=0.998)
    assert describe_model(within, None, TRAINED) == (
        "Generalizes: it is right on all longer test strings, but misclassifies 0.2% of test "
        "strings of trained lengths (1 to 20)."
    )
    beyond = row(Outcome.GENERALIZES, accuracy_beyond=0.95)
    said = describe_model(beyond, 40, TRAINED)
    assert said.startswith("Generalizes at this threshold: it learned")
    assert "errs from length 40 on" in said


def test_what_is_not_known_of_a_model_has_its_reason() -> None:
    elsewhere = row(
        Outcome.NOT_KNOWN, accuracy_within=None, accuracy_beyond=None, tested_within=None
    )
    assert describe_model(elsewhere, None, None, is_imported=True) == (
        "Whether it learned is not known: it was trained elsewhere, so its trained lengths are not "
        "known here."
    )
    same = row(Outcome.NOT_KNOWN, accuracy_beyond=None)
    assert describe_model(same, None, TRAINED) == (
        "Learned the trained lengths (1 to 20); whether it generalizes is not known: its test "
        "holds no string longer than those of training."
    )


def test_models_are_counted_by_what_they_came_to() -> None:
    said = ["not learned", "fails beyond", "fails beyond", "not known"]
    told = "2 learned and fail beyond, 1 has not learned, 1 is not known"
    assert describe_outcomes(said) == told
    assert describe_outcomes([]) == ""
