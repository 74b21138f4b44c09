"""The sizes of a Transformer or of blocks of memories, and where parameters and states stand.

Widths are filled up to multiples of 4 with parameters that are zero and stay so: what they would
add to anything is zero, and so are their gradients.
"""

import math
from functools import lru_cache
from typing import NamedTuple

from seqcls.config import COUPLED, NetworkConfig
from seqcls.engines.lanes.packing import (
    COLUMNS,
    embedded_rows,
    one_after_another,
    padded_size,
)
from seqcls.models.positions import table_size
from seqcls.models.positions.numbers import BUCKETS

FIRST, LAST, MEAN = range(3)
READOUTS = {"first": FIRST, "last": LAST, "mean": MEAN}
NORMS = {"none": 0, "rms": 1, "nn": 2}
GELU, RELU, GELU_TANH = range(3)
ACTIVATIONS = {"gelu": GELU, "relu": RELU, "gelu_tanh": GELU_TANH}
NOWHERE, ADDED, LEARNED, ROTARY, ALIBI, RELATIVE = range(6)
SCHEMES = {
    "none": NOWHERE,
    "sinusoidal": ADDED,
    "learned": LEARNED,
    **dict.fromkeys(COUPLED, LEARNED),
    "rotary": ROTARY,
    "alibi": ALIBI,
    "relative": RELATIVE,
}

QUERIES = 32
"""Queries whose scores are computed at once."""
WINDOW = 4
"""Tokens that a short convolution reads."""
MOST_BLOCKS = 62
"""Blocks of which it is known whether they attend or remember."""
MIXERS = {"transformer": "a", "deltanet": "d", "gated_deltanet": "g", "mamba": "m"}
"""The letters of what mixes tokens in a block."""


class TransformerSizes(NamedTuple):
    """Sizes and switches."""

    types: int
    """Token types that are read: CLS and the letters."""
    type_width: int
    """Rows of the embedding, filled up: of these, and where the head writes also of PAD."""
    outputs: int
    """Numbers that the head gives of a state."""
    at_places: bool
    """Whether these are answers, which are read at every token."""
    hidden: int
    width: int
    """The hidden size, filled up."""
    heads: int
    head_size: int
    head_width: int
    joined: int
    """The heads' widths together."""
    inner: int
    """The feed-forward size, filled up."""
    blocks: int
    norm: int
    eps: float
    norms_last: bool
    activation: int
    biases: bool
    causal: bool
    no_attend_cls: bool
    log_length: bool
    readout: int
    final_norm: bool
    tied: bool
    """Whether the embedding is the head's matrix."""
    scheme: int
    scaled_loss: bool
    memories: int
    """The blocks that remember instead of attending, a bit each, the first block's the lowest."""
    fading: int
    """Those of them with gates by which the memory fades."""
    selective: int
    """Those of them with the memory of Mamba; the others have that of DeltaNet."""
    signed: bool
    convolved: bool
    gates: int
    """Numbers of heads, filled up, that say how much is written and kept."""
    channels: int
    """Those of a selective memory, filled up, as the next two."""
    numbers: int
    """What each channel keeps."""
    ranks: int
    """What the sizes of its steps are made of."""
    mixed: int
    """The most numbers that a block mixes of a token."""


class TransformerParameters(NamedTuple):
    """Where parameters begin; of a block those of the first, the next being `block_size` on."""

    embedding: int
    block_size: int
    attention_norm: int
    attention_norm_bias: int
    query_key_value: int
    """Rows: each head's query, filled up; then keys, then values."""
    query_key_value_bias: int
    output: int
    output_bias: int
    feed_forward_norm: int
    feed_forward_norm_bias: int
    inner: int
    inner_bias: int
    outer: int
    outer_bias: int
    strength: int
    convolution: int
    """As many numbers as the window has for each of queries, keys and values."""
    head_norm: int
    fading: int
    log_rate: int
    fading_offset: int
    gate: int
    channels: int
    """Rows: channels, then the gates of each."""
    channels_convolution: int
    channels_convolution_bias: int
    selection: int
    step_size: int
    step_size_bias: int
    log_rates: int
    skip: int
    final_norm: int
    final_norm_bias: int
    classifier: int
    classifier_bias: int
    table: int
    """The learned table of places or of distances."""
    size: int


