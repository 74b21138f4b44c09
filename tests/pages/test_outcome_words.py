"""Sentences on models that learned or did not, and generalize or do not."""

from typing import Any

from dashboard.words.outcomes import describe_model
from seqcls.kinds import KINDS
from sweeps.results import Outcome, OutcomeCounts, describe_counts


def test_a_clause_states_the_learned_and_the_generalizing_share() -> None:
    clauses = {
        (5, 5, 3, 3, 2): "3 of 5 models learned; of these 2 generalize",
        (2, 1, 1, 1, 0): "1 of 1 model learned; it does not generalize",
        (5, 5, 3, 3, 1): "3 of 5 models learned; of these 1 generalizes",
        (5, 5, 0, 0, 0): "0 of 5 models learned",
        (5, 5, 4, 0, 0): "4 of 5 models learned; whether they generalize is not known: no test "
        "string is longer than those of training",
        (1, 1, 1, 1, 1): "the only model learned and generalizes",
        (1, 1, 1, 1, 0): "the only model learned and fails beyond",
        (1, 1, 0, 0, 0): "the only model has not learned",
        (1, 0, 0, 0, 0): "whether the only model learned is not known",
        (0, 0, 0, 0, 0): "no model is tested",
        (9, 7, 5, 3, 2): "5 of 7 models learned; 2 of the 3 that are tested beyond generalize",
    }
    assert {counts: describe_counts(OutcomeCounts(*counts)) for counts in clauses} == clauses


def row(outcome: str, within: int = 0, beyond: int = 0, **more: object) -> dict[str, object]:
    """A model that is wrong on so many of 500 strings of trained lengths and of 200 longer ones."""
    counts = {"tested_within": 500, "wrong_within": within, "within_from": "test"}
    counts |= {"tested_beyond": 200, "wrong_beyond": beyond, "first_wrong_length": None}
    return {"outcome": outcome, **counts, **more}


LEARNED, FAILS, NOT = "Learned and generalizes: ", "Learned, but fails beyond: ", "Not learned: "
DESCRIBED_MODELS: list[tuple[dict[str, object], dict[str, Any], str, str]] = [
    (row(Outcome.GENERALIZES), {}, LEARNED, "all 500; all 200"),
    (row(Outcome.GENERALIZES, 1, 10, first_wrong_length=4), {"below": 0.9}, LEARNED,
     "190 of 200; 95%; 90%; length 4"),
    (row(Outcome.FAILS_BEYOND, 2, 62, first_wrong_length=18), {}, FAILS,
     "498 of 500 test strings; 1 to 20 (99.6%); 138 of 200; (69%); length 18 (trained to 20)"),
    (row(Outcome.NOT_LEARNED, 60, 100), {}, NOT,
     "440 of 500; (88%); 99%; 100 of 200; nothing about length"),
    (row(Outcome.NOT_LEARNED, 60, tested_beyond=0, within_from="validation"),
     {"words": KINDS["transduction"]().words, "learned_at": 0.975}, NOT,
     "440 of 500 validation inputs of trained lengths 1 to 20; 97.5%"),
    (row(Outcome.NOT_KNOWN, tested_within=None), {"knows_trained_lengths": False},
     "Whether it learned is not known", "trained elsewhere"),
    (row(Outcome.NOT_KNOWN, tested_within=0), {}, "Whether it learned is not known", "validation"),
    (row(Outcome.NOT_KNOWN, 2, tested_beyond=0, first_wrong_length=18), {},
     "Learned; whether it generalizes is not known",
     "498 of 500; no test string is longer; length 18"),
]  # fmt: skip


def test_the_sentence_on_a_model_states_its_outcome_and_first_wrong_length() -> None:
    """The outcome with its numbers: at trained lengths, beyond, and the first wrong length."""
    for found, named, start, parts in DESCRIBED_MODELS:
        sentence = describe_model(found, range(1, 21), **named)
        assert sentence.startswith(start), sentence
        assert all(part in sentence for part in parts.split("; ")), sentence
