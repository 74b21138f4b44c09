"""A large database, made by a fast path: a sweep of finished runs whose results are drawn."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sqlalchemy import bindparam, select, update

from seqcls.config import RunConfig
from seqcls.evaluation import drawn_test_set
from seqcls.problem import resolve
from seqcls.results import Evaluation, StringErrors
from sweeps.grid.spec import parse_spec
from sweeps.results.run_result import RunResult
from sweeps.store import writer
from sweeps.store.databases.bulk import insert_rows
from sweeps.store.databases.engine import Store
from sweeps.store.opening import open_writer
from sweeps.store.results.sums import raise_sums
from sweeps.store.results.test_sets import store_test_set
from sweeps.store.runs.recording import result_rows
from sweeps.store.schema.tables import Base, Config, Run, Sweep, now

AXES: dict[str, list[Any]] = {
    "hidden_size": [2, 4, 8, 16, 32],
    "num_attention_heads": [1, 2, 4, 8, 16],
    "attention_head_size": [1, 2, 4, 8],
    "train_sampler": ["variable_length", "fixed_length"],
    "embeddings_init_strategy": ["default", "linear_like"],
}
SEEDS = 250
ERRORS = 134
"""Misclassified strings of each run that fails; every fourth does not."""

LENGTHS = 200
EPOCHS = 10
RUNS_AT_ONCE = 1_000


def make_database(
    db: str,
    axes: Mapping[str, list[Any]] = AXES,
    seeds: int = SEEDS,
    errors: int = ERRORS,
) -> Store:
    """Fills a new database with one sweep of finished runs, whose results are drawn at random.

    Args:
        db: where to make it: a file that is not there, or the URL of an empty database.
        axes: the sweep's axes; every combination of their values is a configuration.
        seeds: runs of each configuration.
        errors: misclassified strings of each run that fails; every fourth does not.
    """
    generator = np.random.default_rng(0)
    store = open_writer(db)
    spec = {"name": "large", "model_seeds": f"0..{seeds - 1}", "axes": dict(axes)}
    writer.submit(store, parse_spec(spec))
    drawn = Drawn(generator, errors)
    with store.begin() as connection:
        store_test_set(connection, RunConfig(), drawn.test_set)
        runs = connection.execute(
            select(Run.id, Run.model_seed, Config.key).join(Config).order_by(Run.id)
        ).all()
    for start in range(0, len(runs), RUNS_AT_ONCE):
        _finish(store, runs[start : start + RUNS_AT_ONCE], drawn)
    with store.change() as connection:
        connection.execute(update(Sweep).values(state="done"))
    return store


def _finish(store: Store, runs: Sequence[Any], drawn: "Drawn") -> None:
    rows: dict[type[Base], list[Any]] = {}
    done = []
    for run_id, seed, key in runs:
        outcome = drawn.outcome(run_id).sealed(key, seed)
        for table, own in result_rows(run_id, outcome).items():
            rows.setdefault(table, []).extend(own)
        times = {"started_at": now(), "finished_at": now(), "train_seconds": 0.1}
        state = {"state": "done", "attempt": 1, "engine": "fused", "digest": outcome.digest}
        done.append({"own_id": run_id, **times, **state, **outcome.summary()})
    columns: dict[str, Any] = {name: bindparam(name) for name in done[0] if name != "own_id"}
    statement = update(Run).where(Run.id == bindparam("own_id")).values(columns)
    with store.begin() as connection:
        for table, own in rows.items():
            insert_rows(connection, table, own)
        connection.execute(statement, done)
        raise_sums(connection, [run_id for run_id, *_ in runs])


class Drawn:
    """Results drawn at random but as a whole consistent."""

    def __init__(self, generator: np.random.Generator, errors: int) -> None:
        self._generator = generator
        self._errors = errors
        self.test_set = drawn_test_set(resolve(RunConfig()))
        self._lengths = np.unique(self.test_set.lengths)
        self._all = self._counted(np.arange(len(self.test_set.texts)))

    def outcome(self, run_id: int) -> RunResult:
        tested = len(self.test_set.texts)
        number = 0 if run_id % 4 == 0 else self._errors
        numbers = np.sort(self._generator.choice(tested, size=number, replace=False))
        labels = self.test_set.labels[numbers]
        wrong = self._counted(numbers)
        right = self._all - wrong
        cells = np.stack([right[0], wrong[0], wrong[1], right[1]], axis=1)
        lengths = self.test_set.lengths
        return RunResult(
            train_losses=[9.0] * EPOCHS,
            validation_losses=[9.0] * EPOCHS,
            train_seconds=0.1,
            engine="fused",
            best_epoch=EPOCHS,
            evaluation=Evaluation.of_cells(
                self._lengths,
                cells,
                StringErrors(numbers, np.where(labels, -1.0, 1.0)),
                int(lengths[numbers].min() if number else lengths.max() + 1) - 1,
                self.test_set.digest,
            ),
        )

    def _counted(self, numbers: np.ndarray) -> np.ndarray:
        """Occurrences of these strings, of shape (label, length)."""
        places = np.searchsorted(self._lengths, self.test_set.lengths[numbers])
        places += self.test_set.labels[numbers] * len(self._lengths)
        weights = self.test_set.occurrences[numbers]
        counted = np.bincount(places, weights, minlength=2 * len(self._lengths))
        return counted.reshape(2, -1).astype(np.int64)


def count_configs(axes: Mapping[str, list[Any]] = AXES) -> int:
    """How many configurations the axes make."""
    return math.prod(map(len, axes.values()))
