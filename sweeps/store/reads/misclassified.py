"""Misclassified strings, from the rows of runs and the strings of test sets; kinds of errors."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import compress, groupby
from typing import Any, get_args

import numpy as np
import pandas as pd
import pyarrow as pa
from jaxtyping import Bool, Int64
from sqlalchemy import ColumnElement, Connection, Row, or_, select

from seqcls.errors import StoreDamagedError
from seqcls.results import DRAWN, ErrorKind
from sweeps.records import Errors, error_numbers, read_errors
from sweeps.results import BORDER_SHARES
from sweeps.store.database import Store
from sweeps.store.reads import queries
from sweeps.store.reads.selection import Selection, in_scope
from sweeps.store.reads.stored import problem_of, tested_lengths, texts_of
from sweeps.store.reads.test_sets import are_tested, stored_test_set
from sweeps.store.statements import fetch, one_of
from sweeps.store.tables import Config, Run, RunState, TestString

ERROR_KINDS: tuple[str, ...] = get_args(ErrorKind)

STRING_COLUMNS = ("string", "length", "label", "occurrences", "target", "drawn")

OUTPUT_COLUMNS = ("output", "first_wrong", "log_probability", "error_kind")
"""What is known of a transduction's errors besides."""

# Named types, since a part without rows says nothing of them.
ERRORS = pa.schema(
    [
        ("run_id", pa.int64()),
        ("string", pa.string()),
        ("length", pa.int64()),
        ("label", pa.int64()),
        ("logit", pa.float64()),
        ("occurrences", pa.int64()),
        ("target", pa.string()),
        ("output", pa.string()),
        ("first_wrong", pa.int64()),
        ("log_probability", pa.float64()),
        ("error_kind", pa.string()),
        ("drawn", pa.string()),
    ]
)
_NUMBERED = ERRORS.insert(1, pa.field("number", pa.int64()))
_STRINGS, _OUTPUTS = (
    pa.schema([ERRORS.field(name) for name in names]) for names in (STRING_COLUMNS, OUTPUT_COLUMNS)
)


