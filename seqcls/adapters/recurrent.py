"""`torch.nn.RNN`, `GRU` and `LSTM`: `weight_ih_l0` and so on, an embedding, and a linear head.

Without an embedding tokens are read as one-hot vectors.
"""

import re
from typing import Any

import numpy as np

from seqcls.adapters.base import (
    ACTIVATION_ALIASES,
    Adapter,
    Loaded,
    Settings,
    Tensors,
    Vocabulary,
    readout_of,
    short,
)
from seqcls.errors import ConfigError

_LAYER = re.compile(r"(?:.*\.)?weight_ih_l0")
_HEAD = re.compile(r"(head|fc|out|linear|classif|decoder|proj|logit|dense)\w*\.weight$")
"""In names of matrices that are no embedding where they stand alone."""

_CELLS = {1: "rnn", 3: "gru", 4: "lstm"}
"""Architectures by their gates, which stand in PyTorch's order in ours, too."""


def read(tensors: Tensors, settings: Settings, vocabulary: Vocabulary) -> Loaded:
    """Implements `Adapter.read`."""
    first = [name for name in tensors.names if _LAYER.fullmatch(name)]
    if len(first) != 1:
        said = "no tensor 'weight_ih_l0'" if not first else f"two networks, {', '.join(first):.60}"
        raise ConfigError(f"{said}: expected one torch.nn.RNN, GRU or LSTM")
    prefix = first[0].removesuffix("weight_ih_l0")
    if other := [x for x in tensors.names if x.endswith("_reverse") or ".weight_hr_" in f".{x}"]:
        raise ConfigError(
            f"tensor {short(other[0])}: expected a network that reads forward, without projection"
        )
    _, hidden = tensors.matrix(f"{prefix}weight_hh_l0")
    rows, inputs = tensors.matrix(first[0])
    if hidden == 0 or rows % hidden or rows // hidden not in _CELLS:
        raise ConfigError(
            f"tensor {short(first[0])} has {rows} rows and {hidden} units: expected 1 gate (RNN), "
            "3 (GRU) or 4 (LSTM)"
        )
    aliases = ("activation", *ACTIVATION_ALIASES) if rows == hidden else ()
    settings.get("nonlinearity", "tanh", ("tanh",), *aliases)
    if rows != hidden:
        # Gates have none to choose.
        del settings.found["nonlinearity"]
    weights: dict[str, np.ndarray] = {}
    layers, biases = 0, tensors.has(f"{prefix}bias_ih_l0")
    while tensors.has(f"{prefix}weight_ih_l{layers}"):
        ours, reads = f"layers.{layers}.", hidden if layers else inputs
        for part, name, columns in (("input", "ih", reads), ("state", "hh", hidden)):
            matrix = tensors.take(f"{prefix}weight_{name}_l{layers}", rows, columns)
            weights[f"{ours}{part}_weight"] = matrix
            bias = tensors.take_bias(f"{prefix}bias_{name}_l{layers}", matrix, expected=biases)
            weights[f"{ours}{part}_bias"] = bias
        layers += 1
    readout = readout_of(settings, vocabulary, "last_letter")
    named = find_embedding(tensors, settings, inputs)
    tensors.read_as["embedding"] = named or "none: tokens are one-hot"
    if named is None:
        table = np.eye(inputs, dtype=weights["layers.0.input_weight"].dtype)
    else:
        table = tensors.take(named, None, inputs)
    embedded = vocabulary.embedding(table, readout, named or first[0])
    table_and_weight = _of_width(embedded, weights["layers.0.input_weight"], hidden)
    weights["embedding.weight"], weights["layers.0.input_weight"] = table_and_weight
    weights |= read_head(tensors, settings, vocabulary, readout, table, hidden)
    settings.check_sizes(num_layers=layers, hidden_size=hidden, input_size=inputs)
    fields: dict[str, Any] = {
        "architecture": _CELLS[rows // hidden],
        "num_blocks": layers,
        "hidden_size": hidden,
        "biases": True,
        "readout": readout,
    }
    return Loaded(fields, weights)


def _of_width(
    embedded: np.ndarray, weight: np.ndarray, hidden: int
) -> tuple[np.ndarray, np.ndarray]:
    """Embeddings as wide as the hidden state, and the first layer's weight, with equal products.

    Narrower ones are padded with zeros. Of wider ones the products are what the layer has, where
    there are no more tokens than hidden numbers.
    """
    tokens, inputs = embedded.shape
    if inputs > hidden:
        if tokens > hidden:
            raise ConfigError(
                f"embeddings of {inputs} numbers of {tokens} tokens before {hidden} units: "
                f"expected at most {hidden} numbers, or tokens"
            )
        products = weight.astype(np.float64) @ embedded.T.astype(np.float64)
        weight, embedded = products.astype(weight.dtype), np.eye(tokens, dtype=weight.dtype)
    missing = hidden - embedded.shape[1]
    return np.pad(embedded, ((0, 0), (0, missing))), np.pad(weight, ((0, 0), (0, missing)))


def find_embedding(tensors: Tensors, settings: Settings, width: int) -> str | None:
    """The name of the embedding among what is left; None where there is none."""
    named = settings.get("embedding", None)
    if named is not None:
        return str(named) if tensors.has(str(named)) else f"{named}.weight"
    matrices = [
        name
        for name in _matrices(tensors)
        if tensors.shape(name)[1] == width
        and not tensors.has(f"{name.removesuffix('weight')}bias")
        and not is_position(name)
    ]
    called = [name for name in matrices if re.search("emb|tok|wte", name)]
    if len(called) > 1:
        raise ConfigError(
            f"tensors {', '.join(called):.60} may each be the embedding: say which it is, as "
            f"embedding={called[-1].removesuffix('.weight')}"
        )
    head = settings.get("head", None)
    others = [x for x in matrices if not _HEAD.search(x) and x not in (head, f"{head}.weight")]
    return next(iter(called or (others if len(others) == 1 else [])), None)


def read_head(
    tensors: Tensors,
    settings: Settings,
    vocabulary: Vocabulary,
    readout: str,
    table: np.ndarray,
    hidden: int,
) -> dict[str, np.ndarray]:
    """The head among what is left: the one matrix that reads the state, or the embeddings."""
    named = settings.get("head", None)
    names = [x for x in _matrices(tensors) if tensors.shape(x)[1] == hidden and not is_position(x)]
    if named is not None:
        names = [str(named) if tensors.has(str(named)) else f"{named}.weight"]
    if len(names) > 1:
        raise ConfigError(
            f"tensors {', '.join(names):.60} may each be the head: expected one linear layer; say "
            f"which it is, as head={names[-1].removesuffix('.weight')}"
        )
    if not names and not (vocabulary.of_tokens and table.shape[1] == hidden):
        raise ConfigError(f"no linear head: expected a matrix with {hidden} columns")
    weight, bias = table, None
    tensors.read_as["head"] = names[0] if names else "the embeddings"
    if names:
        weight = tensors.take(names[0], None, hidden)
        bias = tensors.take_bias(f"{names[0].removesuffix('weight')}bias", weight)
    read = vocabulary.head(weight, bias, readout, names[0] if names else "embedding")
    return {"classifier.weight": read[0], "classifier.bias": read[1]}


def _matrices(tensors: Tensors) -> list[str]:
    """Names of matrices that layers have."""
    return [x for x in tensors.names if x.endswith("weight") and len(tensors.shape(x)) == 2]


def is_position(name: str) -> bool:
    """Whether a tensor is called as tables of positions are."""
    return "pos" in name.lower() or re.search(r"(^|\.)w?pe($|\.)", name) is not None


RECURRENT = Adapter(
    "weight_ih_l0",
    ("readout", "embedding", "head", "nonlinearity"),
    read,
    ("rnn", "gru", "lstm"),
)
