"""Stores what shortcut readers make of test sets."""

from collections.abc import Sequence

import numpy as np
from sqlalchemy import Connection, select

from seqcls.evaluation import drawn_test_set
from seqcls.fields import TestSet
from seqcls.problem import Problem
from seqcls.shortcuts import Shortcut, read_test, training_key
from sweeps.store.checks import count_by_length, drawn_misfit, packed_lengths, shortcut_misfit
from sweeps.store.databases.engine import Store
from sweeps.store.databases.statements import insert_new
from sweeps.store.reads.shortcuts import Unread
from sweeps.store.reads.test_sets import stored_test_set
from sweeps.store.tables import ShortcutRow, TestSetRow
from sweeps.store.writes.test_sets import fill_drawn


def fit_shortcuts(store: Store, unread: Unread) -> str | None:
    """Fits the readers of one test set and training, asks them and stores what they say.

    Returns:
        Why there is nothing to say of the stored strings; None where it is stored.

    Raises:
        SeqclsError: its strings cannot be drawn.
    """
    problem = unread.problem
    test = drawn_test_set(problem)
    if test.digest != unread.digest:
        return "its strings are not those that are drawn now"
    store_shortcuts(store, unread.test_set_id, problem, test, read_test(problem))
    return None


def store_shortcuts(
    store: Store, test_set_id: int, problem: Problem, test: TestSet, shortcuts: Sequence[Shortcut]
) -> None:
    """Stores what readers make of a test set, and how its strings were drawn.

    What is stored already stays.
    """
    key = training_key(problem)
    rows = [
        {
            "test_set_id": test_set_id,
            "training": key,
            "reader": each.reader,
            "lengths": None
            if each.right is None
            else packed_lengths(count_by_length(test, each.right)),
            "correct": None if each.right is None else np.packbits(each.right).tobytes(),
            "reason": each.obstacle,
        }
        for each in shortcuts
    ]
    with store.change() as connection:
        insert_new(connection, ShortcutRow, rows)
        if test.drawn is not None:
            fill_drawn(connection, test_set_id, test.drawn)


def copy_shortcuts(source: Connection, target: Connection) -> None:
    """Adds what is known of tests that both databases have: readers, and how strings were drawn.

    What is here stays; nothing damaged is taken over.
    """
    same = (TestSetRow.key, TestSetRow.digest, TestSetRow.id)
    here = {(row.key, row.digest): row.id for row in target.execute(select(*same))}
    for key, digest, their_id in source.execute(
        select(*same).where(TestSetRow.digest.is_not(None))
    ):
        if (our_id := here.get((key, digest))) is None:
            continue
        strings = stored_test_set(source, their_id)
        if strings.digest != digest:
            continue
        if strings.drawn is not None and drawn_misfit(strings) is None:
            fill_drawn(target, our_id, strings.drawn)
        theirs = select(ShortcutRow.__table__).where(ShortcutRow.test_set_id == their_id)
        rows = [
            {**row, "test_set_id": our_id}
            for row in source.execute(theirs).mappings()
            if shortcut_misfit(row["lengths"], row["correct"], strings) is None
        ]
        insert_new(target, ShortcutRow, rows)