class TestStrings:
    """The strings of test sets, each read once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Int64[np.ndarray, " number"], pa.Table]] = {}

    def of(
        self, connection: Connection, test_set_id: int, numbers: Int64[np.ndarray, " row"]
    ) -> pa.Table:
        """The strings of these numbers, in the columns of `_STRINGS`.

        Raises:
            StoreDamagedError: the test set has no such string.
        """
        if test_set_id not in self._known:
            self._known[test_set_id] = _read_strings(connection, test_set_id)
        known, table = self._known[test_set_id]
        places = np.searchsorted(known, numbers)
        if len(numbers) and (places.max() >= len(known) or (known[places] != numbers).any()):
            raise StoreDamagedError(
                f"test set {test_set_id} lacks strings that runs misclassified: the database is "
                "damaged; `seqcls db verify` says what is"
            )
        return table.take(pa.array(places))


def _read_strings(
    connection: Connection, test_set_id: int
) -> tuple[Int64[np.ndarray, " number"], pa.Table]:
    columns = [getattr(TestString, name) for name in _STRINGS.names]
    query = select(TestString.number, *columns).where(TestString.test_set_id == test_set_id)
    _, rows = fetch(connection, query.order_by(TestString.number))
    numbers, *values = zip(*rows, strict=True) if rows else ((),) * (1 + len(columns))
    arrays = [
        pa.array(column, type=kind) for column, kind in zip(values, _STRINGS.types, strict=True)
    ]
    return np.array(numbers, dtype=np.int64), pa.table(arrays, schema=_STRINGS)


def errors_of_runs(connection: Connection, run_ids: Sequence[int]) -> pd.DataFrame:
    """Misclassified strings of these runs, by run and number, which sorts them as text.

    Returns:
        run_id, number, string, length, label, logit, occurrences; and target, where any of the
        runs is of a task that is no language, whose strings have no label; and `OUTPUT_COLUMNS`,
        where any is of a transduction: the output, where it and the target part (tokens), the
        log-probability of the target (nats) and the kind of the error; and drawn, where it is known
        of any string how it was drawn: one of `seqcls.results.DRAWN`.
    """
    table = errors_table(connection, run_ids, TestStrings())
    there = {
        name: table[name].null_count < len(table) for name in ("target", "error_kind", "drawn")
    }
    missing: list[str] = [] if there["drawn"] else ["drawn"]
    whole: dict[str, Any] = {}
    if there["error_kind"]:
        whole = {"label": "Int64", "first_wrong": "Int64"}
    elif there["target"]:
        missing, whole = [*missing, *OUTPUT_COLUMNS], {"label": "Int64"}
    else:
        missing = [*missing, "target", *OUTPUT_COLUMNS]
    columns = [name for name in _NUMBERED.names if name not in missing]
    frame: pd.DataFrame = table.select(columns).to_pandas()
    return frame.astype(whole)


def errors_table(connection: Connection, run_ids: Sequence[int], strings: TestStrings) -> pa.Table:
    """Misclassified strings of these runs, by run and number, in the columns of `ERRORS`
    and number.

    Raises:
        StoreDamagedError: a test set lacks strings.
    """
    query = select(Run.id, Config.test_set_id).join(Config, Config.id == Run.config_id)
    sets = dict(connection.execute(query.where(one_of(Run.id, run_ids))).all())
    texts = texts_of(connection, run_ids, "errors")
    # Runs that follow each other mostly have one test set, and are looked up at once.
    parts = [
        _of_one_set(connection, test_set_id, {x: read_errors(text) for x, text in some}, strings)
        for test_set_id, some in groupby(texts, lambda row: sets[row[0]])
    ]
    return pa.concat_tables([_NUMBERED.empty_table(), *parts])


def _of_one_set(
    connection: Connection, test_set_id: int | None, errors: dict[int, Errors], strings: TestStrings
) -> pa.Table:
    numbers = np.concatenate([run_errors.numbers for run_errors in errors.values()])
    texts = strings.of(connection, test_set_id or 0, numbers)
    outputs = _outputs(errors)
    columns = {
        **{name: texts[name] for name in _STRINGS.names},
        **{name: outputs[name] for name in OUTPUT_COLUMNS},
        "number": numbers,
        "run_id": np.repeat(list(errors), [len(x.numbers) for x in errors.values()]),
        # Without a score there is no number, and NaN would be one.
        "logit": pa.array(
            np.concatenate([run_errors.logits for run_errors in errors.values()]), from_pandas=True
        ),
    }
    return pa.table([columns[name] for name in _NUMBERED.names], schema=_NUMBERED)


def _outputs(errors: Mapping[int, Errors]) -> pa.Table:
    """What runs gave for their errors, in `OUTPUT_COLUMNS`; nothing of those of other kinds."""
    rows: list[tuple[Any, ...]] = []
    for own in errors.values():
        if own.outputs is None:
            rows += [(None,) * len(OUTPUT_COLUMNS)] * len(own.numbers)
            continue
        for (text, place, error_kind), logit in zip(own.outputs, own.logits, strict=True):
            rows.append((text, place, float(logit), error_kind))
    columns = zip(*rows, strict=True) if rows else ((),) * len(OUTPUT_COLUMNS)
    arrays = [
        pa.array(x, type=kind, from_pandas=True)
        for x, kind in zip(columns, _OUTPUTS.types, strict=True)
    ]
    return pa.table(arrays, schema=_OUTPUTS)


# Reads of how a language's test strings were drawn.


def border_accuracies(
    store: Store, selection: Selection, beyond: range | None = None
) -> pd.DataFrame:
    """How finished runs do on random test strings and on those of border pairs.

    Args:
        beyond: the lengths of longer strings; of each run those that are longer than its training's
            where it is None.

    Returns:
        run_id, config_id and the columns of `BORDER_SHARES`, in [0, 1]: of trained lengths, and of
        longer ones; missing where there is none, or nobody knows which lengths were trained. No
        row of runs whose test has no border pairs.
    """
    rows = []
    # Other tests have none, and need not be looked at; of files a few have.
    asked = or_(*(Config.json.contains(x) for x in ('"random_and_border"', '"task":"file"')))
    for row, strings, wrong in _drawn_of_runs(store, in_scope(selection), asked):
        problem = problem_of(row.json)
        border = strings.ways == DRAWN.index("border")
        if problem is None or not border.any():
            continue
        if not problem.knows_trained_lengths:
            # Nobody knows which lengths are longer ones.
            rows.append((row.id, row.config_id, *(None for _ in BORDER_SHARES)))
            continue
        trained = problem.trained_lengths
        within = (strings.lengths >= trained.start) & (strings.lengths < trained.stop)
        longer = strings.lengths >= (trained.stop if beyond is None else beyond.start)
        if beyond is not None:
            longer &= strings.lengths < beyond.stop
        kinds = ((strings.ways >= 0) & ~border, border)
        chosen = [kind & side for side in (within, longer) for kind in kinds]
        tested = [strings.occurrences[of].sum() for of in chosen]
        right = [strings.occurrences[of & ~wrong].sum() for of in chosen]
        shares = [x / of if of else None for x, of in zip(right, tested, strict=True)]
        rows.append((row.id, row.config_id, *shares))
    frame = pd.DataFrame(rows, columns=["run_id", "config_id", *BORDER_SHARES])
    return frame.astype(dict.fromkeys(BORDER_SHARES, float))


def with_border(store: Store, runs: pd.DataFrame, selection: Selection) -> pd.DataFrame:
    """Runs with the columns of `BORDER_SHARES`, where the test of any has border pairs."""
    shares = border_accuracies(store, selection).drop(columns="config_id")
    if shares.empty:
        return runs
    return runs.merge(shares.rename(columns={"run_id": "id"}), on="id", how="left")


def accuracy_by_drawn(store: Store, run_ids: Collection[int]) -> pd.DataFrame:
    """How many test strings drawn in each way runs were tested on, and how many they got wrong.

    Returns:
        run_id, drawn (one of `seqcls.results.DRAWN`, in their order), tested, wrong (strings, each
        as often as it occurs); no row of runs of whose test strings that is not known.
    """
    rows: list[tuple[int, str, int, int]] = []
    for row, strings, wrong in _drawn_of_runs(store, one_of(Run.id, run_ids)):
        counts = strings.tally(np.ones_like(wrong), wrong)
        rows += [(row.id, *each) for each in counts]
    rows.sort(key=lambda row: row[0])
    return pd.DataFrame(rows, columns=["run_id", "drawn", "tested", "wrong"])


def _drawn_of_runs(
    store: Store, *conditions: ColumnElement[bool]
) -> Iterator[tuple[Row[*tuple[Any, ...]], "DrawnStrings", Bool[np.ndarray, " string"]]]:
    """Finished runs, the strings that each was tested on, and which of them it got wrong.

    None whose test strings are not known: of some it has no places for, say.
    """
    columns = (Run.id, Run.config_id, Run.tested, Run.errors, Config.test_set_id, Config.json)
    query = (
        select(*columns)
        .join(Config, Config.id == Run.config_id)
        .where(*conditions, Run.state == RunState.DONE)
        .order_by(Config.test_set_id, Run.id)
    )
    with store.read() as connection:
        rows = connection.execute(query).all()
        tested = tested_lengths(connection, {row.config_id for row in rows})
        for test_set_id, of_set in groupby(rows, lambda row: row.test_set_id):
            every = DrawnStrings.read(connection, test_set_id)
            for row in of_set:
                lengths = tested[row.config_id][:, 0]
                strings = every.up_to(lengths[-1] if len(lengths) else -1)
                if int(strings.occurrences.sum()) == row.tested:
                    wrong = np.isin(strings.numbers, error_numbers(row.errors))
                    yield row, strings, wrong


@dataclass(frozen=True)
class DrawnStrings:
    """The strings of a test set by how they were drawn, in the order of their numbers."""

    numbers: Int64[np.ndarray, " string"]
    lengths: Int64[np.ndarray, " string"]
    occurrences: Int64[np.ndarray, " string"]
    ways: Int64[np.ndarray, " string"]
    """Places in `DRAWN`; -1 where that is not known."""

    @classmethod
    def read(cls, connection: Connection, test_set_id: int | None) -> "DrawnStrings":
        """Those of a test set."""
        table = TestString
        query = select(table.number, table.length, table.occurrences, table.drawn)
        ordered = query.where(table.test_set_id == test_set_id).order_by(table.number)
        _, rows = fetch(connection, ordered)
        numbers, lengths, occurrences, drawn = zip(*rows, strict=True) if rows else ((),) * 4
        ways = [-1 if way is None else DRAWN.index(way) for way in drawn]
        return cls(*(np.array(x, dtype=np.int64) for x in (numbers, lengths, occurrences, ways)))

    def up_to(self, length: int) -> "DrawnStrings":
        """Those of at most so many tokens."""
        read = self.lengths <= length
        return DrawnStrings(*(getattr(self, x.name)[read] for x in fields(self)))

    def tally(self, *chosen: Bool[np.ndarray, " string"]) -> list[tuple[str, int, int]]:
        """Ways of which there are strings, and how many of each are among these, and those."""
        counts = [
            np.bincount(self.ways[some], self.occurrences[some], len(DRAWN)).astype(int).tolist()
            for some in (each & (self.ways >= 0) for each in chosen)
        ]
        return [row for row in zip(DRAWN, *counts, strict=True) if row[1]]


# Misclassified strings as commands show them.

NO_ANSWER = "no answer"
"""The kind of error where a logit is NaN; sums count it by the label of its string."""


def string_errors(store: Store, run_id: int) -> pd.DataFrame:
    """A run's misclassified strings, the shortest first.

    Returns:
        string, kind (`NO_ANSWER` where the model computed NaN), length (letters), label (1: in
        the language), logit, occurrences (in the test set); drawn, where it is known how; of other
        tasks target, and of transductions `OUTPUT_COLUMNS`.
    """
    with store.read() as connection:
        errors = errors_of_runs(connection, [run_id])
    # Numbers sort strings as text, in every database alike.
    errors = errors.sort_values(["length", "number"], ignore_index=True)
    written = "error_kind" in errors
    errors["kind"] = errors["error_kind"] if written else kinds_of_errors(errors["label"])
    unanswered = errors["logit"].isna()
    # Those who import answers need not know how sure of them the model was.
    if unanswered.any() and not queries.run_config(store, run_id).imported:
        errors["kind"] = errors["kind"].mask(unanswered, NO_ANSWER)
    columns = ["string", "kind", "length", "label", "logit", "occurrences"]
    columns += [name for name in ("drawn", "target", *OUTPUT_COLUMNS) if name in errors]
    return errors[columns]


def kinds_of_errors(labels: "pd.Series[int]") -> list[str]:
    """What an error is, by the label of its string; without one there is one kind of error."""
    words = {0: "false positive", 1: "false negative"}
    return [words.get(label, "wrong") for label in labels.tolist()]


def errors_of(store: Store, run_ids: Sequence[int]) -> pd.DataFrame:
    """Misclassified strings of these runs, as `errors_of_runs` but for their numbers."""
    with store.read() as connection:
        return errors_of_runs(connection, run_ids).drop(columns="number")


def tested_strings(store: Store, config_id: int) -> set[str]:
    """The different strings that a configuration's models are tested on: those they can read."""
    config = queries.configs(store, (config_id,))[config_id]
    query = select(Config.test_set_id).where(Config.id == config_id)
    with store.read() as connection:
        test = stored_test_set(connection, connection.scalars(query).one() or 0)
    return set(compress(test.texts, are_tested(config, test)))
