"""Whether a row's text says what it should, and whether what is packed in it fits its strings."""

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from jaxtyping import Bool

from seqcls.config import RunConfig
from seqcls.errors import ConfigError, SpecError
from seqcls.results import DRAWN
from sweeps.grid.spec import SweepSpec, spec_as_written

if TYPE_CHECKING:
    from seqcls.fields import TestSet

Parsed = TypeVar("Parsed")

IMPORTED_JSON = '"imported":"{'
"""Stands in the JSON of the configurations of models trained elsewhere, and of no others."""


def count_by_length(
    test: "TestSet", right: Bool[np.ndarray, " string"]
) -> list[tuple[int, int, int]]:
    """Lengths of test strings, how many each has, and how many of them a reader is right on."""
    lengths = np.unique(test.lengths)
    tested = np.bincount(test.lengths, test.occurrences)
    read = np.bincount(test.lengths, test.occurrences * right)
    return [(int(x), int(tested[x]), int(read[x])) for x in lengths]


def shortcut_misfit(lengths: str | None, correct: bytes | None, test: "TestSet") -> str | None:
    """What is wrong with what is stored of a reader; None where it fits the test strings."""
    if lengths is None or correct is None:
        return None
    number = len(test.texts)
    bits = np.unpackbits(np.frombuffer(correct, dtype=np.uint8)).astype(bool)
    if len(correct) != -(-number // 8) or bits[number:].any():
        return f"it has not one bit for each of {number:,} strings"
    if unpacked_lengths(lengths) != count_by_length(test, bits[:number]):
        return "its counts by length are not those of its bits"
    return None


def drawn_misfit(test: "TestSet") -> str | None:
    """What is wrong with how a test set's strings are said to be drawn; None where nothing is."""
    said = [(way, place) for place, way in enumerate(test.drawn or ()) if way is not None]
    if said and test.bits is None:
        return "its strings have no labels, yet are said to be positive or negative"
    # Of a border pair one string is positive and one negative.
    alone = [(way, place) for way, place in said if way != "border"]
    unfit = sum((way == DRAWN[0]) != bool(test.labels[place]) for way, place in alone)
    if unfit:
        return f"how {unfit:,} of its strings were drawn does not fit their labels"
    return None


def read_config(text: str) -> RunConfig:
    """The configuration in a row's JSON.

    Raises:
        ValueError: it is none.
    """
    return _read(text, RunConfig.from_mapping, "cannot be read")


def read_config_of_key(text: str, key: str | None) -> RunConfig:
    """The configuration in a row's JSON, of the key beside it.

    Raises:
        ValueError: it is none, or has another key.
    """
    config = read_config(text)
    if (misfit := key_misfit(config, key)) is not None:
        raise ValueError(misfit)
    return config


def key_misfit(config: RunConfig, key: str | None) -> str | None:
    """What is wrong with the key beside a configuration; None where it is its own."""
    if config.key == key:
        return None
    return f"its key is {str(key or '')[:16]!r}, not that of its json"


def read_spec(text: str) -> SweepSpec:
    """The specification in a row's JSON.

    Raises:
        ValueError: it is none.
    """
    return _read(text, spec_as_written, "its specification cannot be read")


def _read(text: str, reads: Callable[[dict[str, Any]], Parsed], said: str) -> Parsed:
    try:
        return reads(json.loads(text))
    except (ConfigError, SpecError, ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"{said} ({' '.join(str(error).split())[:200]})") from None


# What a shortcut reader reads rightly, by length, as JSON.


def packed_lengths(rows: Sequence[tuple[int, int, int]]) -> str:
    """An array of lengths, each an array of it, its test strings and those read rightly."""
    return json.dumps(rows, separators=(",", ":"))


def unpacked_lengths(text: str) -> list[tuple[int, int, int]]:
    """Lengths with how many test strings each has, and how many of them are read rightly.

    Raises:
        ValueError: it is no array of those.
    """
    rows = json.loads(text)
    if not isinstance(rows, list) or not all(map(_is_length, rows)):
        raise ValueError("no lengths")
    return [(length, tested, right) for length, tested, right in rows]


def _is_length(row: Any) -> bool:
    if not isinstance(row, list) or [type(part) for part in row] != [int, int, int]:
        return False
    length, tested, right = row
    return bool(length >= 0 and 0 <= right <= tested)
