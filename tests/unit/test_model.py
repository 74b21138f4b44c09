"""The readable model: its function, the names of its states, and what must not matter."""

import random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from seqcls.config import NetworkConfig
from seqcls.models.initialization import initial_parameters
from seqcls.models.transformer import Transformer
from seqcls.strings.tokenizer import CLS, PAD
from tests.unit.networks import Case, cases, plain_model
from tests.unit.reference import reference_logit

NAMES_AND_SHAPES = {
    "embedding": "string position hidden",
    "blocks.0.attention_norm": "string position hidden",
    "blocks.0.attention.query": "string head position head_size",
    "blocks.0.attention.key": "string head position head_size",
    "blocks.0.attention.value": "string head position head_size",
    "blocks.0.attention.scores": "string head position position",
    "blocks.0.attention.weights": "string head position position",
    "blocks.0.attention.mixed_value": "string head position head_size",
    "blocks.0.attention.output": "string position hidden",
    "blocks.0.after_attention": "string position hidden",
    "blocks.0.feed_forward_norm": "string position hidden",
    "blocks.0.feed_forward.input": "string position ff",
    "blocks.0.feed_forward.activation": "string position ff",
    "blocks.0.feed_forward.output": "string position hidden",
    "blocks.0.after_feed_forward": "string position hidden",
    "readout": "string hidden",
    "logit": "string",
}
SIZES = {"string": 2, "position": 6, "hidden": 3, "head": 4, "head_size": 5, "ff": 7}


def test_every_state_keeps_its_name_its_place_and_its_shape() -> None:
    config = NetworkConfig(
        hidden_size=3, num_attention_heads=4, attention_head_size=5, feed_forward_size=7
    )
    model = plain_model(config, initial_parameters(config, 0))
    states = model.activations(torch.tensor([[CLS, 2, 3, 4, 2, 2], [CLS, 3, PAD, PAD, PAD, PAD]]))
    assert list(states) == list(NAMES_AND_SHAPES)
    for name, shape in NAMES_AND_SHAPES.items():
        assert tuple(states[name].shape) == tuple(SIZES[axis] for axis in shape.split()), name


def test_parameters_keep_their_names() -> None:
    norms = ["attention_norm.weight", "attention_norm.bias"]
    attention = [f"attention.{x}.weight" for x in ("query", "key", "value", "output")]
    rest = ["feed_forward_norm.weight", "feed_forward_norm.bias"]
    linears = ["feed_forward.input.weight", "feed_forward.output.weight"]
    inside = [f"blocks.0.{name}" for name in (*norms, *attention, *rest, *linears)]
    model = Transformer(NetworkConfig(layer_norm="nn"))
    assert list(model.state_dict()) == ["embedding.weight", *inside, "classifier.weight"]


@given(cases())
def test_the_logit_is_that_of_the_formulas_written_out(case: Case) -> None:
    for parameters in case.members:
        logits = plain_model(case.config, parameters)(case.ids)
        weights = {name: value.numpy() for name, value in parameters.items()}
        for string, logit in zip(case.strings, logits.tolist(), strict=True):
            expected = reference_logit(case.config, weights, [CLS, *(2 + x for x in string)])
            assert logit == pytest.approx(expected, rel=1e-10, abs=1e-12)


@given(cases(), st.integers(0, 5), st.randoms())
def test_neither_padding_nor_batch_nor_letter_order_matters(
    case: Case, more_padding: int, order: random.Random
) -> None:
    model = plain_model(case.config, case.members[0])
    logits = model(case.ids)
    padded = torch.nn.functional.pad(case.ids, (0, more_padding), value=PAD)
    one_by_one = torch.cat([model(case.ids[row : row + 1]) for row in range(len(case.ids))])
    shuffled = [order.sample(string, len(string)) for string in case.strings]
    for other in (model(padded), one_by_one, model(Case(case.config, [], shuffled).ids)):
        torch.testing.assert_close(other, logits, rtol=1e-12, atol=1e-12)


def test_attention_goes_neither_to_padding_nor_to_an_unattended_cls() -> None:
    ids = torch.tensor([[CLS, 2, PAD, 3], [CLS, PAD, PAD, PAD]])
    for no_attend_cls in (False, True):
        config = NetworkConfig(no_attend_cls=no_attend_cls)
        states = plain_model(config, initial_parameters(config, 0)).activations(ids)
        weights = states["blocks.0.attention.weights"]
        assert torch.all(weights[0, :, :, 2] == 0)
        assert torch.all((weights[0, :, :, 0] == 0) == no_attend_cls)
        torch.testing.assert_close(weights[0].sum(-1), torch.ones(2, 4))
        # The empty string has only CLS to attend to, or nothing at all.
        assert torch.all(weights[1].sum(-1) == (0 if no_attend_cls else 1))


def test_dropout_draws_from_its_own_generator_and_only_in_training() -> None:
    config = NetworkConfig(hidden_size=16, dropout_rate=0.5)
    model = plain_model(config, initial_parameters(config, 0))
    ids = torch.tensor([[CLS, 2, 3, 4]])
    still = model(ids)
    assert torch.equal(still, model(ids))
    model.train()
    before = torch.get_rng_state()
    draws = []
    for seed in (1, 1, 2):
        model.use_dropout_generator(torch.Generator().manual_seed(seed))
        draws.append(model(ids))
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])
    assert torch.equal(before, torch.get_rng_state())
