"""The instructions that a model is a list of: what each one's kernel takes, by name.

An instruction is a tuple of values, parts of layers, and numbers. Numba is not loaded.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from seqcls.engines.lanes.columns import FIRST_COLUMN, Grouped, Here, Place, Whole, width_of
from seqcls.engines.lanes.layers import Heads, How, LinearLayer, NormLayer
from seqcls.engines.lanes.memory_instructions import (
    Convolve,
    ConvolveGradient,
    Fold,
    Rates,
    Recur,
    RecurGradient,
    Remember,
    RememberGradient,
    Select,
    SelectGradient,
    Unfold,
)


class Linear(NamedTuple):
    """y = W x + b, or that added to y."""

    x: Here
    y: Here
    layer: LinearLayer
    add: bool


class LinearGradient(NamedTuple):
    """D of its parameters, and of x where that is needed."""

    x: Here
    dy: Here
    dx: Here
    layer: LinearLayer
    add: bool


class ClassifyGradient(NamedTuple):
    """That of a layer with one output."""

    x: Here
    dy: Here
    dx: Here
    layer: LinearLayer


class Normalize(NamedTuple):
    """A norm; what its gradient needs is kept."""

    x: Here
    y: Here
    layer: NormLayer
    units: Here
    scales: Here


class NormalizeGradient(NamedTuple):
    """From D y to D x."""

    dy: Here
    dx: Here
    layer: NormLayer
    units: Here
    scales: Here
    sums: Place
    add: bool


class Activate(NamedTuple):
    """A function of each number, in place, which leaves the slopes.

    ELU passes over what heads are filled up with.
    """

    x: Here
    slopes: Here
    columns: int
    function: int
    head_width: int
    head_size: int


class Multiply(NamedTuple):
    """Number by number, in place."""

    x: Here
    factors: Here
    columns: int


class Copy(NamedTuple):
    """Rows of x to y, or added to it."""

    x: Here
    y: Here
    columns: int
    add: bool


class Scale(NamedTuple):
    """Each row by a vector of its own, in place; these begin at `factors`."""

    x: Here
    columns: int
    factors: int


class ScaleHeads(NamedTuple):
    """y = x (s f + b): each row by a vector f of its own, each head by learned numbers s and b.

    These begin at `scale` and `bias`; b counts `share`, one over the root of the head size.
    """

    x: Here
    y: Here
    heads: Heads
    factors: int
    scale: int
    bias: int


class ScaleHeadsGradient(NamedTuple):
    """D of x and of these numbers."""

    forward: ScaleHeads
    dy: Here
    dx: Here


class Enlarge(NamedTuple):
    """Rows by the root of a size, in place."""

    x: Here
    columns: int
    size: int


class Embed(NamedTuple):
    """Marks of token types to embeddings."""

    types: Here
    y: Here
    columns: int
    kinds: int
    embedding: int


class EmbedGradient(NamedTuple):
    """D of embeddings."""

    types: Here
    dy: Here
    columns: int
    embedding: int
    width: int
    """Token types, filled up."""


class AddWaves(NamedTuple):
    """Adds to embeddings what their places say."""

    y: Here
    columns: int


class AddLearned(NamedTuple):
    """Adds to embeddings the rows of a table for their places."""

    y: Here
    columns: int
    width: int
    table: int


class AddLearnedGradient(NamedTuple):
    """D of that table."""

    dy: Here
    columns: int
    width: int
    table: int
    is_token: int


class Rotate(NamedTuple):
    """Turns the pairs of every head by their places, or back."""

    x: Here
    heads: Heads
    turns: int
    back: bool


class Attend(NamedTuple):
    """What heads mix of the values of keys."""

    query: Grouped
    key_value: Grouped
    mixed: Grouped
    heads: Heads
    how: How
    keys_span: int
    scores: Whole
    shares: Place
    mask: int
    """A vector for each key of each group; these are so many keys apart."""
    keys: int


class AttendGradient(NamedTuple):
    """D of queries, keys and values."""

    forward: Attend
    dmixed: Here
    dquery: Whole
    dkey_value: Whole
    dscores: Place


class DistanceGradient(NamedTuple):
    """Adds the sums of D of distances to D of their table."""

    sums: Place
    heads: int
    table: int


class Fire(NamedTuple):
    """What FIRE adds to scores; `rows` and `tokens` of each are the room for its numbers."""

    shares: int
    numbers: int
    gradient: int
    causal: bool
    heads: int
    rows: int
    tokens: int
    input: int
    input_bias: int
    output: int
    output_bias: int
    log_scale: int
    log_threshold: int


class FireGradient(NamedTuple):
    """D of its parameters."""

    forward: Fire
    sums: Place


class Gather(NamedTuple):
    """The row of x that is read in each lane of a group; back, D of it is added to D of x."""

    x: Whole
    y: Here
    columns: int
    back: bool


class Mean(NamedTuple):
    """Each group's mean over the tokens of each string; back, D of it to D of all tokens."""

    x: Whole
    y: Here
    columns: int
    is_token: int
    share: int
    back: bool


class Table(NamedTuple):
    """What each token type gives to a layer; back, D of that to D of layer and embedding."""

    outputs: int
    inputs: int
    kinds: int
    weight: int
    embedding: int
    table: int
    back: bool


class Clear(NamedTuple):
    """Zeros in the rows of the span."""

    x: Here


class ClearBefore(NamedTuple):
    """Zeros in all rows before the span's first."""

    x: Whole


INSTRUCTIONS: tuple[type[Any], ...] = (
    Linear, LinearGradient, ClassifyGradient, Normalize, NormalizeGradient, Activate, Multiply,
    Copy, Scale, ScaleHeads, ScaleHeadsGradient, Enlarge, Embed, EmbedGradient, AddWaves,
    AddLearned, AddLearnedGradient, Rotate, Attend, AttendGradient, DistanceGradient, Fire,
    FireGradient, Remember, RememberGradient, Rates, Select,
    SelectGradient, Recur, RecurGradient, Gather, Mean, Table,
    Convolve, ConvolveGradient, Unfold, Fold, Clear,
    ClearBefore,
)  # fmt: skip
NUMBERS: Mapping[type[Any], int] = {kind: number for number, kind in enumerate(INSTRUCTIONS)}
WIDTH = FIRST_COLUMN + max(width_of(kind) for kind in INSTRUCTIONS)
"""Numbers of an instruction."""
