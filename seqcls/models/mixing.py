"""Blocks that mix tokens from left to right by a memory of a fixed size, then a feed-forward.

A mixer is one formula, `step`: a token's output and the memory after it. `forward` is the same
function of all tokens of strings. No state depends on a later token, padding included. The simplest
mixer, linear attention, is in this file; each other has a file.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from seqcls.config import NetworkConfig
from seqcls.models import MODELS, architecture_of_letter
from seqcls.models.base import BodyAndHead, Hidden, Ids, Places, Recorder, make_head
from seqcls.models.blocks import Residual
from seqcls.models.forms import Scores, Tokens, read_on
from seqcls.models.layers import Dropout, Embedding, Linear, make_norm
from seqcls.models.memories import MixingArchitecture
from seqcls.models.parts import Site
from seqcls.strings.tokenizer import PAD

State = Float[Tensor, "string hidden"]
Channels = Float[Tensor, "string position channel"]

MixerMemory = tuple[Tensor, ...]
"""A mixer's memory of the tokens before, a string a row."""

WINDOW = 4
"""Tokens that a short convolution reads."""


class ShortConvolution(Linear):
    """A causal convolution of each channel over a token and the three before it."""

    def __init__(self, channels: int, *, bias: bool = False) -> None:
        super().__init__(WINDOW, channels, bias=bias)

    def forward(self, states: Channels) -> Channels:
        padded = functional.pad(states, (0, 0, WINDOW - 1, 0))
        tokens = states.shape[1]
        mixed = padded[:, :tokens] * self.weight[:, 0]
        for back in range(1, WINDOW):
            mixed = mixed + padded[:, back : back + tokens] * self.weight[:, back]
        return mixed if self.bias is None else mixed + self.bias

    def empty_window(self, state: Float[Tensor, "string channel"]) -> Tensor:
        """The window before the first token: zeros."""
        return state.new_zeros(len(state), WINDOW - 1, state.shape[1])

    def step(
        self, state: Float[Tensor, "string channel"], before: Tensor
    ) -> tuple[Float[Tensor, "string channel"], Tensor]:
        """Reads one more token and returns its output and the next window."""
        window = torch.cat([before, state.unsqueeze(1)], dim=1)
        mixed: Tensor = self(window)
        return mixed[:, -1], window[:, 1:]


STEPS = 0.001, 0.1
"""The least and the largest initial step size, drawn uniform in the logarithm."""


def inverse_softplus_of_steps(bias: Tensor, generator: torch.Generator) -> None:
    """Draws biases whose softplus is a step size, uniform in its logarithm between `STEPS`."""
    least, most = map(math.log, STEPS)
    steps = (torch.rand(len(bias), generator=generator) * (most - least) + least).exp()
    # The inverse of softplus is x + ln(1 - e^-x); `expm1` keeps the digits of small steps.
    bias.copy_(steps + (-torch.expm1(-steps)).log())


class Mixer(nn.Module):
    """A block's memory of the tokens before; `config` has its sizes."""

    is_causal: ClassVar[bool] = True
    """True if a token's output depends on no token after it."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.config = config
        self.heads = (config.num_attention_heads, config.attention_head_size)

    def forward(self, states: Hidden, record: Recorder) -> Hidden:
        """Computes the output of each token."""
        raise NotImplementedError

    def nothing(self, state: State) -> MixerMemory:
        """The memory before the first token, for as many strings."""
        raise NotImplementedError

    def begin(self, state: State, most_tokens: int) -> MixerMemory:
        """The memory before the first of at most so many tokens."""
        return self.nothing(state)

    def step(self, state: State, cached: MixerMemory) -> tuple[State, MixerMemory]:
        """Reads one more token and returns its output and the memory after it."""
        raise NotImplementedError

    def draws(self) -> Iterator[tuple[Callable[..., Any], Tensor]]:
        """The draws of parameters that are not a plain layer's, each with its tensor."""
        return iter(())

    def by_head(self, states: Float[Tensor, "*token size"]) -> Float[Tensor, "*token head part"]:
        """Splits states into heads."""
        by_head: Tensor = states.unflatten(-1, self.heads)
        return by_head

    def sites(self, block: int) -> Mapping[Site, tuple[str, ...]]:
        """Implements `Classifier.sites`, for this mixer alone."""
        return {Site("head", block, head): ("mixed_value",) for head in range(self.heads[0])}

    def units(self) -> tuple[str, ...]:
        """Implements `Classifier.units`, beside the `state`."""
        return ()


