"""Explanations of any network's answers, each claim made to happen in the readable model."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from seqcls.errors import InvalidStringError
from seqcls.interpretability.circuits import circuits
from seqcls.interpretability.deletions import Removal
from seqcls.interpretability.explanations import Explanation, explain
from seqcls.interpretability.interventions import Mechanism
from seqcls.interpretability.trained_model import TrainedModel
from tests.oracles.counting import true_logits
from tests.zoo import FIELDS, scattered_model

COUNTS = st.tuples(*[st.sampled_from([0, 0, 1, 2, 5, 40, 3000])] * 3)


def answer(network: TrainedModel, counts: tuple[int, ...]) -> bool:
    return bool(true_logits(network, np.array([counts]))[0] > 0)


@given(FIELDS, st.integers(0, 10**6), COUNTS)
def test_every_claim_of_an_explanation_holds(
    fields: dict[str, object], seed: int, counts: tuple[int, ...]
) -> None:
    network = scattered_model(seed, **fields)
    assume(np.abs(true_logits(network, np.array([counts]))[0]) > 1e-9)
    assert_every_claim_holds(network, counts)


def assert_every_claim_holds(network: TrainedModel, counts: tuple[int, ...]) -> None:
    """Asserts that every claim about an answer comes true in the readable model."""
    found = explain(network, network.tokenizer.text_of_counts(counts))
    predicted = answer(network, counts)
    assert found.counts == counts
    assert (found.logit > 0) == predicted
    assert found.label == (counts[0] > 0 and counts[1] > 0)
    assert (found.error is None) == (predicted == found.label)
    assert (found.smallest is None) == (found.error is None)
    assert found.error is not None or found.mechanism is None
    for change in (*found.removals, *found.additions):
        assert_nearest_flip(network, found, change)
    assert_no_part(network, found)
    if found.error is not None:
        assert_smallest(network, found)
    if found.mechanism is not None:
        assert_mechanism(network, found)
    assert all(sentence.endswith((".", ":")) for sentence in found.describe(network))


def assert_nearest_flip(network: TrainedModel, found: Explanation, change: Removal) -> None:
    letter = "abc".index(change.letter)
    assert found.counts[letter] == change.count != change.left
    between = range(*sorted((change.left, change.count)))[1:]
    numbers = [change.left, *between[:50], *between[-50:]]
    rows = np.tile(found.counts, (len(numbers), 1))
    rows[:, letter] = numbers
    assert change.string == network.tokenizer.text_of_counts(tuple(rows[0].tolist()))
    stays = (true_logits(network, rows) > 0) == (found.logit > 0)
    assert stays.tolist() == [False] + [True] * (len(numbers) - 1)


def assert_smallest(network: TrainedModel, found: Explanation) -> None:
    assert found.smallest is not None
    part = found.smallest.counts
    assert all(few <= many for few, many in zip(part, found.counts, strict=True))
    rows = np.array([part] + [
        [*part[:letter], number, *part[letter + 1 :]]
        for letter in range(3)
        for number in {*range(part[letter])[:50], *range(part[letter])[-50:]}
    ])  # fmt: skip
    fails = (true_logits(network, rows) > 0) == (found.logit > 0)
    like = (rows[:, :2] > 0).all(axis=1) == found.label
    assert np.flatnonzero(fails & like).tolist() == [0], "only the smallest fails"


def assert_no_part(network: TrainedModel, found: Explanation) -> None:
    random = np.random.default_rng(0)
    letters = ["abc".index(letter) for letter in found.no_part]
    fewer = np.tile(found.counts, (50, 1))
    fewer[:, letters] = random.integers(0, fewer[:, letters] + 1)
    fewer[0, letters] = 0
    assert ((true_logits(network, fewer) > 0) == (found.logit > 0)).all()


def assert_mechanism(network: TrainedModel, found: Explanation) -> None:
    mechanism = found.mechanism
    assert mechanism is not None
    counts = np.array([found.counts])
    if mechanism.name == "two heads on one letter" and mechanism.head is None:
        counts[0, "abc".index(mechanism.letter or "")] = 0
        (logit,) = true_logits(network, counts)
    else:
        (logit,) = logits_with(network, counts, mechanism)
    assert mechanism.logit_with == pytest.approx(logit, rel=1e-8, abs=1e-8)
    assert (logit > 0) != (found.logit > 0)


def logits_with(network: TrainedModel, counts: np.ndarray, mechanism: Mechanism) -> np.ndarray:
    """The logit of one string with the change that a mechanism describes."""
    (times,) = np.insert(counts, 0, not network.config.no_attend_cls, axis=1)
    longest = network.problem.train.lengths[-1]
    head = slice(None) if mechanism.head is None else mechanism.head

    def exchange(scores: np.ndarray) -> np.ndarray:
        pair = [1 + "abc".index(x or "") for x in (mechanism.letter, mechanism.by)]
        scores[0, head, 0, pair] = scores[0, head, 0, pair[::-1]]
        return scores

    def undilute(weights: np.ndarray) -> np.ndarray:
        for own in np.atleast_2d(weights[0, head, 0]):
            of_one = np.where(times > 0, own / np.maximum(times, 1), 0)
            attended = of_one >= 0.9 * of_one.max()
            own[attended] *= max(times[~attended].sum() / times[attended].sum() / longest, 1)
            own /= own.sum()
        return weights

    def hide(weights: np.ndarray) -> np.ndarray:
        own = weights[0, head, 0]
        own[1 + "abc".index(mechanism.letter or "")] = 0
        own /= own.sum() or 1
        return weights

    name, change = {
        "two heads on one letter": ("scores", exchange),
        "dilution": ("weights", undilute),
        "value interference": ("weights", hide),
    }[mechanism.name]
    return true_logits(network, counts, {f"blocks.0.attention.{name}": change})


NAMED: list[tuple[str | None, int, int, tuple[int, ...]]] = [
    ("dilution", 4, 26, (1, 60, 0)), ("dilution", 4, 4, (1, 1, 60)),
    ("value interference", 2, 6, (0, 5, 0)), ("value interference", 2, 51, (0, 3, 40)),
    ("two heads on one letter", 2, 33, (1, 1, 60)), ("two heads on one letter", 4, 11, (2, 0, 9)),
    (None, 2, 1, (2, 0, 9)),
]  # fmt: skip
"""Mechanisms, by the hidden size and the seed of a network, and letter counts."""


def test_mechanism_is_named_by_what_flips_the_answer() -> None:
    for name, hidden_size, seed, counts in NAMED:
        sizes = {"hidden_size": hidden_size, "no_attend_cls": True, "layer_norm_eps": 0.0}
        network = scattered_model(seed, **sizes)
        found = explain(network, network.tokenizer.text_of_counts(counts))
        assert found.error is not None
        assert (found.mechanism and found.mechanism.name) == name
        if found.mechanism is not None:
            assert_mechanism(network, found)
        assert (name or "no single cause") in [*found.describe(network)][1].lower()


def test_head_lists_letters_by_score() -> None:
    network = scattered_model(3, no_attend_cls=False)
    found = explain(network, "a{3}c")
    for head, circuit in zip(found.heads, circuits(network), strict=True):
        scores = dict(zip(circuit.token_types, circuit.scores[0].tolist(), strict=True))
        assert list(head.order) == sorted("abc", key=lambda letter: -scores[letter])
        for gap in head.gaps:
            assert gap.gap == pytest.approx(scores[gap.over] - scores[gap.under])
            assert gap.outweighed_by == pytest.approx(np.exp(gap.gap))
        assert {seen.kind for seen in head.seen} == {"CLS", "a", "c"}
        assert sum(seen.weight for seen in head.seen) == pytest.approx(1)
        weights = [seen.weight for seen in head.seen]
        assert weights == sorted(weights, reverse=True)
        mixed = sum(seen.weight * np.array(seen.value) for seen in head.seen)
        np.testing.assert_allclose(head.mixed_value, mixed)


def test_long_strings_are_explained_and_unknown_letters_refused() -> None:
    network = scattered_model(1, no_attend_cls=True)
    found = explain(network, "ab{1000000}c{123456789}")
    assert [*found.describe(network)]
    assert found.counts == (1, 10**6, 123456789)
    with pytest.raises(InvalidStringError, match="unknown letter 'd' in 'abd'"):
        explain(scattered_model(), "abd")