class TransformerStates(NamedTuple):
    """Where states begin, counted in vectors; those of a block, the next being `block_size` on.

    In training every block's are kept; else all blocks share them.
    """

    tokens: int
    """Most tokens of a string."""
    types: int
    is_token: int
    mask: int
    """What is added to scores of each key: 0, or a number below all where it is not attended to."""
    factor: int
    """What queries are multiplied with: of each place, then of those that alone are read."""
    turns: int
    """Cosines and sines of each pair, for each place, then for those that alone are read."""
    distance_gradient: int
    read: int
    read_gradient: int
    read_state: int
    read_normed: int
    read_mixed: int
    gradient: int
    normed_gradient: int
    mixed_gradient: int
    inner_gradient: int
    heads_gradient: int
    scores_gradient: int
    given_gradient: int
    gate_gradient: int
    strengths_gradient: int
    log_kept_gradient: int
    pairs_gradient: int
    reads_gradient: int
    head_sums: int
    channels_given_gradient: int
    channels_gradient: int
    selected_gradient: int
    steps_gradient: int
    memory_gradient: int
    rates_gradient: int
    norm_sums: int
    final_normed: int
    final_units: int
    final_scales: int
    outputs: int
    """Outputs of a head that writes: of every place in training, else of `ROWS` at once."""
    block_size: int
    state: int
    attention_normed: int
    attention_units: int
    attention_scales: int
    heads: int
    scores: int
    mixed: int
    after_attention: int
    feed_forward_normed: int
    feed_forward_units: int
    feed_forward_scales: int
    inner: int
    inner_slopes: int
    given: int
    """A memory's: what each of these is, `DeltaRooms` says."""
    convolved: int
    lengths: int
    strengths: int
    log_kept: int
    slopes: int
    sums: int
    written: int
    gate: int
    recalled: int
    units: int
    scales: int
    pairs: int
    since: int
    channels_given: int
    """A selective memory's: what each of these is, `SelectiveRooms` says."""
    channels_convolved: int
    channels: int
    selected: int
    steps: int
    step_slopes: int
    memory: int
    answered: int
    rates: int
    last_state: int
    """The output of the last block."""
    size: int


def mixers_of(config: NetworkConfig) -> str:
    """The letter of what mixes tokens in each block, as those of `layers`."""
    if config.architecture == "hybrid":
        return config.layers
    return MIXERS[config.architecture] * config.num_blocks


def rank_of(config: NetworkConfig) -> int:
    """How many numbers Mamba's steps are made of."""
    return math.ceil(config.hidden_size / 16)


def _bits(letters: str, of: str) -> int:
    return sum(1 << number for number, letter in enumerate(letters) if letter in of)


def sizes_of(config: NetworkConfig, *, scaled_loss: bool = False) -> TransformerSizes:
    """A network's sizes and switches."""
    heads, head_width = config.num_attention_heads, padded_size(config.attention_head_size)
    letters, alone = mixers_of(config), config.architecture == "transformer"
    gated = any(x in "dg" for x in letters)
    channels = padded_size(config.expand * config.hidden_size) if "m" in letters else 0
    attends_or_gated = gated or "a" in letters
    return TransformerSizes(
        types=config.num_letters + 1,
        type_width=padded_size(embedded_rows(config)),
        outputs=config.num_outputs,
        at_places=config.head == "places",
        hidden=config.hidden_size,
        width=padded_size(config.hidden_size),
        heads=heads,
        head_size=config.attention_head_size,
        head_width=head_width,
        joined=heads * head_width * attends_or_gated,
        inner=padded_size(config.feed_forward_size),
        blocks=len(letters),
        norm=NORMS[config.layer_norm if config.has_norms else "none"],
        eps=config.layer_norm_eps,
        norms_last=config.norm_placement == "post",
        activation=ACTIVATIONS[config.activation],
        biases=config.biases,
        # Blocks of mixers all read from left to right.
        causal=config.attention_mask == "causal" or not alone,
        no_attend_cls=config.no_attend_cls and alone,
        log_length=config.attention_scale == "log_length",
        readout=READOUTS[config.readout],
        final_norm=config.final_norm,
        tied=config.tied_embeddings,
        scheme=SCHEMES[config.positions],
        scaled_loss=scaled_loss,
        memories=_bits(letters, "dgm"),
        fading=_bits(letters, "g"),
        selective=_bits(letters, "m"),
        signed=config.eigenvalue_range == "signed",
        convolved=config.short_convolution,
        gates=padded_size(heads) * gated,
        channels=channels,
        numbers=padded_size(config.state_size) * (channels > 0),
        ranks=padded_size(rank_of(config)) * (channels > 0),
        mixed=max(heads * head_width * attends_or_gated, channels),
    )


