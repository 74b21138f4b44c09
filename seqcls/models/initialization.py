"""Initial values of all parameters, drawn in a fixed order from one seed."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from seqcls.config import NetworkConfig, RunConfig
from seqcls.data import network_of
from seqcls.models.transformer import Transformer
from seqcls.results import Weights
from seqcls.tokenizer import PAD


def initial_parameters(config: NetworkConfig, model_seed: int) -> dict[str, Tensor]:
    """The parameters of a model before training, by name.

    The draws are those of PyTorch's own layers after `torch.manual_seed(model_seed)`, made from a
    generator of their own. They are made in float32 whatever the precision, so that a run in
    float64 starts from the same model.
    """
    generator = torch.Generator().manual_seed(model_seed)
    model = Transformer(config)
    with torch.no_grad():
        for draw, weight in [*_default_draws(model), *_redraws(config, model)]:
            if weight.numel():
                draw(weight, generator=generator)
        model.embedding.weight[PAD] = 0
    dtype = getattr(torch, config.precision)
    return {name: value.detach().to(dtype) for name, value in model.named_parameters()}


def draw_initial(members: Sequence[tuple[RunConfig, int]]) -> list[Weights]:
    """The initial parameters of (configuration, model seed) pairs."""
    return [
        {
            name: value.numpy()
            for name, value in initial_parameters(network_of(config), seed).items()
        }
        for config, seed in members
    ]


def _linear(weight: Tensor, mode: Any = "fan_in", **generator: Any) -> None:
    nn.init.kaiming_uniform_(weight, a=math.sqrt(5), mode=mode, **generator)


def _fan_out(weight: Tensor, **generator: Any) -> None:
    _linear(weight, "fan_out", **generator)


def _default_draws(model: Transformer) -> Iterator[tuple[Callable[..., Any], Tensor]]:
    yield nn.init.normal_, model.embedding.weight
    for block in model.blocks:
        attention, feed_forward = block.attention, block.feed_forward
        for linear in (attention.query, attention.key, attention.value, attention.output):
            yield _linear, linear.weight
        for linear in (feed_forward.input, feed_forward.output):
            yield _linear, linear.weight
    yield _linear, model.classifier.weight


def _redraws(
    config: NetworkConfig, model: Transformer
) -> Iterator[tuple[Callable[..., Any], Tensor]]:
    if config.embeddings_init_strategy == "linear_like":
        yield _linear, model.embedding.weight
    for block in model.blocks:
        if config.attention_init_strategy == "output_fan_out":
            yield _fan_out, block.attention.output.weight
        if config.feed_forward_init_strategy == "output_fan_out":
            yield _fan_out, block.feed_forward.output.weight
