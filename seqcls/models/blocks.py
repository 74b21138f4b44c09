"""The blocks of Transformers: attention, feed-forward and the residual stream.

Every intermediate state has a stable name. The mask of a batch is the same in every block.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn

from seqcls.config import NetworkConfig
from seqcls.models.base import Ids, Places, Recorder
from seqcls.models.layers import Dropout, Linear, activation_of, make_norm, masked_softmax
from seqcls.models.positions.schemes import Bias, Positions
from seqcls.strings.tokenizer import CLS, PAD

Hidden = Float[Tensor, "string position hidden"]
Heads = Float[Tensor, "string head position head_size"]
Attendable = Bool[Tensor, "string #position position"]
Scale = Float[Tensor, "string #head #position #position"]
Times = Float[Tensor, "string position"]


class Attending(NamedTuple):
    """The mask, scale and positions of a batch's attention, the same in every block."""

    attendable: Attendable
    scale: Scale
    positions: Positions
    places: Places
    """Positions of the attending tokens."""
    bias: Bias | None = None
    """Bias added to the scores."""
    log_times: Times | None = None
    """Logarithms of how often each token occurs, as a softmax over n equal keys adds ln n to their
    score; None for once."""


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
        self.length_scale: nn.Parameter | None = None
        self.length_bias: nn.Parameter | None = None
        if config.attention_scale == "learned_log_length":
            # Training begins with the function of `log_length`.
            self.length_scale = nn.Parameter(torch.ones(self.heads[0]))
            self.length_bias = nn.Parameter(torch.zeros(self.heads[0]))
        self.dropout = Dropout(config.dropout_rate)

    def scale_by_length(self, scale: Scale) -> Scale:
        """Returns the factor of each head's scores beside 1 / sqrt(head size): s ln N + b if s and
        b are learned (scalable softmax, with the bias that Nakanishi 2025 tries too).
        """
        if self.length_scale is None or self.length_bias is None:
            return scale
        return self.length_scale[:, None, None] * scale + self.length_bias[:, None, None]

    def forward(
        self,
        states: Hidden,
        attending: Attending,
        record: Recorder,
        others: Float[Tensor, "string other hidden"] | None = None,
    ) -> Hidden:
        """Attends from states to `others`, by default to the same states."""
        # Patching already knows what heads mix, so it needs no scores.
        if (mixed := record.recall("mixed_value")) is not None:
            return self.write(mixed, record)
        attendable, scale, positions, places, bias, log_times = attending
        others = states if others is None else others
        query = record("query", positions.rotate(self.split(self.query(states)), places))
        key = record("key", positions.rotate(self.split(self.key(others)), places))
        value = record("value", self.split(self.value(others)))
        scores = (
            query @ key.transpose(-1, -2) * self.scale_by_length(scale) / math.sqrt(self.heads[1])
        )
        scores = record("scores", scores if bias is None else scores + bias)
        if log_times is not None:
            # A key that occurs n times weighs n exp(score), which is exp(score + ln n).
            scores = scores + log_times[:, None, None]
        return self.mix(scores, value, attendable.unsqueeze(1), record)

    def mix(
        self,
        scores: Float[Tensor, "string head query key"],
        value: Float[Tensor, "string head key head_size"],
        attendable: Bool[Tensor, "#string #head #query key"],
        record: Recorder,
    ) -> Float[Tensor, "string query hidden"]:
        """Mixes values by the softmax of their scores."""
        weights = record("weights", masked_softmax(scores, attendable))
        return self.write(self.dropout(weights) @ value, record)

    def write(self, mixed: Heads, record: Recorder) -> Hidden:
        """Projects the mixed values of all heads to the hidden size."""
        mixed = record("mixed_value", mixed)
        output: Tensor = self.output(mixed.transpose(1, 2).flatten(2))
        return record("output", output)

    def split(self, states: Float[Tensor, "string position size"]) -> Heads:
        """Splits queries, keys or values into heads."""
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

    With norms first, each part reads a normalized copy; otherwise each sum is normalized.
    """

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.norms_first = config.norm_placement == "pre"

    def add_feed_forward(self, config: NetworkConfig) -> None:
        """Makes the last part; it comes after the others, since parameters are drawn in order."""
        self.feed_forward_norm = make_norm(config)
        self.feed_forward = FeedForward(config)
        self.dropout = Dropout(config.dropout_rate)

    def apply_feed_forward(self, states: Hidden, record: Recorder) -> Hidden:
        """Returns the states after the feed-forward."""
        part = partial(self.feed_forward, record=record.within("feed_forward"))
        return self.add_part("feed_forward", self.feed_forward_norm, part, states, record)

    def add_part(
        self,
        name: str,
        norm: nn.Module,
        part: Callable[[Hidden], Hidden],
        states: Hidden,
        record: Recorder,
    ) -> Hidden:
        """Adds a part's output to the states, with the norm before or after."""
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
        return self.apply_feed_forward(self.attend(states, attending, record), record)

    def attend(self, states: Hidden, attending: Attending, record: Recorder) -> Hidden:
        """Returns the states after attention."""
        inside = record.within("attention")
        part = partial(self.attention, attending=attending, record=inside)
        return self.add_part("attention", self.attention_norm, part, states, record)

    def adding(self) -> tuple[Linear, ...]:
        """The layers whose outputs are added to states."""
        return self.attention.output, self.feed_forward.output


