"""What is wrong with an output: its edits, where it leaves the target, and the kind of error."""

from collections.abc import Sequence

from seqcls.kinds.base import ErrorKind

LOOPS = 3
"""Times that the end of an output is repeated, to be called a loop."""


def edits(output: Sequence[int], target: Sequence[int]) -> int:
    """Insertions, deletions and substitutions from one to the other (Levenshtein 1966)."""
    # Loaded where outputs are compared, and not wherever a kind of task is named.
    from rapidfuzz.distance import Levenshtein

    return int(Levenshtein.distance(output, target))


def first_wrong(output: Sequence[int], target: Sequence[int]) -> int:
    """Tokens before the first in which they differ; of a prefix its length."""
    pairs = zip(output, target, strict=False)
    return next(
        (place for place, (token, right) in enumerate(pairs) if token != right),
        min(len(output), len(target)),
    )


def error_kind(output: Sequence[int], target: Sequence[int], *, ended: bool) -> ErrorKind:
    """The first of the kinds that holds of a wrong output.

    Args:
        target: other ones, or the same where `END` did not come.
        ended: whether `END` came; a loop is cut off.
    """
    same = first_wrong(output, target)
    if same == len(output) < len(target):
        return "stopped early"
    if same == len(target):
        return "went on"
    return "repeats" if not ended and _loops(output) else "wrong token"


def _loops(output: Sequence[int]) -> bool:
    """Whether an output ends with the same tokens three times, or more."""
    for period in range(1, len(output) // LOOPS + 1):
        end = output[len(output) - LOOPS * period :]
        if all(end[place] == end[place % period] for place in range(len(end))):
            return True
    return False
