"""The Transformer, one string a row: the readable truth that all else is tested against.

Every intermediate state has a stable name, as `Transformer.activations` gives them. To write
outputs it keeps the keys and values of the tokens before.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import NamedTuple, cast

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn
from torch.nn import functional

from seqcls.config import NetworkConfig
from seqcls.models.base import BodyAndHead, Classifier, Ids, Outputs, Places, Recorder, make_head
from seqcls.models.forms import Scores
from seqcls.models.layers import (
    Dropout,
    Embedding,
    Linear,
    activation_of,
    make_norm,
    masked_softmax,
)
from seqcls.models.parts import Part, Site, block_parts, block_sites
from seqcls.models.positions import POSITIONS
from seqcls.models.positions.places import places_of
from seqcls.models.positions.schemes import Positions
from seqcls.strings.tokenizer import CLS, FIRST_LETTER, PAD

Hidden = Float[Tensor, "string position hidden"]
Heads = Float[Tensor, "string head position head_size"]
Attendable = Bool[Tensor, "string #position position"]
Scale = Float[Tensor, "string #head #position #position"]


class Attending(NamedTuple):
    """Which tokens attend to which, and what is known of their places: the same in every block."""

    attendable: Attendable
    scale: Scale
    positions: Positions
    places: Places


class Attention(nn.Module):
    """Multi-headed attention; a position with nothing to attend to gets the value zero."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.heads = (config.num_attention_heads, config.attention_head_size)
        size, hidden, bias = math.prod(self.heads), config.hidden_size, config.biases
        self.query = Linear(hidden, size, bias=bias)
        self.key = Linear(hidden, size, bias=bias)
        self.value = Linear(hidden, size, bias=bias)
        self.output = Linear(size, hidden, bias=bias)
        self.dropout = Dropout(config.dropout_rate)

    def forward(
        self,
        states: Hidden,
        attending: Attending,
        record: Recorder,
        others: Float[Tensor, "string other hidden"] | None = None,
    ) -> Hidden:
        """What each token takes from others: of the same states where none are given."""
        attendable, scale, positions, places = attending
        others = states if others is None else others
        query = record("query", positions.rotate(self.split(self.query(states)), places))
        key = record("key", positions.rotate(self.split(self.key(others)), places))
        value = record("value", self.split(self.value(others)))
        scores = query @ key.transpose(-1, -2) * scale / math.sqrt(self.heads[1])
        bias = positions.bias(places, places)
        scores = record("scores", scores if bias is None else scores + bias)
        return self.mixed(scores, value, attendable.unsqueeze(1), record)

    def mixed(
        self,
        scores: Float[Tensor, "string head query key"],
        value: Float[Tensor, "string head key head_size"],
        attendable: Bool[Tensor, "#string #head #query key"],
        record: Recorder,
    ) -> Float[Tensor, "string query hidden"]:
        """What is taken from values by their scores."""
        weights = record("weights", masked_softmax(scores, attendable))
        mixed = record("mixed_value", self.dropout(weights) @ value)
        output: Tensor = self.output(mixed.transpose(1, 2).flatten(2))
        return record("output", output)

    def split(self, states: Float[Tensor, "string position size"]) -> Heads:
        """Each head's part of queries, keys or values."""
        split: Tensor = states.unflatten(2, self.heads)
        return split.transpose(1, 2)


class FeedForward(nn.Module):
    """Linear, GELU (exact, or by tanh) or ReLU, linear."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        hidden, inner = config.hidden_size, config.feed_forward_size
        self.input = Linear(hidden, inner, bias=config.biases)
        self.activation = activation_of(config)
        self.output = Linear(inner, hidden, bias=config.biases)
        self.dropout = Dropout(config.dropout_rate)

    def forward(self, states: Hidden, record: Recorder) -> Hidden:
        inner = record("input", self.input(states))
        activation = record("activation", self.activation(inner))
        output: Tensor = self.output(self.dropout(activation))
        return record("output", output)


class Residual(nn.Module):
    """Parts that are added to their input, the last of them a feed-forward.

    With the norms before, each works on a normalized copy; with the norms after, each sum is
    normalized.
    """

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.norms_first = config.norm_placement == "pre"

    def add_feed_forward(self, config: NetworkConfig) -> None:
        """Makes the last part, after the others: parameters are drawn in their order."""
        self.feed_forward_norm = make_norm(config)
        self.feed_forward = FeedForward(config)
        self.dropout = Dropout(config.dropout_rate)

    def fed(self, states: Hidden, record: Recorder) -> Hidden:
        """The states after the feed-forward."""
        part = partial(self.feed_forward, record=record.within("feed_forward"))
        return self.added("feed_forward", self.feed_forward_norm, part, states, record)

    def added(
        self,
        name: str,
        norm: nn.Module,
        part: Callable[[Hidden], Hidden],
        states: Hidden,
        record: Recorder,
    ) -> Hidden:
        """States with what a part makes of them, and the norm before or after."""
        read = record(f"{name}_norm", norm(states)) if self.norms_first else states
        states = record(f"after_{name}", states + self.dropout(part(read)))
        return states if self.norms_first else record(f"{name}_norm", norm(states))


class Block(Residual):
    """Attention, then feed-forward, each added to its input."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__(config)
        self.attention_norm = make_norm(config)
        self.attention = Attention(config)
        self.add_feed_forward(config)

    def forward(self, states: Hidden, attending: Attending, record: Recorder) -> Hidden:
        return self.fed(self.attended(states, attending, record), record)

    def attended(self, states: Hidden, attending: Attending, record: Recorder) -> Hidden:
        """The states after attention."""
        inside = record.within("attention")
        part = partial(self.attention, attending=attending, record=inside)
        return self.added("attention", self.attention_norm, part, states, record)

    def adding(self) -> tuple[Linear, ...]:
        """The layers whose outputs are added to states."""
        return self.attention.output, self.feed_forward.output


