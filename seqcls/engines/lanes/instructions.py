"""The instructions that a model is a list of: what each one's kernel takes, by name.

An instruction is a tuple whose fields are values, parts of layers, and numbers. Tapes write it as a
row of numbers, and the interpreter reads it from there: both by what is declared here, so that no
column is known by its number. Numba is not loaded.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Annotated, Any, NamedTuple, get_type_hints

import numpy as np
from jaxtyping import Int64

from seqcls.engines.lanes.layers import (
    Channels,
    Heads,
    How,
    LinearLayer,
    NormLayer,
    Rows,
)

Here = Annotated[Any, "here"]
"""A value's rows, from the first that the list is played on."""
Grouped = Annotated[Any, "grouped"]
"""A value's rows of one group, from its first token."""
Whole = Annotated[Any, "whole"]
"""A value's rows, from the first; their distance is negative where there is room for one token."""
Place = Annotated[Any, "place"]
"""Where a value begins."""

READ, TOKENS, TARGETS, INPUT, START, STEPS = range(6)
"""Spans, which are rows: one a group, of what is read of it; all tokens; those at which something
is predicted; those of the other stream; one, where a list is played from the start; those of a
memory's steps."""


class Linear(NamedTuple):
    """y = W x + b, or that added to y."""

    x: Here
    y: Here
    layer: LinearLayer
    add: bool


class LinearGradient(NamedTuple):
    """D of its parameters, and of x where that is wanted."""

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
    """Of rows."""

    x: Here
    y: Here
    columns: int


class Add(NamedTuple):
    """Adds x to y."""

    x: Here
    y: Here
    columns: int


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
    """Of each group a vector for each key, so many keys apart."""
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


class Remember(NamedTuple):
    """The memory of DeltaNet, or of Gated DeltaNet where it fades; letters as in its kernel."""

    given: Grouped
    """Queries, keys and values, convolved where they are."""
    heads: Grouped
    """q, k and r."""
    lengths: Grouped
    """One over the length of each head's query, then those of its keys."""
    strengths: Grouped
    log_kept: Grouped
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
    log_kept: Whole
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
    """Of a head."""
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
    kept: Place
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


class Gather(NamedTuple):
    """Of each group the row that is read in each lane."""

    x: Whole
    y: Here
    columns: int


class GatherGradient(NamedTuple):
    """Adds D of what is read to D of its row."""

    dy: Here
    dx: Whole
    columns: int


class Mean(NamedTuple):
    """Each group's mean over the tokens of each string."""

    x: Whole
    y: Here
    columns: int
    is_token: int
    share: int


class MeanGradient(NamedTuple):
    """D of all tokens."""

    dy: Here
    dx: Whole
    columns: int
    is_token: int
    share: int


class Table(NamedTuple):
    """What each token type gives to a layer."""

    outputs: int
    inputs: int
    kinds: int
    weight: int
    embedding: int
    table: int


class TableGradient(NamedTuple):
    """From D of the table to those of the layer and of the embedding."""

    forward: Table


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
    """A row for each step of a token: shared columns, then of each part those of the step."""

    x: Here
    y: Whole
    steps: int
    shared: int
    parts: int
    width: int


class UnfoldGradient(NamedTuple):
    """From D of these rows to D of the token's."""

    dy: Whole
    dx: Here
    steps: int
    shared: int
    parts: int
    width: int


class Fold(NamedTuple):
    """The row of each token's last step."""

    x: Whole
    y: Here
    steps: int
    columns: int


class FoldGradient(NamedTuple):
    """D of it, and zeros for the other steps."""

    dy: Here
    dx: Whole
    steps: int
    columns: int


class Clear(NamedTuple):
    """Zeros in the rows of the span."""

    x: Here


class ClearBefore(NamedTuple):
    """Zeros in all rows before the span's first."""

    x: Whole


