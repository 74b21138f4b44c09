"""`torch.nn.TransformerEncoder`, with an embedding, positions and a linear head.

What its tensors do not say is given: heads, `norm_first`, the activation, the mask.
"""

import re
from typing import Any

import numpy as np

from seqcls.adapters.base import (
    ACTIVATION_ALIASES,
    TABLE,
    Adapter,
    Loaded,
    Settings,
    Tensors,
    Vocabulary,
    readout_of,
    short,
    transformer_fields,
)
from seqcls.adapters.recurrent import find_embedding, is_position, read_head
from seqcls.errors import ConfigError

_LAYER = re.compile(r"(.*?)layers\.0\.self_attn\.in_proj_weight")

MOST_PLACES = 10_000
"""Rows of a table of waves that is not in the file."""


def read(tensors: Tensors, settings: Settings, vocabulary: Vocabulary) -> Loaded:
    """Implements `Adapter.read`."""
    found = [x for x in map(_LAYER.fullmatch, tensors.names) if x]
    if len(found) != 1:
        raise ConfigError(
            "no tensor 'layers.0.self_attn.in_proj_weight', or two: expected one "
            "torch.nn.TransformerEncoder"
        )
    prefix = found[0][1]
    heads = settings.number("heads", "nhead", "num_heads", "n_head")
    _, hidden = tensors.matrix(found[0][0])
    if hidden % heads:
        raise ConfigError(f"heads={heads}: expected a divisor of the width, {hidden}")
    weights: dict[str, np.ndarray] = {}
    blocks, inner = 0, hidden
    while tensors.has(f"{prefix}layers.{blocks}.self_attn.in_proj_weight"):
        inner = _read_layer(
            tensors, f"{prefix}layers.{blocks}.", f"blocks.{blocks}.", hidden, weights
        )
        blocks += 1
    final_norm = tensors.has(f"{prefix}norm.weight")
    if final_norm:
        _read_norm(tensors, f"{prefix}norm", "final_norm", hidden, weights)
    readout = readout_of(settings, vocabulary, "first")
    name = find_embedding(tensors, settings, hidden)
    if name is None:
        raise ConfigError(f"no embedding: expected a matrix of {hidden} columns; name it")
    scale = settings.get("embedding_scale", "none", ("none", "sqrt"))
    tensors.read_as["embedding"] = name
    table = tensors.take(name, None, hidden)
    embedded = vocabulary.embedding(table, readout, name)
    if scale == "sqrt":
        embedded = embedded * np.sqrt(hidden).astype(embedded.dtype)
    weights["embedding.weight"] = embedded
    places = _read_places(tensors, settings, hidden, table.dtype)
    if places is not None:
        weights[TABLE] = places
    weights |= read_head(tensors, settings, vocabulary, readout, table, hidden)
    is_causal = vocabulary.at_places or tensors.causal_mask
    mask = settings.get("mask", "causal" if is_causal else "full", ("full", "causal"))
    if tensors.causal_mask and mask == "causal":
        tensors.read_as["mask"] = tensors.causal_mask
    settings.check_sizes(num_layers=blocks, d_model=hidden, dim_feedforward=inner)
    fields: dict[str, Any] = {
        **transformer_fields(blocks, hidden, heads, inner),
        "layer_norm_eps": settings.epsilon("layer_norm_eps"),
        "norm_placement": "pre" if settings.get("norm_first", False, (True, False)) else "post",
        "final_norm": final_norm,
        "activation": settings.get("activation", "relu", ("relu", "gelu"), *ACTIVATION_ALIASES),
        "attention_mask": mask,
        "positions": "none" if places is None else "learned",
        "readout": readout,
    }
    return Loaded(fields, weights)


