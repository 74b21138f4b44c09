r"""Reading of strings by their letter counts, for models for which it is exact.

Without positions equal letters have equal states in every block, so a model can read each letter
once. A token that occurs n times has the score of one token and the weight n exp(score); for a
query q and values v

    attention = sum_k softmax_k(q . key_k / sqrt(head_size) + log n_k) v_k

and a mean of states weighs each by n / N. So a string costs the same with 10 letters and with 10
million. `seqcls.models.transformer` and the engines of `seqcls.engines` implement this.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Integer

from seqcls.config import NetworkConfig
from seqcls.models.positions import Readout, read_ids
from seqcls.strings.token_strings import TokenStrings
from seqcls.strings.tokenizer import FIRST_LETTER


def counts_suffice(config: NetworkConfig, *, training: bool) -> str | None:
    """Returns the reason why letter counts do not determine the model's answers; None if they do.

    They do without positions, if every token attends to every other and the readout does not depend
    on a position: then equal tokens have equal states in every block.

    Args:
        config: the model's network.
        training: True for answers in training, with dropout.
    """
    # A subclass of the Transformer may compute something else.
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
    readout before or after them."""
    times: Float[np.ndarray, "string position"]
    """Number of times that each token occurs."""


def read_counts(
    readout: Readout,
    counts: Float[np.ndarray, "string letter"] | Integer[np.ndarray, "string letter"],
    special: float = 1.0,
) -> CountedStrings:
    """Makes strings from the counts, or shares, of each letter.

    Args:
        readout: that of a network for which letter counts suffice.
        special: how often the token of the readout occurs.
    """
    num_letters = counts.shape[1]
    (ids,) = read_ids(TokenStrings.of_lists(num_letters, [range(num_letters)]), readout)
    times = np.full((len(counts), len(ids)), special)
    # The letters are read in the order of the alphabet, which is that of the columns.
    times[:, ids >= FIRST_LETTER] = counts
    return CountedStrings(ids, times)
