"""Stores what shortcut readers make of test sets."""

from collections.abc import Sequence

import numpy as np

from seqcls.evaluation import drawn_test_set
from seqcls.fields import TestSet
from seqcls.problem import Problem
from seqcls.shortcuts import Shortcut, read_test, training_key
from sweeps.store.columns import packed_lengths
from sweeps.store.databases.engine import Store
from sweeps.store.databases.statements import insert_new
from sweeps.store.reads.shortcuts import Unread
from sweeps.store.tables import ShortcutRow
from sweeps.store.writes.test_sets import fill_drawn


def fit_shortcuts(store: Store, unread: Unread) -> bool:
    """Fits the readers of one test set and training, asks them and stores what they say.

    Returns:
        Whether there is anything to store: not where the stored strings are not those that are
        drawn now.

    Raises:
        SeqclsError: its strings cannot be drawn.
    """
    problem = unread.problem
    test = drawn_test_set(problem)
    if test.digest != unread.digest:
        return False
    store_shortcuts(store, unread.test_set_id, problem, test, read_test(problem))
    return True


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
            "lengths": None if each.right is None else packed_lengths(_by_length(test, each.right)),
            "correct": None if each.right is None else np.packbits(each.right).tobytes(),
            "reason": each.obstacle,
        }
        for each in shortcuts
    ]
    with store.change() as connection:
        insert_new(connection, ShortcutRow, rows)
        if test.drawn is not None:
            fill_drawn(connection, test_set_id, test.drawn)


def _by_length(test: TestSet, right: np.ndarray) -> list[tuple[int, int, int]]:
    lengths = np.unique(test.lengths)
    tested = np.bincount(test.lengths, test.occurrences)
    read = np.bincount(test.lengths, test.occurrences * right)
    return [(int(x), int(tested[x]), int(read[x])) for x in lengths]
