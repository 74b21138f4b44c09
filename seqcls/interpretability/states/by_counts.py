"""Every state that strings pass through, by the names that the plain model gives them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int64

from seqcls.interpretability.model.network import Network, sigmoid, softmax


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
