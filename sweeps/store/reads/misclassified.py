"""Answers of runs: misclassified strings, and all answers, from rows of runs and test sets."""

from collections.abc import Collection, Iterator, Sequence
from functools import cache, partial
from itertools import compress, groupby
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from jaxtyping import Bool, Int64
from sqlalchemy import ColumnElement, Row, or_, select

from seqcls.config import RunConfig
from seqcls.errors import StoreDamagedError
from seqcls.fields import TestSet
from seqcls.results import DRAWN
from sweeps.records import ERROR_FIELDS, error_numbers, read_rows
from sweeps.results import BORDER_SHARES
from sweeps.store.database import Store
from sweeps.store.reads import queries
from sweeps.store.reads.selection import Selection, in_scope
from sweeps.store.reads.stored import length_rows, problem_of, tested_lengths, texts_of
from sweeps.store.statements import chunks, fetch, one_of
from sweeps.store.tables import Config, Run, RunState, TestString
from sweeps.store.test_sets import are_tested, stored_test_set

OUTPUT_COLUMNS = ("output", "first_wrong", "log_probability", "error_kind")
"""Further columns of a transduction's errors."""

# Explicit types, since they cannot be inferred from a part without rows.
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

_OF_STRING = ("string", "length", "label", "occurrences", "target", "drawn")
_STRINGS = pa.schema([("number", pa.int64()), *(ERRORS.field(name) for name in _OF_STRING)])
"""The stored columns of the strings of a test set."""

Bools = Bool[np.ndarray, " string"]


class TestStrings:
    """The strings of a database's test sets by number, each set read once."""

    def __init__(self, store: Store) -> None:
        self._read = cache(partial(_read_strings, store))

    def by_number(self, test_set_id: int, numbers: Sequence[int] | np.ndarray) -> pa.Table:
        """The strings with these numbers, in the columns of `_STRINGS`.

        Raises:
            StoreDamagedError: the test set lacks one of them.
        """
        table = self._read(test_set_id)
        known = table["number"].to_numpy()
        # Numbers are sorted, but in a damaged database some may be missing.
        rows_of_numbers = np.searchsorted(known, numbers)
        if len(numbers) and (
            rows_of_numbers.max() >= len(known) or (known[rows_of_numbers] != numbers).any()
        ):
            raise StoreDamagedError(
                f"test set {test_set_id} lacks strings that runs misclassified: the database is "
                "damaged; `seqcls db verify` says what is"
            )
        return table.take(pa.array(rows_of_numbers))


def _read_strings(store: Store, test_set_id: int) -> pa.Table:
    query = select(*(getattr(TestString, name) for name in _STRINGS.names))
    ordered = query.where(TestString.test_set_id == test_set_id).order_by(TestString.number)
    with store.read() as connection:
        _, rows = fetch(connection, ordered)
    columns = zip(*rows, strict=True) if rows else [()] * len(_STRINGS)
    return pa.table(dict(zip(_STRINGS.names, columns, strict=True)), _STRINGS)


def errors_of_runs(store: Store, run_ids: Sequence[int]) -> pd.DataFrame:
    """Misclassified strings of these runs, sorted by run and number, which sorts strings as text.

    Returns:
        run_id, string, length, label, logit, occurrences; and target, where any of the
        runs is of a task that is no language, whose strings have no label; and `OUTPUT_COLUMNS`,
        where any is of a transduction: the output, the first token where it differs from the
        target, the log-probability of the target (nats) and the kind of the error; and drawn, one
        of `seqcls.results.DRAWN`, where it is known of any string.
    """
    table = errors_table(store, run_ids, TestStrings(store))
    # Optional columns, each with the one that has values where it applies.
    applies = {"target": "target", "drawn": "drawn", **dict.fromkeys(OUTPUT_COLUMNS, "error_kind")}
    absent = {x for x, y in applies.items() if table[y].null_count == len(table)}
    frame: pd.DataFrame = table.drop_columns(sorted(absent)).to_pandas()
    whole = {"label", "first_wrong"} & {*frame} if "target" in frame else ()
    return frame.astype(dict.fromkeys(whole, "Int64"))