class SteppingMixer(Mixer):
    """A mixer that implements `nothing` and `step` alone: strings are read token after token.

    Its recorded `state` is the first tensor of its memory.
    """

    def forward(self, states: Hidden, record: Recorder) -> Hidden:
        # A sum over no tokens is a zero state of the right size, even for strings without any.
        memory, given, memories = self.nothing(states[:, :0].sum(dim=1)), [], []
        for place in range(states.shape[1]):
            output, memory = self.step(states[:, place], memory)
            given.append(output)
            memories.append(memory[0].flatten(1))
        if not given:
            # There is nothing to stack: a state of no positions, as wide as the memory.
            record.aside("state", lambda: states[:, :, :1] * memory[0].flatten(1).unsqueeze(1))
            return record("output", states)
        record.aside("state", lambda: torch.stack(memories, dim=1))
        return record("output", torch.stack(given, dim=1))

    def sites(self, block: int) -> Mapping[Site, tuple[str, ...]]:
        return {}


class MixerBlock(Residual):
    """A mixer, then a feed-forward, each added to its input."""

    def __init__(self, config: NetworkConfig, mixer: type[Mixer]) -> None:
        super().__init__(config)
        self.mixer_norm = make_norm(config)
        self.mixer = mixer(config)
        self.add_feed_forward(config)

    def forward(self, states: Hidden, record: Recorder) -> Hidden:
        part = partial(self.mixer, record=record.within("mixer"))
        return self.apply_feed_forward(
            self.add_part("mixer", self.mixer_norm, part, states, record), record
        )

    def step(self, state: State, cached: MixerMemory) -> tuple[State, MixerMemory]:
        """Reads one token, as `Mixer.step` does."""
        after: list[MixerMemory] = []

        def part(read: Hidden) -> Hidden:
            given, now = self.mixer.step(read[:, 0], cached)
            # `add_part` returns states alone, so this list passes on the memory.
            after.append(now)
            return given.unsqueeze(1)

        nowhere = Recorder()
        mixed = self.add_part("mixer", self.mixer_norm, part, state.unsqueeze(1), nowhere)
        return self.apply_feed_forward(mixed, nowhere)[:, 0], after[0]


class Mixing(BodyAndHead, MixingArchitecture):
    """Blocks of mixers, and a head that reads the last state, the mean of all, or each.

    All blocks have the architecture's mixer; with `layers` each has that of its letter.
    """

    path = ""
    mixer: ClassVar[type[Mixer]]
    """The mixer of an architecture from outside, which is a subclass."""

    @classmethod
    def obstacle(cls, config: NetworkConfig) -> str | None:
        if not cls.mixer.is_causal:
            return (
                f"architecture={config.architecture!r}: its mixer gives tokens what comes after "
                "them, and blocks of mixers read from left to right"
            )
        return super().obstacle(config)

    def mixers(self) -> Sequence[type[Mixer]]:
        """The mixer of each block."""
        names = [architecture_of_letter(x) for x in self.config.layers]
        names = names or [self.config.architecture] * self.config.num_blocks
        return [MODELS[name].load_mixer() for name in names]

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__(config)
        self.embedding = Embedding(config.vocabulary_size, config.hidden_size)
        blocks = nn.ModuleList([MixerBlock(config, mixer) for mixer in self.mixers()])
        self.blocks = cast("Iterable[MixerBlock]", blocks)
        self.final_norm = make_norm(config) if config.final_norm else None
        self.classifier = make_head(config)
        self.dropout = Dropout(config.dropout_rate)

    def states(self, ids: Ids, record: Recorder, places: Places | None) -> Hidden:
        """Implements `BodyAndHead.states`; places mean nothing here."""
        states = record("embedding", self.dropout(self.embedding(ids)))
        for number, block in enumerate(self.blocks):
            states = block(states, record.within(f"blocks.{number}"))
        return states if self.final_norm is None else record("final_norm", self.final_norm(states))

    def begin(self, ids: Ids, most_tokens: int) -> tuple[Scores, list[MixerMemory]]:
        embedded = self.embedding(ids[:, 0])
        # Attention among the mixers needs room for the beginning too, which is read in steps.
        tokens = ids.shape[1] + most_tokens
        nothing = [block.mixer.begin(embedded, tokens) for block in self.blocks]
        return read_on(self.step, nothing, ids, ids != PAD)

    def step(self, tokens: Tokens, cached: list[MixerMemory]) -> tuple[Scores, list[MixerMemory]]:
        states, after = self.embedding(tokens), list[MixerMemory]()
        for block, before in zip(self.blocks, cached, strict=True):
            states, now = block.step(states, before)
            after.append(now)
        return self.head(states if self.final_norm is None else self.final_norm(states)), after

    def sites(self) -> Mapping[Site, tuple[str, ...]]:
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

    def attention(self) -> tuple[str, ...]:
        """Implements `Classifier.attention`, for the blocks that attend."""
        return tuple(f"blocks.{x}.mixer.weights" for x in blocks_of(self.config.layers, True))

    def units(self) -> tuple[Mapping[str, str], ...]:
        """Implements `Classifier.units`: each block's memory, and what its mixer records; nothing
        for memories of several kinds, which have no common size.
        """
        layers = self.config.layers
        memories = blocks_of(layers, False) if layers else range(self.config.num_blocks)
        if layers and len({layers[block] for block in memories}) != 1:
            return ()
        mixers = [block.mixer for block in self.blocks]
        return tuple(
            {name: f"blocks.{x}.mixer.{name}" for name in ("state", *mixers[x].units())}
            for x in memories
        )