def table_shape(config: NetworkConfig) -> tuple[int, int]:
    """Rows and columns of the learned table of places; no rows where none is learned."""
    if SCHEMES[config.positions] == LEARNED:
        return table_size(config) or 0, config.hidden_size
    if config.positions == "relative":
        return BUCKETS, config.num_attention_heads
    return 0, 0


@lru_cache(maxsize=64)
def parameters_of(config: NetworkConfig) -> TransformerParameters:
    """Where a network's parameters stand."""
    s = sizes_of(config)
    block = {
        "attention_norm": s.width,
        "attention_norm_bias": s.width,
        "query_key_value": 3 * s.joined * s.width,
        "query_key_value_bias": 3 * s.joined,
        "output": s.width * s.mixed,
        "output_bias": s.width,
        "feed_forward_norm": s.width,
        "feed_forward_norm_bias": s.width,
        "inner": s.inner * s.width,
        "inner_bias": s.inner,
        "outer": s.width * s.inner,
        "outer_bias": s.width,
        "strength": s.gates * s.width,
        "convolution": 3 * s.joined * WINDOW * (s.gates > 0 and s.convolved),
        "head_norm": s.head_width * (s.gates > 0),
        "fading": s.gates * s.width * (s.fading > 0),
        "log_rate": s.gates * (s.fading > 0),
        "fading_offset": s.gates * (s.fading > 0),
        "gate": s.joined * s.width * (s.fading > 0),
        "channels": 2 * s.channels * s.width,
        "channels_convolution": s.channels * WINDOW,
        "channels_convolution_bias": s.channels,
        "selection": (s.ranks + 2 * s.numbers) * s.channels,
        "step_size": s.channels * s.ranks,
        "step_size_bias": s.channels,
        "log_rates": s.channels * s.numbers,
        "skip": s.channels,
    }
    block_size, embedding = sum(block.values()), s.type_width * s.width
    rows, columns = table_shape(config)
    classified = 0 if s.tied else padded_size(s.outputs)
    after = {
        "final_norm": s.width * s.final_norm,
        "final_norm_bias": s.width * s.final_norm,
        # A head of one answer a string has no rows but one.
        "classifier": (classified if s.outputs > 1 or s.at_places else 1) * s.width,
        "classifier_bias": classified,
        # Rows of a table of distances are as long as there are heads.
        "table": rows * (s.width if s.scheme == LEARNED else columns),
    }
    starts = one_after_another(after, embedding + s.blocks * block_size)
    end = starts["table"] + after["table"]
    blocks = one_after_another(block, embedding)
    return TransformerParameters(embedding=0, block_size=block_size, **blocks, **starts, size=end)


