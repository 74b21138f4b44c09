"""Checks of a row: whether its text says what it should, and whether its values fit each other.

A file whose tables check nothing is looked through in SQL, before any of its values is trusted;
what was read and trusted is verified in Python. Both make the checks of this list, and say the
same of the same damage.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from jaxtyping import Bool

from seqcls.config import RunConfig
from seqcls.errors import ConfigError, SpecError
from seqcls.results import DRAWN, Confusion
from sweeps.grid.spec import SweepSpec, spec_as_written
from sweeps.results import OUTPUT_COUNTS, RANGE_COLUMNS
from sweeps.store.columns import unpacked_lengths

if TYPE_CHECKING:
    from seqcls.fields import TestSet

Row = Mapping[str, Any]
"""Values by their columns: of one row, or of all rows of a run as arrays."""

Parsed = TypeVar("Parsed")

IMPORTED_JSON = '"imported":"{'
"""Stands in the JSON of the configurations of models trained elsewhere, and of no others."""

OF_DONE = ("tested", "wrong", "solved_length", "digest")
"""What a run has once it is done."""

OF_TRAINED = ("epochs", "best_epoch", "best_validation_loss")
"""What it has besides, where it was not trained elsewhere."""

NO_RESULTS = "it is done and has no results"

SOME_OUTPUTS = "only some of its right_length_given, edits, target_tokens and outputs exist"


@dataclass(frozen=True)
class Contradiction:
    """Values of a row that cannot stand beside each other."""

    tables: tuple[str, ...]
    said: str
    sql: str
    """The condition that they do, for SQLite."""
    holds: Callable[[Row], bool] | None = None
    """Whether any row does; None where a digest tells that it does."""


def _some_are_missing(names: tuple[str, ...]) -> str:
    """The condition, in SQL, that some columns have values and others do not."""
    missing = " + ".join(f"({name} IS NULL)" for name in names)
    return f"{missing} NOT IN (0, {len(names)})"


def _is_known(values: Any) -> set[Any]:
    """The values that are there."""
    return {*np.ravel(values).tolist()} - {None}


def _has_outputs(row: Row) -> bool:
    """Whether there is a number of all that is counted of outputs."""
    return not any(None in np.ravel(row[name]).tolist() for name in OUTPUT_COUNTS)


def _has_ranges(row: Row) -> bool:
    """Whether a run is judged on trained and on longer lengths."""
    return not any(row[name] is None for name in RANGE_COLUMNS)


def _differs_from_confusion(row: Row) -> bool:
    tn, fp, fn, tp = cells = [row[name] for name in Confusion._fields]
    if any(None in np.ravel(cell).tolist() for cell in cells):
        return any(map(_is_known, cells))
    return bool(np.any((tn + fp + fn + tp != row["tested"]) | (fp + fn != row["wrong"])))


CONTRADICTIONS = (
    Contradiction(
        ("run", "length_score"),
        "it got more strings wrong than it was tested on",
        "wrong > tested",
        lambda row: bool(np.any(row["wrong"] > row["tested"])),
    ),
    Contradiction(
        ("run", "length_score"),
        "its tested and wrong are not those of its tn, fp, fn and tp",
        "tn + fp + fn + tp <> tested OR fp + fn <> wrong OR "
        f"{_some_are_missing(Confusion._fields)}",
        _differs_from_confusion,
    ),
    Contradiction(
        ("run",),
        "it got more strings of trained or of longer lengths wrong than there are",
        "wrong_within > tested_within OR wrong_beyond > tested_beyond OR tested_beyond > tested",
        lambda row: (
            _has_ranges(row)
            and (
                row["wrong_within"] > row["tested_within"]
                or row["wrong_beyond"] > row["tested_beyond"]
                or row["tested_beyond"] > row["tested"]
            )
        ),
    ),
    Contradiction(
        ("run",),
        f"only some of its {', '.join(RANGE_COLUMNS)} exist",
        _some_are_missing(RANGE_COLUMNS),
        lambda row: not _has_ranges(row) and any(row[name] is not None for name in RANGE_COLUMNS),
    ),
    Contradiction(
        ("length_score",),
        "it got more strings right with their length given than it was tested on",
        "right_length_given > tested",
        lambda row: _has_outputs(row) and bool(np.any(row["right_length_given"] > row["tested"])),
    ),
    Contradiction(
        ("length_score",),
        SOME_OUTPUTS,
        _some_are_missing(OUTPUT_COUNTS),
        lambda row: not _has_outputs(row) and any(_is_known(row[name]) for name in OUTPUT_COUNTS),
    ),
    Contradiction(
        ("test_string",),
        "it has neither a label nor a target",
        "label IS NULL AND target IS NULL",
    ),
    Contradiction(
        ("shortcut",),
        "it needs either counts and bits, or a reason",
        "(lengths IS NULL) <> (correct IS NULL) OR (lengths IS NULL) = (reason IS NULL)",
    ),
    Contradiction(
        ("proof",),
        "it needs a certificate where it is proved, and a string where it is refuted",
        "(result = 'proved') <> (certificate IS NOT NULL) OR (result = 'refuted') <> "
        "(string IS NOT NULL) OR (result = 'refuted') <> (said IS NOT NULL)",
    ),
)


def contradiction_of(run: Row, lengths: Row) -> str | None:
    """What the counts of a finished run, or those of its lengths, contradict; None where nothing.

    Args:
        lengths: its rows of `length_score`, as columns.
    """
    rows = {"run": run, "length_score": lengths}
    for each in CONTRADICTIONS:
        for table in each.tables:
            if each.holds is not None and each.holds(rows[table]):
                return each.said
    return None


def outputs_misfit(outputs: int, errors: int) -> str | None:
    """What is wrong with so many outputs; None where there is one for each misclassified string."""
    if outputs == errors:
        return None
    said = "1 output" if outputs == 1 else f"{outputs:,} outputs"
    return f"it has {said} of {errors:,} misclassified strings"


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
