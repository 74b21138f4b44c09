"""Shortcut readers: fitting them to test sets that lack them, and their stored answers."""

from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool
from sqlalchemy import Connection, exists, func, inspect, select

from seqcls.deciding import decided_by
from seqcls.errors import SeqclsError
from seqcls.evaluation import drawn_test_set
from seqcls.fields import TestSet
from seqcls.problem import Problem, resolve
from seqcls.shortcuts import READERS, read_test, training_key
from seqcls.tasks import TASKS
from sweeps.records import read_rows, rows_text
from sweeps.results import shortcut_digest
from sweeps.store.database import Store
from sweeps.store.reads.misclassified import read_drawn
from sweeps.store.reads.overview import language_names
from sweeps.store.reads.stored import problem_of, read_config
from sweeps.store.statements import insert_new, one_of
from sweeps.store.tables import Config, Run, RunState, ShortcutRow, SweepRun, TestSetRow


@dataclass(frozen=True)
class Unread:
    """A test set without answers of the readers that are fitted on one training."""

    test_set_id: int
    digest: str | None
    """The digest of its strings."""
    problem: Problem
    """One of the problems with this training and test."""

    @property
    def training(self) -> str:
        """The hash of the fields that determine the training strings."""
        return training_key(self.problem)


def unread_tests(store: Store, sweep_ids: Collection[int] | None = None) -> list[Unread]:
    """The tests of finished runs that lack answers of shortcut readers.

    Models trained elsewhere are left out: their training strings are unknown.

    Args:
        sweep_ids: the sweeps whose runs are considered; all if None.
    """
    finished = select(Run.id).where(Run.config_id == Config.id, Run.state == RunState.DONE)
    if sweep_ids is not None:
        members = select(SweepRun.run_id).where(one_of(SweepRun.sweep_id, sweep_ids))
        finished = finished.where(Run.id.in_(members))
    query = (
        select(Config.json, TestSetRow.id, TestSetRow.digest)
        .join(TestSetRow, TestSetRow.id == Config.test_set_id)
        .where(exists(finished.correlate(Config)), TestSetRow.digest.is_not(None))
        .order_by(Config.id)
    )
    known = select(ShortcutRow.test_set_id, ShortcutRow.training).distinct()
    with store.read():
        rows = store.rows(query)
        read = {(row.test_set_id, row.training) for row in store.rows(known)}
    unread: dict[tuple[int, str], Unread] = {}
    for text, test_set_id, digest in rows:
        problem = problem_of(text)
        if problem is None or problem.config.imported or not problem.kind.shortcut_readers:
            continue
        key = (test_set_id, training_key(problem))
        if key not in read:
            unread.setdefault(key, Unread(test_set_id, digest, problem))
    return list(unread.values())


def fit_shortcuts(store: Store, unread: Unread) -> str | None:
    """Fits the readers of one test set and training, and stores their answers to its strings.

    Stored answers are not replaced.

    Returns:
        The reason why nothing is stored; None if the answers are.

    Raises:
        SeqclsError: its strings cannot be drawn.
    """
    problem = unread.problem
    test = drawn_test_set(problem)
    # Answers are stored as bits by number, which would denote other strings.
    if test.digest != unread.digest:
        return "its strings are not those that are drawn now"
    rows = []
    for shortcut in read_test(problem):
        right = shortcut.right
        row = {
            "training": unread.training,
            "reader": shortcut.reader,
            "lengths": None if right is None else rows_text(_count_by_length(test, right)),
            "correct": None if right is None else np.packbits(right).tobytes(),
            "reason": shortcut.obstacle,
        }
        digest = shortcut_digest(test.digest, row)
        rows.append({**row, "test_set_id": unread.test_set_id, "digest": digest})
    # After fitting, which takes seconds, for which a transaction would block other writers.
    with store.write() as connection:
        insert_new(connection, ShortcutRow, rows)
    return None


def read_shortcuts(connection: Connection) -> Iterator[tuple[dict[str, Any], Any, bool]]:
    """Yields answers of readers: the row, its test set by key and digest, True if the row fits."""
    query = select(inspect(ShortcutRow).local_table, TestSetRow.key, TestSetRow.digest)
    for *values, key, strings in connection.execute(query.join(TestSetRow)):
        row = dict(zip(ShortcutRow.__table__.columns.keys(), values, strict=True))
        yield row, (key, strings), shortcut_digest(strings, row) == row["digest"]


def copy_shortcuts(source: Connection, target: Connection) -> None:
    """Copies answers of readers to test sets that both databases have.

    Existing rows are not replaced, and damaged ones are not copied.
    """
    same = select(TestSetRow.key, TestSetRow.digest, TestSetRow.id)
    # By digest, too: two versions may have drawn different strings under one key.
    here = {(row.key, row.digest): row.id for row in target.execute(same)}
    rows = [
        {**row, "test_set_id": here[test]}
        for row, test, fits in read_shortcuts(source)
        if fits and test in here
    ]
    insert_new(target, ShortcutRow, rows)


