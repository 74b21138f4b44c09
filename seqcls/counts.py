r"""Strings as their letter counts: where that is exact, and what a model reads then.

Without positions equal letters have equal states, in every block, so a string is read with each
letter once. For each head a query q scores a token that occurs n times like any other, and it
weighs n exp(score); with v the values

    attention = sum_k softmax_k(q . key_k / sqrt(head_size) + log n_k) v_k

and a mean of states weighs each by n / N. So a string costs the same with 10 letters and with 10
million. `seqcls.models.transformer` reads so, and the engines of `seqcls.engines`.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Integer

from seqcls.config import NetworkConfig
from seqcls.models.positions import Readout, read_ids
from seqcls.strings.token_strings import TokenStrings
from seqcls.strings.tokenizer import FIRST_LETTER


def counts_suffice(config: NetworkConfig, *, training: bool) -> str | None:
    """Why letter counts do not determine the model's answers; None where they do.

    Without positions, with every token attending to every other and a readout that does not depend
    on a place, equal tokens have equal states in every block, so a string is only its counts.

    Args:
        config: the model's network.
        training: whether the answers in training are meant, where dropout acts.
    """
    # Of the class itself, and of no subclass, which may compute something else.
    if config.architecture != "transformer":
        return f"architecture={config.architecture!r} may tell strings of equal letter counts apart"
    if config.positions != "none":
        return f"positions={config.positions!r} makes equal tokens differ by their place"
    if config.attention_mask != "full":
        return f"attention_mask={config.attention_mask!r} makes equal tokens differ by their place"
    if config.readout == "last_letter":
        return "readout='last_letter' makes the last letter differ"
    if training and config.dropout_rate > 0:
        return f"dropout_rate={config.dropout_rate} makes equal letters differ"
    return None


class CountedStrings(NamedTuple):
    """Strings as a model reads them by their letter counts."""

    ids: Integer[np.ndarray, " position"]
    """The tokens of every string: each letter once, in the alphabet's order, with the token of the
    readout before or behind them."""
    times: Float[np.ndarray, "string position"]
    """How often each token occurs."""


def read_counts(
    readout: Readout,
    counts: Float[np.ndarray, "string letter"] | Integer[np.ndarray, "string letter"],
    special: float = 1.0,
) -> CountedStrings:
    """Strings by how often each letter occurs; shares are read as well as numbers.

    Args:
        readout: that of a network of which `counts_suffice` holds.
        special: how often the token beside the letters occurs.
    """
    num_letters = counts.shape[1]
    (ids,) = read_ids(TokenStrings.of_lists(num_letters, [range(num_letters)]), readout)
    times = np.full((len(counts), len(ids)), special)
    # The letters are read in the order of the alphabet, which is that of the columns.
    times[:, ids >= FIRST_LETTER] = counts
    return CountedStrings(ids, times)
