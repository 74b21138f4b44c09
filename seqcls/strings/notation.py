"""The notation of strings, `ab{100}c{55}` and `<ab>{3}`: read as pieces, and grouped again."""

import re

import numpy as np
from jaxtyping import Bool, Int64

from seqcls.errors import InvalidStringError

MAX_COUNT = 2**63 - 1
"""The largest count that fits the integers of every database and array."""

MAX_SPELLED_LENGTH = 1_000_000
"""The most letters that are spelled out; longer strings exist only as counts."""

MAX_NESTING = 8
"""The deepest nesting of groups."""

_COUNT = re.compile(r"[1-9][0-9]*")
IN_BRACES = re.compile(r"\{([<>{}])\}")

_REPEATED = re.compile(r"(..)\1{3,}|(.{3,5}?)\2{2,}|(.{6,16}?)\3+", re.DOTALL)
"""Repetitions of runs, one character a run, that are shorter as a group."""

LONGEST_REPEATED = 16
"""The most runs of a group."""

SIGNS = re.compile(r"([^\w\s<>{}])(?:\{([1-9]|10)\}|(\{\d+\}))")
"""Equal signs, up to ten of which are written one by one; more are a group, `<(>{40}`."""

# More characters follow it than a string of eight million tokens has different runs.
FIRST_RUN = 0xF0000
"""The first of the characters, used by no alphabet, that represent runs in a search."""


Piece = tuple["int | list[Piece]", int]
"""A letter's number or the pieces of a group, and how often it is repeated."""


def count_at(text: str, place: int) -> tuple[int, int]:
    """The count at a place, 1 where there is none, and the place after it."""
    if text[place : place + 1] != "{" or IN_BRACES.match(text, place):
        return 1, place
    # If the next brace opens, this one is not closed.
    end = min((x for x in (text.find(y, place + 1) for y in "{}") if x >= 0), default=-1)
    if end < 0 or text[end] == "{":
        raise InvalidStringError(bad_brace(text, place))
    count = text[place + 1 : end]
    # A count longer than MAX_COUNT is refused before int() would have to read it.
    if _COUNT.fullmatch(count) is None:
        raise InvalidStringError(
            f"cannot read the count {shorten(count)} in {shorten(text)}: expected a whole number "
            "of at least 1 in plain digits, as in a{3}"
        )
    if len(count) > len(str(MAX_COUNT)) or int(count) > MAX_COUNT:
        raise InvalidStringError(
            f"the count {shorten(count)} in {shorten(text)} is larger than {MAX_COUNT:,}"
        )
    return int(count), end + 1


def add_counts(counts: list[int], pieces: list[Piece], times: int = 1) -> list[int]:
    for what, count in pieces:
        if isinstance(what, list):
            # Counts multiply through groups: `<ab>{1000000}` is never written out.
            add_counts(counts, what, times * count)
        else:
            counts[what] += times * count
    return counts


def write_out(pieces: list[Piece], text: str) -> list[tuple[int, int]]:
    written: list[tuple[int, int]] = []
    for what, count in pieces:
        if isinstance(what, list):
            inner = write_out(what, text)
            # Checked before the list is multiplied, which could fill memory.
            if len(written) + len(inner) * count > MAX_SPELLED_LENGTH:
                raise InvalidStringError(
                    f"{shorten(text)} has more than the {MAX_SPELLED_LENGTH:,} pieces that can be "
                    "spelled out; shorten it, or work with its counts"
                )
            written += inner * count
        else:
            written.append((what, count))
    return written


def may_repeat(runs: Int64[np.ndarray, "string run"]) -> Bool[np.ndarray, " string"]:
    """True for strings that `_REPEATED` may match: six runs in a row equal those some places back.

    Args:
        runs: their numbers, -1 after each string's end.
    """
    found = np.zeros(len(runs), dtype=bool)
    for back in range(2, min(LONGEST_REPEATED, runs.shape[1] - 6) + 1):
        same = (runs[:, back:] == runs[:, :-back]) & (runs[:, back:] >= 0)
        two = same[:, 1:] & same[:, :-1]
        # Three pairs side by side are six, with fewer comparisons.
        six = two[:, :-4] & two[:, 2:-2] & two[:, 4:]
        found |= six.any(axis=1)
    return found


def group_runs(row: str, texts: list[str], separator: str) -> str:
    """The text of runs, with repetitions as groups; `row` has a character for each run."""
    parts: list[str] = []
    done = 0
    for repeated in _REPEATED.finditer(row):
        size = len(repeated[repeated.lastindex or 0])
        parts += texts[done : repeated.start()]
        unit = separator.join(texts[repeated.start() : repeated.start() + size])
        parts.append(f"<{unit}>{{{len(repeated[0]) // size}}}")
        done = repeated.end()
    return separator.join(parts + texts[done:])


def bad_brace(text: str, place: int) -> str:
    following = "a count must follow a letter or a group, as in a{3} or <ab>{3}"
    before = text[place - 1 : place]
    if text[place] == "{" and before and before != "}" and not before.isspace():
        following = "'{' is not closed: write a count as in a{3}"
    return f"cannot read {shorten(text)} at character {place + 1}: {following}"


def bad_group(text: str, place: int) -> str:
    return (
        f"cannot read {shorten(text)} at character {place}: a group has a '<', one or more "
        "letters and a '>', as in <ab>{3}"
    )


def shorten(text: str, limit: int = 60) -> str:
    return repr(text if len(text) <= limit else text[:limit] + "…")