def _count_by_length(test: TestSet, right: Bool[np.ndarray, " string"]) -> list[list[int]]:
    """Rows of length, number of test strings, and number of those that a reader is right on."""
    lengths = np.unique(test.lengths)
    counts = [np.bincount(test.lengths, test.occurrences * x)[lengths] for x in (1, right)]
    rows: list[list[int]] = np.column_stack([lengths, *counts]).astype(int).tolist()
    return rows


# Their answers.


def shortcut_scores(store: Store, config_ids: Collection[int]) -> pd.DataFrame:
    """Correct answers of readers to the tests of configurations, by length.

    Returns:
        config_id, reader (in the order of `seqcls.shortcuts.READERS`), reason (why it cannot be
        fitted), length, within (True if training strings have such a length), tested and right
        (strings, each counted as often as it occurs); a reader that cannot be fitted has one row
        without a length. Tests without readers have no rows.
    """
    readings = _readers(store, config_ids, "reason", "lengths")
    found = [
        (row.config_id, row.reader, row.reason, x, None if x is None else x in row.trained, *counts)
        for row in readings
        for x, *counts in read_rows(row.lengths) or [[None, 0, 0]]
    ]
    columns = ["config_id", "reader", "reason", "length", "within", "tested", "right"]
    types: dict[str, Any]
    types = {"config_id": int, "length": "Int64", "within": "boolean", "tested": int, "right": int}
    return pd.DataFrame(found, columns=columns, dtype=object).astype(types)


def best_shortcut(scores: pd.DataFrame) -> pd.DataFrame:
    """The rows of the reader of each configuration that is right on most of its test strings.

    Ties go to the first in `seqcls.shortcuts.READERS`. Configurations without a fitted reader have
    no rows.

    Args:
        scores: a result of `shortcut_scores`.
    """
    fitted = scores[scores["length"].notna()]
    rights = fitted.groupby(["config_id", "reader"], as_index=False)["right"].sum()
    ranked = rights.assign(place=rights["reader"].map(_place)).sort_values(
        ["right", "place"], ascending=[False, True]
    )
    best = ranked.drop_duplicates("config_id")[["config_id", "reader"]]
    return fitted.merge(best, on=["config_id", "reader"])


def _place(reader: str) -> int:
    """The index of a reader in `READERS`; unknown ones of later versions come last."""
    return list(READERS).index(reader) if reader in READERS else len(READERS)


def shortcut_shares(scores: pd.DataFrame) -> pd.DataFrame:
    """The accuracies of readers: config_id, reader, within, beyond, whole.

    On test strings of trained lengths, of other lengths, and of all; missing without such strings.

    Args:
        scores: a result of `shortcut_scores` or `best_shortcut`.
    """
    fitted = scores[scores["length"].notna()]
    within = fitted["within"].astype(bool)
    ranges = {"within": within, "beyond": ~within, "whole": within | ~within}
    counts = {
        (name, what): fitted[what].where(chosen, 0)
        for name, chosen in ranges.items()
        for what in ("tested", "right")
    }
    keys = [fitted["config_id"], fitted["reader"]]
    sums = pd.DataFrame(counts, index=fitted.index).groupby(keys, sort=False).sum()
    shares = {x: sums[x, "right"] / sums[x, "tested"].where(sums[x, "tested"] > 0) for x in ranges}
    return pd.DataFrame(shares, dtype=float).reset_index()


def deciding(store: Store, config_ids: Collection[int]) -> dict[int, str | None]:
    """The result of `seqcls.deciding.decided_by` for each configuration's language, by id."""
    every = language_names(store)
    # One configuration of each language suffices.
    first = {every[config_id]: config_id for config_id in config_ids}
    query = select(Config.id, Config.json).where(one_of(Config.id, first.values()))
    problems = {every[row[0]]: problem_of(row[1]) for row in store.rows(query)}
    by = {
        x: None if problem is None else decided_by(problem.task) for x, problem in problems.items()
    }
    return {config_id: by[every[config_id]] for config_id in config_ids}


def shortcuts_by_drawn(store: Store, config_ids: Collection[int]) -> pd.DataFrame:
    """Correct answers of readers by the way in which test strings were drawn.

    Returns:
        config_id, reader, drawn (one of `seqcls.results.DRAWN`), tested, right (strings, each
        counted as often as it occurs); no row for tests whose ways of drawing are unknown.
    """
    found: list[tuple[Any, ...]] = []
    readings = _readers(store, config_ids, "correct")
    # Cached, since several readers and configurations share a test.
    drawn = cache(partial(read_drawn, store))
    for row in readings:
        test = drawn(row.test_set_id)
        bits = np.unpackbits(np.frombuffer(row.correct or b"", dtype=np.uint8)).astype(bool)
        # Whole bytes are stored, and so up to seven bits too many.
        right = bits[: len(test.ways)]
        if len(right) == len(test.ways):
            counted = test.tally(np.ones_like(right), right)
            found += [(row.config_id, row.reader, *counts) for counts in counted]
    return pd.DataFrame(found, columns=["config_id", "reader", "drawn", "tested", "right"])


