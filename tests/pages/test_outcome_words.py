"""What is said of models that learned or did not, and generalize or do not."""

from typing import Any

import pandas as pd

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


def test_headlines_and_clauses_say_how_many_learned_and_how_many_of_those_generalize() -> None:
    shipped = OutcomeCounts(43, 43, 41, 41, 27)
    said = headline(shipped)
    assert [number for number in ("41 of 43", "27") if number in said] == ["41 of 43", "27"]
    learned, generalize = wilson(41, 43), wilson(27, 41)
    for words in (
        f"95% (95% interval {learned.low:.0%} to {learned.high:.0%})",
        f"66% ({generalize.low:.0%} to {generalize.high:.0%})",
        *("14 learned and fail beyond", "2 have not learned"),
    ):
        assert words in details(shipped)
    # Where none learned, or no test has longer strings, nothing is said about length.
    none = OutcomeCounts(5, 5, 0, 0, 0)
    assert "generalize" not in headline(none) + details(none) + describe_counts(none)
    assert "longer" not in details(OutcomeCounts(5, 5, 3, 0, 0))
    # What is not known is in no share.
    some = OutcomeCounts(9, 7, 5, 3, 2)
    assert "For 2 more it is not known." in details(some)
    assert "67%" in details(some)
    unknown = OutcomeCounts(5, 0, 0, 0, 0)
    assert "not known" in headline(unknown)
    assert details(unknown) == ""


def test_a_clause_says_both_shares() -> None:
    said = {
        (5, 5, 3, 3, 2): "3 of 5 models learned; of these 2 generalize",
        (2, 1, 1, 1, 0): "1 of 1 model learned; it does not generalize",
        (5, 5, 3, 3, 1): "3 of 5 models learned; of these 1 generalizes",
        (5, 5, 0, 0, 0): "0 of 5 models learned",
        (5, 5, 4, 0, 0): "4 of 5 models learned; whether they generalize is not known",
        (1, 1, 1, 1, 1): "the only model learned and generalizes",
        (1, 1, 1, 1, 0): "the only model learned and fails beyond",
        (1, 1, 0, 0, 0): "the only model has not learned",
        (1, 0, 0, 0, 0): "whether the only model learned is not known",
        (0, 0, 0, 0, 0): "no model is tested",
        (9, 7, 5, 3, 2): "5 of 7 models learned; 2 of the 3 that are tested beyond generalize",
    }
    assert {counts: describe_counts(OutcomeCounts(*counts)) for counts in said} == said


def test_counts_are_summed_over_configurations() -> None:
    names = ["seeds", "judged", "learned", "judged_beyond", "generalize"]
    table = pd.DataFrame([[5, 5, 3, 3, 2], [4, 4, 4, 4, 0]], columns=names)
    assert OutcomeCounts.of(table) == OutcomeCounts(9, 9, 7, 7, 2)
    assert OutcomeCounts.of(table.head(0)) == OutcomeCounts(0, 0, 0, 0, 0)


def test_what_the_outcomes_mean_follows_the_thresholds_and_the_task() -> None:
    assert "99%" in meaning()
    assert "all longer strings" in meaning()
    said = meaning(KINDS["transduction"]().words, 0.975, 0.9)
    assert all(words in said for words in ("97.5% of inputs", "90% of longer inputs"))


def row(outcome: str, within: int = 0, beyond: int = 0, **more: object) -> dict[str, object]:
    """A model that is wrong on so many of 500 strings of trained lengths and of 200 longer ones."""
    counts = {"tested_within": 500, "wrong_within": within, "within_from": "test"}
    counts |= {"tested_beyond": 200, "wrong_beyond": beyond, "first_wrong_length": None}
    return {"outcome": outcome, **counts, **more}


TRAINED = range(1, 21)


def told(found: dict[str, object], trained: range | None = TRAINED, **more: Any) -> str:
    return describe_model(found, trained, **more)


def test_of_a_model_it_is_said_what_it_came_to_and_at_which_length_it_is_wrong_first() -> None:
    """What it came to, by its numbers: at trained lengths, beyond, and the first wrong length."""
    words = KINDS["transduction"]().words
    fails = row(Outcome.FAILS_BEYOND, 2, 62, first_wrong_length=18)
    errs = row(Outcome.GENERALIZES, 1, 10, first_wrong_length=4)
    by_validation = row(Outcome.NOT_LEARNED, 60, tested_beyond=0, within_from="validation")
    for said, start, parts in (
        (
            told(fails),
            "Learned, but fails beyond: ",
            (
                "498 of 500 test strings",
                "1 to 20 (99.6%)",
                "138 of 200",
                "(69%)",
                "first at length 18 (trained to 20)",
            ),
        ),
        (told(row(Outcome.GENERALIZES)), "Learned and generalizes: ", ("all 500", "all 200")),
        (
            told(errs, below=0.9),
            "Learned and generalizes: ",
            (
                "190 of 200",
                "95%",
                "90%",
                "length 4",
            ),
        ),
        (
            told(row(Outcome.NOT_LEARNED, 60, 100)),
            "Not learned: ",
            (
                "440 of 500",
                "(88%)",
                "99%",
                "100 of 200",
                "nothing about length",
            ),
        ),
        (
            told(by_validation, range(10, 11), words=words, learned_at=0.975),
            "Not learned: ",
            (
                "440 of 500 validation inputs of trained length 10",
                "97.5%",
            ),
        ),
        (
            told(row(Outcome.NOT_KNOWN, tested_within=None), None, knows_trained_lengths=False),
            "Whether it learned is not known",
            ("trained elsewhere",),
        ),
        (
            told(row(Outcome.NOT_KNOWN, tested_within=0)),
            "Whether it learned is not known",
            ("neither test nor validation",),
        ),
        (
            told(row(Outcome.NOT_KNOWN, tested_beyond=0)),
            "Learned; whether it generalizes is not",
            ("all 500", "no string longer"),
        ),
    ):
        assert said.startswith(start), said
        assert all(part in said for part in parts), said
    unknown = row(Outcome.NOT_KNOWN, 2, tested_beyond=0, first_wrong_length=18)
    assert "length 18" in told(unknown)


def test_models_are_counted_by_what_they_came_to() -> None:
    said = ["not learned", "fails beyond", "fails beyond", "not known"]
    counted = "2 learned and fail beyond, 1 has not learned, 1 has no known outcome"
    assert describe_outcomes(said) == counted
    assert describe_outcomes([]) == ""