def blocks_of(layers: str, attending: bool) -> tuple[int, ...]:
    """The numbers of the blocks that attend, or of those with a memory of a fixed size."""
    # `a` is attention, the one mixer whose memory grows with the string.
    return tuple(block for block, x in enumerate(layers) if (x == "a") == attending)


def summed_products(
    written: Float[Tensor, "string head position written"],
    keys: Float[Tensor, "string head position key"],
) -> Float[Tensor, "string position memory"]:
    """Returns the memory after every token, the sum of outer products, all heads in one row."""
    products = written.unsqueeze(4) * keys.unsqueeze(3)
    return products.cumsum(dim=2).transpose(1, 2).flatten(2)


class LinearAttentionMixer(Mixer):
    """S_t = S_{t-1} + v_t f(k_t)^T, o_t = S_t f(q_t) / sum_s f(k_s)^T f(q_t), with f = elu + 1.

    Attention without a softmax, whose memory is a matrix that only adds up, without decay
    (Katharopoulos et al. 2020).
    """

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__(config)
        size = self.heads[0] * self.heads[1]
        self.query, self.key, self.value = (Linear(config.hidden_size, size) for _ in range(3))
        self.output = Linear(size, config.hidden_size)

    def forward(self, states: Hidden, record: Recorder) -> Hidden:
        """Implements `Mixer.forward` by the weights of all pairs of tokens instead of a memory."""
        query, key, value = (x.transpose(1, 2) for x in self._read(states))
        record.aside("state", lambda: summed_products(value, key))
        weights = (query @ key.mT).tril()
        total = weights.sum(dim=3, keepdim=True).clamp_min(_least(weights))
        mixed = record("mixed_value", (weights @ value) / total)
        output: Tensor = self.output(mixed.transpose(1, 2).flatten(2))
        return record("output", output)

    def nothing(self, state: State) -> MixerMemory:
        """Implements `Mixer.nothing`: the memory, and the sum of keys."""
        heads, size = self.heads
        memory = state.new_zeros(len(state), heads, size, size)
        return memory, memory[..., 0]

    def step(self, state: State, cached: MixerMemory) -> tuple[State, MixerMemory]:
        query, key, value = self._read(state)
        memory = cached[0] + value.unsqueeze(3) * key.unsqueeze(2)
        keys = cached[1] + key
        total = (keys * query).sum(dim=2, keepdim=True).clamp_min(_least(query))
        mixed = (memory @ query.unsqueeze(3)).squeeze(3) / total
        output: Tensor = self.output(mixed.flatten(1))
        return output, (memory, keys)

    def _read(self, states: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        query, key, value = (
            self.by_head(layer(states)) for layer in (self.query, self.key, self.value)
        )
        return functional.elu(query) + 1, functional.elu(key) + 1, value


def _least(values: Tensor) -> float:
    """The smallest positive number, as a lower bound of a sum that is divided by."""
    return torch.finfo(values.dtype).tiny
