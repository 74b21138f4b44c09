"""Initial values: the published ones, and those of PyTorch's own layers."""

import math
from typing import Any

import pytest
import torch
from torch import nn

from seqcls.config import NetworkConfig, RunConfig
from seqcls.models.initialization import initial_parameters
from seqcls.pairing import differing_starts
from seqcls.problem import configuration, obstacle_of, resolve
from seqcls.strings.tokenizer import PAD
from tests.conftest import asset

REPORT: dict[str, Any] = {"layer_norm_eps": 0.0, "no_attend_cls": True}
LOWER_MAGNITUDE = {
    **REPORT,
    "hidden_size": 16,
    "embeddings_init_strategy": "linear_like",
    "attention_init_strategy": "output_fan_out",
    "feed_forward_init_strategy": "output_fan_out",
}
PUBLISHED_NAMES = {
    "embedding.weight": "embeddings.embeddings.weight",
    "blocks.0.attention.query.weight": "self_attention_block.attention.query.weight",
    "blocks.0.attention.key.weight": "self_attention_block.attention.key.weight",
    "blocks.0.attention.value.weight": "self_attention_block.attention.value.weight",
    "blocks.0.attention.output.weight": "self_attention_block.attention.output.weight",
    "blocks.0.feed_forward.input.weight": "self_attention_block.feed_forward.input_.weight",
    "blocks.0.feed_forward.output.weight": "self_attention_block.feed_forward.output.weight",
    "classifier.weight": "binary_linear.linear.weight",
}


@pytest.mark.parametrize(
    ("model", "fields"),
    [
        ("all_initializations/2", REPORT),
        ("all_initializations/5", REPORT),
        ("lower_magnitude_initializations/1", LOWER_MAGNITUDE),
    ],
)
def test_initial_weights_are_the_published_ones(model: str, fields: dict[str, Any]) -> None:
    published = asset("weights.json")[model]["initial"]
    parameters = initial_parameters(
        resolve(RunConfig(**fields)).network, int(model.rpartition("/")[2])
    )
    assert set(parameters) == set(PUBLISHED_NAMES)
    for name, value in parameters.items():
        assert torch.equal(value, torch.tensor(published[PUBLISHED_NAMES[name]])), name


def test_transformer_weights_are_drawn_as_by_pytorch() -> None:
    config = RunConfig(num_letters=7, hidden_size=6, num_attention_heads=3, feed_forward_size=5)
    with torch.random.fork_rng():
        torch.manual_seed(11)
        layers: list[nn.Embedding | nn.Linear] = [nn.Embedding(9, 6)]
        layers += [nn.Linear(6, 3, bias=False) for _ in range(3)]
        layers += [nn.Linear(3, 6, bias=False), nn.Linear(6, 5, bias=False)]
        layers += [nn.Linear(5, 6, bias=False), nn.Linear(6, 1, bias=False)]
    with torch.no_grad():
        layers[0].weight[1] = 0
    drawn = [
        v
        for name, v in initial_parameters(resolve(config).network, 11).items()
        if "norm" not in name
    ]
    for value, layer in zip(drawn, layers, strict=True):
        assert torch.equal(value, layer.weight)


def test_drawing_weights_leaves_the_global_random_state() -> None:
    before = torch.get_rng_state()
    initial_parameters(resolve(RunConfig(**LOWER_MAGNITUDE)).network, 0)
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("common", [{}, {"layer_norm": "nn"}, {"architecture": "lstm"}])
def test_differing_starts_names_what_changes_initial_values(
    common: dict[str, Any],
) -> None:
    first = configuration({"readout": "last", **common})
    changes: list[dict[str, Any]] = [
        *({"readout": "mean"}, {"no_attend_cls": True}, {"dropout_rate": 0.1}, {"biases": True}),
        *({"precision": "float64"}, {"activation": "relu"}, {"norm_placement": "post"}),
        *({"attention_mask": "causal"}, {"attention_scale": "log_length"}, {"hidden_size": 4}),
        {"attention_scale": "learned_log_length"},
        *({"positions": "sinusoidal"}, {"positions": "alibi"}, {"positions": "relative"}),
        *({"positions": "fire"}, {"positions": "learned", "test_max_length": 10}),
        *({"positions": "sinusoidal", "position_range": 500}, {"train_max_length": 12}),
        *({"num_letters": 4}, {"final_norm": True}, {"layer_norm": "nn"}, {"learning_rate": 0.1}),
        *({"attention_init_strategy": "output_fan_out"}, {"num_blocks": 2}),
    ]
    tried = 0
    for change in changes:
        # Not every network reads every setting.
        if obstacle_of({"readout": "last", **common, **change}) is not None:
            continue
        second = configuration({"readout": "last", **common, **change})
        own, other = (initial_parameters(resolve(config).network, 7) for config in (first, second))
        alike = own.keys() == other.keys() and all(
            torch.equal(value.float(), other[name].float()) for name, value in own.items()
        )
        assert (differing_starts(first, second) == []) == alike, change
        tried += 1
    assert tried > 4
    assert differing_starts(first, configuration({**common, "readout": "last", "train_seed": 1}))


