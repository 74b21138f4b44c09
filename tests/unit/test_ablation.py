"""Ablation of any model's parts, against models made without them."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from seqcls.errors import ConfigError
from seqcls.interpretability.ablation import ablate, prune, rank
from seqcls.interpretability.backends_by_strings import Strings
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.models.parts import PART_KINDS, Part
from seqcls.problem import resolve
from tests.unit.asked import LSTM, TWO_BLOCKS, untrained

SMALL = {"test_size": 200, "test_max_length": 20}


def without(model: TrainedModel, **zeros: tuple[str, Any]) -> np.ndarray:
    """Logits of the sample where some rows or columns of a parameter are zero."""
    weights = {name: value.copy() for name, value in model.weights.items()}
    for name, where in zeros.values():
        weights[name][where] = 0
    backend = Strings(model, 60)
    return TrainedModel(model.problem, weights).ask(backend.tested.strings).score


def test_a_head_ablated_by_zero_is_a_head_whose_output_is_zero() -> None:
    model = untrained(**TWO_BLOCKS, **SMALL)
    size = model.config.attention_head_size
    expected = without(model, o=("blocks.1.attention.output.weight", np.s_[:, size : 2 * size]))
    found = Strings(model, 60).outputs({Part(1, "head", 1): "zero"})
    np.testing.assert_allclose(found, expected, atol=1e-10)


def test_a_feed_forward_and_its_units_ablated_by_zero_add_nothing() -> None:
    model = untrained(**TWO_BLOCKS, **SMALL)
    name = "blocks.0.feed_forward.output.weight"
    backend = Strings(model, 60)
    unit = backend.outputs({Part(0, "unit", 2): "zero"})
    np.testing.assert_allclose(unit, without(model, o=(name, np.s_[:, 2])), atol=1e-10)
    whole = backend.outputs({Part(0, "feed-forward"): "zero"})
    np.testing.assert_allclose(whole, without(model, o=(name, np.s_[:])), atol=1e-10)
    units = [Part(0, "unit", number) for number in range(4)]
    np.testing.assert_allclose(backend.outputs(dict.fromkeys(units, "zero")), whole, atol=1e-10)


def test_a_recurrent_unit_ablated_by_zero_is_a_unit_that_no_one_hears() -> None:
    model = untrained(**LSTM, **SMALL)
    expected = without(
        model,
        heard=("layers.0.state_weight", np.s_[:, 1]),
        read=("classifier.weight", np.s_[:, 1]),
    )
    found = Strings(model, 60).outputs({Part(0, "unit", 1, True): "zero"})
    np.testing.assert_allclose(found, expected, atol=1e-10)


@pytest.mark.parametrize("fields", [TWO_BLOCKS, LSTM])
def test_without_no_part_a_model_is_what_it_was(fields: dict[str, Any]) -> None:
    model = untrained(**fields, **SMALL)
    backend = Strings(model, 60)
    np.testing.assert_allclose(backend.before, model.ask(backend.tested.strings).score, atol=1e-10)
    own = ablate(backend, {})
    assert own.logit_change == 0
    assert own.errors == int(model.ask(backend.tested.strings).wrong.sum())
    assert own.strings.sum() == 60
    assert own.right.sum() == 60 - own.errors
    assert own.lengths.tolist() == sorted(set(backend.tested.strings.lengths.tolist()))


def test_the_mean_of_a_part_that_never_changes_is_what_it_is() -> None:
    """A head that attends to nothing but itself in strings of one token type."""
    model = untrained(**TWO_BLOCKS, **SMALL)
    weights = {name: value.copy() for name, value in model.weights.items()}
    weights["embedding.weight"][:] = weights["embedding.weight"][2]
    same = TrainedModel(resolve(model.config.model_copy(update={"positions": "none"})), weights)
    backend = Strings(same, 60)
    for part in backend.parts(PART_KINDS):
        np.testing.assert_allclose(backend.outputs({part: "mean"}), backend.before, atol=1e-10)
    assert np.abs(backend.outputs({Part(0, "head", 0): "zero"}) - backend.before).max() > 1e-6


def test_parts_are_ranked_by_what_they_cost_and_pruned_from_the_cheapest() -> None:
    model = untrained(**TWO_BLOCKS, **SMALL)
    backend = Strings(model, 60)
    heads = backend.parts(["head"])
    ranked = rank(backend, heads)
    assert {own.parts[0] for own in ranked} == {*heads}
    assert [own.errors for own in ranked] == sorted((x.errors for x in ranked), reverse=True)
    steps = list(prune(backend, heads))
    assert [len(own.parts) for own in steps] == [0, 1, 2, 3, 4]
    assert steps[1].errors == min(own.errors for own in ranked)
    for before, after in pairwise(steps):
        assert set(before.parts) < set(after.parts)


def test_more_parts_than_pruning_is_for_are_refused() -> None:
    backend = Strings(untrained(**SMALL, feed_forward_size=30), 10)
    with pytest.raises(ConfigError, match="at most 24; take heads"):
        list(prune(backend, backend.parts(PART_KINDS)))
