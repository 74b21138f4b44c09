"""The exhaustive check, against trying every string."""

import itertools

import pytest

from seqcls.config import RunConfig
from seqcls.engines.member import draw_initial
from seqcls.errors import DeviceError
from seqcls.evaluation import logits_of
from seqcls.interpretability.domains import all_multisets, num_multisets
from seqcls.interpretability.verdicts import unaffordable, verdicts
from seqcls.problem import resolve
from seqcls.strings.token_strings import TokenStrings
from seqcls.strings.tokenizer import LETTERS, Tokenizer


@pytest.mark.parametrize(("letters", "length"), [(1, 4), (2, 5), (3, 6), (5, 3)])
def test_every_multiset_is_there_once(letters: int, length: int) -> None:
    found = sorted(map(tuple, all_multisets(letters, length).tolist()))
    every = itertools.product(range(length + 1), repeat=letters)
    assert found == [counts for counts in every if 1 <= sum(counts) <= length]
    assert len(found) == num_multisets(letters, length)


def test_three_letters_up_to_200_are_1373700() -> None:
    assert num_multisets(3, 200) == 1_373_700


@pytest.mark.parametrize("engine", ["fused", "torch"])
def test_a_verdict_is_that_of_trying_every_string(engine: str) -> None:
    config = RunConfig(test_max_length=12, precision="float64")
    weights = draw_initial([(resolve(config), seed) for seed in range(3)])
    counts = all_multisets(3, 12)
    for own, verdict in zip(
        weights, verdicts(resolve(config), weights, engine=engine), strict=True
    ):
        logits = logits_of(
            resolve(config), [own], TokenStrings.of_counts(3, counts), engine="torch"
        )[0]
        wrong = {
            tuple(row): logit > 0
            for row, logit in zip(counts.tolist(), logits, strict=True)
            if (logit > 0) != (row[0] > 0 and row[1] > 0)
        }
        assert wrong, "an untrained model misclassifies something"
        assert verdict.inputs == len(counts)
        assert verdict.false_positives == sum(wrong.values())
        assert verdict.false_negatives == len(wrong) - sum(wrong.values())
        assert verdict.shortest_error is not None
        shortest = Tokenizer(LETTERS[:3]).counts(verdict.shortest_error)
        assert shortest in wrong
        assert sum(shortest) == min(map(sum, wrong))


def test_too_many_multisets_are_said_to_be_too_many() -> None:
    assert unaffordable(resolve(RunConfig())) is None
    reason = unaffordable(resolve(RunConfig(num_letters=5)))
    assert reason is not None
    assert reason.startswith("there are 2,872,408,790 multisets of 5 letters up to length 200")


def test_a_verdict_is_asked_of_the_device_that_is_named() -> None:
    config = RunConfig(test_max_length=3)
    weights = draw_initial([(resolve(config), 0)])
    with pytest.raises(DeviceError, match="device 'gpu': expected auto, cpu or cuda"):
        verdicts(resolve(config), weights, engine="torch", device="gpu")
