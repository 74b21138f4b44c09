"""Small networks of every kind, by name, and models of them: what tests ask in place of training.

A network stands here once; a test names it, or goes through all that do what it is about.
"""

from functools import cache
from typing import Any

from seqcls.engines.member import draw_initial
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.models.initialization import initial_parameters
from seqcls.problem import Problem, configuration, resolve
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


def fields(name: str, *, writes: bool = False, **more: Any) -> dict[str, Any]:
    """The fields of a small configuration of a network, which judges strings or writes outputs."""
    own = dict(NETWORKS[name])
    # What is written has one readout and reads what came before; embeddings are tied to outputs.
    for unread in ("readout", "attention_mask") if writes else ("tied_embeddings",):
        own.pop(unread, None)
    return {**TINY, **(WRITTEN if writes else JUDGED), **own, **more}


def problem(name: str, *, writes: bool = False, **more: Any) -> Problem:
    """A problem of a network: its sizes, its data and what it is asked."""
    return resolve(configuration(fields(name, writes=writes, **more)))


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


def untrained(seed: int | None = None, **more: Any) -> TrainedModel:
    """A model that answers some strings one way and some the other, where no seed is named."""
    if seed is None:
        seed = 1 if "architecture" in more else 3
    small = {"task": "even_pairs", "hidden_size": 4, "attention_head_size": 2}
    own = resolve(configuration({**small, "precision": "float64", **more}))
    return TrainedModel(own, draw_initial([(own, seed)])[0])
