"""Blocks that mix tokens from left to right by a memory of a fixed size, then a feed-forward.

A mixer is one formula, `step`: what a token is given, and what is kept after it. `forward` is the
same function of all tokens of strings at once. No state depends on what comes after it, padding
included.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, ClassVar, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from seqcls.config import NetworkConfig
from seqcls.models.base import Ids, Places, Recorder
from seqcls.models.heads import BodyAndHead, Hidden, make_head
from seqcls.models.layers import Dropout, Embedding, Linear, make_norm
from seqcls.models.parts import Part, PartKind, Site
from seqcls.models.transformer import Residual

State = Float[Tensor, "string hidden"]
Channels = Float[Tensor, "string position channel"]

Kept = tuple[Tensor, ...]
"""What a mixer keeps of the tokens before, a string a row."""

WINDOW = 4
"""Tokens that a short convolution reads."""


class Convolution(Linear):
    """A causal convolution of each channel by itself, over a token and the three before it."""

    def __init__(self, channels: int, *, bias: bool = False) -> None:
        super().__init__(WINDOW, channels, bias=bias)

    def forward(self, states: Channels) -> Channels:
        padded = functional.pad(states, (0, 0, WINDOW - 1, 0))
        tokens = states.shape[1]
        mixed = padded[:, :tokens] * self.weight[:, 0]
        for back in range(1, WINDOW):
            mixed = mixed + padded[:, back : back + tokens] * self.weight[:, back]
        return mixed if self.bias is None else mixed + self.bias

    def none_kept(self, state: Float[Tensor, "string channel"]) -> Tensor:
        """What is kept before the first token: no token."""
        return state.new_zeros(len(state), WINDOW - 1, state.shape[1])

    def step(
        self, state: Float[Tensor, "string channel"], kept: Tensor
    ) -> tuple[Float[Tensor, "string channel"], Tensor]:
        """One more token, and the tokens to be kept."""
        window = torch.cat([kept, state.unsqueeze(1)], dim=1)
        mixed: Tensor = self(window)
        return mixed[:, -1], window[:, 1:]


class Mixer(nn.Module):
    """What a block knows of the tokens before; `config` has its sizes."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.config = config
        self.heads = (config.num_attention_heads, config.attention_head_size)

    def forward(self, states: Hidden, record: Recorder) -> Hidden:
        """What each token is given."""
        raise NotImplementedError

    def nothing(self, state: State) -> Kept:
        """What is kept before the first token of as many strings."""
        raise NotImplementedError

    def step(self, state: State, kept: Kept) -> tuple[State, Kept]:
        """What one more token is given, and what is kept after it."""
        raise NotImplementedError

    def draws(self) -> Iterator[tuple[Callable[..., Any], Tensor]]:
        """How parameters are drawn that are no plain layer's, each with its tensor."""
        return iter(())

    def by_head(self, states: Float[Tensor, "*token size"]) -> Float[Tensor, "*token head part"]:
        """Each head's part."""
        by_head: Tensor = states.unflatten(-1, self.heads)
        return by_head

    def parts(self) -> Mapping[tuple[PartKind, int], str]:
        """The kinds and numbers of parts, with the names of the states that they are in."""
        return {("head", head): "mixed_value" for head in range(self.heads[0])}

    def sites(self, block: int) -> Mapping[Site, tuple[str, ...]]:
        """Implements `Classifier.sites`, for this mixer alone."""
        return {Site("head", block, head): ("mixed_value",) for head in range(self.heads[0])}

    def units(self) -> tuple[str, ...]:
        """Implements `Classifier.units`, beside the `state`."""
        return ()


class MixerBlock(Residual):
    """A mixer, then a feed-forward, each added to its input."""

    def __init__(self, config: NetworkConfig, mixer: type[Mixer]) -> None:
        super().__init__(config)
        self.mixer_norm = make_norm(config)
        self.mixer = mixer(config)
        self.add_feed_forward(config)

    def forward(self, states: Hidden, record: Recorder) -> Hidden:
        part = partial(self.mixer, record=record.within("mixer"))
        return self.fed(self.added("mixer", self.mixer_norm, part, states, record), record)

    def step(self, state: State, kept: Kept) -> tuple[State, Kept]:
        """One token, as `Mixer.step`."""
        after: list[Kept] = []

        def part(read: Hidden) -> Hidden:
            given, now = self.mixer.step(read[:, 0], kept)
            after.append(now)
            return given.unsqueeze(1)

        nowhere = Recorder()
        mixed = self.added("mixer", self.mixer_norm, part, state.unsqueeze(1), nowhere)
        return self.fed(mixed, nowhere)[:, 0], after[0]


class Mixing(BodyAndHead):
    """Blocks of one mixer, and a logit read off the last state or off the mean of all."""

    mixer: ClassVar[type[Mixer]]

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__(config)
        self.embedding = Embedding(config.vocabulary_size, config.hidden_size)
        blocks = nn.ModuleList([MixerBlock(config, self.mixer) for _ in range(config.num_blocks)])
        self.blocks = cast("Iterable[MixerBlock]", blocks)
        self.final_norm = make_norm(config) if config.final_norm else None
        self.classifier = make_head(config)
        self.dropout = Dropout(config.dropout_rate)

    def states(self, ids: Ids, record: Recorder, places: Places | None) -> Hidden:
        """Implements `BodyAndHead.states`; places mean nothing here."""
        del places
        states = record("embedding", self.dropout(self.embedding(ids)))
        for number, block in enumerate(self.blocks):
            states = block(states, record.within(f"blocks.{number}"))
        return states if self.final_norm is None else record("final_norm", self.final_norm(states))

    def parts(self) -> Mapping[Part, str]:
        """Implements `Classifier.parts`: those of mixers, and feed-forwards."""
        parts = dict[Part, str]()
        for number, block in enumerate(self.blocks):
            inside = f"blocks.{number}."
            for (kind, part), name in block.mixer.parts().items():
                parts[Part(number, kind, part)] = f"{inside}mixer.{name}"
            if self.config.feed_forward_size:
                parts[Part(number, "feed-forward")] = f"{inside}feed_forward.output"
        return parts

    def sites(self) -> Mapping[Site, tuple[str, ...]]:
        """Implements `Classifier.sites`."""
        sites: dict[Site, tuple[str, ...]] = {Site("embedding"): ("embedding",)}
        for number, block in enumerate(self.blocks):
            inside = f"blocks.{number}."
            for site, names in block.mixer.sites(number).items():
                sites[site] = tuple(f"{inside}mixer.{name}" for name in names)
            last = "after_feed_forward" if block.norms_first else "feed_forward_norm"
            sites[Site("mixer", number)] = (f"{inside}mixer.output",)
            sites[Site("feed-forward", number)] = (f"{inside}feed_forward.output",)
            sites[Site("block", number)] = (f"{inside}{last}",)
        return sites

    def units(self) -> tuple[Mapping[str, str], ...]:
        """Implements `Classifier.units`: the memory after every token, and what moves it."""
        return tuple(
            {name: f"blocks.{number}.mixer.{name}" for name in ("state", *block.mixer.units())}
            for number, block in enumerate(self.blocks)
        )


def summed_products(
    written: Float[Tensor, "string head position written"],
    keys: Float[Tensor, "string head position key"],
) -> Float[Tensor, "string position memory"]:
    """The memory after every token: the sum of outer products so far, all heads in one row."""
    products = written.unsqueeze(4) * keys.unsqueeze(3)
    return products.cumsum(dim=2).transpose(1, 2).flatten(2)
