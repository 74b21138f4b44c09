"""What a model reads of strings: their tokens, and a special one where it answers at a place."""

from typing import Literal

import numpy as np
from jaxtyping import UInt8

from seqcls.config import NetworkConfig
from seqcls.tokens.strings import TokenStrings
from seqcls.tokens.tokenizer import CLS, PAD

Readout = Literal["first", "last", "mean"]


def read_ids(strings: TokenStrings, readout: Readout) -> UInt8[np.ndarray, "string position"]:
    """The token ids that a model reads, `PAD` after each string's end.

    With the readout `first`, `CLS` stands before the letters; with `last`, the same token stands
    after them, as an end token; with `mean` there are only the letters.
    """
    ids = strings.ids
    if readout == "mean":
        return ids
    if readout == "first":
        return np.insert(ids, 0, CLS, axis=1)
    ended = np.pad(ids, ((0, 0), (0, 1)), constant_values=PAD)
    ended[np.arange(len(strings)), strings.lengths] = CLS
    return ended


def special_tokens(config: NetworkConfig) -> int:
    """How many tokens a model reads beside a string's own: one, or none for the readout `mean`."""
    return 0 if config.readout == "mean" else 1
