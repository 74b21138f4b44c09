"""Token ids to vectors: of each token type, in which lanes a token is of it."""

import numpy as np

from seqcls.engines.lanes.vectors.compiling import kernel
from seqcls.engines.lanes.vectors.vector import (
    HALF,
    LANES,
    ONE,
    ZERO,
    absolute,
    if_less,
    load,
    spread,
    store,
)
from seqcls.tokens.tokenizer import CLS, FIRST_LETTER, PAD


@kernel
def mark_tokens(tokens, ids, a, types, types0, row, is_token0):
    """Writes 1 or 0 for each of the token types (CLS, then the letters), and whether it is a token.

    A matrix of embeddings times these is a look-up, for as many strings as there are lanes at once.

    Token ids are (position, lane). The vectors stand in `a`: those of the types from `types0` on,
    `row` from token to token, and one for each token, 0 for PAD, else 1, from `is_token0` on.
    """
    for token in range(tokens):
        for lane in range(LANES):
            a[(is_token0 + token) * LANES + lane] = np.float32(ids[token, lane])
        given = load(a, is_token0 + token)
        for kind in range(types):
            number = np.float32(CLS if kind == 0 else kind - 1 + FIRST_LETTER)
            apart = absolute(given - number)
            here = if_less(apart, spread(HALF), spread(ONE), spread(ZERO))
            store(a, types0 + token * row + kind, here)
        apart = absolute(given - np.float32(PAD))
        store(a, is_token0 + token, if_less(apart, spread(HALF), spread(ZERO), spread(ONE)))


@kernel
def mark_numbers(numbers, a, types, types0):
    """The same for one token in each lane, given by the number of its type."""
    for kind in range(types):
        for lane in range(LANES):
            a[(types0 + kind) * LANES + lane] = ONE if numbers[lane] == kind else ZERO
