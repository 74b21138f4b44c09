"""Errors of an output: its edit distance, its first wrong token, and the kind of error."""

from collections.abc import Sequence

from seqcls.kinds.base import ErrorKind

LOOPS = 3
"""Least number of repetitions at the end of an output that make a loop."""


def edits(output: Sequence[int], target: Sequence[int]) -> int:
    """Number of insertions, deletions and substitutions between both (Levenshtein 1966)."""
    # Imported where outputs are compared, not wherever a kind of task is named.
    from rapidfuzz.distance import Levenshtein

    return int(Levenshtein.distance(output, target))


def first_wrong(output: Sequence[int], target: Sequence[int]) -> int:
    """Number of tokens before the first that differs; the length of a prefix."""
    pairs = zip(output, target, strict=False)
    return next(
        (place for place, (token, right) in enumerate(pairs) if token != right),
        min(len(output), len(target)),
    )


def error_kind(output: Sequence[int], target: Sequence[int], *, ended: bool) -> ErrorKind:
    """Returns the first kind of error that applies to a wrong output.

    Args:
        target: other tokens, or the same if `END` was not written.
        ended: True if `END` was written; a loop is cut off.
    """
    same = first_wrong(output, target)
    if same == len(output) < len(target):
        return "stopped early"
    if same == len(target):
        return "went on"
    return "repeats" if not ended and _loops(output) else "wrong token"


def _loops(output: Sequence[int]) -> bool:
    """True if an output ends with the same tokens three times or more."""
    for period in range(1, len(output) // LOOPS + 1):
        end = output[len(output) - LOOPS * period :]
        if all(end[place] == end[place % period] for place in range(len(end))):
            return True
    return False