class StreamPart(NamedTuple):
    """The share of one part of a model in the residual stream."""

    name: str
    """`embedding`, `head`, `feed-forward`, `bias` or `norm`."""
    block: int | None
    head: int | None
    states: Hidden


class ResidualStream(NamedTuple):
    """The residual stream: the blocks that add to the embedding, the final norm and the head."""

    blocks: Iterable[Block]
    last: str
    """The name of the last block's recorded output."""
    final_norm: nn.Module | None
    head: Linear

    def parts(self, states: Mapping[str, Tensor]) -> list[StreamPart]:
        """Splits one string's last states into the shares of all parts, from its recorded states.

        Every norm keeps the scale that it has for this string.
        """
        parts = [StreamPart("embedding", None, None, states["embedding"])]
        for number, block in enumerate(self.blocks):
            inside = f"blocks.{number}."
            mixed = states[f"{inside}attention.mixed_value"]
            active = states[f"{inside}feed_forward.activation"].unsqueeze(1)
            attention, feed_forward = block.adding()[:2]
            parts += _split_output("head", number, attention, mixed)
            if not block.norms_first:
                before = states[f"{inside}after_attention"]
                parts = _normalize(parts, block.attention_norm, before, number)
            parts += _split_output("feed-forward", number, feed_forward, active)
            if not block.norms_first:
                before = states[f"{inside}after_feed_forward"]
                parts = _normalize(parts, block.feed_forward_norm, before, number)
        if self.final_norm is not None:
            parts = _normalize(parts, self.final_norm, states[self.last], None)
        return parts


def _split_output(
    name: str, block: int, layer: Linear, read: Float[Tensor, "string head position size"]
) -> list[StreamPart]:
    """The shares of what each head reads in what a layer adds, and that of its bias."""
    # Heads are columns of the weight side by side; a feed-forward is as one head.
    weight = layer.weight.unflatten(1, read.shape[1::2])
    heads = {head: head if name == "head" else None for head in range(read.shape[1])}
    parts = [StreamPart(name, block, y, read[:, x] @ weight[:, x].T) for x, y in heads.items()]
    if layer.bias is not None:
        shape = (*read.shape[::2], len(layer.bias))
        parts.append(StreamPart("bias", block, None, layer.bias.expand(shape)))
    return parts


def _normalize(
    parts: list[StreamPart], norm: nn.Module, before: Hidden, block: int | None
) -> list[StreamPart]:
    """Applies a norm to parts, with the scale that it has for their sum."""
    if isinstance(norm, nn.Identity):
        return parts
    assert isinstance(norm, nn.LayerNorm | nn.RMSNorm)
    centers = isinstance(norm, nn.LayerNorm)

    def center(states: Hidden) -> Hidden:
        return states - states.mean(dim=2, keepdim=True) if centers else states

    mean_square = center(before).square().mean(dim=2, keepdim=True)
    factor = norm.weight / (mean_square + (norm.eps or 0.0)).sqrt()
    # Centering and a fixed scale are linear, so the parts still sum to the normalized states.
    scaled = [x._replace(states=center(x.states) * factor) for x in parts]
    if not isinstance(norm, nn.LayerNorm) or norm.bias is None:
        return scaled
    return [*scaled, StreamPart("norm", block, None, norm.bias.expand(before.shape))]


