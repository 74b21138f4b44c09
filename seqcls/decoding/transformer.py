"""A Transformer that keeps the keys and values of the tokens before."""

import math

import torch
from jaxtyping import Float, Int64
from torch import Tensor
from torch.nn import functional

from seqcls.models.base import Ids
from seqcls.models.transformer import Attention, Block, Transformer
from seqcls.tokens.tokenizer import CLS, PAD

Cache = Float[Tensor, "string head position head_size"]
State = Float[Tensor, "string hidden"]


class TransformerStepper:
    """As `seqcls.decoding.stepping.Stepper`: a step costs one token, however many were before."""

    def __init__(
        self, model: Transformer, lengths: Tensor, keys: list[Tensor], values: list[Tensor]
    ) -> None:
        self._model = model
        self._lengths = lengths
        self._keys = keys
        self._values = values

    @classmethod
    def start(
        cls, model: Transformer, ids: Ids, room: int
    ) -> "tuple[TransformerStepper, Float[Tensor, 'string output']]":
        """As `seqcls.decoding.stepping.start`."""
        kept = model.activations(ids)
        lengths = (ids != PAD).sum(dim=1)
        blocks = range(model.config.num_blocks)
        keys, values = (
            [
                functional.pad(kept[f"blocks.{block}.attention.{name}"], (0, 0, 0, room))
                for block in blocks
            ]
            for name in ("key", "value")
        )
        return cls(model, lengths, keys, values), kept["logits"][
            torch.arange(len(ids)), lengths - 1
        ]

    def step(self, tokens: Int64[Tensor, " string"]) -> Float[Tensor, "string output"]:
        """As `Stepper.step`."""
        model, places = self._model, self._lengths.unsqueeze(1)
        states = model.positions.embed(model.embedding(tokens.unsqueeze(1)), places)
        width = int(self._lengths.max()) + 1
        before = torch.arange(width)
        hidden = before > places
        if model.config.no_attend_cls:
            hidden = hidden | (before == CLS)
        for number, block in enumerate(model.blocks):
            states = self._block(number, block, states, hidden)
        self._lengths = self._lengths + 1
        if model.final_norm is not None:
            states = model.final_norm(states)
        return model.head(states[:, 0])

    def take(self, rows: Int64[Tensor, " row"]) -> None:
        """As `Stepper.take`."""
        self._lengths = self._lengths[rows]
        self._keys = [keys[rows] for keys in self._keys]
        self._values = [values[rows] for values in self._values]

    def _block(self, number: int, block: Block, states: Tensor, hidden: Tensor) -> Tensor:
        if block.norms_first:
            read = block.attention_norm(states)
            states = states + self._attention(number, block.attention, read, hidden)
            return states + _feed_forward(block, block.feed_forward_norm(states))
        states = block.attention_norm(
            states + self._attention(number, block.attention, states, hidden)
        )
        normed: Tensor = block.feed_forward_norm(states + _feed_forward(block, states))
        return normed

    def _attention(self, number: int, layer: Attention, states: Tensor, hidden: Tensor) -> Tensor:
        positions, places = self._model.positions, self._lengths.unsqueeze(1)
        query, key, value = (
            part(states).unflatten(2, layer.heads).transpose(1, 2)
            for part in (layer.query, layer.key, layer.value)
        )
        rows, width = torch.arange(len(states)), hidden.shape[1]
        keys, values = self._keys[number], self._values[number]
        keys[rows, :, self._lengths] = positions.rotate(key, places)[:, :, 0]
        values[rows, :, self._lengths] = value[:, :, 0]
        factor = self._scale() / math.sqrt(layer.heads[1])
        scores = positions.rotate(query, places) @ keys[:, :, :width].mT * factor
        bias = positions.bias(places, torch.arange(width).unsqueeze(0))
        scores = scores if bias is None else scores + bias
        masked = scores.masked_fill(hidden[:, None, None], torch.finfo(scores.dtype).min)
        # Where nothing is attended to, nothing is added.
        weights = masked.softmax(dim=-1) * ~hidden[:, None, None]
        mixed = weights @ values[:, :, :width]
        output: Tensor = layer.output(mixed.transpose(1, 2).flatten(2))
        return output

    def _scale(self) -> Tensor:
        """What scores are multiplied by: 1, or the logarithm of the tokens that are read."""
        read = (self._lengths + 1).to(getattr(torch, self._model.config.precision))
        if self._model.config.attention_scale == "sqrt":
            read = torch.full_like(read, math.e)
        return read.log()[:, None, None, None]


def _feed_forward(block: Block, states: Tensor) -> Tensor:
    layer = block.feed_forward
    fed: Tensor = layer.output(layer.activation(layer.input(states)))
    return fed
