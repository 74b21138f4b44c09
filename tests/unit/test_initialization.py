"""Initial values: the published ones, and those of PyTorch's own layers."""

from typing import Any

import pytest
import torch
from torch import nn

from seqcls.config import RunConfig
from seqcls.models.initialization import initial_parameters
from seqcls.problem import configuration, differing_starts, obstacle_of, resolve
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
def test_the_published_initial_weights_are_drawn(model: str, fields: dict[str, Any]) -> None:
    published = asset("weights.json")[model]["initial"]
    parameters = initial_parameters(
        resolve(RunConfig(**fields)).network, int(model.rpartition("/")[2])
    )
    assert set(parameters) == set(PUBLISHED_NAMES)
    for name, value in parameters.items():
        assert torch.equal(value, torch.tensor(published[PUBLISHED_NAMES[name]])), name


def test_the_draws_are_those_of_pytorchs_own_layers() -> None:
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


def test_norms_start_as_the_identity_and_pad_at_the_origin() -> None:
    parameters = initial_parameters(resolve(RunConfig(layer_norm="nn")).network, 0)
    assert parameters["blocks.0.attention_norm.weight"].tolist() == [1, 1]
    assert parameters["blocks.0.attention_norm.bias"].tolist() == [0, 0]
    assert parameters["embedding.weight"][1].tolist() == [0, 0]


def test_double_precision_starts_from_the_same_values() -> None:
    single = initial_parameters(resolve(RunConfig()).network, 3)
    double = initial_parameters(resolve(RunConfig(precision="float64")).network, 3)
    for name, value in double.items():
        assert value.dtype == torch.float64
        assert torch.equal(value.float(), single[name])


def test_the_global_random_state_is_left_alone() -> None:
    before = torch.get_rng_state()
    initial_parameters(resolve(RunConfig(**LOWER_MAGNITUDE)).network, 0)
    assert torch.equal(before, torch.get_rng_state())


def test_no_heads_and_no_feed_forward_are_layers_without_values() -> None:
    config = RunConfig(num_attention_heads=0, feed_forward_size=0)
    sizes = {
        name: value.numel()
        for name, value in initial_parameters(resolve(config).network, 0).items()
    }
    assert sizes["blocks.0.attention.query.weight"] == 0
    assert sizes["blocks.0.feed_forward.output.weight"] == 0
    assert sizes["embedding.weight"] == 10


@pytest.mark.parametrize("common", [{}, {"layer_norm": "nn"}, {"architecture": "lstm"}])
def test_seeds_are_pairs_where_a_seed_gives_both_the_same_initial_values(
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
        own, other = (initial_parameters(resolve(each).network, 7) for each in (first, second))
        alike = own.keys() == other.keys() and all(
            torch.equal(value.float(), other[name].float()) for name, value in own.items()
        )
        assert (differing_starts(first, second) == []) == alike, change
        tried += 1
    assert tried > 4
    assert differing_starts(first, configuration({**common, "readout": "last", "train_seed": 1}))