INSTRUCTIONS: tuple[type[Any], ...] = (
    Linear, LinearGradient, ClassifyGradient, Normalize, NormalizeGradient, Activate, Multiply,
    Copy, Add, Scale, ScaleHeads, ScaleHeadsGradient, Enlarge, Embed, EmbedGradient, AddWaves,
    AddLearned, AddLearnedGradient, Rotate, Attend, AttendGradient, DistanceGradient, Fire,
    FireGradient, Remember, RememberGradient, Rates, Select,
    SelectGradient, Recur, RecurGradient, Gather, GatherGradient, Mean, MeanGradient, Table,
    TableGradient, Convolve, ConvolveGradient, Unfold, UnfoldGradient, Fold, FoldGradient, Clear,
    ClearBefore,
)  # fmt: skip
NUMBERS: Mapping[type[Any], int] = {kind: number for number, kind in enumerate(INSTRUCTIONS)}
FIRST_COLUMN = 2
"""Before it stand the instruction's number and its span."""


@cache
def fields_of(kind: type[Any]) -> tuple[Any, ...]:
    """What fields of an instruction, or of a part of it, are: a type, or how a value is read."""
    hints = get_type_hints(kind, include_extras=True).values()
    return tuple(getattr(hint, "__metadata__", (hint,))[0] for hint in hints)


def width_of(kind: type[Any]) -> int:
    """How many columns its fields fill."""
    widths = {"here": 2, "grouped": 2, "whole": 2, "place": 1, int: 1, bool: 1}
    return sum(widths[x] if x in widths else width_of(x) for x in fields_of(kind))


WIDTH = FIRST_COLUMN + max(width_of(kind) for kind in INSTRUCTIONS)
"""Numbers of an instruction."""


def write_row(instruction: Any, span: int, address: Callable[[Any], tuple[int, int]]) -> list[int]:
    """An instruction as numbers.

    Args:
        address: where a value begins, and how far its rows are from each other.
    """

    def flatten(part: Any) -> Iterator[int]:
        for what, x in zip(fields_of(type(part)), part, strict=True):
            if what in ("here", "grouped", "whole"):
                yield from (0, 0) if x is None else address(x)
            elif what == "place":
                yield 0 if x is None else address(x)[0]
            elif isinstance(x, tuple):
                yield from flatten(x)
            else:
                yield int(x)

    row = [NUMBERS[type(instruction)], span, *flatten(instruction)]
    return row + [0] * (WIDTH - len(row))


def values_in(part: Any) -> Iterator[Any]:
    """The values that an instruction names."""
    for what, x in zip(fields_of(type(part)), part, strict=True):
        if isinstance(what, str):
            yield from () if x is None else (x,)
        elif isinstance(x, tuple):
            yield from values_in(x)


def source_of(kind: type[Any]) -> str:
    """A function that reads an instruction from its row, as Python text; it is compiled.

    A negative distance of rows says that there is room for those of one token alone: those of the
    span's first rows.
    """

    def read(kind: type[Any], column: int) -> tuple[str, int]:
        parts = []
        for what in fields_of(kind):
            if isinstance(what, str):
                at = f"row[{column}]" + f", row[{column + 1}]" * (what != "place")
                text = {"place": at, "whole": f"Rows({at})", "here": f"rows_from({at}, first)"}
                parts.append(text.get(what, f"rows_of_group({at}, first, group, groups)"))
                column += 1 + (what != "place")
            elif what in (int, bool):
                parts.append(f"row[{column}]" + " == 1" * (what is bool))
                column += 1
            else:
                text_of_part, column = read(what, column)
                parts.append(text_of_part)
        return f"{kind.__name__}({', '.join(parts)},)", column

    return f"def read(row, first, group, groups):\n    return {read(kind, FIRST_COLUMN)[0]}\n"


def parts_of(kind: type[Any]) -> dict[str, Any]:
    """The names that this text mentions: the tuple itself, and those within it."""
    within = [x for x in fields_of(kind) if isinstance(x, type) and issubclass(x, tuple)]
    found = {kind.__name__: kind, "Rows": Rows}
    for part in within:
        found |= parts_of(part)
    return found


# A list of instructions as it is played.


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
