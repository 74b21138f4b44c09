"""A large database, made by a fast path: a sweep of finished runs whose results are drawn."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, get_args

import numpy as np
from sqlalchemy import bindparam, select, update

from seqcls.evaluation import drawn_test_set, range_counts
from seqcls.problem import Problem, configuration, resolve
from seqcls.results import ErrorKind, Evaluation, OutputResults, StringErrors
from seqcls.strings.tokenizer import Tokenizer
from sweeps.grid.spec import parse_spec
from sweeps.results import RunResult
from sweeps.store import writer
from sweeps.store.database import Store
from sweeps.store.opening import open_writer
from sweeps.store.reads.stored import problem_of
from sweeps.store.tables import Config, Run, now
from sweeps.store.writes.test_sets import store_test_set

AXES: dict[str, list[Any]] = {
    "hidden_size": [2, 4, 8, 16, 32],
    "num_attention_heads": [1, 2, 4, 8, 16],
    "attention_head_size": [1, 2, 4, 8],
    "train_sampler": ["variable_length", "fixed_length"],
    "embeddings_init_strategy": ["default", "linear_like"],
}
READING = ("train_sampler", "embeddings_init_strategy")
WRITING: dict[str, list[Any]] = {"num_blocks": [1, 2], "positions": ["none", "alibi"]}
COPYING: Mapping[str, Any] = {"task": "copy", "num_tokens": 4, "test_max_length": 200}
"""The fields of all copying models; `WRITING` replaces two of the axes."""

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
    *,
    outputs: bool = False,
) -> Store:
    """Fills a new database with one sweep of finished runs, whose results are drawn at random.

    Args:
        db: where to make it: a file that is not there, or the URL of an empty database.
        axes: the sweep's axes; every combination of their values is a configuration.
        seeds: runs of each configuration.
        errors: misclassified strings of each run that fails; every fourth does not.
        outputs: of models that copy, with `WRITING` in the place of two axes.
    """
    generator = np.random.default_rng(0)
    store = open_writer(db)
    fixed = COPYING if outputs else {}
    if outputs:
        axes = {**{name: axes[name] for name in axes if name not in READING}, **WRITING}
    spec = {"name": "large", "model_seeds": f"0..{seeds - 1}", "axes": dict(axes), "fixed": fixed}
    writer.submit(store, parse_spec(spec))
    drawn = (DrawnOutputs if outputs else Drawn)(generator, errors)
    with store.write(quiet=True) as connection:
        store_test_set(connection, drawn.config, drawn.test_set)
        runs = connection.execute(
            select(Run.id, Run.model_seed, Config.key, Config.json).join(Config).order_by(Run.id)
        ).all()
    for start in range(0, len(runs), RUNS_AT_ONCE):
        _finish(store, runs[start : start + RUNS_AT_ONCE], drawn)
    return store


def _finish(store: Store, runs: Sequence[Any], drawn: "Drawn") -> None:
    done = []
    for run_id, seed, key, config in runs:
        outcome = drawn.outcome(run_id, problem_of(config)).seal(key, seed)
        times = {"started_at": now(), "finished_at": now(), "train_seconds": 0.1}
        state = {"state": "done", "attempt": 1, "engine": "fused", "digest": outcome.digest}
        results = {**outcome.summary(), **outcome.records()}
        done.append({"own_id": run_id, **times, **state, **results})
    columns: dict[str, Any] = {name: bindparam(name) for name in done[0] if name != "own_id"}
    statement = update(Run).where(Run.id == bindparam("own_id")).values(columns)
    with store.write(quiet=True) as connection:
        connection.execute(statement, done)


class Drawn:
    """Results drawn at random but as a whole consistent."""

    fixed: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, generator: np.random.Generator, errors: int) -> None:
        self._generator = generator
        self._errors = errors
        self.config = configuration(self.fixed)
        self.test_set = drawn_test_set(resolve(self.config))
        self._lengths = np.unique(self.test_set.lengths)
        self._all = self._counted(np.arange(len(self.test_set.texts)))

    def outcome(self, run_id: int, problem: Problem | None) -> RunResult:
        tested = len(self.test_set.texts)
        number = 0 if run_id % 4 == 0 else self._errors
        numbers = np.sort(self._generator.choice(tested, size=number, replace=False))
        lengths = self.test_set.lengths
        evaluation = self._evaluation(
            numbers, int(lengths[numbers].min() if number else lengths.max() + 1) - 1
        )
        assert problem is not None
        counts = (evaluation.lengths, evaluation.tested_by_length, evaluation.wrong_by_length)
        return RunResult(
            train_losses=[9.0] * EPOCHS,
            validation_losses=[9.0] * EPOCHS,
            train_seconds=0.1,
            engine="fused",
            best_epoch=EPOCHS,
            evaluation=replace(evaluation, ranges=range_counts(problem, *counts)),
        )

    def _evaluation(self, numbers: np.ndarray, solved_length: int) -> Evaluation:
        """Results of a model that gets these strings wrong."""
        labels = self.test_set.labels[numbers]
        wrong = self._counted(numbers)
        right = self._all - wrong
        cells = np.stack([right[0], wrong[0], wrong[1], right[1]], axis=1)
        errors = StringErrors(numbers, np.where(labels, -1.0, 1.0))
        tested, misclassified, digest = cells.sum(axis=1), wrong.sum(axis=0), self.test_set.digest
        return Evaluation(
            self._lengths, tested, misclassified, cells, errors, solved_length, digest
        )

    def _counted(self, numbers: np.ndarray) -> np.ndarray:
        """Occurrences of these strings, of shape (label, length)."""
        bins = np.searchsorted(self._lengths, self.test_set.lengths[numbers])
        bins += self.test_set.labels[numbers] * len(self._lengths)
        weights = self.test_set.occurrences[numbers]
        counted = np.bincount(bins, weights, minlength=2 * len(self._lengths))
        return counted.reshape(2, -1).astype(np.int64)


class DrawnOutputs(Drawn):
    """Results as `Drawn` has them, of models that copy: each wrong output lacks its input's last
    token.
    """

    fixed: ClassVar[Mapping[str, Any]] = COPYING

    def __init__(self, generator: np.random.Generator, errors: int) -> None:
        super().__init__(generator, errors)
        self._kinds = get_args(ErrorKind)
        spelled = Tokenizer(resolve(self.config).task.alphabet)
        self._outputs = [spelled.decode(spelled.encode(x)[1:-1]) for x in self.test_set.texts]

    def _evaluation(self, numbers: np.ndarray, solved_length: int) -> Evaluation:
        wrong, tested = self._counted(numbers), self._all
        kinds = self._generator.choice(len(self._kinds), size=len(numbers))
        return Evaluation(
            self._lengths,
            tested,
            wrong,
            None,
            StringErrors(numbers, np.full(len(numbers), -1.0)),
            solved_length,
            self.test_set.digest,
            OutputResults(
                right_length_given=tested - wrong // 2,
                edits=wrong,
                target_tokens=tested * self._lengths,
                texts=[self._outputs[number] for number in numbers.tolist()],
                first_wrong=self.test_set.lengths[numbers] - 1,
                error_kinds=[self._kinds[kind] for kind in kinds.tolist()],
            ),
        )

    def _counted(self, numbers: np.ndarray) -> np.ndarray:
        """Occurrences of these strings at each length."""
        bins = np.searchsorted(self._lengths, self.test_set.lengths[numbers])
        weights = self.test_set.occurrences[numbers]
        counted = np.bincount(bins, weights, minlength=len(self._lengths))
        return counted.astype(np.int64)


def count_configs(axes: Mapping[str, list[Any]] = AXES) -> int:
    """Returns the number of configurations of the axes."""
    return math.prod(map(len, axes.values()))
