"""The content of a database without ids, times and workers: equal sweeps have one hash."""

import hashlib
from collections.abc import Iterable
from typing import Any

from sweeps.store.database import Store
from tests.databases import rows

_RUN = (
    "key, model_seed, run.state, error, epochs, best_epoch, best_validation_loss, tn, fp, fn, tp, "
    "tested, wrong, solved_length, engine, engine_reason, digest, lengths, losses, errors"
)
_QUERIES = {
    "run": f"SELECT {_RUN} FROM run JOIN config ON config.id = config_id",
    "sweep": (
        "SELECT name, description, spec, CASE WHEN stopped_at IS NULL THEN 0 ELSE 1 END, "
        "title, note, tags FROM sweep"
    ),
    "config": "SELECT key, json FROM config",
    "sweep_run": (
        "SELECT sweep.name, key, model_seed FROM sweep_run JOIN sweep ON sweep.id = sweep_id "
        "JOIN run ON run.id = run_id JOIN config ON config.id = config_id"
    ),
    "test_string": (
        "SELECT key, number, string, length, label, occurrences, target, drawn "
        "FROM test_string JOIN test_set ON test_set.id = test_set_id"
    ),
    "shortcut": (
        "SELECT key, training, reader, lengths, correct, reason FROM shortcut "
        "JOIN test_set ON test_set.id = test_set_id"
    ),
    **{
        table: (
            f"SELECT key, model_seed, {columns} FROM {table} JOIN run ON run.id = run_id "
            "JOIN config ON config.id = config_id"
        )
        for table, columns in {
            "checkpoint": "epoch, weights",
            "proof": "of_language, result, states, regions, string, said, details, weights, "
            "version, certificate",
            "verdict": "max_length, unit, inputs, false_positives, false_negatives, shortest_error",
        }.items()
    },
}


def contents(store: Store) -> dict[str, str]:
    """A hash of every table, with ids replaced by what they refer to."""
    return {table: _hash(rows(store, query)) for table, query in _QUERIES.items()}


def _hash(found: Iterable[Iterable[Any]]) -> str:
    plain = [tuple(bytes(x) if isinstance(x, memoryview) else x for x in row) for row in found]
    return hashlib.sha256(repr(sorted(map(repr, plain))).encode()).hexdigest()
