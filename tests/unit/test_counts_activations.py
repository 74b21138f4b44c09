"""A network looked into from letter counts, against the model that reads letter by letter."""

import math
import subprocess
import sys
from pkgutil import walk_packages

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from seqcls import interpretability
from seqcls.counts.forward import group_logits, log_counts
from seqcls.errors import InvalidStringError
from seqcls.interpretability.attribution import direct_logit_attribution
from seqcls.interpretability.network import Network, gelu, softmax
from seqcls.interpretability.states_by_counts import (
    Activations,
    activations,
    circuits,
    letter_orders,
)
from seqcls.strings.tokenizer import CLS
from tests.unit.explained import cases_of_a_task, networks_of, random_network, texts_of
from tests.unit.networks import Case, plain_model

WITH_PYTORCH = (
    *("backends_by_strings", "readable_model", "patching"),
    *("states_by_strings", "states_of_outputs", "cause_evidence", "causes"),
    *("automaton_answers", "automaton_inside", "automaton_learning"),
)
"""Modules that read strings token by token, or import what does."""

KIND_STATES = {
    "embedding": "embedding",
    "attention_norm": "blocks.0.attention_norm",
    "after_attention": "blocks.0.after_attention",
    "attention_output": "blocks.0.attention.output",
    "feed_forward_norm": "blocks.0.feed_forward_norm",
    "feed_forward_input": "blocks.0.feed_forward.input",
    "feed_forward_activation": "blocks.0.feed_forward.activation",
    "feed_forward_output": "blocks.0.feed_forward.output",
    "after_feed_forward": "blocks.0.after_feed_forward",
}
HEAD_STATES = ("query", "key", "value", "mixed_value")


@given(cases_of_a_task())
def test_every_state_is_that_of_the_readable_model(case: Case) -> None:
    for network, member in zip(networks_of(case), case.members, strict=True):
        found = activations(network, texts_of(case))
        for row, string in enumerate(case.strings):
            ids = torch.tensor([[CLS, *(2 + x for x in string)]])
            truth = plain_model(case.config, member).activations(ids)
            kinds = [0, *(1 + x for x in string)]
            assert_states_agree(
                found, row, kinds, {k: v.detach().numpy()[0] for k, v in truth.items()}
            )


def assert_states_agree(
    found: Activations, row: int, kinds: list[int], truth: dict[str, np.ndarray]
) -> None:
    def close(ours: np.ndarray, theirs: np.ndarray) -> None:
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-11)

    for name, theirs in KIND_STATES.items():
        ours = getattr(found, name)
        close((ours if ours.ndim == 2 else ours[row])[kinds], truth[theirs])
    for name in HEAD_STATES:
        ours = getattr(found, name)
        close(
            (ours if ours.ndim == 3 else ours[row])[:, kinds], truth[f"blocks.0.attention.{name}"]
        )
    pairs = np.ix_(range(len(found.scores)), kinds, kinds)
    close(found.scores[pairs], truth["blocks.0.attention.scores"])
    attended = np.where(found.attended[row], found.weights_each[row], 0)
    close(attended[pairs], truth["blocks.0.attention.weights"])
    close(found.head_output[row].sum(axis=0), found.attention_output[row])
    close(found.logit[row], truth["logit"])


@given(cases_of_a_task(), st.integers(1, 10**9))
def test_logits_of_counts_are_those_of_the_group_model(case: Case, times: int) -> None:
    counts = case.counts * times
    encoded = log_counts(case.config, counts)
    truth = group_logits(case.config, case.stacked(), encoded).detach().numpy()
    for network, theirs in zip(networks_of(case), truth, strict=True):
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


@given(cases_of_a_task())
def test_the_steps_of_the_stream_sum_to_the_logit(case: Case) -> None:
    network = networks_of(case)[0]
    for text in texts_of(case):
        found = direct_logit_attribution(network, text)
        logit = activations(network, [text]).logit[0]
        assert found.logit == logit
        assert sum(step.adds for step in found.steps) == pytest.approx(logit, rel=1e-9, abs=1e-9)
        assert found.steps[-1].logit == pytest.approx(logit, rel=1e-9, abs=1e-9)
        assert sum(found.units) == pytest.approx(found.steps[-1].adds, rel=1e-9, abs=1e-9)
        names = [step.text for step in found.steps]
        heads = [f"head {head}" for head in range(case.config.num_attention_heads)]
        assert names == ["embedding", *heads, "feed-forward"]


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


def test_a_string_too_long_to_be_read_letter_by_letter_is_refused() -> None:
    with pytest.raises(
        InvalidStringError, match=r"'ab\{3000\}' has 3,001 letters, more than the 2,000"
    ):
        letter_orders(random_network(), "ab{3000}")


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
