"""The circuits of attention heads, and the effect of the order of letters.

A head is two maps (Elhage et al., *A Mathematical Framework for Transformer Circuits*, 2021): the
key-query circuit W_q^T W_k / sqrt(head_size) gives the score of a key's token type for a query's,
and the value-output circuit W_o W_v what attending to it writes. Both have at most the rank of the
head.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float

from seqcls.errors import ConfigError
from seqcls.interpretability import readable_model
from seqcls.interpretability.readable_model import SPECIAL, name_tokens, plain_model
from seqcls.interpretability.trained_model import Letters, TrainedModel
from seqcls.models.base import BodyAndHead
from seqcls.models.blocks import Attention, Residual
from seqcls.models.parts import Site
from seqcls.strings.tokenizer import CLS, FIRST_LETTER


class Circuits(NamedTuple):
    """The circuits of one head."""

    block: int
    head: int
    name: str
    """Such as `block 0, head 1` or `decoder block 0, cross-attention head 1`."""
    token_types: tuple[str, ...]
    """The tokens of the vocabulary: `CLS` or `END` where they are read, and the letters."""
    scores: Float[np.ndarray, "token_type token_type"]
    """Row the query's token type, column the key's: query . key / sqrt(head_size), without what
    positions and the length of a string make of it."""
    key_query_rank: int
    """The rank of the hidden x hidden matrix."""
    value: Float[np.ndarray, "token_type head_size"]
    output: Float[np.ndarray, "token_type hidden"]
    """The vector added to the stream where all attention is on a token type."""
    direct_logit: Float[np.ndarray, "token_type *output"]
    """The part of the logit, or of each of several outputs of the head, that `output` adds, past
    all later parts and norms, which depend on the whole string."""
    value_output_rank: int
    """The rank of the hidden x hidden matrix."""


def circuits(model: TrainedModel) -> tuple[Circuits, ...]:
    """The same as `head_circuits`, of a model that has heads.

    Raises:
        ConfigError: no head of the model attends to tokens by query and key.
    """
    if found := head_circuits(model):
        return found
    raise ConfigError(
        f"architecture={model.config.architecture!r} has no heads that attend to tokens by query "
        "and key; look at its units along a string instead"
    )


def head_circuits(model: TrainedModel) -> tuple[Circuits, ...]:
    """The circuits of each head of every block that attends to tokens, in the model's order.

    Each reads the embeddings of the tokens alone, through the norm where that comes before
    it: without positions where there are any, and without what earlier blocks have added.
    """
    plain = plain_model(model)
    found = list[Circuits]()
    with torch.no_grad():
        for part, state in plain.parts().items():
            name = state.removesuffix(".mixed_value")
            # A head's recorded state is named after the module that attends.
            mixer = plain.get_submodule(name) if part.name == "head" else None
            attention = getattr(mixer, "attention", mixer)
            sees_picture = bool(plain.config.picture) and part.which != ""
            # Keys of a picture are no tokens, which rows and columns could be called by.
            if isinstance(attention, Attention) and not sees_picture:
                found.append(_circuits(model, part, name, attention))
    return tuple(found)


def _circuits(model: TrainedModel, part: Site, name: str, attention: Attention) -> Circuits:
    plain = plain_model(model)
    assert isinstance(plain, BodyAndHead)
    assert part.block is not None
    assert part.number is not None
    types = [CLS] * (plain.config.readout in SPECIAL)
    types += range(FIRST_LETTER, plain.config.vocabulary_size)
    embedded = plain.embedding(torch.tensor(types))
    parent, _, within = name.rpartition(".")
    residual = plain.get_submodule(parent)
    read = embedded
    if isinstance(residual, Residual) and residual.norms_first:
        read = getattr(residual, f"{within}_norm")(embedded)
    # What a decoder attends to of another stream it reads as it is.
    other = embedded if within == "cross_attention" else read
    rows = slice(part.number * attention.heads[1], (part.number + 1) * attention.heads[1])
    query, key, value = (
        layer(states)[:, rows]
        for layer, states in (
            (attention.query, read), (attention.key, other), (attention.value, other),
        )
    )  # fmt: skip
    out = attention.output.weight[:, rows]
    output = value @ out.T
    reader = plain.embedding.weight if plain.classifier is None else plain.classifier.weight
    direct = output @ reader.T
    return Circuits(
        block=part.block,
        head=part.number,
        name=part.text,
        token_types=name_tokens(model, types),
        scores=(query @ key.T / math.sqrt(attention.heads[1])).numpy(),
        key_query_rank=_rank(attention.query.weight[rows].T @ attention.key.weight[rows]),
        value=value.numpy(),
        output=output.numpy(),
        direct_logit=(direct[:, 0] if direct.shape[1] == 1 else direct).numpy(),
        value_output_rank=_rank(out @ attention.value.weight[rows]),
    )


def _rank(matrix: Float[torch.Tensor, "hidden hidden"]) -> int:
    # Weights are trained in single precision; what is smaller than its rounding is no dimension.
    return int(np.linalg.matrix_rank(matrix.numpy(), rtol=1e-6))


class Orders(NamedTuple):
    """The same letters in several orders."""

    strings: tuple[str, ...]
    """The string itself, then as many random orders of its letters."""
    logits: tuple[float, ...]
    """The logits of a language, else the scores of the kind; NaN where an order is no input."""
    spread: float
    """The largest difference of any two: rounding alone, where order does not matter."""


def letter_orders(model: TrainedModel, letters: Letters, orders: int, seed: int) -> Orders:
    """Logits of random orders of a string's letters, which are read letter by letter.

    Of a language in double precision, else in that of the model's test.
    """
    random = np.random.default_rng(seed)
    given = np.array(letters, dtype=np.int64)
    rows: Sequence[list[int]]
    rows = [given.tolist(), *(random.permutation(given).tolist() for _ in range(orders))]
    if model.problem.lacks("labels"):
        logits = model.ask_all(rows).score.tolist()
    else:
        logits = [
            float(readable_model.run(model, readable_model.read(model, [row]))) for row in rows
        ]
    # An order that is no input has no score.
    known = [x for x in logits if not math.isnan(x)]
    spread = max(known) - min(known) if known else math.nan
    return Orders(tuple(map(model.text, rows)), tuple(logits), spread)
