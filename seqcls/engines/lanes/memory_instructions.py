"""The instructions of recurrent layers and memories: the arguments of each one's kernel."""

from typing import NamedTuple

from seqcls.engines.lanes.columns import Grouped, Here, Place, Whole
from seqcls.engines.lanes.layers import Channels, Heads, LinearLayer


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


class Rates(NamedTuple):
    """Computes the rates A of a selective memory, once for all tokens."""

    rates: Place
    log_rate: int
    sizes: Channels


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
