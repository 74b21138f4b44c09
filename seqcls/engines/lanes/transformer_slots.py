"""Where parameters of Transformers and blocks of memories stand for compiled code, by name."""

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from jaxtyping import Int64

from seqcls.config import NetworkConfig
from seqcls.engines.lanes.packing import Slots, head_rows, output_rows
from seqcls.engines.lanes.transformer_sizes import (
    LEARNED,
    WINDOW,
    TransformerParameters,
    TransformerSizes,
    mixers_of,
    parameters_of,
    rank_of,
    sizes_of,
    table_shape,
)

Slot = tuple[str, Int64[np.ndarray, "..."]]


def rows_of(
    start: int,
    rows: Int64[np.ndarray, " row"],
    columns: Int64[np.ndarray, " column"],
    width: int,
) -> Int64[np.ndarray, "row column"]:
    """The places of some columns of some rows of a matrix."""
    return np.asarray(start + np.add.outer(rows * width, columns))


def heads_of(s: TransformerSizes) -> Int64[np.ndarray, " number"]:
    """The rows of all heads' numbers, one head after another."""
    return np.add.outer(np.arange(s.heads) * s.head_width, np.arange(s.head_size)).reshape(-1)


@lru_cache(maxsize=64)
def slots_of(config: NetworkConfig) -> Slots:
    """The places of the values of each parameter, by its name."""
    return dict(_slots(config, sizes_of(config), parameters_of(config)))


def _slots(config: NetworkConfig, s: TransformerSizes, p: TransformerParameters) -> Iterator[Slot]:
    hidden, inner = np.arange(s.hidden), np.arange(config.feed_forward_size)
    heads = heads_of(s)
    alone = config.architecture == "transformer"
    yield "embedding.weight", rows_of(p.embedding, head_rows(config), hidden, s.width)
    for number, letter in enumerate(mixers_of(config)):
        block, moved = f"blocks.{number}.", number * p.block_size
        attends = letter == "a"
        mixer = "mixer" + ".attention" * attends if not alone else "attention"
        norms = (
            ("attention_norm" if alone else "mixer_norm", p.attention_norm, p.attention_norm_bias),
            ("feed_forward_norm", p.feed_forward_norm, p.feed_forward_norm_bias),
        )
        for name, weight, bias in norms:
            if config.has_norms:
                yield f"{block}{name}.weight", moved + weight + hidden
            if config.has_norms and config.layer_norm == "nn":
                yield f"{block}{name}.bias", moved + bias + hidden
        channels = np.arange(config.expand * config.hidden_size)
        layers = [
            (f"{mixer}.{name}", p.query_key_value, heads + part * s.joined, hidden, s.width,
             p.query_key_value_bias)
            for part, name in enumerate(("query", "key", "value") if letter != "m" else ())
        ] + [
            (f"{mixer}.output", p.output, hidden, channels if letter == "m" else heads,
             s.channels if letter == "m" else s.joined, p.output_bias),
            ("feed_forward.input", p.inner, inner, hidden, s.width, p.inner_bias),
            ("feed_forward.output", p.outer, hidden, inner, s.inner, p.outer_bias),
        ]  # fmt: skip
        for name, weight, rows, columns, width, bias in layers:
            yield f"{block}{name}.weight", rows_of(moved + weight, rows, columns, width)
            if config.biases and (attends or not name.startswith(mixer)):
                yield f"{block}{name}.bias", moved + bias + rows
        if attends:
            continue
        if letter == "m":
            yield from _selective_slots(f"{block}{mixer}.", moved, config, s, p)
            continue
        yield from _delta_slots(f"{block}{mixer}.", moved, letter == "g", s, p)
    if s.final_norm:
        yield "final_norm.weight", p.final_norm + hidden
    if s.final_norm and config.layer_norm == "nn":
        yield "final_norm.bias", p.final_norm_bias + hidden
    if not s.tied:
        outputs = output_rows(config)
        yield "classifier.weight", rows_of(p.classifier, outputs, hidden, s.width)
    if config.biases and not s.tied:
        yield "classifier.bias", p.classifier_bias + outputs
    rows, columns = table_shape(config)
    if rows:
        width = s.width if s.scheme == LEARNED else columns
        yield "positions.table.weight", rows_of(p.table, np.arange(rows), np.arange(columns), width)


def _delta_slots(
    inside: str, moved: int, fades: bool, s: TransformerSizes, p: TransformerParameters
) -> Iterator[Slot]:
    """The places of DeltaNet's parameters but its queries', keys', values' and output's."""
    gates, heads, hidden = np.arange(s.heads), heads_of(s), np.arange(s.hidden)
    yield f"{inside}strength.weight", rows_of(moved + p.strength, gates, hidden, s.width)
    if s.convolved:
        channels = np.concatenate([heads + part * s.joined for part in range(3)])
        window = np.arange(WINDOW)
        yield (
            f"{inside}convolution.weight",
            rows_of(moved + p.convolution, channels, window, WINDOW),
        )
    yield f"{inside}norm.weight", moved + p.head_norm + np.arange(s.head_size)
    if fades:
        yield f"{inside}fading.weight", rows_of(moved + p.fading, gates, hidden, s.width)
        yield f"{inside}log_rate", moved + p.log_rate + gates
        yield f"{inside}offset", moved + p.fading_offset + gates
        yield f"{inside}gate.weight", rows_of(moved + p.gate, heads, hidden, s.width)


def _selective_slots(
    inside: str,
    moved: int,
    config: NetworkConfig,
    s: TransformerSizes,
    p: TransformerParameters,
) -> Iterator[Slot]:
    """The places of Mamba's parameters but its output's."""
    hidden, channels = np.arange(s.hidden), np.arange(config.expand * config.hidden_size)
    numbers, ranks = np.arange(config.state_size), np.arange(rank_of(config))
    window = np.arange(WINDOW)
    both = np.concatenate([channels, s.channels + channels])
    selected = np.concatenate([ranks, s.ranks + numbers, s.ranks + s.numbers + numbers])
    matrices = (
        ("input.weight", p.channels, both, hidden, s.width),
        ("convolution.weight", p.channels_convolution, channels, window, WINDOW),
        ("selection.weight", p.selection, selected, channels, s.channels),
        ("step_size.weight", p.step_size, channels, ranks, s.ranks),
        ("log_rate", p.log_rates, channels, numbers, s.numbers),
    )
    for name, start, rows, columns, width in matrices:
        yield f"{inside}{name}", rows_of(moved + start, rows, columns, width)
    yield f"{inside}convolution.bias", moved + p.channels_convolution_bias + channels
    yield f"{inside}step_size.bias", moved + p.step_size_bias + channels
    yield f"{inside}skip", moved + p.skip + channels