def errors_table(store: Store, run_ids: Sequence[int], strings: TestStrings) -> pa.Table:
    """Misclassified strings of these runs, sorted by run and number, in the columns of `ERRORS`.

    Raises:
        StoreDamagedError: a test set lacks strings.
    """
    query = select(Run.id, Config.test_set_id).join(Config, Config.id == Run.config_id)
    sets = dict(store.rows(query.where(one_of(Run.id, run_ids))))
    parts, names = [ERRORS.empty_table()], ERRORS.names
    # Successive runs mostly share a test set, and are looked up together, in chunks whose errors
    # may be lists.
    groups = (
        group
        for some in chunks(sorted(map(int, run_ids)))
        for group in groupby(texts_of(store, some, "errors"), lambda row: sets[row[0]])
    )
    for test_set_id, texts in groups:
        # NaN is stored as null, and so missing.
        rows = [(run_id, *error) for run_id, text in texts for error in read_rows(text)]
        columns = dict(zip(("run_id", *ERROR_FIELDS), zip(*rows, strict=True), strict=False))
        if rows:
            # Only errors of transductions have an output, and a log-probability as their logit.
            columns |= {"log_probability": columns["logit"]} if "output" in columns else {}
            named = strings.by_number(test_set_id or 0, columns["number"])
            own = {x: named[x] if x in named.column_names else columns.get(x) for x in names}
            none = {x: pa.nulls(len(rows), ERRORS.field(x).type) for x in names if own[x] is None}
            parts.append(pa.table(own | none, schema=ERRORS))
    return pa.concat_tables(parts)


# Test strings of languages by the way in which they were drawn.

_BORDER = DRAWN.index("border")


class DrawnStrings(NamedTuple):
    """The strings of a test set with the way in which each was drawn."""

    numbers: Int64[np.ndarray, " string"]
    lengths: Int64[np.ndarray, " string"]
    occurrences: Int64[np.ndarray, " string"]
    ways: Int64[np.ndarray, " string"]
    """Indices into `DRAWN`; -1 where that is not known."""

    def tally(self, *chosen: Bools) -> list[tuple[str, int, int]]:
        """Counts of two masks by way of drawing, for the ways that occur in the first mask."""
        counts = [
            np.bincount(self.ways[some], self.occurrences[some], len(DRAWN)).astype(int).tolist()
            for some in (mask & (self.ways >= 0) for mask in chosen)
        ]
        return [row for row in zip(DRAWN, *counts, strict=True) if row[1]]


def read_drawn(store: Store, test_set_id: int) -> DrawnStrings:
    """Reads the strings of a test set with the way in which each was drawn."""
    table = _read_strings(store, test_set_id)
    ways = [-1 if x is None else DRAWN.index(x) for x in table["drawn"].to_pylist()]
    numbers, lengths, occurrences = (
        table[name].to_numpy() for name in ("number", "length", "occurrences")
    )
    return DrawnStrings(numbers, lengths, occurrences, np.array(ways, dtype=np.int64))


def border_accuracies(
    store: Store, selection: Selection, beyond: range | None = None
) -> pd.DataFrame:
    """Accuracies of finished runs on random test strings and on those of border pairs.

    Args:
        beyond: the lengths of longer strings; by default, those above each run's trained lengths.

    Returns:
        run_id, config_id and the columns of `BORDER_SHARES`, in [0, 1]: on trained lengths, and on
        longer ones; missing where there are no such strings, or trained lengths are unknown. Runs
        whose test has no border pairs have no row.
    """
    rows: list[tuple[Any, ...]] = []
    # Other tests have no border pairs, and need not be read; some files do.
    may_have_border = or_(
        *(Config.json.contains(x) for x in ('"random_and_border"', '"task":"file"'))
    )
    for row, test, is_read, wrong in _tested_runs(store, in_scope(selection), may_have_border):
        problem, border = problem_of(row.json), test.ways == _BORDER
        if problem is None or not (is_read & border).any():
            continue
        shares: list[float | None] = [None] * len(BORDER_SHARES)
        # Else longer lengths are unknown, too.
        if problem.config.knows_trained_lengths:
            trained = problem.trained_lengths
            ends = range(trained.stop, int(test.lengths.max()) + 1)
            sides = (trained, ends if beyond is None else beyond)
            kinds = ((test.ways >= 0) & ~border, border)
            chosen = [is_read & kind & np.isin(test.lengths, x) for x in sides for kind in kinds]
            tested = [test.occurrences[mask].sum() for mask in chosen]
            right = [test.occurrences[mask & ~wrong].sum() for mask in chosen]
            shares = [x / total if total else None for x, total in zip(right, tested, strict=True)]
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
    """Counts of tested and misclassified strings by run and way of drawing.

    Returns:
        run_id, drawn (one of `seqcls.results.DRAWN`, in their order), tested, wrong (strings, each
        counted as often as it occurs); no row for runs whose ways of drawing are unknown.
    """
    rows = [
        (row.id, *counts)
        for row, test, is_read, wrong in _tested_runs(store, one_of(Run.id, run_ids))
        for counts in test.tally(is_read, is_read & wrong)
    ]
    rows.sort(key=lambda row: row[0])
    return pd.DataFrame(rows, columns=["run_id", "drawn", "tested", "wrong"])


