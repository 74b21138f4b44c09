"""The instructions of models: the arguments of each one's kernel, by name.

An instruction is a tuple of values, layers and integers. Numba is not loaded.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from seqcls.engines.lanes.columns import Grouped, Here, Place, Whole
from seqcls.engines.lanes.layers import Channels, Heads, How, LinearLayer, NormLayer


class Linear(NamedTuple):
    """Writes y = W x + b, or adds it to y."""

    x: Here
    y: Here
    layer: LinearLayer
    add: bool


class LinearGradient(NamedTuple):
    """Adds D of a layer's parameters, and writes D x or adds to it, where these are needed.

    D x is a product with the transposed matrix, and so are embeddings of one-hot token types.
    """

    x: Here
    dy: Here
    dx: Here
    layer: LinearLayer
    add: bool


class ClassifyGradient(NamedTuple):
    """The gradient of a layer with one output."""

    x: Here
    dy: Here
    dx: Here
    layer: LinearLayer


class Normalize(NamedTuple):
    """A norm, with the states that its gradient needs."""

    x: Here
    y: Here
    layer: NormLayer
    units: Here
    scales: Here


class NormalizeGradient(NamedTuple):
    """Writes D x of a norm, or adds to it, given D y."""

    dy: Here
    dx: Here
    layer: NormLayer
    units: Here
    scales: Here
    sums: Place
    add: bool


class Activate(NamedTuple):
    """An elementwise function, in place, which writes the slopes."""

    x: Here
    slopes: Here
    columns: int
    function: int


class Multiply(NamedTuple):
    """Writes the elementwise product of x and factors to y, which may be x."""

    x: Here
    factors: Here
    y: Here
    columns: int


class Copy(NamedTuple):
    """Copies rows of x to y, or adds them."""

    x: Here
    y: Here
    columns: int
    add: bool


class Scale(NamedTuple):
    """Multiplies each row by a vector, in place; the vectors begin at `factors`."""

    x: Here
    columns: int
    factors: int


class ScaleHeads(NamedTuple):
    """Writes y = x (s f + b / sqrt(head size)), with a vector f for each row.

    The learned numbers s and b of each head begin at `scale` and `bias`.
    """

    x: Here
    y: Here
    heads: Heads
    factors: int
    scale: int
    bias: int


class ScaleHeadsGradient(NamedTuple):
    """Writes D x, and adds D s and D b."""

    forward: ScaleHeads
    dy: Here
    dx: Here


class Enlarge(NamedTuple):
    """Multiplies rows by the square root of a size, in place."""

    x: Here
    columns: int
    size: int


class AddPositions(NamedTuple):
    """Adds vectors of their positions to embeddings: a table's rows, or sinusoids."""

    x: Here
    columns: int
    width: int
    table: int
    """-1 for sinusoids."""


class AddPositionsGradient(NamedTuple):
    """Adds D of that table."""

    forward: AddPositions
    dx: Here
    is_token: int


class Rotate(NamedTuple):
    """Rotates the pairs of every head by their positions, or back."""

    x: Here
    heads: Heads
    turns: int
    back: bool


class Attend(NamedTuple):
    """Attention: writes each head's weighted sum of values."""

    query: Grouped
    key_value: Grouped
    mixed: Grouped
    heads: Heads
    how: How
    keys_span: int
    scores: Whole
    shares: Place
    mask: int
    """The start of a vector for each key of each group."""
    keys: int
    """Number of keys of a group."""


class AttendGradient(NamedTuple):
    """Writes D of queries, keys and values."""

    forward: Attend
    dmixed: Here
    dquery: Whole
    dkey_value: Whole
    dscores: Place


class DistanceGradient(NamedTuple):
    """Adds the sums of D of the distances' biases to D of their table."""

    sums: Place
    heads: int
    table: int


class Fire(NamedTuple):
    """Writes the biases that FIRE adds to scores, in `rows` of `tokens` for each head."""

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
    """Adds D of FIRE's parameters."""

    forward: Fire
    sums: Place


class Gather(NamedTuple):
    """Copies the row of x that is read in each lane of a group; back, adds D y to D x."""

    x: Whole
    y: Here
    columns: int
    back: bool


class Mean(NamedTuple):
    """Writes the mean over the tokens of each string; back, D of all tokens."""

    x: Whole
    y: Here
    columns: int
    is_token: int
    share: int
    back: bool