def attending_of(
    config: NetworkConfig,
    ids: Ids,
    positions: Positions,
    places: Places,
    times: Times | None = None,
) -> Attending:
    """Makes the mask, scale and bias of a batch's attention.

    Args:
        times: how often each token occurs; None for once.
    """
    attendable, scale = attendable_tokens(config, ids), length_scale(config, ids, times)
    bias, log_times = positions.bias(places, places), None
    if times is not None:
        # A token that does not occur has the logarithm -inf, which the mask keeps from the softmax.
        attendable, log_times = attendable & (times > 0).unsqueeze(1), times.log()
    return Attending(attendable, scale, positions, places, bias, log_times)


def attendable_tokens(config: NetworkConfig, ids: Ids) -> Attendable:
    """A mask of the tokens that each token attends to: no padding; if causal, none after it."""
    attendable = (ids != PAD).unsqueeze(1)
    if config.no_attend_cls:
        attendable = attendable & (ids != CLS).unsqueeze(1)
    if config.attention_mask == "causal":
        attendable = attendable & _earlier(ids)
    return attendable


def length_scale(config: NetworkConfig, ids: Ids, times: Times | None = None) -> Scale:
    """Returns the factor of scores beside 1 / sqrt(head size): 1, or ln N.

    N is the number of tokens that the model reads (Chiang & Cholak 2022); with a causal mask, of
    those up to the attending one.

    Args:
        times: how often each token occurs; None for once.
    """
    dtype = getattr(torch, config.precision)
    if config.attention_scale == "sqrt":
        return torch.ones((), dtype=dtype, device=ids.device).expand(len(ids), 1, 1, 1)
    read = (ids != PAD if times is None else times).unsqueeze(1)
    if config.attention_mask == "causal":
        read = read & _earlier(ids)
    # A string may have no token to read, and the logarithm of 0 would be -inf.
    return read.sum(dim=2).clamp_min(1).to(dtype).log()[:, None, :, None]


def attending_next(
    config: NetworkConfig,
    positions: Positions,
    lengths: Int64[Tensor, " string"],
    places: Int64[Tensor, "string 1"] | None = None,
) -> Attending:
    """Makes the attention of each string's next token to all up to it, itself included.

    Args:
        lengths: number of tokens of each string that were read before.
        places: the tokens' positions; None to count them.
    """
    counted, before = lengths.unsqueeze(1), torch.arange(int(lengths.max()) + 1).unsqueeze(0)
    attendable = before <= counted
    if config.no_attend_cls:
        # These are positions, not ids: `CLS` comes first, and its id happens to be 0 as well.
        attendable = attendable & (before != CLS)
    read = (counted + 1).to(getattr(torch, config.precision))
    scale = torch.ones_like(read) if config.attention_scale == "sqrt" else read.log()
    # Only coupled positions differ from counted ones, and those bias no score.
    own, bias = counted if places is None else places, positions.bias(counted, before)
    return Attending(attendable.unsqueeze(1), scale[:, None, :, None], positions, own, bias)


class Caching(Recorder):
    """Appends the keys and values of each string's next token to those of the tokens before it.

    Args:
        lengths: number of tokens of each string that were read before.
        grown: cached keys and values by name; the token's are written to them in place.
        given: keys and values of another stream by name, used instead of computed ones.
    """

    def __init__(
        self,
        lengths: Int64[Tensor, " string"],
        grown: Mapping[str, Heads],
        given: Mapping[str, Heads] = MappingProxyType({}),
        prefix: str = "",
    ) -> None:
        super().__init__(prefix)
        self._lengths, self._grown, self._given = lengths, grown, given

    def __call__(self, name: str, state: Tensor) -> Tensor:
        name = self._prefix + name
        if name not in self._grown:
            return self._given.get(name, state)
        buffer = self._grown[name]
        # Written in place: a copy of all keys for every token would cost as much as reading them.
        buffer[torch.arange(len(state)), :, self._lengths] = state[:, :, 0]
        return buffer[:, :, : int(self._lengths.max()) + 1]

    def within(self, name: str) -> "Caching":
        return Caching(self._lengths, self._grown, self._given, f"{self._prefix}{name}.")


def _earlier(ids: Ids) -> Bool[Tensor, "1 position position"]:
    """A mask of the tokens up to each token, itself included."""
    size = ids.shape[1]
    return torch.ones(1, size, size, dtype=torch.bool, device=ids.device).tril()
