"""The Transformer, one string a row: the readable truth that all else is tested against.

Every intermediate state has a stable name, as `Transformer.activations` gives them. To write
outputs it keeps the keys and values of the tokens before.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import NamedTuple, cast

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn
from torch.nn import functional

from seqcls.config import NetworkConfig
from seqcls.models.base import (
    BodyAndHead,
    Classifier,
    Hidden,
    Ids,
    Outputs,
    Places,
    Recorder,
    make_head,
)
from seqcls.models.blocks import (
    Attendable,
    Attending,
    Attention,
    Block,
    ResidualStream,
    Times,
    attendable_tokens,
    attending_of,
)
from seqcls.models.forms import Scores
from seqcls.models.layers import Dropout, Embedding, make_norm
from seqcls.models.parts import Part, Site, block_parts, block_sites
from seqcls.models.positions import POSITIONS
from seqcls.models.positions.places import positions_of
from seqcls.models.positions.schemes import Positions
from seqcls.strings.tokenizer import CLS, FIRST_LETTER, PAD


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

    def run(
        self, ids: Ids, record: Recorder, places: Places | None, times: Times | None = None
    ) -> Outputs:
        """Implements `Classifier.run`.

        Args:
            times: how often each token occurs, where letter counts suffice
                (`seqcls.counts.counts_suffice`); None where each stands for itself.
        """
        return self.read(self.states(ids, record, places, times), ids, record, times)

    def forward(
        self, ids: Ids, places: Places | None = None, times: Times | None = None
    ) -> Outputs:
        """Logits of strings, each token as often as `run` is told."""
        return self.run(ids, Recorder(), places, times)

    def states(
        self, ids: Ids, record: Recorder, places: Places | None, times: Times | None = None
    ) -> Hidden:
        if places is None:
            places = positions_of(self.config, ids)
        attending = attending_of(self.config, ids, self.positions, places, times)
        embedded = self.positions.embed(self.embedding(ids), places)
        states = record("embedding", self.dropout(embedded))
        for number, block in enumerate(self.blocks):
            states = block(states, attending, record.within(f"blocks.{number}"))
        if self.final_norm is None:
            return states
        return record("final_norm", self.final_norm(states))

    def begin(self, ids: Ids, most_tokens: int) -> "tuple[Scores, Cache]":
        kept, lengths, places = self.activations(ids), (ids != PAD).sum(dim=1), None
        if self.config.coupling:
            # A place depends on the input and on how many tokens are written, not on which.
            wide = functional.pad(ids, (0, most_tokens), value=PAD)
            after = torch.arange(wide.shape[1]) >= lengths[:, None]
            places = positions_of(self.config, wide.masked_fill(after, FIRST_LETTER))
        own = cache_keys(self, kept, "blocks.{}.attention", most_tokens)
        return kept["logits"][torch.arange(len(ids)), lengths - 1], Cache(lengths, *own, places)

    def step(self, tokens: Int64[Tensor, " string"], kept: "Cache") -> "tuple[Scores, Cache]":
        return step_through(self, self, tokens, kept)

    def head(self, read: Float[Tensor, "*string hidden"]) -> Outputs:
        """Implements `BodyAndHead.head`, for what dropout leaves."""
        return super().head(self.dropout(read))

    def parts(self) -> Mapping[Part, str]:
        return block_parts(self.config)

    def sites(self) -> Mapping[Site, tuple[str, ...]]:
        return {Site("embedding"): ("embedding",), **block_sites(self.config)}

    def attendable(self, ids: Ids) -> Attendable:
        """Which tokens of its one stream each attends to, by the recorded scores of every block."""
        return attendable_tokens(self.config, ids)

    def residual_stream(self) -> ResidualStream:
        """The one stream that all is added to, and of which the head reads."""
        assert self.classifier is not None
        (*_, (last,)) = self.sites().values()
        return ResidualStream(self.blocks, last, self.final_norm, self.classifier)

    def attention(self) -> tuple[str, ...]:
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
        return states if self.final_norm is None else record("final_norm", self.normalize(states))

    def normalize(self, states: Tensor) -> Tensor:
        """The last block's output after the norm that may follow it."""
        return states if self.final_norm is None else self.final_norm(states)


NOTHING = Recorder()
"""No state of a step is recorded; nothing drops any where a model writes."""

Keys = Float[Tensor, "string head other head_size"]


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
            attended_once,
            block.attention,
            attending=attending,
            keys=kept.keys[number],
            values=kept.values[number],
        )
        states = block.add_part("attention", block.attention_norm, part, states, NOTHING)
        if crossed is not None:
            states = crossed(number, block, states)
        states = block.apply_feed_forward(states, NOTHING)
    if body.final_norm is not None:
        states = body.final_norm(states)
    return model.head(states[:, 0]), kept._replace(lengths=lengths + 1)


def attended_once(
    layer: Attention, states: Hidden, attending: Attending, keys: Keys, values: Keys
) -> Hidden:
    """What one token of each string takes from all up to it, its key and value kept."""
    attendable, scale, positions, places, _ = attending
    query, key, value = (
        layer.split(part(states)) for part in (layer.query, layer.key, layer.value)
    )
    rows, width = torch.arange(len(states)), attendable.shape[2]
    keys[rows, :, places[:, 0]] = positions.rotate(key, places)[:, :, 0]
    values[rows, :, places[:, 0]] = value[:, :, 0]
    factor = layer.scale_by_length(scale) / math.sqrt(layer.heads[1])
    scores = positions.rotate(query, places) @ keys[:, :, :width].mT * factor
    bias = positions.bias(places, torch.arange(width).unsqueeze(0))
    scores = scores if bias is None else scores + bias
    return layer.mix(scores, values[:, :, :width], attendable.unsqueeze(1), NOTHING)


def cache_keys(
    model: Classifier, kept: Mapping[str, Tensor], attention: str, most_tokens: int = 0
) -> tuple[list[Keys], list[Keys]]:
    """Keys and values of every block, with room for so many more tokens.

    Args:
        attention: the name of the attention in them, with `{}` for the block's number.
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
