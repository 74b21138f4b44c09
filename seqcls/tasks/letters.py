"""Axes of charts that every language has: how often each token occurs."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int64

from seqcls.tokens.strings import TokenStrings

DEFECT = "length before the first defect"
"""An axis of languages in which no continuation mends a defect: tokens of the longest prefix with
which a positive string begins."""


def letter_counts(
    alphabet: Sequence[str], strings: TokenStrings
) -> dict[str, Int64[np.ndarray, " string"]]:
    """How often each token of the alphabet occurs in each string, by a name such as `a's`."""
    return {f"{letter}'s": strings.counts[:, number] for number, letter in enumerate(alphabet)}
