"""Does the order of the letters matter? Asked of the model that reads strings letter by letter."""

from dataclasses import dataclass

import numpy as np

from seqcls.errors import InvalidStringError
from seqcls.interpretability.model.network import Network
from seqcls.interpretability.model.trained_model import MAX_LENGTH


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

    from seqcls.interpretability.model.readable_model import ids_of, plain_model

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
