"""A Transformer that keeps the keys and values of the tokens before."""

import math
from collections.abc import Mapping

import torch
from jaxtyping import Float, Int64
from torch import Tensor
from torch.nn import functional

from seqcls.models.base import Classifier, Ids, Recorder
from seqcls.models.heads import BodyAndHead
from seqcls.models.positions.places import places_of
from seqcls.models.transformer import Attention, Block, Side, Transformer
from seqcls.tokens.tokenizer import CLS, FIRST_LETTER, PAD

Cache = Float[Tensor, "string head position head_size"]
NOTHING = Recorder()
"""No state of a step is recorded; nothing drops any where a model writes."""


class TransformerStepper:
    """A `seqcls.decoding.stepping.Stepper` whose step costs one token, however many were before."""

    def __init__(
        self,
        model: BodyAndHead,
        body: Transformer | Side,
        lengths: Tensor,
        keys: list[Tensor],
        values: list[Tensor],
    ) -> None:
        self._model = model
        self._body = body
        self._lengths = lengths
        self._keys = keys
        self._values = values
        self._places: Tensor | None = None
        """The places of all tokens, those included that will be written; None where they are
        counted."""

    @classmethod
    def start(
        cls, model: Transformer, ids: Ids, most_tokens: int
    ) -> "tuple[TransformerStepper, Float[Tensor, 'string output']]":
        """Implements `seqcls.decoding.stepping.start`."""
        kept = model.activations(ids)
        lengths = (ids != PAD).sum(dim=1)
        last = kept["logits"][torch.arange(len(ids)), lengths - 1]
        stepper = cls(
            model, model, lengths, *cached(model, kept, "blocks.{}.attention", most_tokens)
        )
        if model.config.coupling:
            # A place depends on the input and on how many tokens are written, not on which.
            wide = functional.pad(ids, (0, most_tokens), value=PAD)
            after = torch.arange(wide.shape[1]) >= lengths[:, None]
            stepper._places = places_of(model.config, wide.masked_fill(after, FIRST_LETTER))
        return stepper, last

    def step(self, tokens: Int64[Tensor, " string"]) -> Float[Tensor, "string output"]:
        """Implements `Stepper.step`."""
        body, places = self._body, self._lengths.unsqueeze(1)
        states = body.positions.embed(self._model.embedding(tokens.unsqueeze(1)), self._next())
        width = int(self._lengths.max()) + 1
        before = torch.arange(width)
        hidden = before > places
        if body.config.no_attend_cls:
            hidden = hidden | (before == CLS)
        for number, block in enumerate(body.blocks):
            states = self._block(number, block, states, hidden)
        self._lengths = self._lengths + 1
        if body.final_norm is not None:
            states = body.final_norm(states)
        return self._model.head(states[:, 0])

    def take(self, rows: Int64[Tensor, " row"]) -> None:
        """Implements `Stepper.take`."""
        self._lengths = self._lengths[rows]
        self._keys = [keys[rows] for keys in self._keys]
        self._values = [values[rows] for values in self._values]
        self._places = None if self._places is None else self._places[rows]

    def _next(self) -> Int64[Tensor, "string 1"]:
        """The places of the tokens that are read now."""
        counted = self._lengths.unsqueeze(1)
        return counted if self._places is None else self._places.gather(1, counted)

    def _block(self, number: int, block: Block, states: Tensor, hidden: Tensor) -> Tensor:
        def part(read: Tensor) -> Tensor:
            return self._attention(number, block.attention, read, hidden)

        states = block.added("attention", block.attention_norm, part, states, NOTHING)
        return block.fed(self._crossed(number, block, states), NOTHING)

    def _crossed(self, number: int, block: Block, states: Tensor) -> Tensor:
        """The states after attention to those of another stream, where there is one."""
        del number, block
        return states

    def _attention(self, number: int, layer: Attention, states: Tensor, hidden: Tensor) -> Tensor:
        positions, places = self._body.positions, self._lengths.unsqueeze(1)
        query, key, value = (
            layer.split(part(states)) for part in (layer.query, layer.key, layer.value)
        )
        rows, width = torch.arange(len(states)), hidden.shape[1]
        keys, values = self._keys[number], self._values[number]
        keys[rows, :, self._lengths] = positions.rotate(key, places)[:, :, 0]
        values[rows, :, self._lengths] = value[:, :, 0]
        factor = self._scale() / math.sqrt(layer.heads[1])
        scores = positions.rotate(query, places) @ keys[:, :, :width].mT * factor
        bias = positions.bias(places, torch.arange(width).unsqueeze(0))
        scores = scores if bias is None else scores + bias
        return layer.mixed(scores, values[:, :, :width], ~hidden[:, None, None], NOTHING)

    def _scale(self) -> Tensor:
        """What scores are multiplied by: 1, or the logarithm of the tokens that are read."""
        read = (self._lengths + 1).to(getattr(torch, self._body.config.precision))
        if self._body.config.attention_scale == "sqrt":
            read = torch.full_like(read, math.e)
        return read.log()[:, None, None, None]


def cached(
    model: Classifier, kept: Mapping[str, Tensor], attention: str, most_tokens: int = 0
) -> tuple[list[Cache], list[Cache]]:
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
