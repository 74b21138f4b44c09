"""The Transformer, one string a row: the readable truth that all else is tested against.

Every intermediate state has a stable name, as `Transformer.activations` gives them. No layer has
a bias, but ordinary layer norm.
"""

import math
from collections.abc import Iterable
from typing import cast

import torch
from jaxtyping import Bool, Float, Integer
from torch import Tensor, nn
from torch.nn import functional

from seqcls.config import NetworkConfig
from seqcls.tokenizer import CLS, PAD

Hidden = Float[Tensor, "string position hidden"]
Heads = Float[Tensor, "string head position head_size"]


class Recorder:
    """Keeps the states that a forward pass names, where anybody asked for them."""

    def __init__(self, prefix: str = "", kept: dict[str, Tensor] | None = None) -> None:
        self._prefix = prefix
        self._kept = kept

    def __call__(self, name: str, state: Tensor) -> Tensor:
        if self._kept is not None:
            self._kept[self._prefix + name] = state
        return state

    def within(self, name: str) -> "Recorder":
        """A recorder of a part, whose names begin with the part's."""
        return Recorder(f"{self._prefix}{name}.", self._kept)


class Dropout(nn.Module):
    """Dropout that draws from a generator of its own, never from the global one."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate
        self.generator: torch.Generator | None = None

    def forward(self, states: Tensor) -> Tensor:
        if not self.training or self.rate == 0:
            return states
        kept = torch.empty_like(states).bernoulli_(1 - self.rate, generator=self.generator)
        return states * kept.div_(1 - self.rate)


class Linear(nn.Module):
    """A linear layer without bias, its values left to `seqcls.models.initialization` to draw.

    Not `nn.Linear`, which draws values of its own from the global generator; PyTorch's way around
    that loads a part of it that takes seconds.
    """

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, inputs))

    def forward(self, states: Float[Tensor, "*batch input"]) -> Float[Tensor, "*batch output"]:
        return functional.linear(states, self.weight)


class Embedding(nn.Module):
    """A vector for every token id, its values left to `seqcls.models.initialization` to draw."""

    def __init__(self, tokens: int, hidden: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(tokens, hidden))

    def forward(self, ids: Integer[Tensor, "*batch"]) -> Float[Tensor, "*batch hidden"]:
        return functional.embedding(ids, self.weight)


def make_norm(config: NetworkConfig) -> nn.Module:
    """The norm before each half of a block: `weight * x / sqrt(mean(x^2) + eps)` for `rms`."""
    if not config.has_norms:
        return nn.Identity()
    kind: type[nn.RMSNorm | nn.LayerNorm]
    kind = nn.RMSNorm if config.layer_norm == "rms" else nn.LayerNorm
    return kind(config.hidden_size, eps=config.layer_norm_eps)


class Attention(nn.Module):
    """Multi-headed attention; a position with nothing to attend to gets the value zero."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.heads = (config.num_attention_heads, config.attention_head_size)
        size = math.prod(self.heads)
        self.query = Linear(config.hidden_size, size)
        self.key = Linear(config.hidden_size, size)
        self.value = Linear(config.hidden_size, size)
        self.output = Linear(size, config.hidden_size)
        self.dropout = Dropout(config.dropout_rate)

    def forward(
        self,
        states: Hidden,
        attendable: Bool[Tensor, "string #position position"],
        record: Recorder,
    ) -> Hidden:
        query = record("query", self._split(self.query(states)))
        key = record("key", self._split(self.key(states)))
        value = record("value", self._split(self.value(states)))
        scores = record("scores", query @ key.transpose(-1, -2) / math.sqrt(self.heads[1]))
        weights = record("weights", masked_softmax(scores, attendable.unsqueeze(1)))
        mixed = record("mixed_value", self.dropout(weights) @ value)
        output: Tensor = self.output(mixed.transpose(1, 2).flatten(2))
        return record("output", output)

    def _split(self, states: Float[Tensor, "string position size"]) -> Heads:
        split: Tensor = states.unflatten(2, self.heads)
        return split.transpose(1, 2)


class FeedForward(nn.Module):
    """Linear, exact GELU, linear."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        hidden, inner = config.hidden_size, config.feed_forward_size
        self.input = Linear(hidden, inner)
        self.output = Linear(inner, hidden)
        self.dropout = Dropout(config.dropout_rate)

    def forward(self, states: Hidden, record: Recorder) -> Hidden:
        inner = record("input", self.input(states))
        activation = record("activation", functional.gelu(inner))
        output: Tensor = self.output(self.dropout(activation))
        return record("output", output)


class Block(nn.Module):
    """Attention, then feed-forward, each on a normalized copy and added to its input."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.attention_norm = make_norm(config)
        self.attention = Attention(config)
        self.feed_forward_norm = make_norm(config)
        self.feed_forward = FeedForward(config)
        self.dropout = Dropout(config.dropout_rate)

    def forward(
        self,
        states: Hidden,
        attendable: Bool[Tensor, "string #position position"],
        record: Recorder,
    ) -> Hidden:
        normalized = record("attention_norm", self.attention_norm(states))
        output = self.attention(normalized, attendable, record.within("attention"))
        states = record("after_attention", states + self.dropout(output))
        normalized = record("feed_forward_norm", self.feed_forward_norm(states))
        output = self.feed_forward(normalized, record.within("feed_forward"))
        return record("after_feed_forward", states + self.dropout(output))


class Transformer(nn.Module):
    """One block over padded token ids; the logit is read off the `CLS` position.

    A new model's values are undefined: `seqcls.models.initialization` draws them.
    """

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = Embedding(config.vocabulary_size, config.hidden_size)
        self.blocks = cast("Iterable[Block]", nn.ModuleList([Block(config)]))
        self.classifier = Linear(config.hidden_size, 1)
        self.dropout = Dropout(config.dropout_rate)

    def forward(self, ids: Integer[Tensor, "string position"]) -> Float[Tensor, " string"]:
        """Logits of strings given as `CLS`, letters and `PAD`; positive means in the language."""
        return self._run(ids, Recorder())

    def activations(self, ids: Integer[Tensor, "string position"]) -> dict[str, Tensor]:
        """Every intermediate state by its name, in the order of the computation."""
        kept: dict[str, Tensor] = {}
        self._run(ids, Recorder(kept=kept))
        return kept

    def use_dropout_generator(self, generator: torch.Generator) -> None:
        """Draws every dropout mask from this generator, in the order of the computation."""
        for module in self.modules():
            if isinstance(module, Dropout):
                module.generator = generator

    def _run(
        self, ids: Integer[Tensor, "string position"], record: Recorder
    ) -> Float[Tensor, " string"]:
        attendable = (ids != PAD).unsqueeze(1)
        if self.config.no_attend_cls:
            attendable = attendable & (ids != CLS).unsqueeze(1)
        states = record("embedding", self.dropout(self.embedding(ids)))
        for number, block in enumerate(self.blocks):
            states = block(states, attendable, record.within(f"blocks.{number}"))
        logits: Tensor = self.classifier(self.dropout(states[:, 0])).squeeze(-1)
        return record("logit", logits)


def masked_softmax(
    scores: Float[Tensor, "*batch position"], attendable: Bool[Tensor, "*#batch position"]
) -> Float[Tensor, "*batch position"]:
    """Softmax over the last axis where attendable; zeros where nothing is."""
    # The least finite number instead of -inf, whose softmax has no gradient where all are masked.
    masked = scores.masked_fill(~attendable, torch.finfo(scores.dtype).min)
    return masked.softmax(dim=-1) * attendable
