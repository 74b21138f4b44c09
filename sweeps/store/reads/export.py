"""A run's answers to all strings of its test."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from jaxtyping import Int64
from sqlalchemy import select

from seqcls.fields import TestSet
from sweeps.records import read_rows
from sweeps.store import tables
from sweeps.store.database import Store
from sweeps.store.reads.queries import run_config
from sweeps.store.reads.stored import StoredRun, length_rows, read_runs
from sweeps.store.reads.test_sets import are_tested, stored_test_set
from sweeps.store.tables import Config, Run


def answers_of(store: Store, run_id: int) -> Iterator[dict[str, Any]]:
    """Yields a row for each distinct test string: doc_id, input, target, prediction, correct.

    `doc_id` is the string's number in its test set. Strings that are longer than the model can read
    were not tested, and are left out. A prediction is None where the model computed NaN.
    """
    of_config = tables.TestSetRow.id == Config.test_set_id
    query = (
        select(tables.TestSetRow.id).join(Config, of_config).join(Run, Run.config_id == Config.id)
    )
    with store.read() as connection:
        test = stored_test_set(connection, store.one(query.where(Run.id == run_id))[0])
        (run,) = read_runs(connection, [run_id])
    wrong = {number: error for number, *error in read_rows(run.run["errors"])}
    # Imported answers may have no scores.
    is_imported = bool(run_config(store, run_id).imported)
    tested = set(_tested_rows(store, run_id, test, run).tolist()) | set(wrong)
    for number, text in enumerate(test.texts):
        if number not in tested:
            continue
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
            if logit is None and not is_imported:
                prediction = None
        yield {
            "doc_id": number,
            "input": text,
            "target": target,
            "prediction": prediction,
            "correct": number not in wrong,
        }


def _tested_rows(
    store: Store, run_id: int, test: TestSet, run: StoredRun
) -> Int64[np.ndarray, " row"]:
    """The numbers of the strings that a run was tested on."""
    count = dict(length_rows(run.run["lengths"])[:, :2].tolist())
    rows = np.flatnonzero(are_tested(run_config(store, run_id), test))
    times = np.bincount(test.lengths[rows], test.occurrences[rows])
    # Lengths of which fewer were tested are left out: it is not known which strings these were.
    known = [count.get(length, 0) == times[length] for length in test.lengths[rows].tolist()]
    return np.asarray(rows[np.array(known, dtype=bool)])
