"""Parts ablated, against networks whose parameters are zero there; and all errors at once."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch

from seqcls.errors import ConfigError
from seqcls.evaluation import distinct_test_strings, evaluation_of
from seqcls.interpretability.ablation import ablate, backend_of, prune, rank
from seqcls.interpretability.backends import Ablation, AblationMethod, Counts
from seqcls.interpretability.backends_by_strings import Strings
from seqcls.interpretability.certification import errors_up_to
from seqcls.interpretability.network import Network
from seqcls.kinds.base import Questions
from seqcls.kinds.membership import MembershipKind
from seqcls.models.parts import PART_KINDS, Part
from seqcls.results import Evaluation
from tests.unit.explained import patched_logits, random_network, true_logits

FIELDS: dict[str, object] = {
    "hidden_size": 4,
    "num_attention_heads": 3,
    "attention_head_size": 2,
    "test_size": 512,
    "test_max_length": 40,
}
OUTPUT = "blocks.0.attention.output.weight"
FEED_FORWARD = Part(0, "feed-forward")


METHODS: tuple[AblationMethod, ...] = ("zero", "mean")


def results_of(network: Network, outputs: np.ndarray) -> Evaluation:
    """The results of logits for all test strings."""
    test = distinct_test_strings(network.problem.test)
    answers = MembershipKind().judge(Questions.about(test.examples), outputs)
    return evaluation_of(network.problem, test, answers)


def head(number: int) -> Part:
    return Part(0, "head", number)


def network_to_ablate() -> Network:
    return random_network(5, **FIELDS)


def test_a_head_that_is_off_writes_nothing() -> None:
    network = network_to_ablate()
    backend = Counts(network)
    weights = {name: value.copy() for name, value in network.weights.items()}
    weights[OUTPUT][:, 2:4] = 0
    counts = backend.tested.strings.counts
    truth = true_logits(Network.of(network.problem, weights), counts)
    np.testing.assert_allclose(backend.outputs({head(1): "zero"}), truth, atol=1e-10)
    np.testing.assert_allclose(backend.before, true_logits(network, counts))


def test_a_frozen_head_writes_its_mean_over_the_test_set() -> None:
    network = network_to_ablate()
    backend = Counts(network)
    counts = backend.tested.strings.counts
    mixed: list[np.ndarray] = []

    def keep(state: np.ndarray) -> np.ndarray:
        mixed.append(state)
        return state

    patched_logits(network, counts, {"blocks.0.attention.mixed_value": keep})
    mean = np.repeat(mixed[0][:, 0, 0], backend.tested.occurrences, axis=0).mean(axis=0)

    def freeze(state: np.ndarray) -> np.ndarray:
        state[:, 0, 0] = mean
        state[:, 2] = 0
        return state

    truth = patched_logits(network, counts, {"blocks.0.attention.mixed_value": freeze})
    ablation: Ablation = {head(0): "mean", head(2): "zero"}
    np.testing.assert_allclose(backend.outputs(ablation), truth, atol=1e-10)
    # Strings of which there is none in the test set have no part in its means.
    np.testing.assert_allclose(backend.logits(counts[:3], ablation), truth[:3], atol=1e-10)


@pytest.mark.parametrize(
    ("part", "state"), [(FEED_FORWARD, "output"), (Part(0, "unit", 1), "activation")]
)
def test_a_frozen_feed_forward_or_unit_has_its_mean_over_the_test_set(
    part: Part, state: str
) -> None:
    network = network_to_ablate()
    backend = Counts(network)
    counts, of_part = backend.tested.strings.counts, ... if part.kind == "feed-forward" else 1
    found: list[np.ndarray] = []

    def keep(state: np.ndarray) -> np.ndarray:
        found.append(state[:, 0, of_part].copy())
        return state

    def freeze(state: np.ndarray) -> np.ndarray:
        state[:, 0, of_part] = np.average(found[0], axis=0, weights=backend.tested.occurrences)
        return state

    name = f"blocks.0.feed_forward.{state}"
    patched_logits(network, counts, {name: keep})
    truth = patched_logits(network, counts, {name: freeze})
    np.testing.assert_allclose(backend.outputs({part: "mean"}), truth, atol=1e-10)
    assert np.abs(truth - backend.before).max() > 1e-3


def test_all_test_strings_by_letter_counts_are_answered_as_when_run_one_by_one() -> None:
    network = network_to_ablate()
    counts, strings = backend_of(network), Strings(network, 10**6)
    assert isinstance(counts, Counts)
    # Every test string, as often as it occurs.
    rows = np.repeat(np.arange(len(counts.tested.texts)), counts.tested.occurrences)
    rows = rows[np.argsort(counts.tested.strings.lengths[rows], kind="stable")]
    every = counts.tested.take(rows)
    strings.tested = replace(every, occurrences=np.ones_like(every.occurrences))
    assert len(rows) == 512
    parts = counts.parts(PART_KINDS)
    assert parts == strings.parts(PART_KINDS)
    assert {part.kind for part in parts} == {*PART_KINDS}
    unlike = 0
    for some in ((), *((part,) for part in parts), parts[1:5]):
        ablation: Ablation = dict.fromkeys(some, "zero")
        exact, run = ablate(counts, ablation), ablate(strings, ablation)
        assert (exact.errors, exact.accuracy, exact.confusion) == (
            run.errors, run.accuracy, run.confusion,
        )  # fmt: skip
        assert exact.loss == pytest.approx(run.loss, rel=1e-10)
        assert exact.logit_change == pytest.approx(run.logit_change, rel=1e-10, abs=1e-10)
        for name in ("lengths", "strings", "right"):
            np.testing.assert_array_equal(getattr(exact, name), getattr(run, name))
        unlike += exact.errors != ablate(counts, {}).errors
    assert unlike > 2


@pytest.mark.parametrize("norm", [{"layer_norm_eps": 0.0}, {"layer_norm": "rms"}])
def test_a_dimension_that_is_off_is_zero_throughout(norm: dict[str, object]) -> None:
    network = random_network(5, **FIELDS, **norm)
    backend = Counts(network)
    cut: Ablation = {Part(0, "dimension", 0): "zero", Part(0, "dimension", 3): "zero"}

    def hide(state: np.ndarray) -> np.ndarray:
        state[..., [0, 3]] = 0
        return state

    stream = ("embedding", "blocks.0.attention.output", "blocks.0.feed_forward.output")
    truth = patched_logits(network, backend.tested.strings.counts, dict.fromkeys(stream, hide))
    np.testing.assert_allclose(backend.outputs(cut), truth, atol=1e-10)


def test_an_outcome_counts_every_test_string() -> None:
    network = network_to_ablate()
    backend = Counts(network)
    none: Ablation = dict.fromkeys(backend.parts(["head"]), "zero")
    found, whole = ablate(backend, none), ablate(backend, {})
    test = distinct_test_strings(network.problem.test)
    assert found.confusion is not None
    assert whole.confusion is not None
    assert sum(found.confusion) == sum(whole.confusion) == found.strings.sum() == 512
    # Without heads all strings are the same to it.
    logits = backend.outputs(none)
    assert len(set(logits.tolist())) == 1
    right = (logits > 0) == test.labels
    confusion = found.confusion
    assert confusion.tn + confusion.tp == test.occurrences[right].sum() == found.right.sum()
    assert found.errors == confusion.wrong == 512 - found.right.sum()
    for ablated, outputs in ((found, logits), (whole, network.logits(test.strings.counts))):
        tested = results_of(network, outputs)
        assert ablated.confusion == tested.confusion
        assert ablated.accuracy == pytest.approx(1 - tested.wrong / 512)
        np.testing.assert_array_equal(ablated.lengths, tested.lengths)
        np.testing.assert_array_equal(ablated.strings, tested.tested_by_length)
        np.testing.assert_array_equal(ablated.strings - ablated.right, tested.wrong_by_length)
    np.testing.assert_array_equal(backend.before, network.logits(test.strings.counts))


def test_heads_are_ranked_by_what_is_lost_without_them() -> None:
    network = network_to_ablate()
    backend = Counts(network)
    for how in METHODS:
        costs = rank(backend, backend.parts(["head"]), how)
        assert len(costs) == 3
        errors = [cost.errors for cost in costs]
        assert errors == sorted(errors, reverse=True)
        for cost in costs:
            logits = backend.outputs(dict.fromkeys(cost.parts, how))
            assert cost.confusion == results_of(network, logits).confusion
            mean = np.average(np.abs(logits - backend.before), weights=backend.tested.occurrences)
            assert cost.logit_change == pytest.approx(mean)


@pytest.mark.parametrize("parts", ["heads", "dimensions", "both"])
def test_pruning_removes_the_cheapest_part_until_none_is_left(parts: str) -> None:
    network = network_to_ablate()
    backend = Counts(network)
    heads = backend.parts(["head"]) if parts != "dimensions" else ()
    dimensions = backend.parts(["dimension"]) if parts != "heads" else ()
    steps = list(prune(backend, heads + dimensions))
    assert len(heads) == 3 * (parts != "dimensions")
    assert len(dimensions) == 4 * (parts != "heads")
    assert len(steps) == 1 + len(heads) + len(dimensions)
    assert steps[0].parts == ()
    assert set(steps[-1].parts) == {*heads, *dimensions}
    for before, after in pairwise(steps):
        assert set(before.parts) < set(after.parts)
        logits = backend.outputs(dict.fromkeys(after.parts, "zero"))
        assert after.confusion == results_of(network, logits).confusion
    if parts == "heads":
        dearest_first = rank(backend, heads)
        cheapest = min(dearest_first, key=lambda cost: (cost.errors, cost.loss))
        assert steps[1].parts == cheapest.parts
        assert (steps[1].errors, steps[1].loss) == (cheapest.errors, cheapest.loss)
        assert steps[1].confusion == cheapest.confusion
        assert steps[1].logit_change == cheapest.logit_change


def test_the_loss_of_an_ablation_is_that_of_training() -> None:
    network = network_to_ablate()
    loss_without_none = ablate(Counts(network), {}).loss
    test = distinct_test_strings(network.problem.test)
    logits = torch.from_numpy(true_logits(network, test.strings.counts))
    loss = torch.nn.functional.binary_cross_entropy_with_logits(
        logits, torch.from_numpy(test.labels).double(), torch.from_numpy(test.occurrences)
    )
    mean = float(loss) * len(logits) / test.occurrences.sum()
    assert loss_without_none == pytest.approx(mean)


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
