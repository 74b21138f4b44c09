"""Stores what shortcut readers make of test sets."""

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
from sweeps.store.reads.test_sets import stored_test_set
from sweeps.store.statements import insert_new
from sweeps.store.tables import ShortcutRow, TestSetRow
from sweeps.store.writes.test_sets import fill_drawn


def fit_shortcuts(store: Store, unread: Unread) -> str | None:
    """Fits the readers of one test set and training, asks them and stores what they say.

    What is stored already stays, but how the test's strings were drawn is added.

    Returns:
        Why there is nothing to say of the stored strings; None where it is stored.

    Raises:
        SeqclsError: its strings cannot be drawn.
    """
    problem = unread.problem
    test = drawn_test_set(problem)
    # Answers are stored as a bit for each string by its number, which would mean other strings.
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
    # Only now, since fitting takes seconds, in which a transaction would hold up other writers.
    with store.write() as connection:
        insert_new(connection, ShortcutRow, rows)
        fill_drawn(connection, unread.test_set_id, test.drawn or ())
    return None


def copy_shortcuts(source: Connection, target: Connection) -> None:
    """Adds what is known of tests that both databases have: readers, and how strings were drawn.

    What is here stays; nothing damaged is taken over.
    """
    same = select(TestSetRow.key, TestSetRow.digest, TestSetRow.id)
    # By the digest, too: under one key two versions may have drawn different strings.
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
    """Lengths of test strings, how many each has, and how many of them a reader is right on."""
    lengths = np.unique(test.lengths)
    counts = [np.bincount(test.lengths, test.occurrences * x)[lengths] for x in (1, right)]
    rows: list[list[int]] = np.column_stack([lengths, *counts]).astype(int).tolist()
    return rows
