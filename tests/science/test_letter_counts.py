"""Models by letter counts: long strings, circuits of heads, and the order of letters."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from seqcls.config import RunConfig
from seqcls.errors import ConfigError, InvalidStringError
from seqcls.interpretability.domains import Needs, obstacle
from seqcls.interpretability.readable_model import from_counts, logits, plain_model, states
from seqcls.problem import resolve
from seqcls.questions import RunModel
from tests.oracles.counting import true_logits
from tests.zoo import COUNTED, PICTURES, model, scattered_model, untrained


def opened(name: str, *, writes: bool = False) -> RunModel:
    own = model(name, writes=writes)
    return RunModel(own.problem, own.weights)


@given(COUNTED, st.integers(0, 10**6), st.integers(1, 10**9))
def test_logits_by_counts_equal_the_numpy_oracle(
    fields: dict[str, object], seed: int, times: int
) -> None:
    own = scattered_model(seed, **fields)
    counts = np.array([[0, 0, 0], [1, 0, 2], [3, 1, 0], [0, 5, 1]]) * times
    truth = true_logits(own, counts)
    np.testing.assert_allclose(logits(own, counts), truth, rtol=1e-9, atol=1e-9)


def test_logits_by_counts_hold_for_large_scores() -> None:
    own = scattered_model(hidden_size=2)
    weights = {**own.weights, "blocks.0.attention.query.weight": np.full((2, 2), 4e4)}
    far = RunModel(own.problem, weights)
    assert min(np.ptp(x.scores[0]) for x in far.circuits()) > 1000
    counts = np.array([[0, 0, 3], [1, 0, 10**6], [0, 0, 0]])
    found = logits(far, counts)
    np.testing.assert_allclose(found, true_logits(far, counts), rtol=1e-12)
    assert np.isfinite(found).all()


@pytest.mark.parametrize("fields", [{}, {"readout": "mean"}, {"num_blocks": 2}])
def test_logits_of_shares_are_the_limit_of_long_strings(
    fields: dict[str, object],
) -> None:
    own = scattered_model(3, hidden_size=3, **fields)
    shares = np.array([[1, 2, 0], [1, 1, 3]])
    limit = logits(own, shares, special=0.0)
    far, near = (abs(logits(own, shares * n) - limit).max() for n in (10**7, 10**3))
    assert far < 1e-4
    assert far < max(near, 1e-12)


def test_head_circuits_are_products_of_its_matrices() -> None:
    own = scattered_model(hidden_size=6, attention_head_size=2, num_attention_heads=3)
    opened = RunModel(own.problem, own.weights)
    activations = states(own, from_counts(own, np.ones((1, 3))))
    normed = activations["blocks.0.attention_norm"][0].numpy()
    for head, found in enumerate(opened.circuits()):
        rows = slice(2 * head, 2 * head + 2)
        query, key, value = (
            own.weights[f"blocks.0.attention.{name}.weight"][rows]
            for name in ("query", "key", "value")
        )
        output = own.weights["blocks.0.attention.output.weight"][:, rows]
        scores = normed @ (query.T @ key) @ normed.T / np.sqrt(2)
        np.testing.assert_allclose(found.scores, scores, atol=1e-12)
        np.testing.assert_allclose(found.output, normed @ (output @ value).T, atol=1e-12)
        direct = found.output @ own.weights["classifier.weight"][0]
        np.testing.assert_allclose(found.direct_logit, direct, atol=1e-12)
        assert (found.key_query_rank, found.value_output_rank) == (2, 2)
        assert found.token_types == ("CLS", "a", "b", "c")


ATTENDING = (
    ("two blocks", False, 4), ("alibi", False, 6), ("hybrid", False, 2), ("gpt2", True, 4),
    ("encoder_decoder", True, 12), ("mean", False, 2),
)  # fmt: skip


@pytest.mark.parametrize(("name", "writes", "heads"), ATTENDING)
def test_every_attention_head_has_circuits(name: str, writes: bool, heads: int) -> None:
    own = opened(name, writes=writes)
    found = own.circuits()
    parts = [part for part in plain_model(own).parts() if part.name == "head"]
    parts = [part for part in parts if name != "hybrid" or part.block == 1]
    assert [x.name for x in found] == [part.text for part in parts]
    assert len(found) == heads
    outputs = own.problem.network.num_outputs
    for x in found:
        types = len(x.token_types)
        assert x.scores.shape == (types, types)
        assert x.direct_logit.shape == ((types,) if outputs == 1 else (types, outputs))
        assert 0 < x.value_output_rank <= 4
    letters = {*own.tokenizer.alphabet}
    special = {"CLS", *(("SEP", "END") if writes else ())}
    special = {"END"} if own.config.readout == "last" and not writes else special
    assert {*found[0].token_types} - letters == (special if name != "mean" else set())


def test_models_without_attention_have_no_circuits() -> None:
    for own in (opened("lstm"), opened("deltanet")):
        with pytest.raises(ConfigError, match="no heads that attend"):
            own.circuits()
    reader = untrained(**PICTURES)
    found = RunModel(reader.problem, reader.weights).circuits()
    # Its decoder attends to a picture too, which has no embeddings of tokens.
    assert {x.name.partition(",")[0] for x in found} == {"decoder block 0", "decoder block 1"}
    assert not any("cross" in x.name for x in found)


def test_the_order_of_letters_changes_nothing_but_rounding() -> None:
    own = scattered_model(hidden_size=5)
    opened = RunModel(own.problem, own.weights)
    found = opened.orders("a{3}bc{20}", orders=6)
    assert len(set(found.strings)) == 7
    assert {own.tokenizer.counts(string) for string in found.strings} == {(3, 1, 20)}
    assert found.spread < 1e-12
    assert found.logits[0] == pytest.approx(logits(own, np.array([[3, 1, 20]]))[0])
    with pytest.raises(InvalidStringError, match=r"3,001 tokens, more than the 2,000"):
        opened.orders("ab{3000}")


def test_letter_order_changes_models_with_positions() -> None:
    for own, string in ((opened("two blocks"), "0{4}1{5}"), (opened("lstm"), "0{4}1{5}")):
        found = own.orders(string)
        assert found.spread == max(found.logits) - min(found.logits) > 1e-6
        answers = [own.answer(x).logit for x in found.strings]
        np.testing.assert_allclose(found.logits, answers, atol=1e-6)
    written = opened("rotary", writes=True).orders("aabbc", orders=3)
    assert len(written.logits) == 4
    assert written.spread > 0


def test_states_of_absent_letters_are_finite() -> None:
    for no_attend_cls in (False, True):
        own = scattered_model(no_attend_cls=no_attend_cls)
        activations = states(own, from_counts(own, np.array([[0, 0, 0], [0, 7, 0]])))
        assert all(torch.isfinite(state).all() for state in activations.values())
        # The empty string has only CLS to attend to, or nothing at all.
        weights = activations["blocks.0.attention.weights"]
        np.testing.assert_allclose(weights[0].sum(dim=-1), 0 if no_attend_cls else 1)
        assert not weights[1, :, :, [1, 3]].any()


OTHERS: tuple[tuple[dict[str, Any], Needs], ...] = (
    ({"architecture": "lstm", "readout": "last"}, "states"), ({"positions": "rotary"}, "states"),
    ({"attention_mask": "causal", "readout": "last"}, "states"),
    ({"attention_scale": "learned_log_length"}, "one block"), ({"num_blocks": 2}, "one block"),
    ({"readout": "mean"}, "one block"), ({"attention_scale": "log_length"}, "one block"),
    ({"norm_placement": "post"}, "one block"), ({"activation": "relu"}, "one block"),
    ({"activation": "gelu_tanh"}, "one block"), ({"biases": True}, "one block"),
    ({"final_norm": True}, "one block"), ({"task": "majority"}, "one block"),
    ({"task": "parity"}, "one block"), ({"task": "even_pairs"}, "labels"),
)  # fmt: skip
NEEDS: tuple[Needs, ...] = ("states", "labels", "one block")


def test_analysis_names_the_setting_that_rules_it_out() -> None:
    report = RunConfig(dropout_rate=0.1, no_attend_cls=True, layer_norm_eps=0.0)
    assert obstacle(resolve(RunConfig())) is obstacle(resolve(report)) is None
    for fields, least in OTHERS:
        problem = resolve(RunConfig.from_mapping(fields))
        reasons = [obstacle(problem, needs) for needs in NEEDS]
        first = NEEDS.index(least)
        assert [reason is None for reason in reasons] == [x < first for x in range(3)], fields
        (name, value), *_ = fields.items()
        assert f"{name}={value!r}" in str(reasons[-1])
        if least == "states":
            own = RunModel(problem, {})
            with pytest.raises(ConfigError, match=name):
                from_counts(own, np.ones((1, own.num_letters)))