def test_recurrent_weights_are_drawn_as_by_pytorch() -> None:
    config = NetworkConfig(
        architecture="lstm", hidden_size=6, num_blocks=2, readout="last", biases=True
    )
    with torch.random.fork_rng():
        torch.manual_seed(11)
        layers = [nn.Embedding(5, 6), nn.LSTM(6, 6, 2), nn.Linear(6, 1)]
    drawn = list(initial_parameters(config, 11).values())
    expected = [value.detach().clone() for layer in layers for value in layer.parameters()]
    expected[0][PAD] = 0
    for value, own in zip(drawn, expected, strict=True):
        assert torch.equal(value, own)


def test_optional_parameters_do_not_change_earlier_draws() -> None:
    plain = initial_parameters(NetworkConfig(embeddings_init_strategy="linear_like"), 3)
    more = NetworkConfig(
        embeddings_init_strategy="linear_like",
        biases=True,
        positions="learned",
        trained_length=9,
        norm_placement="post",
    )
    drawn = initial_parameters(more, 3)
    assert drawn["positions.table.weight"].shape == (10, 2)
    for name, value in plain.items():
        assert torch.equal(drawn[name], value), name


def test_mamba_step_sizes_lie_between_a_thousandth_and_a_tenth() -> None:
    values = initial_parameters(
        NetworkConfig(
            architecture="mamba", num_blocks=2, state_size=5, hidden_size=64, readout="last"
        ),
        0,
    )
    steps = nn.functional.softplus(values["blocks.0.mixer.step_size.bias"])
    assert 0.001 <= steps.min() < 0.003
    assert 0.05 < steps.max() <= 0.1
    rates = values["blocks.1.mixer.log_rate"].exp()
    assert rates[0].tolist() == pytest.approx([1, 2, 3, 4, 5])


GPT2 = NetworkConfig(
    num_letters=200, num_blocks=3, hidden_size=96, num_attention_heads=2, attention_head_size=48,
    feed_forward_size=384, layer_norm="nn", activation="gelu_tanh", final_norm=True, biases=True,
    positions="learned", attention_mask="causal", readout="last", trained_length=200,
    precision="float64", embeddings_init_strategy="gpt2",
)  # fmt: skip


def test_gpt2_weights_have_the_published_moments() -> None:
    drawn = initial_parameters(GPT2, 3)
    assert drawn["embedding.weight"][PAD].abs().max() == 0
    for name, value in drawn.items():
        if "norm" in name:
            assert (value == (1 if name.endswith("weight") else 0)).all(), name
        elif name.endswith("bias"):
            assert (value == 0).all(), name
        elif name != "classifier.weight":
            narrow = name.endswith("output.weight")
            deviation = 0.02 / math.sqrt(6) if narrow else 0.02
            values = value[value != 0]
            assert abs(values.std() / deviation - 1) < 5 / math.sqrt(2 * len(values)), name
            assert abs(values.mean() / deviation) < 5 / math.sqrt(len(values)), name
            kurtosis = (values / deviation).pow(4).mean()
            assert abs(kurtosis - 3) < 0.3, f"{name}: normal, and not uniform"
    assert 0.01 < drawn["classifier.weight"].std() < 0.03


def test_gpt2_output_weights_narrow_with_the_depth_of_their_side() -> None:
    config = GPT2.model_copy(update={"architecture": "encoder_decoder", "head": "output"})
    values = initial_parameters(config, 0)
    for side, depth in (("encoder", 6), ("decoder", 9)):
        for name, value in values.items():
            if name.startswith(side) and name.endswith("output.weight"):
                assert abs(value.std() * math.sqrt(depth) / 0.02 - 1) < 0.06, name
    assert abs(values["decoder.positions.table.weight"].std() / 0.02 - 1) < 0.1
    assert values["embedding.weight"][PAD].abs().max() == 0
    others = initial_parameters(config.model_copy(update={"positions": "none"}), 0)
    assert all(torch.equal(value, values[name]) for name, value in others.items())
