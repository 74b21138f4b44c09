"""A network as a function of letter counts: what is computed far out, and what a head is."""

import math
import subprocess
import sys
from pkgutil import walk_packages

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqcls import interpretability
from seqcls.config import RunConfig
from seqcls.errors import ConfigError, InvalidStringError
from seqcls.interpretability.network import Network, gelu, obstacle, softmax
from seqcls.interpretability.states_by_counts import activations, circuits, letter_orders
from seqcls.problem import resolve
from tests.unit.explained import FIELDS, random_network, true_logits

WITH_PYTORCH = (
    *("backends_by_strings", "readable_model", "patching"),
    *("states_by_strings", "states_of_outputs", "cause_evidence", "causes"),
    *("automaton_answers", "automaton_inside", "automaton_learning"),
)
"""Modules that read strings token by token, or import what does."""


@given(FIELDS, st.integers(0, 10**6), st.integers(1, 10**9))
def test_logits_of_any_counts_are_those_of_the_group_model(
    fields: dict[str, object], seed: int, times: int
) -> None:
    network = random_network(seed, **fields)
    counts = np.array([[0, 0, 0], [1, 0, 2], [3, 1, 0], [0, 5, 1]]) * times
    theirs = true_logits(network, counts)
    np.testing.assert_allclose(network.logits(counts), theirs, rtol=1e-9, atol=1e-10)
    by_attention = network.logits_of_attention(network.attention(network.log_counts(counts)))
    np.testing.assert_allclose(by_attention, theirs, rtol=1e-9, atol=1e-10)


def test_scores_that_are_far_apart_are_told_apart() -> None:
    network = random_network(hidden_size=2)
    weights = {**network.weights, "blocks.0.attention.query.weight": np.full((2, 2), 4e4)}
    far = Network.of(network.problem, weights)
    assert np.ptp(far.scores[:, 0], axis=1).min() > 1000
    counts = np.array([[0, 0, 3], [1, 0, 10**6], [0, 0, 0]])
    by_attention = far.logits_of_attention(far.attention(far.log_counts(counts)))
    np.testing.assert_allclose(far.logits(counts), by_attention, rtol=1e-12)
    assert np.isfinite(by_attention).all()


def test_the_circuits_of_a_head_are_its_matrices_multiplied_out() -> None:
    network = random_network(hidden_size=6, attention_head_size=2, num_attention_heads=3)
    states = network.attention_norm
    for head, found in enumerate(circuits(network)):
        rows = slice(2 * head, 2 * head + 2)
        query, key, value = (
            network.weights[f"blocks.0.attention.{name}.weight"][rows]
            for name in ("query", "key", "value")
        )
        output = network.weights["blocks.0.attention.output.weight"][:, rows]
        scores = states @ (query.T @ key) @ states.T / np.sqrt(2)
        np.testing.assert_allclose(found.scores, scores, atol=1e-12)
        np.testing.assert_allclose(found.ov_output, states @ (output @ value).T, atol=1e-12)
        np.testing.assert_allclose(found.direct_logit, found.ov_output @ network.classifier)
        assert (found.key_query_rank, found.value_output_rank) == (2, 2)


def test_the_order_of_letters_changes_nothing_but_rounding() -> None:
    network = random_network(hidden_size=5)
    found = letter_orders(network, "a{3}bc{20}", orders=6)
    assert len(set(found.strings)) == 7
    assert {network.tokenizer.counts(string) for string in found.strings} == {(3, 1, 20)}
    assert found.spread < 1e-12
    assert found.logits[0] == pytest.approx(activations(network, ["a{3}bc{20}"]).logit[0])
    with pytest.raises(InvalidStringError, match=r"3,001 letters, more than the 2,000"):
        letter_orders(network, "ab{3000}")


def test_strings_without_letters_and_absent_kinds_are_there_to_be_drawn() -> None:
    for no_attend_cls in (False, True):
        network = random_network(no_attend_cls=no_attend_cls)
        found = activations(network, ["", "b{7}"])
        assert found.present.tolist() == [[True, False, False, False], [True, False, True, False]]
        assert found.attended[:, 0].tolist() == [not no_attend_cls] * 2
        assert np.isfinite(found.after_feed_forward).all()
        # The empty string has only CLS to attend to, or nothing at all.
        total = found.weights[0].sum(axis=-1)
        np.testing.assert_allclose(total, 0 if no_attend_cls else 1)
        each = found.weights_each[1, :, 0, 2]
        np.testing.assert_allclose(7 * each, found.weights[1, :, 0, 2])


def test_gelu_is_exact_far_out_too() -> None:
    x = np.concatenate([np.linspace(-37, 40, 4001), [0.0, -0.0, 1e-300, -1e-300]])
    truth = [number * 0.5 * math.erfc(-number / math.sqrt(2)) for number in x]
    np.testing.assert_allclose(gelu(x), truth, rtol=1e-11)


def test_softmax_of_nothing_is_nothing() -> None:
    scores = np.array([[-np.inf, -np.inf], [0.0, -np.inf], [1000.0, 1000.0]])
    assert softmax(scores).tolist() == [[0, 0], [1, 0], [0.5, 0.5]]


OTHERS: tuple[dict[str, object], ...] = (
    {"architecture": "lstm", "readout": "last"}, {"positions": "rotary"},
    {"attention_mask": "causal", "readout": "last"}, {"num_blocks": 2}, {"readout": "mean"},
    {"attention_scale": "log_length"}, {"norm_placement": "post"}, {"activation": "relu"},
    {"activation": "gelu_tanh"}, {"biases": True}, {"final_norm": True},
)  # fmt: skip


def test_a_network_that_is_another_is_refused_by_the_name_of_its_setting() -> None:
    assert obstacle(resolve(RunConfig())) is None
    report = RunConfig(dropout_rate=0.1, no_attend_cls=True, layer_norm_eps=0.0)
    assert obstacle(resolve(report)) is None
    for fields in OTHERS:
        problem = resolve(RunConfig.from_mapping(fields))
        (name, value), *_ = fields.items()
        assert (obstacle(problem, "states") or "").startswith(f"{name}={value!r}")
        with pytest.raises(ConfigError, match=name):
            Network.of(problem, {})


def test_nothing_heavy_is_loaded_to_look_inside() -> None:
    modules = walk_packages(interpretability.__path__, f"{interpretability.__name__}.")
    names = {module.name for module in modules} - {
        f"{interpretability.__name__}.{name}" for name in WITH_PYTORCH
    }
    assert "seqcls.interpretability.explanations" in names
    show = f"import sys, {', '.join(names)}; print(*sys.modules)"
    said = subprocess.run(
        [sys.executable, "-c", show], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"torch", "numba", "pandas", "sqlalchemy"} & set(said)
