"""The instructions of recurrent layers and memories: what each one's kernel takes, by name."""

from typing import NamedTuple

from seqcls.engines.lanes.columns import Grouped, Here, Place, Whole
from seqcls.engines.lanes.layers import Channels, Heads, LinearLayer


class Remember(NamedTuple):
    """The memory of DeltaNet, or of Gated DeltaNet where it fades; letters as in its kernel."""

    given: Grouped
    """Queries, keys and values, convolved where they are."""
    heads: Grouped
    """q, k and r."""
    lengths: Grouped
    """One over the length of each head's query, then those of its keys."""
    strengths: Grouped
    log_decay: Grouped
    slopes: Grouped
    """Those of log a by w x + c."""
    sums: Grouped
    written: Grouped
    gate: Grouped
    recalled: Grouped
    """o, then normed."""
    units: Grouped
    scales: Place
    mixed: Grouped
    pairs: Whole
    """N; of each head so many rows where they are kept. So P and D, the next two."""
    reads: Whole
    since: Whole
    norm: int
    log_rate: int
    offset: int
    signed: bool
    fades: bool
    sizes: Heads
    keep: bool
    """Whether all that gradients need is kept."""


class RememberGradient(NamedTuple):
    """From D of what is mixed to D of what is given, of gates, strengths and log a."""

    forward: Remember
    mixed: Whole
    given: Whole
    gate: Whole
    strengths: Whole
    log_decay: Whole
    pairs: Whole
    reads: Whole
    sums: Place
    """Two vectors of scratch for each feature of a head."""


class Rates(NamedTuple):
    """What a selective memory makes of its rates, once for all tokens."""

    rates: Place
    log_rate: int
    sizes: Channels


class Select(NamedTuple):
    """The memory of Mamba; letters as in its kernel."""

    given: Grouped
    """u before it is convolved, and z."""
    convolved: Grouped
    channels: Grouped
    """u."""
    selected: Grouped
    """r, filled up; then B, then C."""
    steps: Grouped
    slopes: Grouped
    """Those of D by W r + b."""
    answered: Grouped
    """y."""
    mixed: Grouped
    memory: Place
    """h."""
    rates: Place
    """A, a vector each."""
    convolution: int
    convolution_bias: int
    selection: LinearLayer
    step_size: LinearLayer
    log_rate: int
    skip: int
    signed: bool
    sizes: Channels
    keep: bool
    """Whether h is kept of every token."""


class SelectGradient(NamedTuple):
    """From D of what is mixed to D of what is given."""

    forward: Select
    mixed: Whole
    given: Whole
    channels: Whole
    selected: Whole
    steps: Whole
    memory: Place
    rates: Place


class Recur(NamedTuple):
    """A layer of cells, token after token; all its states stand in rows as those of `state`."""

    cell: int
    heads: int
    width: int
    """A head's."""
    weight: int
    """Where the matrices of the heads begin, one after another."""
    bias: int
    """Where the bias of all begins; -1 where there is none."""
    gates: Grouped
    from_state: Grouped
    """What the state before gives to the gates: `gates` themselves but of a GRU."""
    state: Whole
    previous: Grouped
    """The state before, row by row."""
    cells: Place
    """Cells; then their tanh, or the normalizers; then what else a cell keeps."""
    size: int
    """How far each of these is from the next."""
    zero: Place
    """A row of zeros for each group."""
    input: Grouped
    input_layer: LinearLayer
    """What the input gives to the gates."""


class RecurGradient(NamedTuple):
    """D of what the input gives to the gates, and of the matrices of the state."""

    forward: Recur
    state: Whole
    gates: Whole
    from_state: Whole
    scratch: Place
    """Three rows for each group."""


class Convolve(NamedTuple):
    """Each channel over a token and the three before it."""

    x: Grouped
    y: Grouped
    channels: int
    weight: int


class ConvolveGradient(NamedTuple):
    """D of x and of the weights."""

    x: Here
    dy: Here
    dx: Here
    channels: int
    weight: int


class Unfold(NamedTuple):
    """A row for each step of a token: shared columns, then of each part those of the step; or
    back, from D of these rows to D of the token's.
    """

    x: Here
    y: Whole
    steps: int
    shared: int
    parts: int
    width: int
    back: bool


class Fold(NamedTuple):
    """The row of each token's last step; back, D of it, and zeros for the other steps."""

    x: Whole
    y: Here
    steps: int
    columns: int
    back: bool
