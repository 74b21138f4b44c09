"""Random edits of many strings at once."""

import numpy as np
from jaxtyping import Int64, UInt8

from seqcls.strings import NO_LETTER, TokenStrings

_INSERT, _REPLACE, _DELETE = range(3)


def edited(
    rng: np.random.Generator, strings: TokenStrings, edits: Int64[np.ndarray, " string"]
) -> TokenStrings:
    """The strings after so many random edits each, one after another.

    Each edit is an insertion, a replacement by another letter, or a deletion, all alike likely, at
    a uniform place. There is nothing to replace or delete in the empty string: it stays.
    """
    most = int(edits.max(initial=0))
    padding = np.full((len(strings), most), NO_LETTER, dtype=np.uint8)
    letters = np.concatenate([strings.letters, padding], axis=1)
    lengths = strings.lengths.copy()
    for done in range(most):
        rows = np.flatnonzero(edits > done)
        letters[rows], lengths[rows] = _edit(rng, strings.num_letters, letters[rows], lengths[rows])
    return TokenStrings.of_letters(strings.num_letters, letters, lengths)


def _edit(
    rng: np.random.Generator,
    num_letters: int,
    letters: UInt8[np.ndarray, "string position"],
    lengths: Int64[np.ndarray, " string"],
) -> tuple[UInt8[np.ndarray, "string position"], Int64[np.ndarray, " string"]]:
    kinds = rng.integers(3, size=len(lengths))
    places = rng.integers(np.maximum(lengths + (kinds == _INSERT), 1))
    new = rng.integers(num_letters, size=len(lengths))
    others = rng.integers(max(num_letters - 1, 1), size=len(lengths))
    rows = np.arange(len(lengths))
    # The other letters in a circle, beginning after the one that is there.
    old = letters[rows, places].astype(np.int64)
    replaced = (old + 1 + others) % num_letters
    positions = np.arange(letters.shape[1])
    after = positions > places[:, None]
    inserts, deletes = kinds == _INSERT, (kinds == _DELETE) & (lengths > 0)
    source = positions - (after & inserts[:, None])
    source += (positions >= places[:, None]) & deletes[:, None]
    # What a deletion takes in at the array's end lies beyond the string's.
    moved = np.take_along_axis(letters, np.minimum(source, letters.shape[1] - 1), axis=1)
    moved[rows[inserts], places[inserts]] = new[inserts]
    replaces = (kinds == _REPLACE) & (lengths > 0)
    moved[rows[replaces], places[replaces]] = replaced[replaces]
    return moved, lengths + inserts - deletes
