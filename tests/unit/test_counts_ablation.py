"""Parts ablated, against networks whose parameters are zero there; and all errors at once."""

from itertools import pairwise

import numpy as np
import pytest
import torch

from seqcls.errors import ConfigError
from seqcls.evaluation import distinct_test_strings
from seqcls.interpretability.counts.ablation import Ablation, ablate
from seqcls.interpretability.counts.errors import errors_up_to
from seqcls.interpretability.counts.network import Network
from seqcls.interpretability.counts.pruning import prune, rank_heads
from tests.unit.explained import patched_logits, random_network, true_logits

FIELDS: dict[str, object] = {
    "hidden_size": 4,
    "num_attention_heads": 3,
    "attention_head_size": 2,
    "test_size": 512,
    "test_max_length": 40,
}
OUTPUT = "blocks.0.attention.output.weight"


def network_to_ablate() -> Network:
    return random_network(5, **FIELDS)


def test_a_head_that_is_off_writes_nothing() -> None:
    network = network_to_ablate()
    outcome = ablate(network, Ablation(zeroed=frozenset({1})))
    weights = {name: value.copy() for name, value in network.weights.items()}
    weights[OUTPUT][:, 2:4] = 0
    truth = true_logits(Network.of(network.problem, weights), outcome.counts)
    np.testing.assert_allclose(outcome.logits, truth, atol=1e-10)
    np.testing.assert_allclose(outcome.logits_before, true_logits(network, outcome.counts))


def test_a_frozen_head_writes_its_mean_over_the_test_set() -> None:
    network = network_to_ablate()
    outcome = ablate(network, Ablation(averaged=frozenset({0}), zeroed=frozenset({2})))
    mixed: list[np.ndarray] = []

    def keep(state: np.ndarray) -> np.ndarray:
        mixed.append(state)
        return state

    patched_logits(network, outcome.counts, {"blocks.0.attention.mixed_value": keep})
    mean = np.repeat(mixed[0][:, 0, 0], outcome.occurrences, axis=0).mean(axis=0)

    def freeze(state: np.ndarray) -> np.ndarray:
        state[:, 0, 0] = mean
        state[:, 2] = 0
        return state

    truth = patched_logits(network, outcome.counts, {"blocks.0.attention.mixed_value": freeze})
    np.testing.assert_allclose(outcome.logits, truth, atol=1e-10)


@pytest.mark.parametrize("norm", [{"layer_norm_eps": 0.0}, {"layer_norm": "rms"}])
def test_a_dimension_that_is_off_is_zero_throughout(norm: dict[str, object]) -> None:
    network = random_network(5, **FIELDS, **norm)
    outcome = ablate(network, Ablation(zeroed_dimensions=frozenset({0, 3})))

    def hide(state: np.ndarray) -> np.ndarray:
        state[..., [0, 3]] = 0
        return state

    stream = ("embedding", "blocks.0.attention.output", "blocks.0.feed_forward.output")
    truth = patched_logits(network, outcome.counts, dict.fromkeys(stream, hide))
    np.testing.assert_allclose(outcome.logits, truth, atol=1e-10)


def test_an_outcome_counts_every_test_string() -> None:
    network = network_to_ablate()
    outcome = ablate(network, Ablation(zeroed=frozenset({0, 1, 2})))
    test = distinct_test_strings(network.problem.test)
    assert sum(outcome.evaluation.confusion) == sum(outcome.before.confusion) == 512
    # Without heads all strings are the same to it.
    assert len(set(outcome.logits.tolist())) == 1
    right = (outcome.logits > 0) == test.labels
    confusion = outcome.evaluation.confusion
    assert confusion.tn + confusion.tp == test.occurrences[right].sum()
    unchanged = ablate(network, Ablation())
    after, before = unchanged.evaluation, unchanged.before
    assert after.confusion == before.confusion
    np.testing.assert_array_equal(after.cells, before.cells)
    np.testing.assert_array_equal(after.errors.numbers, before.errors.numbers)
    np.testing.assert_array_equal(after.errors.logits, before.errors.logits)


def test_heads_are_ranked_by_what_is_lost_without_them() -> None:
    network = network_to_ablate()
    for how in ("zero", "mean"):
        costs = rank_heads(network, how)
        assert len(costs) == 3
        errors = [cost.errors for cost in costs]
        assert errors == sorted(errors, reverse=True)
        for cost in costs:
            outcome = ablate(network, cost.ablation)
            assert cost.confusion == outcome.evaluation.confusion
            moved = np.abs(outcome.logits - outcome.logits_before)
            mean = np.average(moved, weights=outcome.occurrences)
            assert cost.logit_change == pytest.approx(mean)


@pytest.mark.parametrize("parts", ["heads", "dimensions", "both"])
def test_pruning_removes_the_cheapest_part_until_none_is_left(parts: str) -> None:
    network = network_to_ablate()
    steps = prune(network, parts)  # type: ignore[arg-type]
    heads, dimensions = (3 * (parts != "dimensions"), 4 * (parts != "heads"))
    assert len(steps) == 1 + heads + dimensions
    assert steps[0].removed is None
    assert (steps[-1].heads_left, steps[-1].dimensions_left) == (3 - heads, 4 - dimensions)
    for before, after in pairwise(steps):
        assert before.cost.ablation.zeroed <= after.cost.ablation.zeroed
        assert before.cost.ablation.zeroed_dimensions <= after.cost.ablation.zeroed_dimensions
        assert after.cost.confusion == ablate(network, after.cost.ablation).evaluation.confusion
    if parts == "heads":
        dearest_first = rank_heads(network)
        cheapest = min(dearest_first, key=lambda cost: (cost.errors, cost.loss))
        assert steps[1].cost == cheapest


def test_the_loss_of_an_ablation_is_that_of_training() -> None:
    network = network_to_ablate()
    cost = prune(network, "heads")[0].cost
    test = distinct_test_strings(network.problem.test)
    logits = torch.from_numpy(true_logits(network, test.strings.counts))
    loss = torch.nn.functional.binary_cross_entropy_with_logits(
        logits, torch.from_numpy(test.labels).double(), torch.from_numpy(test.occurrences)
    )
    mean = float(loss) * len(logits) / test.occurrences.sum()
    assert cost.loss == pytest.approx(mean)


def test_all_errors_up_to_a_length_are_those_of_trying_every_multiset() -> None:
    network = network_to_ablate()
    found = errors_up_to(network, 12)
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
    part = found.page(2, 5)
    assert part.texts == found.texts[2:7]
    assert part.lengths.tolist() == found.lengths[2:7].tolist()


def test_too_many_multisets_are_refused() -> None:
    with pytest.raises(ConfigError, match="max_length=2000: there are 1,337,337,000 multisets"):
        errors_up_to(network_to_ablate(), 2000)
