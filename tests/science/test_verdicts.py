"""Exhaustive checks, and all errors up to a length, against trying every string."""

import itertools
from typing import Any

import numpy as np
import pytest

from seqcls.config import RunConfig
from seqcls.engines.member import draw_initial
from seqcls.errors import ConfigError, DeviceError
from seqcls.evaluation import TrainedGroup
from seqcls.interpretability.domains import all_multisets, num_multisets
from seqcls.interpretability.verdicts import (
    errors_up_to,
    string_verdict,
    unaffordable,
    verdicts,
)
from seqcls.problem import resolve
from seqcls.strings.token_strings import TokenStrings
from seqcls.strings.tokenizer import LETTERS, Tokenizer
from tests.oracles.counting import true_logits
from tests.zoo import LSTM, TWO_BLOCKS, scattered_model, untrained


@pytest.mark.parametrize(("letters", "length"), [(1, 4), (2, 5), (3, 6), (5, 3)])
def test_multisets_are_enumerated_once(letters: int, length: int) -> None:
    found = sorted(map(tuple, all_multisets(letters, length).tolist()))
    every = itertools.product(range(length + 1), repeat=letters)
    assert found == [counts for counts in every if 1 <= sum(counts) <= length]
    assert len(found) == num_multisets(letters, length)
    assert num_multisets(3, 200) == 1_373_700


@pytest.mark.parametrize("engine", ["fused", "torch"])
def test_verdict_equals_trying_every_string(engine: str) -> None:
    config = RunConfig(test_max_length=12, precision="float64")
    weights = draw_initial([(resolve(config), seed) for seed in range(3)])
    counts = all_multisets(3, 12)
    found = verdicts(resolve(config), weights, engine=engine)
    strings = TokenStrings.of_counts(3, counts)
    for own, verdict in zip(weights, found, strict=True):
        (logits,) = TrainedGroup(resolve(config), [own], "torch").outputs(strings)
        rows = zip(map(tuple, counts.tolist()), (logits > 0).tolist(), strict=True)
        wrong = {
            row: predicted for row, predicted in rows if predicted != (row[0] > 0 and row[1] > 0)
        }
        assert wrong, "an untrained model misclassifies something"
        assert verdict.inputs == len(counts)
        assert verdict.false_positives == sum(wrong.values())
        assert verdict.false_negatives == len(wrong) - sum(wrong.values())
        assert verdict.shortest_error is not None
        shortest = Tokenizer(LETTERS[:3]).counts(verdict.shortest_error)
        assert shortest in wrong
        assert sum(shortest) == min(map(sum, wrong))


def test_unaffordable_verdict_gives_the_reason() -> None:
    assert unaffordable(resolve(RunConfig())) is None
    reason = unaffordable(resolve(RunConfig(num_letters=5)))
    assert "there are 2,872,408,790 multisets of 5 letters up to length 200" in str(reason)
    with pytest.raises(ConfigError, match="max_length=2000: there are 1,337,337,000 multisets"):
        errors_up_to(scattered_model(5, test_max_length=2000))
    problem = resolve(RunConfig(test_max_length=3))
    with pytest.raises(DeviceError, match="device 'gpu': expected auto, cpu or cuda"):
        verdicts(problem, draw_initial([(problem, 0)]), engine="torch", device="gpu")


def test_errors_up_to_a_length_equal_trying_every_multiset() -> None:
    small: dict[str, Any] = {"hidden_size": 4, "num_attention_heads": 3, "test_max_length": 12}
    network = scattered_model(5, **small)
    found = errors_up_to(network)
    every = [(a, b, c) for a in range(13) for b in range(13 - a) for c in range(13 - a - b)][1:]
    wrong = {
        counts
        for counts, logit in zip(every, true_logits(network, np.array(every)), strict=True)
        if (logit > 0) != (counts[0] > 0 and counts[1] > 0)
    }
    assert found.multisets == len(every)
    assert set(map(tuple, found.counts.tolist())) == wrong
    order = [(sum(counts), text) for counts, text in zip(found.counts, found.texts, strict=True)]
    assert order == sorted(order)
    table = found.by_length()
    assert table.shape == (13, 2)
    assert table.sum() == len(wrong)
    assert table[:, 1].sum() == sum(a > 0 and b > 0 for a, b, _ in wrong)


def test_verdict_by_strings_equals_answering_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seqcls.interpretability.verdicts.MAX_STRINGS", 70)
    model = untrained(**LSTM)
    found = string_verdict(model)
    assert (found.unit, found.max_length) == ("string", 5)
    every = [own for n in range(6) for own in itertools.product(range(2), repeat=n)]
    assert found.inputs == len(every)
    wrong = [answer for own in every if (answer := model.answer(own)).is_wrong]
    assert found.false_positives == sum(answer.predicted is True for answer in wrong) > 0
    assert found.false_negatives == len(wrong) - found.false_positives > 0
    least = min(answer.length for answer in wrong)
    shortest = min(answer.string for answer in wrong if answer.length == least)
    assert found.shortest_error == shortest


def test_length_that_is_checked_is_bounded_by_test_and_positions() -> None:
    learned = {**TWO_BLOCKS, "positions": "learned", "train_max_length": 9}
    for model, length in (
        (untrained(test_max_length=7, **LSTM), 7),
        (untrained(**LSTM), 16),
        (untrained(validation_max_length=9, **learned), 9),
    ):
        assert string_verdict(model).max_length == length
