"""Writing of a network of ours in a foreign format, by the table that also reads it."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from seqcls.adapters.formats import CELLS, FORMATS, GPT2, OWN, RECURRENT, TABLE, Format, Row
from seqcls.adapters.taking import mismatch
from seqcls.config import NetworkConfig
from seqcls.errors import ConfigError, Parameter
from seqcls.models import MODELS
from seqcls.models.positions import POSITIONS
from seqcls.results import Weights

WRITTEN = tuple(name for name in FORMATS if name != OWN)
"""The formats in which models are written, beside ours."""

_FREE = {
    "num_blocks", "attention_head_size", "feed_forward_size", "biases", "final_norm",
    "position_draw", "attention_init_strategy", "feed_forward_init_strategy",
}  # fmt: skip
"""Settings that the tensors determine, or that no output depends on. Missing biases are written as
zeros."""


def write(name: str, network: NetworkConfig, weights: Weights) -> tuple[Weights, dict[str, Any]]:
    """Writes the tensors and the `config.json` of a network of ours in a format of `WRITTEN`.

    Raises:
        ConfigError: there is no such format, or no such network in it; the setting is named.
    """
    if name not in WRITTEN:
        raise ConfigError(Parameter("form", name), f": expected torch, {' or '.join(WRITTEN)}")
    form = FORMATS[name]
    settings = _settings_of(form, network)
    tensors = {theirs: weights[ours] for ours, theirs in form.tables.items() if ours in weights}
    for row in form.blocks:
        for block in range(network.num_blocks):
            tensors |= _write_row(row, form.prefix, block, weights)
    if form.final and network.final_norm:
        tensors |= _write_row(form.final, form.prefix, 0, weights)
    if form is GPT2:
        _write_gpt2_head(network, weights, tensors)
        settings["tie_word_embeddings"] = network.tied_embeddings
    sizes = {
        "blocks": network.num_blocks,
        "hidden": network.hidden_size,
        "inputs": network.hidden_size,
        "inner": network.feed_forward_size,
        "places": len(weights.get(TABLE, ())),
        "tokens": network.vocabulary_size,
    }
    model_type = network.architecture if form is RECURRENT else form.model_types[0]
    size_settings = {theirs: sizes[ours] for theirs, ours in form.sizes.items()}
    return tensors, {"model_type": model_type, **size_settings, **settings}


def _settings_of(form: Format, network: NetworkConfig) -> dict[str, Any]:
    """Makes the settings of `config.json` beside sizes.

    Raises:
        ConfigError: the network has a setting that no model of the format has.
    """
    architectures = tuple(CELLS.values()) if form is RECURRENT else ("transformer",)
    among: dict[str, Any] = {"architecture": architectures, "positions": ("none", "learned")}
    among |= {name: (value,) for name, value in form.fields.items()}
    settings: dict[str, Any] = {}
    for theirs, about in form.settings.items():
        # A setting without a field is for reading alone, and answers at places have no readout.
        if not about.field or (about.field == "readout" and network.head != "string"):
            continue
        value = getattr(network, about.field)
        if isinstance(about.values, Mapping) and about.values:
            # A model of Hugging Face has no mean of its tokens.
            ours = [x for x in about.values.values() if (form, x) != (GPT2, "mean")]
            among[about.field] = ours
            # The usual name of a value is the first in its table.
            value = next((x for x, y in about.values.items() if y == value and y in ours), None)
        elif (expected := mismatch(about, value)) is not None:
            raise ConfigError(f"{about.field}={value!r}: {form.name} has {expected}")
        settings[theirs] = value
    reads = MODELS[network.architecture].reads | POSITIONS[network.positions].reads
    usual, known = NetworkConfig(), {form.settings[x].field for x in settings}
    # Settings that the network reads and the format cannot express must have their defaults.
    for name in sorted({*among, *(reads - _FREE)}):
        value = getattr(network, name)
        expected = among.get(name, (value if name in known else getattr(usual, name),))
        if value not in expected:
            raise ConfigError(
                f"{name}={value!r}: {form.name} has {name}={' or '.join(map(repr, expected))}"
            )
    heads, size = network.num_attention_heads, network.attention_head_size
    if form is not RECURRENT and (
        heads * size != network.hidden_size or not network.feed_forward_size
    ):
        raise ConfigError(
            f"attention_head_size={size}: {form.name} of width {network.hidden_size} has heads "
            "that make up its width, and a feed-forward"
        )
    return settings


def _write_row(row: Row, prefix: str, block: int, weights: Weights) -> Weights:
    """Writes the tensors of one layer."""
    theirs = f"{prefix}{row.theirs.format(block)}"
    ours = [name.format(block) for name in row.ours]
    parts = [weights[name.replace("*", "weight")] for name in ours]
    biases = [
        weights.get(name.replace("*", "bias"), np.zeros_like(part, shape=len(part)))
        for name, part in zip(ours, parts, strict=True)
    ]
    matrix = np.concatenate(parts)
    return {
        theirs.replace("*", "weight"): np.ascontiguousarray(matrix.T) if row.transposed else matrix,
        theirs.replace("*", "bias"): np.concatenate(biases),
    }


def _write_gpt2_head(network: NetworkConfig, weights: Weights, tensors: Weights) -> None:
    """Makes a language's logit the `score` of its second class; that of the first one is 0."""
    if np.any(weights.get("classifier.bias", 0)):
        raise ConfigError("the head has a bias: that of a GPT-2 has none")
    if network.head == "string":
        of_second = tensors.pop("lm_head.weight")
        tensors["score.weight"] = np.concatenate([np.zeros_like(of_second), of_second])
