"""Small networks of every kind, by name, and untrained models of them.

A test names a network, or runs through all that support what it tests.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import torch
from hypothesis import assume
from hypothesis import strategies as st
from torch import Tensor

from seqcls.config import COUPLED, NetworkConfig
from seqcls.engines.member import draw_initial
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.models import MODELS
from seqcls.models.base import Classifier
from seqcls.models.initialization import initial_parameters, make_model
from seqcls.models.positions import POSITIONS
from seqcls.problem import Problem, configuration, obstacle_of, resolve
from seqcls.results import Weights

HEADS: dict[str, Any] = {"num_attention_heads": 2, "attention_head_size": 4, "feed_forward_size": 6}
ORDERED: dict[str, Any] = {**HEADS, "num_blocks": 2, "readout": "last"}

NETWORKS: dict[str, dict[str, Any]] = {
    "report": {},
    "mean": {"readout": "mean", "attention_scale": "log_length"},
    "two blocks": {
        **ORDERED, "positions": "sinusoidal", "attention_mask": "causal", "norm_placement": "post",
    },
    "sinusoidal": {**ORDERED, "positions": "sinusoidal"},
    "learned": {**ORDERED, "positions": "learned", "activation": "relu"},
    "randomized": {**HEADS, "positions": "learned", "position_range": 100},
    "shifted": {**ORDERED, "positions": "learned", "position_draw": "shifted"},
    "rotary": {**ORDERED, "positions": "rotary"},
    "alibi": {
        **ORDERED, "num_blocks": 3, "positions": "alibi", "norm_placement": "post", "biases": True,
        "attention_scale": "log_length",
    },
    "relative": {
        **HEADS, "positions": "relative", "no_attend_cls": True, "readout": "last",
        "attention_scale": "learned_log_length",
    },
    "fire": {**ORDERED, "positions": "fire"},
    "coupled": {**ORDERED, "positions": "coupled"},
    "coupled_marks": {**ORDERED, "positions": "coupled_marks"},
    "gpt2": {
        **ORDERED, "positions": "learned", "position_draw": "shifted", "final_norm": True,
        "tied_embeddings": True, "embeddings_init_strategy": "gpt2", "activation": "gelu_tanh",
        "layer_norm": "nn", "biases": True, "attention_mask": "causal",
    },
    "encoder_decoder": {
        **HEADS, "architecture": "encoder_decoder", "num_blocks": 2, "positions": "learned",
        "biases": True,
    },
    "recurrent_attention": {"architecture": "recurrent_attention", "num_blocks": 2},
    "rnn": {"architecture": "rnn", "readout": "last"},
    "gru": {"architecture": "gru", "biases": True, "num_blocks": 2, "readout": "last"},
    "lstm": {"architecture": "lstm", "biases": True, "readout": "last"},
    "deltanet": {
        **HEADS, "architecture": "deltanet", "biases": True, "eigenvalue_range": "signed",
        "readout": "last",
    },
    "gated_deltanet": {**ORDERED, "architecture": "gated_deltanet"},
    "deltaproduct": {
        **HEADS, "architecture": "deltaproduct", "householder_steps": 3, "readout": "last",
    },
    "mamba": {"architecture": "mamba", "state_size": 4, "final_norm": True, "readout": "last"},
    "slstm": {
        **HEADS, "architecture": "slstm", "biases": True, "final_norm": True, "readout": "last",
    },
    "linear_attention": {**ORDERED, "architecture": "linear_attention", "readout": "mean"},
    "hybrid": {
        **HEADS, "architecture": "hybrid", "layers": "ga", "positions": "rotary",
        "readout": "last",
    },
}  # fmt: skip

ONLY_WRITE = {"coupled", "coupled_marks", "encoder_decoder", "recurrent_attention"}
"""Networks that read an input and write an output, and judge no string."""

COUNT = {"report", "mean", "randomized"}
"""Networks without an order of tokens, or whose positions are drawn: they write nothing here."""

JUDGES = tuple(name for name in NETWORKS if name not in ONLY_WRITE)
WRITERS = tuple(name for name in NETWORKS if name not in COUNT)

TINY: dict[str, Any] = {
    "hidden_size": 8, "precision": "float64", "train_size": 64, "validation_size": 64,
    "test_size": 100, "train_max_length": 6, "validation_max_length": 6, "test_max_length": 9,
    "max_num_epochs": 2,
}  # fmt: skip
JUDGED: dict[str, Any] = {"task": "even_pairs"}
WRITTEN: dict[str, Any] = {"task": "copy", "num_tokens": 3}
ANSWERED: dict[str, Any] = {
    "task": "regular", "alphabet": "ab", "pattern": "(ab|b)*", "answers": "next_symbols",
}  # fmt: skip
"""The task of networks that answer at every position."""

ANSWERERS = tuple(name for name in WRITERS if name in JUDGES)


def fields(
    name: str, *, writes: bool = False, answers: bool = False, **more: Any
) -> dict[str, Any]:
    """The fields of a small configuration of a network, which judges strings, writes outputs or
    answers at every place.
    """
    own = dict(NETWORKS[name])
    # What is read at every token has one readout and reads what came before; an embedding is tied
    # to what has a row for each token.
    unread = ("readout", "attention_mask") if writes or answers else ("tied_embeddings",)
    for field in unread:
        own.pop(field, None)
    required = WRITTEN if writes else ANSWERED if answers else JUDGED
    return {**TINY, **required, **own, **more}


def problem(name: str, *, writes: bool = False, answers: bool = False, **more: Any) -> Problem:
    """A problem of a network: its sizes, data and kind of answer."""
    return resolve(configuration(fields(name, writes=writes, answers=answers, **more)))


def readable_model(
    network: NetworkConfig, weights: Mapping[str, Tensor | np.ndarray]
) -> Classifier:
    """The readable model with these weights, in double precision unless they are of single."""
    made = make_model(network).to(getattr(torch, network.precision))
    made.load_state_dict({name: torch.as_tensor(value) for name, value in weights.items()})
    return made.eval()


def scattered_weights(network: NetworkConfig, seed: int = 0, width: float = 0.3) -> Weights:
    """Initial weights, each moved by noise: norms and biases are no identities."""
    rng = np.random.default_rng(seed)
    return {
        name: (value + width * rng.normal(size=value.shape)).astype(value.dtype)
        for name, value in ((x, y.numpy()) for x, y in initial_parameters(network, seed).items())
    }


def random_weights(own: Problem, seed: int = 0) -> Weights:
    """Weights of some size, so that answers differ from string to string."""
    factor = 40 if own.config.embeddings_init_strategy == "gpt2" else 3
    drawn = initial_parameters(own.network, seed)
    return {name: value.numpy() * factor for name, value in drawn.items()}


@cache
def model(name: str, *, writes: bool = False, seed: int = 0) -> TrainedModel:
    """A model of a network with random weights, made once; nobody may change it."""
    own = problem(name, writes=writes)
    return TrainedModel(own, random_weights(own, seed))


LSTM: dict[str, Any] = {"architecture": "lstm", "readout": "last", "biases": True}
TWO_BLOCKS: dict[str, Any] = {
    "num_blocks": 2, "num_attention_heads": 2, "positions": "sinusoidal",
    "attention_mask": "causal", "readout": "last", "feed_forward_size": 4,
}  # fmt: skip


def untrained(**more: Any) -> TrainedModel:
    """A model that answers some strings one way and some the other."""
    seed = 1 if "architecture" in more else 3
    small = {"task": "even_pairs", "hidden_size": 4, "attention_head_size": 2}
    own = resolve(configuration({**small, "precision": "float64", **more}))
    return TrainedModel(own, draw_initial([(own, seed)])[0])


def scattered_model(seed: int = 0, **fields: Any) -> TrainedModel:
    """A model of the report's task with larger weights than usual, so that its states differ."""
    own = resolve(configuration({"precision": "float64", **fields}))
    random, shapes = np.random.default_rng(seed), initial_parameters(own.network, 0).items()
    drawn = {name: random.normal(size=value.shape) for name, value in shapes}
    return TrainedModel(own, {name: x.astype(own.config.precision) for name, x in drawn.items()})


