"""The Transformer's logits without unread states: the last block only where it is read.

The same function as `seqcls.models.transformer`, which says what is computed; here no state has a
name, and a batch's masks are made once for all blocks and members.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from seqcls.engines.strings.batches import Batch
from seqcls.models.base import Outputs, Places
from seqcls.models.layers import Linear, masked_mean
from seqcls.models.positions.base import Bias, Positions
from seqcls.models.transformer import Attention, Block, Transformer
from seqcls.tokens.tokenizer import PAD

Hidden = Float[Tensor, "string position hidden"]


def transformer_logits(model: Transformer, batch: Batch) -> Outputs:
    """As `Transformer.forward`, without dropout."""
    states = model.positions.embed(model.embedding(batch.ids), batch.places)
    everywhere = _Queries(batch, model.positions)
    *before, last = model.blocks
    for block in before:
        states = _block(block, states, states, everywhere)
    if batch.config.readout == "mean":
        states = _block(last, states, states, everywhere)
        read = masked_mean(states, batch.ids != PAD)
    else:
        rows = batch.read_rows
        read_states = states[torch.arange(len(rows), device=rows.device), rows].unsqueeze(1)
        read = _block(last, read_states, states, everywhere.only_read()).squeeze(1)
    logits: Tensor = model.classifier(read).squeeze(-1)
    return logits


class _Queries:
    """The tokens that attend, with what is multiplied and added to their scores."""

    def __init__(self, batch: Batch, positions: Positions, *, only_read: bool = False) -> None:
        self.positions = positions
        self._batch = batch
        self._only_read = only_read
        self.keys = batch.places
        self.places = self._own(batch.places)
        self.scale = None if batch.scale is None else self._rows(batch.scale)
        self.idle = None if batch.idle is None else self._rows(batch.idle)
        mask = self._rows(batch.mask)
        bias: Bias | None = positions.bias(self.places, self.keys)
        self.bias = mask if bias is None else mask + bias

    def only_read(self) -> "_Queries":
        """Those at which the logit is read."""
        return _Queries(self._batch, self.positions, only_read=True)

    def _own(self, places: Places) -> Places:
        if not self._only_read:
            return places
        return places.expand(len(self._batch.ids), -1).gather(1, self._batch.read_rows[:, None])

    def _rows(self, values: Tensor) -> Tensor:
        """Of values with the axes string, head, query and another, those of the own queries."""
        if not self._only_read or values.shape[2] == 1:
            return values
        rows = self._batch.read_rows
        return values[torch.arange(len(rows), device=rows.device), :, rows].unsqueeze(2)


def _block(block: Block, query_states: Hidden, states: Hidden, queries: _Queries) -> Hidden:
    """The block's output for the attending tokens, given their states and those of all."""
    if block.norms_first:
        normalized = block.attention_norm(states)
        attending = normalized if query_states is states else block.attention_norm(query_states)
        query_states = query_states + _attention(block.attention, attending, normalized, queries)
        return query_states + _feed_forward(block, block.feed_forward_norm(query_states))
    query_states = block.attention_norm(
        query_states + _attention(block.attention, query_states, states, queries)
    )
    normed: Tensor = block.feed_forward_norm(query_states + _feed_forward(block, query_states))
    return normed


def _feed_forward(block: Block, states: Hidden) -> Hidden:
    layer = block.feed_forward
    fed: Tensor = layer.output(layer.activation(layer.input(states)))
    return fed


def _attention(layer: Attention, query_states: Hidden, states: Hidden, queries: _Queries) -> Hidden:
    def split(linear: Linear, states: Hidden) -> Tensor:
        heads: Tensor = linear(states).unflatten(2, layer.heads)
        return heads.transpose(1, 2)

    positions = queries.positions
    query = positions.rotate(split(layer.query, query_states), queries.places)
    key = positions.rotate(split(layer.key, states), queries.keys)
    value = split(layer.value, states)
    factor = 1 / math.sqrt(layer.heads[1])
    query = query * (factor if queries.scale is None else factor * queries.scale)
    weights = functional.softmax(query @ key.mT + queries.bias, dim=-1)
    mixed = weights @ value
    if queries.idle is not None:
        mixed = mixed.masked_fill(queries.idle, 0.0)
    output: Tensor = layer.output(mixed.transpose(1, 2).flatten(2))
    return output