class Table(NamedTuple):
    """Writes a layer's outputs for each token type; back, adds D of the layer and the embedding."""

    outputs: int
    inputs: int
    kinds: int
    weight: int
    embedding: int
    table: int
    back: bool


class Clear(NamedTuple):
    """Clears the rows of the span."""

    x: Here


class ClearBefore(NamedTuple):
    """Clears all rows before the span's first."""

    x: Whole


# Recurrent layers and memories.


class Remember(NamedTuple):
    """The memory of DeltaNet, or of Gated DeltaNet if it fades; letters as in `delta_memory`."""

    given: Grouped
    """Queries, keys and values after SiLU, in place of which q, k and r are written."""
    lengths: Grouped
    """The reciprocal lengths of all heads' queries, then of their keys."""
    strengths: Grouped
    log_decay: Grouped
    slopes: Grouped
    """The slopes of log a with respect to w x + c."""
    sums: Grouped
    written: Grouped
    recalled: Grouped
    """o, then normed."""
    units: Grouped
    scales: Place
    pairs: Whole
    """N, in rows of each head where they are stored; so P and D, the next two."""
    reads: Whole
    since: Whole
    norm: int
    log_rate: int
    offset: int
    signed: bool
    fades: bool
    sizes: Heads
    keep: bool
    """True if states are stored for the gradient."""


class RememberGradient(NamedTuple):
    """Writes D of the inputs, strengths and log a, given D of the outputs."""

    forward: Remember
    recalled: Whole
    given: Whole
    strengths: Whole
    log_decay: Whole
    pairs: Whole
    reads: Whole
    sums: Place
    """Two vectors of scratch for each feature of a head."""


class Select(NamedTuple):
    """The memory of Mamba; letters as in `selective_memory`."""

    channels: Grouped
    """u."""
    selected: Grouped
    """r, filled up; then B, then C."""
    steps: Grouped
    """D."""
    answered: Grouped
    """y."""
    memory: Place
    """h."""
    rates: Place
    """A, a vector for each number."""
    log_rate: int
    skip: int
    signed: bool
    sizes: Channels
    keep: bool
    """True if h of every token is stored."""


class SelectGradient(NamedTuple):
    """Writes D of the inputs, given D of the outputs; not that of r."""

    forward: Select
    answered: Whole
    channels: Whole
    selected: Whole
    steps: Whole
    memory: Place
    rates: Place


class Recur(NamedTuple):
    """A recurrent layer, token after token; all its states have rows like those of `state`."""

    cell: int
    heads: int
    width: int
    """The width of a head."""
    weight: int
    """The start of the heads' matrices, one after another."""
    bias: int
    """The start of their bias; -1 if there is none."""
    gates: Grouped
    from_state: Grouped
    """The previous state's share of the gates: `gates` themselves, except in a GRU."""
    state: Whole
    previous: Grouped
    """The previous state of each row."""
    cells: Place
    """Cells; then their tanh, or the normalizers; then a cell's other states."""
    size: int
    """The distance from each of these to the next."""
    zero: Place
    """A row of zeros for each group."""
    input: Grouped
    input_layer: LinearLayer
    """The layer that computes the input's share of the gates."""


class RecurGradient(NamedTuple):
    """Writes D of the input's share of the gates, and adds D of the state's matrices."""

    forward: Recur
    state: Whole
    gates: Whole
    from_state: Whole
    scratch: Place
    """Three rows for each group."""


class Convolve(NamedTuple):
    """A convolution of each channel over a token and the three before it."""

    x: Grouped
    y: Grouped
    channels: int
    weight: int
    bias: int
    """-1 if there is none."""


class ConvolveGradient(NamedTuple):
    """Writes D x, and adds D of the parameters."""

    x: Here
    dy: Here
    dx: Here
    channels: int
    weight: int
    bias: int


class Unfold(NamedTuple):
    """Copies a token's row to a row for each step: shared columns, then those of the step from each
    part; back, D of these rows to D of the token's.
    """

    x: Here
    y: Whole
    steps: int
    shared: int
    parts: int
    width: int
    back: bool


class Fold(NamedTuple):
    """Copies the row of each token's last step; back, D of it, with zeros for the other steps."""

    x: Whole
    y: Here
    steps: int
    columns: int
    back: bool


INSTRUCTIONS: tuple[type[Any], ...] = tuple(
    x for x in [*globals().values()] if isinstance(x, type) and x.__module__ == __name__
)
"""All of the classes above."""
NUMBERS: Mapping[type[Any], int] = {kind: number for number, kind in enumerate(INSTRUCTIONS)}