def states_of(s: TransformerSizes, tokens: int, *, training: bool) -> TransformerStates:
    """Where the states of a group of strings stand.

    Args:
        tokens: of the longest string; filled up here.
        training: whether what the gradients need is kept.
    """
    tokens = padded_size(tokens)
    # One vector more in every row: rows that are a power of two apart share lines of the cache.
    width, heads, joined, inner = s.width + 1, 3 * s.joined + 1, s.joined + 1, s.inner + 1
    mixed, channels = s.mixed + 1, (s.channels + 1) * (s.channels > 0)
    selected, kept = s.ranks + 2 * s.numbers + 1, s.channels * s.numbers
    queries, tile = tokens if training else min(tokens, QUERIES), min(tokens, QUERIES)
    remembers, fades, gates = s.gates > 0, s.fading > 0, s.gates + 1
    learns = training and remembers
    pairs = (s.heads if training else 1) * queries * (tokens + 1)
    common = {
        "types": tokens * (s.type_width + 1),
        "is_token": tokens,
        "mask": tokens,
        "factor": tokens + 1,
        "turns": (tokens + 1) * s.head_size,
        "distance_gradient": BUCKETS * s.heads,
        "read": s.width,
        "read_gradient": s.width,
        "read_state": width,
        "read_normed": width,
        "read_mixed": mixed,
        "gradient": tokens * width,
        "normed_gradient": tokens * width,
        "mixed_gradient": tokens * mixed,
        "inner_gradient": tokens * inner,
        "heads_gradient": tokens * heads,
        "scores_gradient": tile * (tokens + 1),
        "given_gradient": tokens * heads * learns,
        "gate_gradient": tokens * joined * learns,
        "strengths_gradient": tokens * gates * learns,
        "log_kept_gradient": tokens * gates * learns,
        "pairs_gradient": tokens * (tokens + 1) * learns,
        "reads_gradient": tokens * (tokens + 1) * learns,
        "head_sums": 2 * s.head_width * learns,
        "channels_given_gradient": tokens * 2 * channels * training,
        "channels_gradient": tokens * channels * training,
        "selected_gradient": tokens * selected * training,
        "steps_gradient": tokens * channels * training,
        "memory_gradient": kept * training,
        "rates_gradient": kept * training,
        "norm_sums": 2 * s.hidden,
        "final_normed": tokens * width * s.final_norm,
        "final_units": tokens * width * s.final_norm,
        "final_scales": tokens * s.final_norm,
        "outputs": (tokens if training else COLUMNS)
        * (padded_size(s.outputs) + 1)
        * (s.outputs > 1 or s.at_places),
    }
    block = {
        "state": tokens * width,
        "attention_normed": tokens * width,
        "attention_units": tokens * width,
        "attention_scales": tokens,
        "heads": tokens * heads,
        "scores": pairs,
        "mixed": tokens * mixed,
        "after_attention": tokens * width,
        "feed_forward_normed": tokens * width,
        "feed_forward_units": tokens * width,
        "feed_forward_scales": tokens,
        "inner": tokens * inner,
        "inner_slopes": tokens * inner,
        "given": tokens * heads * remembers,
        "convolved": tokens * heads * remembers,
        "lengths": tokens * 2 * s.heads * remembers,
        "strengths": tokens * gates * remembers,
        "log_kept": tokens * gates * fades,
        "slopes": tokens * gates * fades,
        "sums": tokens * gates * fades,
        "written": tokens * joined * remembers,
        "gate": tokens * joined * fades,
        "recalled": tokens * mixed * remembers,
        "units": tokens * mixed * remembers,
        "scales": tokens * s.heads * remembers,
        "pairs": pairs * remembers,
        "since": pairs * fades,
        "channels_given": tokens * 2 * channels,
        "channels_convolved": tokens * channels,
        "channels": tokens * channels,
        "selected": tokens * selected * (s.channels > 0),
        "steps": tokens * channels,
        "step_slopes": tokens * channels,
        "memory": (tokens if training else 1) * kept,
        "answered": tokens * channels,
        "rates": kept,
    }
    first, size = sum(common.values()), sum(block.values())
    last = first + s.blocks * size if training else first
    return TransformerStates(
        tokens=tokens,
        **one_after_another(common),
        block_size=size if training else 0,
        **one_after_another(block, first),
        last_state=last,
        size=max(last + tokens * width, first + size),
    )


def score_factor(config: NetworkConfig) -> float:
    """What scores are multiplied by, whatever a string's length."""
    return 1 / math.sqrt(max(config.attention_head_size, 1))
