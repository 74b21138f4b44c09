"""Explanations of any network's answers, each claim made to happen in the readable model."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from seqcls.errors import InvalidStringError
from seqcls.interpretability.deletions import Removal, without_part
from seqcls.interpretability.explanations import Explanation, explain
from seqcls.interpretability.network import Network
from seqcls.interpretability.sentences import explanation_text
from tests.unit.explained import FIELDS, counterfactual_logits, random_network, true_logits

COUNTS = st.tuples(*[st.sampled_from([0, 0, 1, 2, 5, 40, 3000])] * 3)


def answer(network: Network, counts: tuple[int, ...]) -> bool:
    return bool(true_logits(network, np.array([counts]))[0] > 0)


@given(FIELDS, st.integers(0, 10**6), COUNTS)
def test_every_claim_of_an_explanation_holds(
    fields: dict[str, object], seed: int, counts: tuple[int, ...]
) -> None:
    network = random_network(seed, **fields)
    assume(np.abs(true_logits(network, np.array([counts]))[0]) > 1e-9)
    found = explain(network, network.tokenizer.text_of_counts(counts))
    said = answer(network, counts)
    assert found.counts == counts
    assert (found.logit > 0) == said
    assert found.label == (counts[0] > 0 and counts[1] > 0)
    assert (found.error is None) == (said == found.label)
    assert (found.smallest is None) == (found.mechanism is None) == (found.error is None)
    for change in (*found.removals, *found.additions):
        assert_nearest_flip(network, found, change)
    assert_no_part(network, found)
    if found.mechanism is not None:
        assert_smallest(network, found)
        assert_mechanism(network, found)
    assert all(sentence.endswith((".", ":")) for sentence in explanation_text(found))


def assert_nearest_flip(network: Network, found: Explanation, change: Removal) -> None:
    letter = "abc".index(change.letter)
    said = found.logit > 0
    counts = [*found.counts]
    assert counts[letter] == change.count != change.left
    counts[letter] = change.left
    assert change.string == network.tokenizer.text_of_counts(counts)
    assert answer(network, tuple(counts)) != said
    between = range(*sorted((change.left, change.count)))[1:]
    for number in [*between[:50], *between[-50:]]:
        counts[letter] = number
        assert answer(network, tuple(counts)) == said


def assert_no_part(network: Network, found: Explanation) -> None:
    random = np.random.default_rng(0)
    letters = ["abc".index(letter) for letter in found.no_part]
    fewer = np.tile(found.counts, (50, 1))
    fewer[:, letters] = random.integers(0, fewer[:, letters] + 1)
    fewer[0, letters] = 0
    assert ((true_logits(network, fewer) > 0) == (found.logit > 0)).all()


def assert_smallest(network: Network, found: Explanation) -> None:
    assert found.smallest is not None
    part = found.smallest.counts
    said = found.logit > 0
    assert all(few <= many for few, many in zip(part, found.counts, strict=True))
    assert answer(network, part) == said
    assert (part[0] > 0 and part[1] > 0) == found.label
    for letter in range(3):
        for number in [*range(part[letter])[:50], *range(part[letter])[-50:]]:
            fewer = [*part]
            fewer[letter] = number
            fails = answer(network, tuple(fewer)) == said
            assert not fails or (fewer[0] > 0 and fewer[1] > 0) != found.label


def assert_mechanism(network: Network, found: Explanation) -> None:
    mechanism = found.mechanism
    assert mechanism is not None
    counts = np.array([found.counts])
    if mechanism.name == "two heads on one letter" and mechanism.head is None:
        counts[0, "abc".index(mechanism.letter or "")] = 0
        (logit,) = true_logits(network, counts)
    elif counts.any():
        (logit,) = counterfactual_logits(network, counts, [mechanism])
    else:
        return
    assert mechanism.logit_with == pytest.approx(logit, rel=1e-8, abs=1e-8)
    flips = (logit > 0) != (found.logit > 0)
    assert flips or mechanism.name == "no single mechanism"


@pytest.mark.parametrize(
    ("name", "hidden_size", "seed", "counts"),
    [
        ("dilution", 2, 2, (1, 60, 0)),
        ("value interference", 2, 3, (1, 20, 20)),
        ("value interference", 2, 6, (0, 5, 0)),
        ("value interference", 2, 51, (0, 3, 40)),
        ("value interference", 2, 225, (0, 3, 40)),
        ("two heads on one letter", 2, 33, (1, 1, 60)),
        ("two heads on one letter", 2, 147, (0, 3, 40)),
        ("feed-forward saturation", 2, 221, (2, 0, 9)),
        ("feed-forward saturation", 4, 5, (1, 20, 20)),
        ("no single mechanism", 2, 4, (60, 1, 0)),
        ("no single mechanism", 2, 1, (2, 0, 9)),
    ],
)
def test_a_mechanism_is_named_by_what_flips_the_answer(
    name: str, hidden_size: int, seed: int, counts: tuple[int, ...]
) -> None:
    network = random_network(seed, hidden_size=hidden_size, no_attend_cls=True, layer_norm_eps=0.0)
    found = explain(network, network.tokenizer.text_of_counts(counts))
    assert found.mechanism is not None
    assert found.mechanism.name == name
    assert_mechanism(network, found)
    assert name in explanation_text(found)[1].lower()


def test_letters_that_are_mixed_into_another_are_told_together() -> None:
    network = random_network(225, hidden_size=2, no_attend_cls=True, layer_norm_eps=0.0)
    found = explain(network, "b{3}c{40}")
    assert found.mechanism is not None
    assert (found.mechanism.letter, found.mechanism.by) == (None, "a")
    head = found.heads[found.mechanism.head or 0]
    once = explain(network, "bc").heads[head.head]
    wanted = head.values[0][0]
    assert abs(head.mixed_value[0] - wanted) < abs(once.mixed_value[0] - wanted)
    assert f"head {head.head} takes its letters together for a" in explanation_text(found)[1]


def test_several_letters_without_a_part_are_without_one_together() -> None:
    random = np.random.default_rng(0)
    several = 0
    for seed in range(20):
        network = random_network(seed, num_letters=5, layer_norm_eps=0.0)
        counts = (3, 0, 40, 7, 2000)
        letters = list(without_part(network, counts))
        several += len(letters) > 1
        fewer = np.tile(counts, (400, 1))
        fewer[:, letters] = random.integers(0, fewer[:, letters] + 1)
        fewer[0, letters] = 0
        said = true_logits(network, np.array([counts]))[0] > 0
        assert ((true_logits(network, fewer) > 0) == said).all()
    assert several > 2


def test_a_reading_of_a_head_is_in_the_order_of_its_scores() -> None:
    network = random_network(3, no_attend_cls=False)
    found = explain(network, "a{3}c")
    for head in found.heads:
        scores = dict(zip(network.token_types, network.scores[head.head, 0].tolist(), strict=True))
        assert list(head.order) == sorted("abc", key=lambda letter: -scores[letter])
        for gap in head.gaps:
            assert gap.gap == pytest.approx(scores[gap.over] - scores[gap.under])
            assert gap.outweighed_by == pytest.approx(np.exp(gap.gap))
        assert {seen.token_type for seen in head.seen} == {"CLS", "a", "c"}
        assert sum(seen.weight for seen in head.seen) == pytest.approx(1)
        weights = [seen.weight for seen in head.seen]
        assert weights == sorted(weights, reverse=True)
        mixed = sum(seen.weight * np.array(seen.value) for seen in head.seen)
        np.testing.assert_allclose(head.mixed_value, mixed)


def test_a_million_letters_are_explained_as_readily_and_another_alphabet_is_refused() -> None:
    found = explain(random_network(1, no_attend_cls=True), "ab{1000000}c{123456789}")
    assert explanation_text(found)
    assert found.counts == (1, 10**6, 123456789)
    with pytest.raises(InvalidStringError, match="unknown letter 'd' in 'abd'"):
        explain(random_network(), "abd")