def _tested_runs(
    store: Store, *conditions: ColumnElement[bool]
) -> Iterator[tuple[Row[*tuple[Any, ...]], DrawnStrings, Bools, Bools]]:
    """Yields finished runs with the strings of their test set, and masks of those that each was
    tested on and of those that it got wrong.

    Runs are skipped if it is not known which strings they were tested on.
    """
    columns = (Run.id, Run.config_id, Run.tested, Run.errors, Config.test_set_id, Config.json)
    query = (
        select(*columns)
        .join(Config, Config.id == Run.config_id)
        .where(*conditions, Run.state == RunState.DONE)
        .order_by(Config.test_set_id, Run.id)
    )
    with store.read():
        rows = store.rows(query)
        tested = tested_lengths(store, {row.config_id for row in rows})
    for test_set_id, of_set in groupby(rows, lambda row: row.test_set_id):
        test = read_drawn(store, test_set_id or 0)
        for row in of_set:
            is_read = test.lengths <= tested[row.config_id][:, 0].max(initial=-1)
            if int(test.occurrences[is_read].sum()) == row.tested:
                wrong = np.isin(test.numbers, error_numbers(row.errors))
                yield row, test, is_read, wrong


# Misclassified strings as commands show them.

NO_ANSWER = "no answer"
"""The kind of error where a logit is NaN; sums count it by the string's label."""


def string_errors(store: Store, run_id: int) -> pd.DataFrame:
    """A run's misclassified strings, the shortest first.

    Returns:
        string, kind (`NO_ANSWER` where the model computed NaN), length (letters), label (1: in
        the language), logit, occurrences (in the test set); drawn, where it is known; for tasks
        that are no languages target, and for transductions `OUTPUT_COLUMNS`.
    """
    # Those of one length stay in the order of their numbers.
    errors = errors_of_runs(store, [run_id])
    errors = errors.sort_values("length", kind="stable", ignore_index=True)
    written = "error_kind" in errors
    errors["kind"] = errors["error_kind"] if written else kinds_of_errors(errors["label"])
    unanswered = errors["logit"].isna()
    # Imported answers may have no scores.
    if unanswered.any() and not queries.run_config(store, run_id).imported:
        errors["kind"] = errors["kind"].mask(unanswered, NO_ANSWER)
    columns = ["string", "kind", "length", "label", "logit", "occurrences"]
    columns += [name for name in ("drawn", "target", *OUTPUT_COLUMNS) if name in errors]
    return errors[columns]


def kinds_of_errors(labels: "pd.Series[int]") -> list[str]:
    """The kinds of errors by the labels of their strings; strings without a label have one kind."""
    words = {0: "false positive", 1: "false negative"}
    return [words.get(label, "wrong") for label in labels.tolist()]


def tested_strings(store: Store, config_id: int) -> set[str]:
    """The distinct strings that a configuration's models are tested on: those they can read."""
    config = queries.configs(store, (config_id,))[config_id]
    test_set_id = store.value(select(Config.test_set_id).where(Config.id == config_id))
    with store.read() as connection:
        test = stored_test_set(connection, test_set_id or 0)
    return set(compress(test.texts, are_tested(config, test)))


# Answers to all strings of a test.


def answers_of(store: Store, run_id: int) -> Iterator[dict[str, Any]]:
    """Yields a row for each distinct test string: doc_id, input, target, prediction, correct.

    `doc_id` is the string's number in its test set. Strings that are longer than the model can read
    were not tested, and are left out. A prediction is None where the model computed NaN.
    """
    query = select(Config.test_set_id, Run.errors, Run.lengths)
    query = query.join(Config, Config.id == Run.config_id).where(Run.id == run_id)
    with store.read() as connection:
        test_set_id, errors, lengths = store.one(query)
        test = stored_test_set(connection, test_set_id)
    wrong = {number: error for number, *error in read_rows(errors)}
    config = queries.run_config(store, run_id)
    tested = {*_tested_rows(config, test, lengths).tolist(), *wrong}
    for number in sorted(tested):
        target: Any = test.targets[number] if test.targets is not None else None
        if test.bits is not None:
            target = int(test.bits[number])
        prediction = target
        if number in wrong:
            logit, *output = wrong[number]
            # None for kinds whose answers are not stored.
            prediction = None if test.bits is None else 1 - target
            if output:
                prediction = output[0]
            # Imported answers may have no scores.
            if logit is None and not config.imported:
                prediction = None
        yield {
            "doc_id": number,
            "input": test.texts[number],
            "target": target,
            "prediction": prediction,
            "correct": number not in wrong,
        }


def _tested_rows(
    config: RunConfig, test: TestSet, lengths: str | None
) -> Int64[np.ndarray, " row"]:
    """The numbers of the strings that a run with these counts by length was tested on."""
    count = dict(length_rows(lengths)[:, :2].tolist())
    rows = np.flatnonzero(are_tested(config, test))
    times = np.bincount(test.lengths[rows], test.occurrences[rows])
    # Lengths of which fewer were tested are left out: it is not known which strings these were.
    known = [count.get(length, 0) == times[length] for length in test.lengths[rows].tolist()]
    return np.asarray(rows[np.array(known, dtype=bool)])
