"""The states of blocks on the shortest way to the logits: none of padding.

The same functions as in `seqcls.models.blocks`, which says what is computed; here no state has a
name, and a batch's masks are made once for all blocks and members. The tokens of all strings stand
in one array, one string after another; only attention spreads them over strings and positions.
"""

import math

import torch
from jaxtyping import Float, Int64, Integer
from torch import Tensor
from torch.nn import functional

from seqcls.models.batches import Batch
from seqcls.models.blocks import Attention, Block
from seqcls.models.positions.schemes import Bias, Heads, Places, Positions

Hidden = Float[Tensor, "token hidden"]
Asking = Float[Tensor, "query hidden"]
"""The states of the tokens that attend: of all, or of those that are read."""


class Queries:
    """The tokens that attend, with what is multiplied and added to their scores.

    They attend to the tokens of `keys`: those of the same batch, or of the same strings' other
    stream.
    """

    def __init__(
        self,
        batch: Batch,
        positions: Positions,
        *,
        only_read: bool = False,
        keys: Batch | None = None,
    ) -> None:
        self.positions = positions
        self.batch = batch
        self.keys = batch if keys is None else keys
        self._only_read = only_read
        self.places = self._own(batch.places)
        self.scale = None if self.keys.scale is None else self._rows(self.keys.scale)
        self.idle = None if self.keys.idle is None else self._rows(self.keys.idle)
        mask = self._rows(self.keys.mask)
        bias: Bias | None = positions.bias(self.places, self.keys.places)
        self.bias = mask if bias is None else mask + bias

    def only_read(self) -> "Queries":
        """Those at which the logit is read."""
        return Queries(self.batch, self.positions, only_read=True)

    def heads(self, states: Asking) -> Heads:
        """The heads of the attending tokens."""
        if self._only_read:
            return states.view(len(states), *_sizes(self.batch)).unsqueeze(2)
        return _heads(states, self.batch)

    def tokens(self, heads: Heads) -> Float[Tensor, "query mixed"]:
        """The attending tokens of which these are the heads."""
        if self._only_read:
            return heads.flatten(1)
        rows = heads.flatten(0, 2).index_select(0, self.batch.head_rows)
        return rows.view(len(self.batch.token_rows), math.prod(_sizes(self.batch)))

    def _own(self, places: Places) -> Integer[Tensor, "#string query"]:
        if not self._only_read:
            return places
        return places.expand(len(self.batch.ids), -1).gather(1, self.batch.read_rows[:, None])

    def _rows(self, values: Tensor) -> Tensor:
        """Chooses the own queries' values from those with the axes string, head, query and
        another.
        """
        if not self._only_read or values.shape[2] == 1:
            return values
        rows = self.batch.read_rows
        return values[torch.arange(len(rows), device=rows.device), :, rows].unsqueeze(2)


def through(block: Block, query_states: Asking, states: Hidden, queries: Queries) -> Asking:
    """The block's output for the attending tokens, given their states and those of all."""
    return apply_feed_forward(block, attend(block, query_states, states, queries))


def attend(block: Block, query_states: Asking, states: Hidden, queries: Queries) -> Asking:
    """The attending tokens' states after the block's attention."""
    if block.norms_first:
        normalized = block.attention_norm(states)
        attending = normalized if query_states is states else block.attention_norm(query_states)
        return query_states + attention(block.attention, attending, normalized, queries)
    normed: Tensor = block.attention_norm(
        query_states + attention(block.attention, query_states, states, queries)
    )
    return normed


def apply_feed_forward(block: Block, states: Hidden) -> Hidden:
    """The states after the block's feed-forward."""
    if block.norms_first:
        return states + _feed_forward(block, block.feed_forward_norm(states))
    normed: Tensor = block.feed_forward_norm(states + _feed_forward(block, states))
    return normed


def _feed_forward(block: Block, states: Hidden) -> Hidden:
    layer = block.feed_forward
    fed: Tensor = layer.output(layer.activation(layer.input(states)))
    return fed


def attention(layer: Attention, query_states: Asking, states: Hidden, queries: Queries) -> Asking:
    """What attending tokens take from others, given the states of both."""
    positions, keys = queries.positions, queries.keys
    query = positions.rotate(queries.heads(layer.query(query_states)), queries.places)
    key = positions.rotate(_heads(layer.key(states), keys), keys.places)
    value = _heads(layer.value(states), keys)
    factor = 1 / math.sqrt(layer.heads[1])
    query = query * (
        factor if queries.scale is None else factor * layer.scale_by_length(queries.scale)
    )
    weights = functional.softmax(query @ key.mT + queries.bias, dim=-1)
    mixed = weights @ value
    if queries.idle is not None:
        mixed = mixed.masked_fill(queries.idle, 0.0)
    output: Tensor = layer.output(queries.tokens(mixed))
    return output


def _heads(states: Hidden, batch: Batch) -> Heads:
    """The heads of all tokens by string and position."""
    heads, size = _sizes(batch)
    strings, width = batch.ids.shape
    return spread(states.reshape(-1, size), batch.head_rows, (strings, heads, width))


def _sizes(batch: Batch) -> tuple[int, int]:
    return batch.config.num_attention_heads, batch.config.attention_head_size


def spread(
    states: Float[Tensor, "row size"], rows: Int64[Tensor, " row"], shape: tuple[int, ...]
) -> Float[Tensor, "*shape size"]:
    """An array of that shape with the states in these of its rows; zeros for padding."""
    zeros = states.new_zeros(()).expand(math.prod(shape), states.shape[1])
    return zeros.index_copy(0, rows, states).view(*shape, states.shape[1])
