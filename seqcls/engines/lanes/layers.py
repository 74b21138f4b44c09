"""What instructions name and kernels take: layers, spans and streams. Numba is not loaded.

Widths are filled up to multiples of `COLUMNS` with parameters that are zero and stay so: what they
would add to anything is zero, and so are their gradients.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Int64

FIRST, LAST, MEAN = range(3)
READOUTS = {"first": FIRST, "last": LAST, "last_letter": LAST, "mean": MEAN}
NONE, RMS, LAYER = range(3)
NORMS = {"none": NONE, "rms": RMS, "nn": LAYER}
GELU, RELU, GELU_TANH, ELU = range(4)
ACTIVATIONS = {"gelu": GELU, "relu": RELU, "gelu_tanh": GELU_TANH}
SOFTMAX, SUM = range(2)
"""What makes shares of scores: a softmax, or a division by their sum (linear attention)."""
UNBIASED, ALIBI, RELATIVE, FIRE, CAUSAL_FIRE = range(5)
"""What the distance of two tokens adds to their score."""
RNN, GRU, LSTM, SLSTM = range(4)
CELLS = {"rnn": RNN, "gru": GRU, "lstm": LSTM, "slstm": SLSTM}
GATES = {"rnn": 1, "gru": 3, "lstm": 4, "slstm": 4}

FIRE_UNITS = 32
"""The hidden units of FIRE's function of distances."""
QUERIES = 32
"""Queries whose scores are computed at once."""
WINDOW = 4
"""Tokens that a short convolution reads."""


READ, TOKENS, TARGETS, INPUT, START, STEPS = range(6)
"""Spans, which are rows: one a group, of what is read of it; all tokens; those at which something
is predicted; those of the other stream; one, where a list is played from the start; those of a
memory's steps."""


class Rows(NamedTuple):
    """Rows of vectors in an array."""

    first: int
    apart: int


class LinearLayer(NamedTuple):
    """A layer: its widths, filled up, and where its parameters begin."""

    inputs: int
    outputs: int
    weight: int
    """Rows of so many inputs."""
    bias: int
    """-1 where there is none."""


class NormLayer(NamedTuple):
    """A norm: its features, and where its parameters begin."""

    kind: int
    size: int
    weight: int
    bias: int


class Heads(NamedTuple):
    """How many, of how many numbers, these filled up, and all of them together."""

    heads: int
    head_size: int
    head_width: int
    joined: int


class How(NamedTuple):
    """How heads attend."""

    shares: int
    """`SOFTMAX` or `SUM`."""
    causal: bool
    alone: bool
    """Whether there is one query for each string, that of the token that is read."""
    keep: int
    """Rows of scores a head that are kept for the gradient; 0 for none."""
    bias: int
    """What distances add: `UNBIASED`, `ALIBI` ..."""
    table: int
    """Where the numbers of distances begin: of `RELATIVE` parameters, of `FIRE` vectors."""
    distances: int
    """Where the vectors of D of these numbers begin."""
    rows: int
    """Rows a head of the numbers of `CAUSAL_FIRE`: of all queries, or of those that are played."""


class Channels(NamedTuple):
    """Those of a selective memory; what each keeps, and what the sizes of steps are made of."""

    channels: int
    numbers: int
    ranks: int


class Stream(NamedTuple):
    """Where what is read of strings stands, a row for each token."""

    types: int
    types_apart: int
    is_token: int
    mask: int
    """A vector for each token of each group, group by group, so many tokens apart."""
    tokens: int
    factor: int
    """What queries are multiplied with."""
    turns: int
    """Cosine and sine of each pair."""
    pairs: int
    hides_cls: bool
    log_length: bool
    causal: bool


class Program(NamedTuple):
    """A network's instructions, and where what is written for them and read after them stands."""

    forward: Int64[np.ndarray, "instruction column"]
    backward: Int64[np.ndarray, "instruction column"]
    together: bool
    """Whether all groups of a batch are read at once."""
    own: Stream
    inputs: Stream
    read_factor: int
    """What the queries of tokens that alone are read are multiplied with; so the next."""
    read_turns: int
    crossing: int
    """What queries are multiplied with that attend to the other stream, a row for each token."""
    share: int
    outputs: int
    outputs_apart: int
    rows: int
    steps: int
    """Rows of a memory for each token."""
    size: int
