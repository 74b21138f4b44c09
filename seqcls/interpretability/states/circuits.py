r"""What a head looks for, and what it does with it, for all strings at once.

A head is two maps (Elhage et al., *A Mathematical Framework for Transformer Circuits*, 2021): the
key-query circuit W_q^T W_k / sqrt(head_size) says how much a token of one type attends to another,
and the value-output circuit W_o W_v what attending to it writes. Both have at most the rank of
the head.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from seqcls.interpretability.model.network import Network


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
