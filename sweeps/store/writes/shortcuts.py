"""Storing the answers of shortcut readers to test sets."""

import numpy as np
from jaxtyping import Bool
from sqlalchemy import Connection, inspect, select

from seqcls.evaluation import drawn_test_set
from seqcls.fields import TestSet
from seqcls.shortcuts import read_test
from sweeps.records import rows_text
from sweeps.results import shortcut_digest
from sweeps.store.database import Store
from sweeps.store.reads.shortcuts import Unread
from sweeps.store.statements import insert_new
from sweeps.store.tables import ShortcutRow, TestSetRow
from sweeps.store.test_sets import fill_drawn, stored_test_set


def fit_shortcuts(store: Store, unread: Unread) -> str | None:
    """Fits the readers of one test set and training, and stores their answers to its strings.

    Stored answers are not replaced; missing ways in which strings were drawn are added.

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
        fill_drawn(connection, unread.test_set_id, test.drawn or ())
    return None


def copy_shortcuts(source: Connection, target: Connection) -> None:
    """Copies answers of readers, and ways of drawing, for test sets that both databases have.

    Existing rows are not replaced, and damaged ones are not copied.
    """
    same = select(TestSetRow.key, TestSetRow.digest, TestSetRow.id)
    # By digest, too: two versions may have drawn different strings under one key.
    here = {(row.key, row.digest): row.id for row in target.execute(same)}
    for key, digest, their_id in source.execute(same).all():
        if digest is None or (our_id := here.get((key, digest))) is None:
            continue
        strings = stored_test_set(source, their_id)
        if strings.digest == digest:
            fill_drawn(target, our_id, strings.drawn or ())
        theirs = select(inspect(ShortcutRow).local_table).where(ShortcutRow.test_set_id == their_id)
        rows = [dict(row) for row in source.execute(theirs).mappings()]
        whole = [row for row in rows if shortcut_digest(digest, row) == row["digest"]]
        insert_new(target, ShortcutRow, [{**row, "test_set_id": our_id} for row in whole])


def _count_by_length(test: TestSet, right: Bool[np.ndarray, " string"]) -> list[list[int]]:
    """Rows of length, number of test strings, and number of those that a reader is right on."""
    lengths = np.unique(test.lengths)
    counts = [np.bincount(test.lengths, test.occurrences * x)[lengths] for x in (1, right)]
    rows: list[list[int]] = np.column_stack([lengths, *counts]).astype(int).tolist()
    return rows