ONE_BLOCK: dict[str, st.SearchStrategy[Any]] = {
    "hidden_size": st.integers(1, 5),
    "num_attention_heads": st.integers(0, 3),
    "feed_forward_size": st.integers(0, 4),
    "layer_norm": st.sampled_from(["rms", "nn"]),
    "layer_norm_eps": st.sampled_from([0.0, 1e-2]),
    "no_attend_cls": st.booleans(),
}
FIELDS = st.fixed_dictionaries(ONE_BLOCK)
"""Networks of one block in which the order of tokens has no part, of the report's three letters."""
COUNTED = st.fixed_dictionaries(
    {
        **ONE_BLOCK,
        "layer_norm_eps": st.sampled_from([1e-5, 1e-2]),
        "num_blocks": st.integers(1, 3),
        "readout": st.sampled_from(["first", "last", "mean"]),
        "attention_scale": st.sampled_from(["sqrt", "log_length"]),
        "norm_placement": st.sampled_from(["pre", "post"]),
        "biases": st.booleans(),
        "final_norm": st.booleans(),
    }
)
"""The same of several blocks."""


# Networks that read pictures.

PICTURES: dict[str, Any] = {
    "task": "paragraph", "architecture": "paragraph_reader", "line_length": 3, "max_lines": 3,
    "distortion": 0.5, "hidden_size": 8, "num_attention_heads": 2, "attention_head_size": 4,
    "feed_forward_size": 16, "num_blocks": 2, "positions": "sinusoidal", "picture_channels": 4,
    "train_min_length": 1, "train_max_length": 7, "validation_min_length": 1,
    "validation_max_length": 7, "test_min_length": 1, "test_max_length": 11, "train_size": 64,
    "validation_size": 32, "test_size": 60, "max_num_epochs": 2, "precision": "float64",
}  # fmt: skip
RECURRENT_READER = {
    name: value
    for name, value in PICTURES.items()
    if "head" not in name and name not in ("positions", "feed_forward_size")
} | {"architecture": "recurrent_attention"}