class Transformer(BodyAndHead):
    """Blocks over padded token ids, and a logit read off one place or off the mean of all.

    A new model's values are undefined: `seqcls.models.initialization` draws them.
    """

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__(config)
        self.embedding = Embedding(config.vocabulary_size, config.hidden_size)
        blocks = nn.ModuleList([Block(config) for _ in range(config.num_blocks)])
        self.blocks = cast("Iterable[Block]", blocks)
        self.final_norm = make_norm(config) if config.final_norm else None
        self.classifier = make_head(config)
        self.dropout = Dropout(config.dropout_rate)
        self.positions: Positions = POSITIONS[config.positions].load()(config)

    def states(self, ids: Ids, record: Recorder, places: Places | None) -> Hidden:
        """Implements `BodyAndHead.states`."""
        if places is None:
            places = places_of(self.config, ids)
        attending = attending_of(self.config, ids, self.positions, places)
        embedded = self.positions.embed(self.embedding(ids), places)
        states = record("embedding", self.dropout(embedded))
        for number, block in enumerate(self.blocks):
            states = block(states, attending, record.within(f"blocks.{number}"))
        if self.final_norm is None:
            return states
        return record("final_norm", self.final_norm(states))

    def begin(self, ids: Ids, most_tokens: int) -> "tuple[Scores, Cache]":
        """Implements `Stepping.begin`."""
        kept, lengths, places = self.activations(ids), (ids != PAD).sum(dim=1), None
        if self.config.coupling:
            # A place depends on the input and on how many tokens are written, not on which.
            wide = functional.pad(ids, (0, most_tokens), value=PAD)
            after = torch.arange(wide.shape[1]) >= lengths[:, None]
            places = places_of(self.config, wide.masked_fill(after, FIRST_LETTER))
        own = cached(self, kept, "blocks.{}.attention", most_tokens)
        return kept["logits"][torch.arange(len(ids)), lengths - 1], Cache(lengths, *own, places)

    def step(self, tokens: Int64[Tensor, " string"], kept: "Cache") -> "tuple[Scores, Cache]":
        """Implements `Stepping.step`."""
        return step_through(self, self, tokens, kept)

    def head(self, read: Float[Tensor, "*string hidden"]) -> Outputs:
        """Implements `BodyAndHead.head`, for what dropout leaves."""
        return super().head(self.dropout(read))

    def parts(self) -> Mapping[Part, str]:
        """Implements `Classifier.parts`."""
        return block_parts(self.config)

    def sites(self) -> Mapping[Site, tuple[str, ...]]:
        """Implements `Classifier.sites`."""
        return {Site("embedding"): ("embedding",), **block_sites(self.config)}

    def attention(self) -> tuple[str, ...]:
        """Implements `Classifier.attention`."""
        return tuple(f"blocks.{block}.attention.weights" for block in range(self.config.num_blocks))


class Side(nn.Module):
    """The blocks of one stream, with the norm after them and its positions."""

    def __init__(self, config: NetworkConfig, block: type[Block]) -> None:
        super().__init__()
        self.config = config
        blocks = nn.ModuleList([block(config) for _ in range(config.num_blocks)])
        self.blocks = cast("Iterable[Block]", blocks)
        self.final_norm = make_norm(config) if config.final_norm else None
        self.dropout = Dropout(config.dropout_rate)
        self.positions: Positions = POSITIONS[config.positions].load()(config)

    def forward(
        self,
        embedded: Hidden,
        attending: Attending,
        record: Recorder,
        *encoded: Attending | Float[Tensor, "string other hidden"],
    ) -> Hidden:
        states = self.positions.embed(embedded, attending.places)
        states = record("embedding", self.dropout(states))
        for number, block in enumerate(self.blocks):
            states = block(states, attending, record.within(f"blocks.{number}"), *encoded)
        if self.final_norm is None:
            return states
        return record("final_norm", self.final_norm(states))


def attending_of(
    config: NetworkConfig, ids: Ids, positions: Positions, places: Places
) -> Attending:
    """Which of a model's tokens attend to which, and how."""
    return Attending(attendable_tokens(config, ids), length_scale(config, ids), positions, places)


