"""The check string by string, against asking about each."""

import itertools

from seqcls.interpretability.verdicts import checked_length, string_verdict
from tests.unit.asked import LSTM, TWO_BLOCKS, untrained


def test_a_verdict_by_strings_is_that_of_asking_about_each() -> None:
    model = untrained(**LSTM)
    found = string_verdict(model, limit=70)
    assert (found.unit, found.max_length) == ("string", 5)
    every = [own for n in range(6) for own in itertools.product(range(2), repeat=n)]
    assert found.inputs == len(every)
    wrong = [answer for own in every[:31] if (answer := model.answer(own)).is_wrong]
    rest = model.ask_all(every[31:])
    false_positives = sum(answer.predicted is True for answer in wrong)
    assert found.false_positives == false_positives + (rest.wrong & rest.predicted).sum()
    assert found.false_negatives == (
        len(wrong) - false_positives + (rest.wrong & ~rest.predicted).sum()
    )
    least = min(answer.length for answer in wrong)
    shortest = min(answer.string for answer in wrong if answer.length == least)
    assert found.shortest_error == shortest


def test_no_string_is_longer_than_the_test_or_the_places() -> None:
    assert checked_length(untrained(test_max_length=7, **LSTM)) == 7
    assert checked_length(untrained(**LSTM)) == 16
    learned = {**TWO_BLOCKS, "positions": "learned", "train_max_length": 9}
    assert checked_length(untrained(validation_max_length=9, **learned)) == 9
