"""What is said of models that learned or did not, and generalize or do not."""

import pandas as pd
import pytest

from dashboard.words.outcomes import (
    describe_model,
    describe_outcomes,
    details,
    headline,
    meaning,
)
from seqcls.kinds import KINDS
from sweeps.results import Outcome, OutcomeCounts, describe_counts
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
    assert f"Generalize, of those that learned: {share}." in said
    assert "14 learned and fail beyond." in said
    assert "2 have not learned: their errors on longer strings say nothing about length." in said


def test_where_no_test_has_longer_strings_nothing_is_said_of_errors_on_them() -> None:
    assert "2 have not learned." in details(OutcomeCounts(5, 5, 3, 0, 0))


def test_of_models_that_have_not_learned_nothing_is_said_about_length() -> None:
    counts = OutcomeCounts(5, 5, 0, 0, 0)
    assert headline(counts).startswith("0 of 5 models learned the trained lengths, so nothing is")
    assert "generalize" not in headline(counts) + details(counts) + describe_counts(counts)


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ((5, 5, 3, 3, 2), "3 of 5 models learned; of these 2 generalize"),
        ((2, 1, 1, 1, 1), "1 of 1 model learned; it generalizes"),
        ((2, 1, 1, 1, 0), "1 of 1 model learned; it does not generalize"),
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
    assert "For 2 more it is not known." in details(counts)
    assert "Generalize, of those that learned: 67%" in details(counts)
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


def row(outcome: str, within: int = 0, beyond: int = 0, **more: object) -> dict[str, object]:
    """A model that is wrong on so many of 500 strings of trained lengths and of 200 longer ones."""
    counts = {"tested_within": 500, "wrong_within": within, "within_from": "test"}
    counts |= {"tested_beyond": 200, "wrong_beyond": beyond, "first_wrong_length": None}
    return {"outcome": outcome, **counts, **more}


TRAINED = range(1, 21)


def test_of_a_model_that_learned_it_is_said_at_which_length_it_is_wrong_first() -> None:
    beyond = row(Outcome.FAILS_BEYOND, beyond=62, first_wrong_length=23)
    assert describe_model(beyond, TRAINED) == (
        "Learned, but fails beyond: it is right on all 500 test strings of trained lengths 1 to "
        "20, and on 138 of 200 longer strings (69%). In the test it is wrong first at length 23 "
        "(trained to 20)."
    )
    said = describe_model(row(Outcome.FAILS_BEYOND, 2, 62, first_wrong_length=18), TRAINED)
    assert "right on 498 of 500 test strings of trained lengths 1 to 20 (99.6%), and on" in said
    assert said.endswith("In the test it is wrong first at length 18 (trained to 20).")
    unknown = row(Outcome.NOT_KNOWN, 2, tested_beyond=0, first_wrong_length=18)
    assert describe_model(unknown, TRAINED).endswith("wrong first at length 18 (trained to 20).")
    not_learned = row(Outcome.NOT_LEARNED, 60, 100)
    assert describe_model(not_learned, TRAINED) == (
        "Not learned: it is right on 440 of 500 test strings of trained lengths 1 to 20 (88%); a "
        "model has learned from 99% on. That it is right on 100 of 200 longer strings (50%) says "
        "nothing about length."
    )
    words = KINDS["transduction"]().words
    by_validation = row(Outcome.NOT_LEARNED, 60, tested_beyond=0, within_from="validation")
    assert describe_model(by_validation, range(10, 11), words=words, learned_at=0.975) == (
        "Not learned: it is right on 440 of 500 validation inputs of trained length 10 (88%); a "
        "model has learned from 97.5% on."
    )


def test_a_model_that_generalizes_may_have_errors_at_the_thresholds() -> None:
    said = describe_model(row(Outcome.GENERALIZES), TRAINED)
    assert said == (
        "Learned and generalizes: it is right on all 500 test strings of trained lengths 1 to "
        "20, and on all 200 longer strings."
    )
    errs = row(Outcome.GENERALIZES, 1, 10, first_wrong_length=4)
    assert describe_model(errs, TRAINED, below=0.9).endswith(
        "and on 190 of 200 longer strings (95%); a model generalizes from 90% on. In the test it "
        "is wrong first at length 4 (trained to 20)."
    )


def test_what_is_not_known_of_a_model_has_its_reason() -> None:
    elsewhere = row(Outcome.NOT_KNOWN, tested_within=None)
    assert describe_model(elsewhere, None, knows_trained_lengths=False) == (
        "Whether it learned is not known: it was trained elsewhere, so its trained lengths are not "
        "known here."
    )
    none = row(Outcome.NOT_KNOWN, tested_within=0)
    assert describe_model(none, TRAINED) == (
        "Whether it learned is not known: neither test nor validation holds a string of trained "
        "lengths."
    )
    same = row(Outcome.NOT_KNOWN, tested_beyond=0)
    assert describe_model(same, TRAINED) == (
        "Learned; whether it generalizes is not known: it is right on all 500 test strings of "
        "trained lengths 1 to 20, and its test holds no string longer than those of training."
    )


def test_models_are_counted_by_what_they_came_to() -> None:
    said = ["not learned", "fails beyond", "fails beyond", "not known"]
    told = "2 learned and fail beyond, 1 has not learned, 1 has no known outcome"
    assert describe_outcomes(said) == told
    assert describe_outcomes([]) == ""
