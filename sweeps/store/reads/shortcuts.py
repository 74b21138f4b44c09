"""What shortcut readers make of test sets, as it is stored; and which have not been asked yet."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool
from sqlalchemy import exists, select

from seqcls.errors import SeqclsError
from seqcls.problem import Problem, resolve
from seqcls.shortcuts import training_key
from sweeps.store.checks import read_config
from sweeps.store.columns import unpacked_lengths
from sweeps.store.databases.engine import Store
from sweeps.store.databases.statements import one_of
from sweeps.store.tables import Config, Run, RunState, ShortcutRow, SweepRun, TestSetRow


@dataclass(frozen=True)
class Unread:
    """A test set that no readers were asked about that are fitted on one training."""

    test_set_id: int
    digest: str | None
    """That of its strings."""
    problem: Problem
    """One of those that are trained and tested so."""


def unread_tests(store: Store, sweep_ids: Collection[int] | None = None) -> list[Unread]:
    """The tests of finished runs that no shortcut readers were asked about.

    Those of models trained elsewhere have none: nothing is known of their training strings.

    Args:
        store: the database.
        sweep_ids: only of runs of these sweeps; of all where it is None.
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
    with store.begin() as connection:
        rows = connection.execute(query).all()
        read = {(row.test_set_id, row.training) for row in connection.execute(known)}
    unread: dict[tuple[int, str], Unread] = {}
    for text, test_set_id, digest in rows:
        problem = _problem(text)
        if problem is None or problem.is_imported or not problem.kind.shortcut_readers:
            continue
        key = (test_set_id, training_key(problem))
        if key not in read:
            unread.setdefault(key, Unread(test_set_id, digest, problem))
    return list(unread.values())


def shortcut_scores(store: Store, config_ids: Collection[int]) -> pd.DataFrame:
    """What readers make of the tests of configurations, by length.

    Returns:
        The columns config_id, reader, reason, length, tested and right; a reader that cannot be
        fitted has one row without a length. Of tests that no readers were asked about there are
        no rows.
    """
    columns = ["config_id", "reader", "reason", "length", "tested", "right"]
    found: list[tuple[Any, ...]] = []
    for ids, rows in _rows(store, config_ids):
        for row in rows:
            lengths: list[tuple[Any, ...]] = [(None, 0, 0)]
            if row.lengths is not None:
                lengths = [*unpacked_lengths(row.lengths)]
            found += [(i, row.reader, row.reason, *each) for i in ids for each in lengths]
    return pd.DataFrame(found, columns=columns)


def read_rightly(store: Store, config_id: int) -> Mapping[str, Bool[np.ndarray, " string"]]:
    """Which test strings of a configuration each reader is right on, by their numbers.

    Padded to whole bytes: there may be up to seven more than there are strings.
    """
    return {
        row.reader: np.unpackbits(np.frombuffer(row.correct, dtype=np.uint8)).astype(bool)
        for _, rows in _rows(store, [config_id])
        for row in rows
        if row.correct is not None
    }


def _rows(store: Store, config_ids: Collection[int]) -> Iterator[tuple[list[int], list[Any]]]:
    """The rows of each test and training that these configurations have, with their ids."""
    query = select(Config.id, Config.json, Config.test_set_id).where(one_of(Config.id, config_ids))
    with store.begin() as connection:
        tests: dict[tuple[int, str], list[int]] = {}
        for config_id, text, test_set_id in connection.execute(query):
            problem = _problem(text)
            if problem is not None and test_set_id is not None and not problem.is_imported:
                tests.setdefault((test_set_id, training_key(problem)), []).append(config_id)
        for (test_set_id, training), ids in tests.items():
            own = select(
                ShortcutRow.reader, ShortcutRow.reason, ShortcutRow.lengths, ShortcutRow.correct
            )
            own = own.where(ShortcutRow.test_set_id == test_set_id)
            yield ids, list(connection.execute(own.where(ShortcutRow.training == training)))


@lru_cache(maxsize=4096)
def _problem(text: str) -> Problem | None:
    """The problem of a stored configuration; None where it cannot be resolved here."""
    try:
        return resolve(read_config(text))
    except (SeqclsError, ValueError):
        return None
