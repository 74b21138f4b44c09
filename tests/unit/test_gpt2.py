"""GPT-2's blocks and initial values (Radford et al. 2019), against the published equations."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import softmax

from seqcls.config import NetworkConfig, RunConfig
from seqcls.counts import counts_suffice
from seqcls.engines.choice import choose_engine
from seqcls.engines.fused.engine import Fused
from seqcls.engines.lanes.engine import Lanes
from seqcls.engines.pytorch.computations import OneByOne
from seqcls.engines.pytorch.groups import FlatGroup, Losses, all_logits
from seqcls.models.entries import TRANSFORMER
from seqcls.models.initialization import initial_parameters
from seqcls.models.positions import read_ids
from seqcls.problem import configuration, resolve
from seqcls.strings.token_strings import TokenStrings
from seqcls.strings.tokenizer import PAD
from seqcls.training import train_group
from tests.conftest import short_config
from tests.unit.networks import plain_model

BLOCKS, HEADS, HEAD_SIZE, HIDDEN = 3, 2, 4, 8
GPT2 = NetworkConfig(
    num_letters=5,
    num_blocks=BLOCKS,
    hidden_size=HIDDEN,
    num_attention_heads=HEADS,
    attention_head_size=HEAD_SIZE,
    feed_forward_size=4 * HIDDEN,
    layer_norm="nn",
    activation="gelu_tanh",
    final_norm=True,
    biases=True,
    positions="learned",
    attention_mask="causal",
    readout="last",
    trained_length=20,
    precision="float64",
)
STRINGS = [[0, 1, 2, 3, 4, 4, 1], [2, 2, 0], [], [3, 1, 0, 2]]


def random_parameters(config: NetworkConfig) -> dict[str, Tensor]:
    """Values that are far from those of a norm or a bias at the start."""
    generator = torch.Generator().manual_seed(0)
    return {
        name: 0.5 * torch.randn(value.shape, generator=generator, dtype=torch.float64)
        for name, value in initial_parameters(config, 0).items()
    }


def gpt2(weights: dict[str, Tensor], ids: list[int]) -> Tensor:
    """The logit of one string without padding, as the equations have it."""

    def linear(x: Tensor, name: str) -> Tensor:
        return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    def norm(x: Tensor, name: str) -> Tensor:
        mean = x.mean(dim=1, keepdim=True)
        variance = ((x - mean) ** 2).mean(dim=1, keepdim=True)
        normal = (x - mean) / (variance + 1e-5).sqrt()
        return normal * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    def gelu(x: Tensor) -> Tensor:
        return x / 2 * (1 + (math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)).tanh())

    x = weights["embedding.weight"][ids] + weights["positions.table.weight"][: len(ids)]
    later = torch.ones(len(ids), len(ids)).triu(1).bool()
    for block in range(BLOCKS):
        inside = f"blocks.{block}"
        read = norm(x, f"{inside}.attention_norm")
        q, k, v = (linear(read, f"{inside}.attention.{y}") for y in ("query", "key", "value"))
        heads = []
        for head in range(HEADS):
            own = slice(head * HEAD_SIZE, (head + 1) * HEAD_SIZE)
            scores = q[:, own] @ k[:, own].T / math.sqrt(HEAD_SIZE)
            heads.append(softmax(scores.masked_fill(later, -torch.inf), dim=1) @ v[:, own])
        x = x + linear(torch.cat(heads, dim=1), f"{inside}.attention.output")
        inner = linear(norm(x, f"{inside}.feed_forward_norm"), f"{inside}.feed_forward.input")
        x = x + linear(gelu(inner), f"{inside}.feed_forward.output")
    return linear(norm(x, "final_norm"), "classifier")[-1, 0]


def test_the_readable_model_and_its_gradients_are_those_of_the_equations() -> None:
    parameters = random_parameters(GPT2)
    strings = TokenStrings.of_lists(5, STRINGS)
    ids = torch.from_numpy(read_ids(strings, "last")).int()
    model = plain_model(GPT2, parameters)
    logits = model(ids)
    published = {name: value.clone().requires_grad_() for name, value in parameters.items()}
    rows = [[x for x in row if x != PAD] for row in ids.tolist()]
    expected = torch.stack([gpt2(published, row) for row in rows])
    torch.testing.assert_close(logits, expected, rtol=1e-12, atol=1e-12)

    share = torch.linspace(-1, 2, len(STRINGS), dtype=torch.float64)
    (logits * share).sum().backward()
    (expected * share).sum().backward()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(
            parameter.grad, published[name].grad, rtol=1e-11, atol=1e-12, msg=name
        )


def test_the_engine_of_strings_gives_the_readable_models_logits_and_gradients() -> None:
    parameters = random_parameters(GPT2)
    strings = TokenStrings.of_lists(5, STRINGS)
    flat = FlatGroup([{x: y.numpy() for x, y in parameters.items()}], torch.device("cpu"))
    engine = OneByOne(flat, GPT2, len(STRINGS), torch.device("cpu"))
    model = plain_model(GPT2, parameters)
    ids = torch.from_numpy(read_ids(strings, "last")).int()
    logits = model(ids)
    np.testing.assert_allclose(all_logits(engine, strings, 1)[0], logits.detach(), atol=1e-12)
    losses = Losses(lambda logits: logits**2, len(strings))
    (batch,) = engine.batches(strings)
    engine.backward(batch, losses)
    losses(logits).mean().backward()
    for name, parameter in model.named_parameters():
        found = engine.models[0].get_parameter(name).grad
        torch.testing.assert_close(found, parameter.grad, rtol=1e-10, atol=1e-12, msg=name)


def test_the_final_norm_is_a_state_before_the_readout() -> None:
    model = plain_model(GPT2, random_parameters(GPT2))
    states = model.activations(torch.tensor([[2, 3, 4]]))
    assert list(states)[-4:] == ["blocks.2.after_feed_forward", "final_norm", "readout", "logit"]
    assert torch.equal(states["readout"], states["final_norm"][:, -1])
    plain = plain_model(NetworkConfig(), initial_parameters(NetworkConfig(), 0))
    assert "final_norm" not in plain.activations(torch.tensor([[0, 2, 3]]))


@pytest.mark.parametrize("norm", ["rms", "nn"])
def test_the_parameters_of_the_final_norm_are_counted(norm: Any) -> None:
    config = NetworkConfig(final_norm=True, layer_norm=norm, num_blocks=2, hidden_size=5)
    blocks = {
        name: value.numel()
        for name, value in initial_parameters(config, 0).items()
        if name.startswith(("blocks", "final_norm"))
    }
    assert TRANSFORMER.parameters(config) == sum(blocks.values())


def test_gpt2s_initial_values_have_its_moments() -> None:
    config = GPT2.model_copy(
        update={
            "embeddings_init_strategy": "gpt2",
            "num_letters": 200,
            "hidden_size": 96,
            "attention_head_size": 48,
            "feed_forward_size": 384,
            "trained_length": 200,
        }
    )
    drawn = initial_parameters(config, 3)
    assert drawn["embedding.weight"][PAD].abs().max() == 0
    for name, value in drawn.items():
        if "norm" in name:
            assert (value == (1 if name.endswith("weight") else 0)).all(), name
        elif name.endswith("bias"):
            assert (value == 0).all(), name
        elif name != "classifier.weight":
            narrow = name.endswith("output.weight")
            deviation = 0.02 / math.sqrt(2 * BLOCKS) if narrow else 0.02
            values = value[value != 0]
            assert abs(values.std() / deviation - 1) < 5 / math.sqrt(2 * len(values)), name
            assert abs(values.mean() / deviation) < 5 / math.sqrt(len(values)), name
            kurtosis = (values / deviation).pow(4).mean()
            assert abs(kurtosis - 3) < 0.3, f"{name}: normal, and not uniform"
    assert 0.01 < drawn["classifier.weight"].std() < 0.03


@pytest.mark.parametrize("architecture", ["rnn", "gru", "lstm"])
def test_gpt2s_initial_values_of_recurrent_networks_have_its_moments(architecture: str) -> None:
    config = NetworkConfig(
        architecture=architecture,
        hidden_size=64,
        num_blocks=2,
        readout="last",
        biases=True,
        embeddings_init_strategy="gpt2",
    )
    for name, value in initial_parameters(config, 0).items():
        if name.endswith("bias"):
            assert (value == 0).all(), name
        elif name.startswith("layers"):
            assert abs(value.std() / 0.02 - 1) < 0.05, name


def test_gpt2s_initial_values_are_those_of_their_seed_and_the_same_without_biases() -> None:
    config = GPT2.model_copy(update={"embeddings_init_strategy": "gpt2"})
    drawn, again = initial_parameters(config, 5), initial_parameters(config, 5)
    other = initial_parameters(config, 6)
    changes = {"biases": False, "positions": "none", "final_norm": False}
    fewer = initial_parameters(config.model_copy(update=changes), 5)
    for name, value in drawn.items():
        assert torch.equal(value, again[name])
        if name in fewer:
            assert torch.equal(value, fewer[name]), name
    assert not torch.equal(drawn["embedding.weight"], other["embedding.weight"])


@pytest.mark.parametrize(
    ("fields", "fused", "lanes"),
    [
        ({"activation": "gelu_tanh"}, "activation='gelu_tanh' is not compiled", None),
        (
            {"final_norm": True},
            "final_norm=True is not compiled",
            "final_norm=True is compiled only where all tokens are read",
        ),
        (
            {"positions": "learned", "position_draw": "shifted", "validation_max_length": 10},
            "position_draw='shifted' is not compiled",
            "position_draw='shifted' is compiled only where all tokens are read",
        ),
    ],
)
def test_the_compiled_engines_say_what_they_do_not_compute(
    fields: dict[str, Any], fused: str, lanes: str | None
) -> None:
    problem = resolve(configuration(fields))
    assert [x.obstacle(problem, "cpu") for x in (Fused(), Lanes())] == [fused, lanes]
    by_counts = counts_suffice(problem.network, training=True) is None
    assert choose_engine(problem).name == ("counts" if by_counts else "strings")


def test_compiled_engines_train_from_gpt2s_initial_values_too() -> None:
    config = short_config(embeddings_init_strategy="gpt2", precision="float64")
    members = [
        train_group([(resolve(config), 0)], engine=engine)[0] for engine in ("fused", "strings")
    ]
    np.testing.assert_allclose(members[0].train_losses, members[1].train_losses, rtol=1e-9)


def test_the_learning_rate_may_fall_to_zero() -> None:
    config: RunConfig = short_config(final_learning_rate_factor=0.0, max_num_epochs=3, patience=9)
    (member,) = train_group([(resolve(config), 0)])
    constant = short_config(final_learning_rate_factor=1.0, max_num_epochs=3, patience=9)
    (other,) = train_group([(resolve(constant), 0)])
    assert member.epochs == 3
    assert member.train_losses[0] == other.train_losses[0]
    assert member.train_losses[1] != other.train_losses[1]