def attendable_tokens(config: NetworkConfig, ids: Ids) -> Attendable:
    """Which tokens each token attends to: never padding; with a causal mask none after it."""
    attendable = (ids != PAD).unsqueeze(1)
    if config.no_attend_cls:
        attendable = attendable & (ids != CLS).unsqueeze(1)
    if config.attention_mask == "causal":
        attendable = attendable & _earlier(ids)
    return attendable


def length_scale(config: NetworkConfig, ids: Ids) -> Scale:
    """What scores are multiplied by beside 1 / sqrt(head size): 1, or ln N.

    N is the number of tokens that the model reads (Chiang & Cholak 2022); with a causal mask of
    those up to the attending one, which knows of no other.
    """
    dtype = getattr(torch, config.precision)
    if config.attention_scale == "sqrt":
        return torch.ones((), dtype=dtype, device=ids.device).expand(len(ids), 1, 1, 1)
    read = (ids != PAD).unsqueeze(1)
    if config.attention_mask == "causal":
        read = read & _earlier(ids)
    return read.sum(dim=2).clamp_min(1).to(dtype).log()[:, None, :, None]


def _earlier(ids: Ids) -> Bool[Tensor, "1 position position"]:
    """Which tokens stand no later than each token."""
    size = ids.shape[1]
    return torch.ones(1, size, size, dtype=torch.bool, device=ids.device).tril()


NOTHING = Recorder()
"""No state of a step is recorded; nothing drops any where a model writes."""

Keys = Float[Tensor, "string head position head_size"]


class Cache(NamedTuple):
    """What is kept of strings that are being read from left to right."""

    lengths: Int64[Tensor, " string"]
    keys: list[Keys]
    """A block each, with room for the tokens that will be read: a step writes to it."""
    values: list[Keys]
    places: Int64[Tensor, "string position"] | None
    """The places of all tokens, those included that will be read; None where they are counted."""


def step_through(
    model: BodyAndHead,
    body: "Transformer | Side",
    tokens: Int64[Tensor, " string"],
    kept: Cache,
    crossed: Callable[[int, Block, Hidden], Hidden] | None = None,
) -> tuple[Scores, Cache]:
    """Reads one token more of each string, at the cost of one, however many were before.

    Args:
        model: its embedding and its head are asked.
        body: the blocks.
        tokens: one of each string.
        kept: of the tokens before.
        crossed: the states after a block's attention to another stream, where there is one: of the
            block's number, itself, and the states before.
    """
    config, lengths = body.config, kept.lengths
    counted = lengths.unsqueeze(1)
    places = counted if kept.places is None else kept.places.gather(1, counted)
    states = body.positions.embed(model.embedding(tokens.unsqueeze(1)), places)
    before = torch.arange(int(lengths.max()) + 1)
    hidden = before > counted
    if config.no_attend_cls:
        hidden = hidden | (before == CLS)
    read = (lengths + 1).to(getattr(torch, config.precision))
    if config.attention_scale == "sqrt":
        read = torch.full_like(read, math.e)
    attending = Attending(
        ~hidden.unsqueeze(1), read.log()[:, None, None, None], body.positions, counted
    )
    for number, block in enumerate(body.blocks):
        part = partial(
            _attended_once,
            block.attention,
            attending=attending,
            keys=kept.keys[number],
            values=kept.values[number],
        )
        states = block.added("attention", block.attention_norm, part, states, NOTHING)
        if crossed is not None:
            states = crossed(number, block, states)
        states = block.fed(states, NOTHING)
    if body.final_norm is not None:
        states = body.final_norm(states)
    return model.head(states[:, 0]), kept._replace(lengths=lengths + 1)


def _attended_once(
    layer: Attention, states: Hidden, attending: Attending, keys: Keys, values: Keys
) -> Hidden:
    """What one token of each string takes from all up to it, its key and value kept."""
    attendable, scale, positions, places = attending
    query, key, value = (
        layer.split(part(states)) for part in (layer.query, layer.key, layer.value)
    )
    rows, width = torch.arange(len(states)), attendable.shape[2]
    keys[rows, :, places[:, 0]] = positions.rotate(key, places)[:, :, 0]
    values[rows, :, places[:, 0]] = value[:, :, 0]
    factor = scale / math.sqrt(layer.heads[1])
    scores = positions.rotate(query, places) @ keys[:, :, :width].mT * factor
    bias = positions.bias(places, torch.arange(width).unsqueeze(0))
    scores = scores if bias is None else scores + bias
    return layer.mixed(scores, values[:, :, :width], attendable.unsqueeze(1), NOTHING)


def cached(
    model: Classifier, kept: Mapping[str, Tensor], attention: str, most_tokens: int = 0
) -> tuple[list[Keys], list[Keys]]:
    """Keys and values of every block, with room for so many more tokens.

    Args:
        model: whose blocks they are.
        kept: its recorded states.
        attention: the name of the attention in them, with `{}` for the block's number.
        most_tokens: in tokens.
    """
    blocks = range(model.config.num_blocks)
    keys, values = (
        [
            functional.pad(kept[f"{attention.format(x)}.{name}"], (0, 0, 0, most_tokens))
            for x in blocks
        ]
        for name in ("key", "value")
    )
    return keys, values
