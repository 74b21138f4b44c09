"""Does the order of the letters matter? Asked of the model that reads strings letter by letter."""

from dataclasses import dataclass

import numpy as np

from seqcls.errors import InvalidStringError
from seqcls.interpretability.counts.network import Network
from seqcls.tokens.tokenizer import CLS

MAX_LENGTH = 2_000
"""Attention between all pairs of so many letters still fits into memory."""


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

    from seqcls.models.transformer import Transformer

    length = sum(network.tokenizer.counts(string))
    if length > MAX_LENGTH:
        raise InvalidStringError(
            f"{string[:60]!r} has {length:,} letters, more than the {MAX_LENGTH:,} that are "
            "read letter by letter; shorten it"
        )
    letters = np.array(network.tokenizer.encode(string)[1:], dtype=np.int64)
    random = np.random.default_rng(seed)
    rows = [letters, *(random.permutation(letters) for _ in range(orders))]
    model = Transformer(network.problem.network).double().eval()
    model.load_state_dict({k: torch.from_numpy(v) for k, v in network.weights.items()})
    logits: list[float] = []
    with torch.no_grad():
        for row in rows:
            logits += model(torch.from_numpy(np.insert(row, 0, CLS))[None]).tolist()
    return Orders(
        strings=tuple(network.tokenizer.decode(row.tolist()) for row in rows),
        logits=tuple(logits),
        spread=max(logits) - min(logits),
    )