# Networks drawn at random.

SETTINGS: dict[str, Sequence[Any]] = {
    "activation": ("gelu", "relu", "gelu_tanh"),
    "attention_head_size": (2, 4, 6, 3),
    "attention_mask": ("full", "causal"),
    "attention_scale": ("sqrt", "log_length", "learned_log_length"),
    "biases": (False, True),
    "eigenvalue_range": ("positive", "signed"),
    "expand": (1, 2, 3),
    "feed_forward_size": (0, 1, 5),
    "final_norm": (False, True),
    "householder_steps": (1, 2, 3),
    "layer_norm": ("rms", "nn"),
    "layer_norm_eps": (1e-2, 0.0),
    "layers": ("mapd", "gamp"),
    "no_attend_cls": (False, True),
    "norm_placement": ("pre", "post"),
    "num_attention_heads": (1, 2, 3, 0),
    "num_blocks": (1, 2, 3),
    "position_draw": ("sorted", "shifted"),
    "position_range": (0, 40),
    "positions": tuple(sorted({*POSITIONS} - {*COUPLED})),
    "readout": ("last", "mean", "first"),
    "short_convolution": (True, False),
    "state_size": (1, 3, 5),
}
"""By setting, values of it that a random network may have."""


@st.composite
def judging_fields(draw: st.DrawFn, /, **narrower: Sequence[Any]) -> dict[str, Any]:
    """Fields of any network that judges strings.

    Args:
        narrower: by setting, or `architecture`, the values to draw from in place of all.
    """
    architectures = tuple(name for name in MODELS if name not in {*ONLY_WRITE, "paragraph_reader"})
    values = {**SETTINGS, "architecture": architectures, **narrower}
    drawn: dict[str, Any] = {"architecture": draw(st.sampled_from(values["architecture"]))}
    reads = MODELS[drawn["architecture"]].reads
    if "positions" in reads:
        drawn["positions"] = draw(st.sampled_from(values["positions"]))
        reads |= POSITIONS[drawn["positions"]].reads
    for setting in sorted(reads - {"positions"}):
        if setting in values:
            drawn[setting] = draw(st.sampled_from(values[setting]))
    drawn["hidden_size"] = draw(st.integers(1, 9))
    drawn = {**TINY, "test_size": 256, "num_letters": 3, **drawn}
    assume(obstacle_of(drawn) is None)
    return drawn