def best_shortcuts(store: Store, config_ids: Collection[int]) -> pd.DataFrame:
    """The accuracies of the best reader of each configuration's test, computed once for each test.

    Returns:
        config_id, reader, within, beyond and whole, as `shortcut_shares`, tested (strings, each
        counted as often as it occurs) and all_read (True if the models were tested on all of them);
        no row for a test without readers.
    """
    tests = tests_of(store, config_ids)
    # All configurations with one test and training have the same scores.
    best = best_shortcut(shortcut_scores(store, set(tests["first"])))
    strings = best.groupby("config_id", as_index=False)["tested"].sum()
    shares = shortcut_shares(best).merge(strings, on="config_id").rename(columns={"config_id": "x"})
    found = tests[["config_id", "first"]].rename(columns={"first": "x"})
    found = found.merge(shares, on="x").drop(columns="x")
    query = select(Run.config_id, func.max(Run.tested)).group_by(Run.config_id)
    tested = dict(store.rows(query.where(one_of(Run.config_id, found["config_id"]))))
    return found.assign(all_read=found["config_id"].map(tested) == found["tested"])


def with_shortcuts(store: Store, runs: pd.DataFrame) -> pd.DataFrame:
    """Runs with the accuracies of their test's best reader: `shortcut_within`, `shortcut_beyond`.

    On test strings of trained lengths, and of other lengths; missing without a fitted reader.
    """
    best = best_shortcuts(store, set(runs["config_id"])).set_index("config_id")
    reached = {x: runs["config_id"].map(best[x]).astype(float) for x in ("within", "beyond")}
    return runs.assign(**{f"shortcut_{name}": values for name, values in reached.items()})


def tests_of(store: Store, config_ids: Collection[int]) -> pd.DataFrame:
    """The tests of these configurations whose test sets have answers of readers.

    Returns:
        config_id, test_set_id, training (a hash of the fields that determine the training strings),
        trained (their lengths) and first (the first configuration with this test and training).
    """
    query = (
        select(Config.id, Config.json, Config.test_set_id)
        .where(Config.test_set_id.in_(select(ShortcutRow.test_set_id)))
        .where(one_of(Config.id, config_ids))
        .order_by(Config.id)
    )
    found = [
        (config_id, test_set_id, *training)
        for config_id, text, test_set_id in store.rows(query)
        if (training := _training(text)) is not None
    ]
    tests = pd.DataFrame(found, columns=["config_id", "test_set_id", "training", "trained"])
    tests = tests.astype({"config_id": int, "test_set_id": int, "training": object})
    by_test = tests.groupby(["test_set_id", "training"])["config_id"]
    return tests.assign(first=by_test.transform("min"))


def _readers(store: Store, config_ids: Collection[int], *columns: str) -> list[Any]:
    """The rows of `tests_of`, one for each of their readers, with these columns of `shortcut`."""
    tests = tests_of(store, config_ids)
    names = ("test_set_id", "training", "reader", *columns)
    query = select(*(getattr(ShortcutRow, name) for name in names))
    of_tests = query.where(one_of(ShortcutRow.test_set_id, set(tests["test_set_id"])))
    readings = pd.DataFrame(store.rows(of_tests), columns=names, dtype=object)
    readings = readings.astype({"test_set_id": int})
    readings = readings.sort_values(
        "reader", key=lambda readers: readers.map(_place), kind="stable"
    )
    return list(tests.merge(readings, on=["test_set_id", "training"]).itertuples())


@lru_cache(maxsize=2**15)
def _training(text: str) -> tuple[str, range] | None:
    """The training key and lengths of a stored configuration; None where unknown here.

    Cached, since pages need all configurations whenever a run has ended.
    """
    problem = problem_of(text) or _of_our_network(text)
    if problem is None or problem.config.imported:
        return None
    return training_key(problem), problem.train.lengths


def _of_our_network(text: str) -> Problem | None:
    """The problem with a built-in network in place of a plug-in's that is not installed; None if
    the task is a plug-in's, too.
    """
    with suppress(SeqclsError, ValueError):
        config = read_config(text)
        if TASKS.is_own(config.task):
            # Any built-in network does, since only the strings are used.
            ours = {"plugins": "", "architecture": "rnn", "positions": "none", "layers": ""}
            return replace(resolve(config.model_copy(update=ours)), config=config)
    return None
