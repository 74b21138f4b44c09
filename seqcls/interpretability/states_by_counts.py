"""What is inside a model of letter counts: its states, its circuits, and whether order matters."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int64

from seqcls.errors import InvalidStringError
from seqcls.interpretability.network import Network, sigmoid, softmax
from seqcls.interpretability.trained_model import MAX_LENGTH

# Every state that strings pass through, by the names that the plain model gives them.


@dataclass(frozen=True, eq=False)
class Activations:
    """The states of some strings. Equal letters have equal states: one row a token type.

    Token type 0 is `CLS`; the others are the letters of the alphabet, of which `present` says which
    occur. The rows of an absent token type are those that a token of it would have if it looked at
    the string without being in it. What no string changes (embeddings, keys, values, scores) has no
    string axis.
    """

    strings: tuple[str, ...]
    token_types: tuple[str, ...]
    counts: Int64[np.ndarray, "string token_type"]
    """How often each token type occurs; `CLS` once."""
    present: Bool[np.ndarray, "string token_type"]
    attended: Bool[np.ndarray, "string token_type"]
    """The tokens that are `present`, but `CLS` only where it is attended to."""

    embedding: Float[np.ndarray, "token_type hidden"]
    attention_norm: Float[np.ndarray, "token_type hidden"]
    query: Float[np.ndarray, "head token_type head_size"]
    key: Float[np.ndarray, "head token_type head_size"]
    value: Float[np.ndarray, "head token_type head_size"]
    scores: Float[np.ndarray, "head token_type token_type"]
    """Row the query's token type, column the key's."""

    weights: Float[np.ndarray, "string head token_type token_type"]
    """Attention that a token of the row's type gives to all tokens of the column's together."""
    weights_each: Float[np.ndarray, "string head token_type token_type"]
    """The same for a single token of the column's token type; zero where there is none."""
    mixed_value: Float[np.ndarray, "string head token_type head_size"]
    head_output: Float[np.ndarray, "string head token_type hidden"]
    """What each head adds to the stream; over the heads they sum to `attention_output`."""
    attention_output: Float[np.ndarray, "string token_type hidden"]
    after_attention: Float[np.ndarray, "string token_type hidden"]
    feed_forward_norm: Float[np.ndarray, "string token_type hidden"]
    feed_forward_input: Float[np.ndarray, "string token_type ff"]
    feed_forward_activation: Float[np.ndarray, "string token_type ff"]
    feed_forward_output: Float[np.ndarray, "string token_type hidden"]
    after_feed_forward: Float[np.ndarray, "string token_type hidden"]
    logit: Float[np.ndarray, " string"]
    probability: Float[np.ndarray, " string"]


def activations(network: Network, strings: Sequence[str]) -> Activations:
    """Every state of these strings, from their letter counts.

    Raises:
        InvalidStringError: a string that is not of this alphabet.
    """
    counts = network.counts(tuple(strings))
    log_counts = network.log_counts(counts)
    with_cls = np.insert(counts, 0, 1, axis=1)
    weights = softmax(network.scores + log_counts[:, None, None])
    mixed = weights @ network.value
    head_output = mixed @ network.head_to_hidden
    attention_output = head_output.sum(axis=1)
    after_attention = network.embedding + attention_output
    feed_forward = network.feed_forward(after_attention)
    after_feed_forward = after_attention + feed_forward.output
    logit = after_feed_forward[:, 0] @ network.classifier
    return Activations(
        strings=tuple(strings),
        token_types=network.token_types,
        counts=with_cls,
        present=with_cls > 0,
        attended=np.isfinite(log_counts),
        embedding=network.embedding,
        attention_norm=network.attention_norm,
        query=network.query,
        key=network.key,
        value=network.value,
        scores=network.scores,
        weights=weights,
        weights_each=weights / np.maximum(with_cls, 1)[:, None, None],
        mixed_value=mixed,
        head_output=head_output,
        attention_output=attention_output,
        after_attention=after_attention,
        feed_forward_norm=feed_forward.norm,
        feed_forward_input=feed_forward.input,
        feed_forward_activation=feed_forward.activation,
        feed_forward_output=feed_forward.output,
        after_feed_forward=after_feed_forward,
        logit=logit,
        probability=sigmoid(logit),
    )


