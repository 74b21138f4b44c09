"""The Transformer, one string a row: the readable truth that all else is tested against.

Every intermediate state has a stable name in `Transformer.activations`. Writing outputs caches the
keys and values of the tokens before.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple, cast

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn
from torch.nn import functional

from seqcls.config import NetworkConfig
from seqcls.models.base import (
    BodyAndHead,
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
    Block,
    Caching,
    ResidualStream,
    Times,
    attendable_tokens,
    attending_next,
    attending_of,
)
from seqcls.models.forms import Scores, Tokens
from seqcls.models.layers import Dropout, Embedding, make_norm
from seqcls.models.parts import Site, block_parts, block_sites
from seqcls.models.positions import POSITIONS
from seqcls.models.positions.places import positions_of
from seqcls.models.positions.schemes import Positions
from seqcls.strings.tokenizer import FIRST_LETTER, PAD

Keys = Float[Tensor, "string head other head_size"]


class Cache(NamedTuple):
    """The cache of strings that are being read from left to right."""

    lengths: Int64[Tensor, " string"]
    keys: dict[str, Keys]
    """Keys and values by name, with room for later tokens, to which a step writes."""
    places: Int64[Tensor, "string position"] | None
    """The positions of all tokens, later ones included; None to count them."""


class Stream:
    """The blocks of one stream of tokens, with its positions and final norm."""

    config: NetworkConfig
    blocks: Iterable[Block]
    final_norm: nn.Module | None
    dropout: Dropout
    positions: Positions

    def pass_through(
        self,
        embedded: Hidden,
        attending: Attending,
        record: Recorder,
        *encoded: Attending | Float[Tensor, "string other hidden"],
    ) -> Hidden:
        """Returns the last states of tokens.

        Args:
            encoded: a decoder's attention to another stream, and that stream's states.
        """
        states = self.positions.embed(embedded, attending.places)
        states = record("embedding", self.dropout(states))
        for number, block in enumerate(self.blocks):
            states = block(states, attending, record.within(f"blocks.{number}"), *encoded)
        return states if self.final_norm is None else record("final_norm", self.final_norm(states))

    def pass_next(
        self,
        embedded: Float[Tensor, "string 1 hidden"],
        cached: Cache,
        given: Mapping[str, Keys] = MappingProxyType({}),
        *encoded: Attending | Float[Tensor, "string other hidden"],
    ) -> tuple[Float[Tensor, "string hidden"], Cache]:
        """Passes each string's next token through the blocks, at the cost of one token.

        Args:
            given: keys and values of another stream, by name.
        """
        counted = cached.lengths.unsqueeze(1)
        places = None if cached.places is None else cached.places.gather(1, counted)
        attending = attending_next(self.config, self.positions, cached.lengths, places)
        record = Caching(cached.lengths, cached.keys, given)
        states = self.pass_through(embedded, attending, record, *encoded)
        return states[:, 0], cached._replace(lengths=cached.lengths + 1)


def cache_keys(
    states: Mapping[str, Tensor], attention: str, most_tokens: int = 0, stream: str = ""
) -> dict[str, Keys]:
    """Collects the recorded keys and values of one attention of every block, by their names in the
    stream, with room for so many more tokens.
    """
    ends, room = (f".{attention}.key", f".{attention}.value"), (0, 0, 0, most_tokens)
    names = [name for name in states if name.startswith(stream) and name.endswith(ends)]
    # After a shorter string come keys of PAD, masked until a step overwrites them.
    return {name.removeprefix(stream): functional.pad(states[name], room) for name in names}


class Transformer(BodyAndHead, Stream):
    """Blocks over padded token ids, and a head that reads one state, the mean of all, or each.

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
                (`seqcls.counts.counts_suffice`); None for once.
        """
        return self.read(self.states(ids, record, places, times), ids, record, times)

    def forward(
        self, ids: Ids, places: Places | None = None, times: Times | None = None
    ) -> Outputs:
        """Computes the outputs; `times` is that of `run`."""
        return self.run(ids, Recorder(), places, times)

    def states(
        self, ids: Ids, record: Recorder, places: Places | None, times: Times | None = None
    ) -> Hidden:
        if places is None:
            places = positions_of(self.config, ids)
        attending = attending_of(self.config, ids, self.positions, places, times)
        return self.pass_through(self.embedding(ids), attending, record)

    def begin(self, ids: Ids, most_tokens: int) -> tuple[Scores, Cache]:
        recorded, lengths, places = self.activations(ids), (ids != PAD).sum(dim=1), None
        if self.config.coupling:
            # A position depends on the input and on the number of tokens written, not on which.
            wide = functional.pad(ids, (0, most_tokens), value=PAD)
            after = torch.arange(wide.shape[1]) >= lengths[:, None]
            places = positions_of(self.config, wide.masked_fill(after, FIRST_LETTER))
        own = cache_keys(recorded, "attention", most_tokens)
        return recorded["logits"][torch.arange(len(ids)), lengths - 1], Cache(lengths, own, places)

    def step(self, tokens: Tokens, cached: Cache) -> tuple[Scores, Cache]:
        states, after = self.pass_next(self.embedding(tokens.unsqueeze(1)), cached)
        return self.head(states), after

    def head(self, read: Float[Tensor, "*string hidden"]) -> Outputs:
        """Implements `BodyAndHead.head`, after dropout."""
        return super().head(self.dropout(read))

    def parts(self) -> Mapping[Site, str]:
        return block_parts(self.config)

    def sites(self) -> Mapping[Site, tuple[str, ...]]:
        return {Site("embedding"): ("embedding",), **block_sites(self.config)}

    def attendable(self, ids: Ids) -> Attendable:
        """A mask of the tokens that each token attends to, for the scores of every block."""
        return attendable_tokens(self.config, ids)

    def residual_stream(self) -> ResidualStream:
        """The residual stream, which all parts add to and the head reads."""
        assert self.classifier is not None
        # Sites come in the order of the computation, so the last one is the last block's output.
        (*_, (last,)) = self.sites().values()
        return ResidualStream(self.blocks, last, self.final_norm, self.classifier)

    def attention(self) -> tuple[str, ...]:
        return tuple(f"blocks.{block}.attention.weights" for block in range(self.config.num_blocks))


class Side(nn.Module, Stream):
    """The stream of an encoder or a decoder."""

    def __init__(self, config: NetworkConfig, block: type[Block]) -> None:
        super().__init__()
        self.config = config
        blocks = nn.ModuleList([block(config) for _ in range(config.num_blocks)])
        self.blocks = cast("Iterable[Block]", blocks)
        self.final_norm = make_norm(config) if config.final_norm else None
        self.dropout = Dropout(config.dropout_rate)
        self.positions: Positions = POSITIONS[config.positions].load()(config)
