"""Edits of strings: letters inserted, replaced and deleted at random."""

import numpy as np
from jaxtyping import Int64

from seqcls.strings.token_strings import NO_LETTER, TokenStrings

_INSERT, _REPLACE, _DELETE = range(3)


def edit(
    rng: np.random.Generator,
    strings: TokenStrings,
    edits: Int64[np.ndarray, " string"],
    kinds: Int64[np.ndarray, " edit"] | None = None,
) -> TokenStrings:
    """The strings after a number of random edits each, one after another.

    Each edit is an insertion, a replacement by another letter, or a deletion, equally likely, at a
    uniform place. The empty string has nothing to replace or delete, and stays unchanged. `kinds`
    are those of the edits, uniform below 3, if they were drawn before.
    """
    total = int(edits.sum())
    # All numbers are drawn in one call: a call for each edit would take most of the time.
    operations = iter((rng.integers(3, size=total) if kinds is None else kinds).tolist())
    places = iter(rng.random(total).tolist())
    letters = iter(rng.integers(strings.num_letters, size=total).tolist())
    # In an alphabet of one letter, a shift by 1 gives the same letter.
    shifts = iter(rng.integers(1, max(strings.num_letters, 2), size=total).tolist())
    rows = []
    # Slicing byte strings is faster than indexing arrays.
    for row, length, number in zip(
        strings.letters, strings.lengths.tolist(), edits.tolist(), strict=True
    ):
        string = row[:length].tobytes()
        for _ in range(number):
            kind, share, letter, shift = next(operations), next(places), next(letters), next(shifts)
            # An insertion has one more place than there are tokens.
            place = int(share * (len(string) + (kind == _INSERT)))
            before, after = string[:place], string[place + (kind != _INSERT) :]
            if kind == _INSERT:
                string = before + bytes([letter]) + after
            elif string and kind == _REPLACE:
                other = (string[place] + shift) % strings.num_letters
                string = before + bytes([other]) + after
            elif string:
                string = before + after
        rows.append(string)
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    width = int(lengths.max(initial=0))
    filled = b"".join([row.ljust(width, bytes([NO_LETTER])) for row in rows])
    made = np.frombuffer(filled, dtype=np.uint8).reshape(len(rows), width)
    return TokenStrings(strings.num_letters, lengths, made)


def growth(kinds: Int64[np.ndarray, " edit"]) -> Int64[np.ndarray, " edit"]:
    """The number of tokens that edits of these kinds add."""
    return np.asarray((kinds == _INSERT).astype(np.int64) - (kinds == _DELETE))
