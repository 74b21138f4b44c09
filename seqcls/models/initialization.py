"""Initial values of all parameters, drawn in a fixed order from one seed."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from threading import Lock
from typing import Any

import torch
from torch import Tensor, nn

from seqcls.config import NetworkConfig
from seqcls.models import MODELS
from seqcls.models.base import Classifier
from seqcls.models.blocks import Attention, Block, Residual
from seqcls.models.layers import Embedding, Linear
from seqcls.models.mixing import Mixer
from seqcls.models.pictures import Convolution
from seqcls.models.positions.schemes import Positions
from seqcls.models.recurrent import Cell
from seqcls.strings.tokenizer import PAD

Draw = tuple[Callable[..., Any], Tensor]
"""A function that draws a parameter, and the parameter."""

GPT2_DEVIATION = 0.02
"""The standard deviation of GPT-2's initial weights (Radford et al. 2019)."""

_DEFAULT_GENERATOR = Lock()
"""Held while PyTorch draws from its global generator, which all threads share."""


def make_model(config: NetworkConfig) -> Classifier:
    """Makes a model of the configuration's architecture, its values still undefined."""
    model: Classifier = MODELS[config.architecture].load()(config)
    return model


def initial_parameters(config: NetworkConfig, model_seed: int) -> dict[str, Tensor]:
    """Draws the parameters of a model before training, by name.

    The draws equal those of PyTorch's layers after `torch.manual_seed(model_seed)`, made from a
    separate generator. They are made in float32 whatever the precision, so that a run in float64
    starts from the same model. Biases and parameters of positions are drawn last, so that the
    others do not depend on them.

    With `embeddings_init_strategy` `gpt2` every weight is drawn once, in the order of the layers,
    those of positions last; biases are 0.
    """
    generator = torch.Generator().manual_seed(model_seed)
    with _DEFAULT_GENERATOR, torch.random.fork_rng(devices=[]):
        # Parts from outside may be PyTorch's layers, which draw their values when they are made.
        torch.default_generator.manual_seed(model_seed)
        model = make_model(config)
    with torch.no_grad():
        for draw, weight in _draws(config, model):
            # PyTorch warns about draws of no number.
            if weight.numel():
                draw(weight, generator=generator)
        for module in model.children():
            if isinstance(module, Embedding) and len(module.weight) == config.vocabulary_size:
                # Cleared after the draw, as `nn.Embedding` does with its `padding_idx`.
                module.weight[PAD] = 0
    dtype = getattr(torch, config.precision)
    return {name: value.detach().to(dtype) for name, value in model.named_parameters()}


def load_parameters(model: nn.Module, values: Mapping[str, Tensor]) -> None:
    """Sets the parameters of a model by name; buffers are unchanged.

    Raises:
        ValueError: a parameter has no value, or a value no parameter.
        RuntimeError: a value has another shape.
    """
    if other := {name for name, _ in model.named_parameters()} ^ values.keys():
        raise ValueError(f"{min(other)!r}: expected a value for each parameter, and no other")
    # Not strict, since buffers have no values here; the names were compared above.
    model.load_state_dict(values, strict=False)


# As `nn.Linear` draws; with this `a` it is uniform within 1 / sqrt(inputs).
_linear = partial(nn.init.kaiming_uniform_, a=math.sqrt(5))
_fan_out = partial(_linear, mode="fan_out")


def _uniform(size: int) -> Callable[..., Any]:
    bound = 1 / math.sqrt(size) if size else 0.0
    return partial(nn.init.uniform_, a=-bound, b=bound)


def _zeros(weight: Tensor, **generator: Any) -> None:
    del generator
    nn.init.zeros_(weight)


def _draws(config: NetworkConfig, model: Classifier) -> Iterator[Draw]:
    places = [module for module in model.modules() if isinstance(module, Positions)]
    positions = {part for module in places for part in module.modules()}
    modules = [module for module in model.modules() if module not in positions]
    position_modules = [module for module in model.modules() if module in positions]
    if config.embeddings_init_strategy == "gpt2":
        yield from _gpt2_draws(config, [*modules, *position_modules])
        return
    for module in modules:
        yield from _default_draws(module)
    yield from _redraws(config, model)
    for module in modules:
        if isinstance(module, Linear) and module.bias is not None:
            yield _uniform(module.weight.shape[1]), module.bias
    for module in modules:
        if isinstance(module, Mixer):
            yield from module.draws()
    for module in position_modules:
        yield from _default_draws(module)
        if isinstance(module, Linear) and module.bias is not None:
            yield _uniform(module.weight.shape[1]), module.bias


def _gpt2_draws(config: NetworkConfig, modules: Sequence[nn.Module]) -> Iterator[Draw]:
    """Draws of Radford et al. (2019): layers that add to a residual stream are narrower with depth.

    Their deviation is divided by the root of the number of such layers: two for each block, three
    for a decoder's that attends to an encoder.
    """
    blocks = [module.adding() for module in modules if isinstance(module, Block)]
    depths: dict[nn.Module, int] = {
        layer: len(adding) * config.num_blocks for adding in blocks for layer in adding
    }
    for module in modules:
        # GPT-2 sees no pictures, so convolutions are drawn by default.
        if isinstance(module, Convolution):
            yield from _default_draws(module)
        if not isinstance(module, Embedding | Linear | Cell):
            continue
        deviation = GPT2_DEVIATION / math.sqrt(depths.get(module, 1))
        for value in module.parameters():
            yield _zeros if value.ndim == 1 else partial(nn.init.normal_, std=deviation), value


def _default_draws(module: nn.Module) -> Iterator[Draw]:
    if isinstance(module, Embedding):
        yield nn.init.normal_, module.weight
    elif isinstance(module, Linear):
        yield _linear, module.weight
    elif isinstance(module, Convolution):
        # He et al. (2015), for layers that a ReLU follows.
        yield partial(nn.init.kaiming_normal_, nonlinearity="relu"), module.weight
    elif isinstance(module, Cell):
        # PyTorch's recurrent layers draw all parameters from one distribution, in order.
        for value in module.parameters():
            yield _uniform(module.state_weight.shape[1]), value


def _redraws(config: NetworkConfig, model: Classifier) -> Iterator[Draw]:
    # A model from outside may have none, or one of another class.
    embedding = getattr(model, "embedding", None)
    if config.embeddings_init_strategy == "linear_like" and isinstance(embedding, Embedding):
        yield _linear, embedding.weight
    for block in model.modules():
        if not isinstance(block, Residual):
            continue
        attentions = [x.output for x in block.children() if isinstance(x, Attention)]
        for output in attentions if config.attention_init_strategy == "output_fan_out" else ():
            yield _fan_out, output.weight
        if config.feed_forward_init_strategy == "output_fan_out":
            yield _fan_out, block.feed_forward.output.weight