# What a head looks for, and what it does with it, for all strings at once.
#
# A head is two maps (Elhage et al., *A Mathematical Framework for Transformer Circuits*, 2021): the
# key-query circuit W_q^T W_k / sqrt(head_size) says how much a token of one type attends to
# another, and the value-output circuit W_o W_v what attending to it writes. Both have at most the
# rank of the head.


@dataclass(frozen=True, eq=False)
class Circuits:
    """The circuits of one head."""

    head: int
    token_types: tuple[str, ...]
    scores: Float[np.ndarray, "token_type token_type"]
    """Row the query's token type, column the key's. Only the row of `CLS` is read."""
    key_query_rank: int
    """The rank of the hidden x hidden matrix."""
    value: Float[np.ndarray, "token_type head_size"]
    ov_output: Float[np.ndarray, "token_type hidden"]
    """Added to the stream of `CLS` where all attention is on a token type."""
    direct_logit: Float[np.ndarray, " token_type"]
    """What `ov_output` adds to the logit past the feed-forward, which adds its own for a whole
    string."""
    value_output_rank: int
    """The rank of the hidden x hidden matrix."""


def circuits(network: Network) -> tuple[Circuits, ...]:
    """The circuits of each head."""
    return tuple(_of_head(network, head) for head in range(network.config.num_attention_heads))


def _of_head(network: Network, head: int) -> Circuits:
    query, key, value = (_rows(network, name, head) for name in ("query", "key", "value"))
    return Circuits(
        head=head,
        token_types=network.token_types,
        scores=network.scores[head],
        key_query_rank=_rank(query.T @ key),
        value=network.value[head],
        ov_output=network.ov_output[head],
        direct_logit=network.ov_output[head] @ network.classifier,
        value_output_rank=_rank(network.head_to_hidden[head].T @ value),
    )


def _rows(network: Network, name: str, head: int) -> Float[np.ndarray, "head_size hidden"]:
    size = network.config.attention_head_size
    return network.weights[f"blocks.0.attention.{name}.weight"][head * size : (head + 1) * size]


def _rank(matrix: Float[np.ndarray, "hidden hidden"]) -> int:
    # Weights are trained in single precision; what is smaller than its rounding is no dimension.
    return int(np.linalg.matrix_rank(matrix, rtol=1e-6))


# Does the order of the letters matter? Asked of the model that reads strings letter by letter.


@dataclass(frozen=True)
class Orders:
    """The same letters in several orders."""

    strings: tuple[str, ...]
    """The string itself, then as many random orders of its letters."""
    logits: tuple[float, ...]
    spread: float
    """The largest difference of any two logits: rounding alone, where order does not matter."""


def letter_orders(network: Network, string: str, *, orders: int = 8, seed: int = 0) -> Orders:
    """Logits of `seqcls.models.transformer`, in float64, for random orders of a string's letters.

    Raises:
        InvalidStringError: the string is not of this alphabet, or longer than `MAX_LENGTH`.
    """
    # Imported where it is used: PyTorch takes a second or two to load.
    import torch

    from seqcls.interpretability.readable_model import ids_of, plain_model

    length = sum(network.tokenizer.counts(string))
    if length > MAX_LENGTH:
        raise InvalidStringError(
            f"{string[:60]!r} has {length:,} letters, more than the {MAX_LENGTH:,} that are "
            "read letter by letter; shorten it"
        )
    letters = np.array(network.letters(string), dtype=np.int64)
    random = np.random.default_rng(seed)
    shuffled = [random.permutation(letters) for _ in range(orders)]
    rows: list[list[int]] = [order.tolist() for order in (letters, *shuffled)]
    model = plain_model(network)
    with torch.no_grad():
        logits = [float(model(ids_of(network, [row]))) for row in rows]
    return Orders(
        strings=tuple(map(network.text, rows)),
        logits=tuple(logits),
        spread=max(logits) - min(logits),
    )