def _read_layer(
    tensors: Tensors, theirs: str, ours: str, hidden: int, weights: dict[str, np.ndarray]
) -> int:
    """Reads one layer; returns the units of its feed-forward."""
    inner, _ = tensors.matrix(f"{theirs}linear1.weight")
    # PyTorch leaves out those of norms, too.
    has_biases = tensors.has(f"{theirs}self_attn.in_proj_bias")
    joint = tensors.take(f"{theirs}self_attn.in_proj_weight", 3 * hidden, hidden)
    biases = tensors.take_bias(f"{theirs}self_attn.in_proj_bias", joint, expected=has_biases)
    for part, rows, bias in zip(
        ("query", "key", "value"), np.split(joint, 3), np.split(biases, 3), strict=True
    ):
        weights[f"{ours}attention.{part}.weight"] = rows.copy()
        weights[f"{ours}attention.{part}.bias"] = bias.copy()
    for layer, part, shape in (
        ("self_attn.out_proj", "attention.output", (hidden, hidden)),
        ("linear1", "feed_forward.input", (inner, hidden)),
        ("linear2", "feed_forward.output", (hidden, inner)),
    ):
        matrix = tensors.take(f"{theirs}{layer}.weight", *shape)
        weights[f"{ours}{part}.weight"] = matrix
        bias = tensors.take_bias(f"{theirs}{layer}.bias", matrix, expected=has_biases)
        weights[f"{ours}{part}.bias"] = bias
    for norm, part in (("norm1", "attention_norm"), ("norm2", "feed_forward_norm")):
        of_norm = f"{theirs}{norm}", f"{ours}{part}", hidden, weights
        _read_norm(tensors, *of_norm, has_bias=has_biases)
    return inner


def _read_norm(
    tensors: Tensors,
    theirs: str,
    ours: str,
    hidden: int,
    weights: dict[str, np.ndarray],
    *,
    has_bias: bool | None = None,
) -> None:
    weights[f"{ours}.weight"] = weight = tensors.take(f"{theirs}.weight", hidden)
    bias = tensors.take_bias(f"{theirs}.bias", weight[:, None], expected=has_bias)
    weights[f"{ours}.bias"] = bias


def _read_places(
    tensors: Tensors, settings: Settings, hidden: int, dtype: Any
) -> np.ndarray | None:
    """The table of positions, a row a place; None where the model knows none.

    A table may stand in a tensor of a name with `pos`, or `pe`; with `positions=sinusoidal` it is
    that of PyTorch's tutorial, sines and cosines in turn.
    """
    names = [x for x in tensors.names if is_position(x)]
    # Where there is one nothing is assumed, and where there is none, the reading says so.
    said = settings.get("positions", "table", ("table", "sinusoidal"))
    table = None
    if names:
        table = tensors.take(names[0], *[None] * len(tensors.shape(names[0])))
        rows = max(table.shape[:-1], default=0)
        if table.shape[-1:] != (hidden,) or table.size != rows * hidden:
            raise ConfigError(
                f"tensor {short(names[0])} has the shape {table.shape}, expected (any, {hidden})"
            )
        table = table.reshape(rows, hidden)
        tensors.read_as["positions"] = names[0]
    if said == "sinusoidal":
        places = np.arange(MOST_PLACES if table is None else len(table))
        angles = places[:, None] * 10_000 ** (-np.arange(0, hidden, 2) / hidden)
        waves = np.stack([np.sin(angles), np.cos(angles)], axis=2).reshape(len(places), -1)
        waves = waves[:, :hidden].astype(dtype)
        if table is not None and not np.allclose(table, waves, atol=1e-3):
            raise ConfigError(
                f"tensor {short(names[0])} has other numbers than positions='sinusoidal'; leave "
                "it out to read the table"
            )
        table = waves if table is None else table
    return table


ENCODER = Adapter(
    "self_attn.in_proj_weight",
    (
        *("heads", "norm_first", "activation", "layer_norm_eps", "mask", "readout"),
        *("positions", "position_offset", "embedding_scale", "embedding", "head"),
    ),
    read,
    ("encoder", "transformer", "transformer_encoder"),
)
