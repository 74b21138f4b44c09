"""Parts of instructions and arguments of kernels: layers, spans and streams. Numba is not loaded.

Widths are filled up to multiples of `COLUMNS` with parameters that are zero and stay so, since
their contributions and their gradients are zero.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Int64

COLUMNS = 4
FIRST, LAST, MEAN = range(3)
READOUTS = {"first": FIRST, "last": LAST, "last_letter": LAST, "mean": MEAN}
NONE, RMS, LAYER = range(3)
NORMS = {"none": NONE, "rms": RMS, "nn": LAYER}
GELU, RELU, GELU_TANH, ELU, SILU, SOFTPLUS = range(6)
ACTIVATIONS = {"gelu": GELU, "relu": RELU, "gelu_tanh": GELU_TANH}
SOFTMAX, SUM = range(2)
"""Ways of normalizing scores: a softmax, or a division by their sum (linear attention)."""
UNBIASED, ALIBI, RELATIVE, FIRE, CAUSAL_FIRE = range(5)
"""Biases of scores by the distance of two tokens."""
RNN, GRU, LSTM, SLSTM = range(4)
CELLS = {"rnn": RNN, "gru": GRU, "lstm": LSTM, "slstm": SLSTM}
GATES = {"rnn": 1, "gru": 3, "lstm": 4, "slstm": 4}

FIRE_UNITS = 32
"""The hidden units of FIRE's function of distances."""
QUERIES = 32
"""Number of queries whose scores are computed together."""
WINDOW = 4
"""Number of tokens that a short convolution reads."""


READ, TOKENS, TARGETS, INPUT, START, STEPS = range(6)
"""Spans of rows: one for each group, for what is read of it; all tokens; the tokens at which
something is predicted; those of the other stream; a single row, in the first call of a list; the
steps of a memory."""


class Rows(NamedTuple):
    """Rows of vectors in an array."""

    first: int
    apart: int


class LinearLayer(NamedTuple):
    """A linear layer: its widths, filled up, and the starts of its parameters."""

    inputs: int
    outputs: int
    weight: int
    """The start of (output, input)."""
    bias: int
    """-1 if there is none."""


class NormLayer(NamedTuple):
    """A norm: its number of features, and the starts of its parameters."""

    kind: int
    size: int
    weight: int
    bias: int


class Heads(NamedTuple):
    """The number of heads, their size, the size filled up, and the width of all heads together."""

    heads: int
    head_size: int
    head_width: int
    joined: int


class How(NamedTuple):
    """The settings of attention."""

    shares: int = SOFTMAX
    """`SOFTMAX` or `SUM`."""
    causal: bool = False
    alone: bool = False
    """True if each string has one query, that of the token that is read."""
    keep: int = 0
    """Number of rows of scores stored for the gradient in each head; 0 for none."""
    bias: int = UNBIASED
    """The bias of scores by distance: `UNBIASED`, `ALIBI` ..."""
    table: int = 0
    """The start of the biases: parameters of `RELATIVE`, vectors of `FIRE`."""
    distances: int = 0
    """The start of the vectors of their gradients."""
    rows: int = 1
    """Number of rows of biases of `CAUSAL_FIRE` in each head: those of all queries, or of the
    span's."""


class Channels(NamedTuple):
    """The sizes of a selective memory: channels, numbers in each, and the rank of step sizes."""

    channels: int
    numbers: int
    ranks: int


class Stream(NamedTuple):
    """The starts of what is read of strings, in rows of tokens."""

    types: int
    types_apart: int
    is_token: int
    mask: int
    """A vector for each token, group by group."""
    tokens: int
    """Number of tokens of a group."""
    factor: int
    """The factors of queries."""
    turns: int
    """Cosine and sine of each rotated pair."""
    pairs: int
    hides_cls: bool
    log_length: bool
    causal: bool


class Program(NamedTuple):
    """A network's instructions, and the starts of their inputs and outputs."""

    forward: Int64[np.ndarray, "instruction column"]
    backward: Int64[np.ndarray, "instruction column"]
    together: bool
    """True if all groups of a batch are read together."""
    own: Stream
    inputs: Stream
    read_factor: int
    """The factors of queries where one token of each string is read."""
    read_turns: int
    """The cosines and sines of these queries."""
    crossing: int
    """The factors of queries that attend to the other stream, a row for each token."""
    share: int
    outputs: int
    outputs_apart: int
    rows: int
    steps: int
    """Number of a memory's rows for each token."""
    size: int
