"""Results of models trained elsewhere: predictions for test strings, stored as runs."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd

from seqcls.config import check_model_seed
from seqcls.datasets import SPLITS, Dataset
from seqcls.datasets.known import remember
from seqcls.errors import ConfigError, DatasetError
from seqcls.fields.imported import imported_config
from seqcls.problem import resolve
from seqcls.tokens.tokenizer import FIRST_LETTER
from sweeps.datasets import read_dataset
from sweeps.datasets.predictions import read_predictions
from sweeps.grid.paths import with_digests
from sweeps.questions.judged_predictions import Prediction, TestedStrings, evaluated
from sweeps.results.run_result import RunResult
from sweeps.store.databases.engine import Store
from sweeps.store.opening import open_writer, to_write
from sweeps.store.runs.importing import ImportedRun, check_sweep, record_imported


def _losses(losses: Sequence[Sequence[float]] | None) -> tuple[list[float], list[float]]:
    pairs = [tuple(map(float, pair)) for pair in losses or ()]
    if any(len(pair) != 2 or not np.isfinite(pair).all() for pair in pairs):
        raise ConfigError("losses: expected a pair of finite numbers an epoch: train, validation")
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


class ResultLog:
    """Takes results of models trained elsewhere; each run is stored as it comes, in one piece."""

    def __init__(
        self, store: Store, sweep: str, fields: Mapping[str, Any], *, replace: bool = False
    ) -> None:
        self.sweep = sweep
        self.opened = store
        self._fields = dict(fields)
        self._replace = replace
        self._strings = TestedStrings(resolve(imported_config(fields, "any")))
        check_sweep(store, sweep)

    @property
    def strings(self) -> pd.DataFrame:
        """The test strings: tokens, as a list, and what is right, label or target."""
        test, problem = self._strings.test, self._strings.problem
        tokens = problem.task.alphabet
        spelled = [
            [tokens[x - FIRST_LETTER] for x in self._strings.tokenizer.encode(text)[1:]]
            for text in test.texts
        ]
        answer = {"target": test.target_texts} if problem.writes else {"label": test.targets}
        return pd.DataFrame({"tokens": spelled, **answer})

    def run(
        self,
        *,
        model: str,
        seed: int,
        predictions: Any,
        config: Mapping[str, Any] | None = None,
        losses: Sequence[Sequence[float]] | None = None,
    ) -> int:
        """Stores one model's predictions.

        Args:
            model: its name.
            seed: what tells it from others of this name and config.
            predictions: a frame, or its columns: `id` or `tokens`, `prediction` (a label, or the
                text of an output), and `score`, where there is one.
            config: its settings, by name.
            losses: train and validation loss of each epoch, as sums over the strings.

        Returns:
            The run's id.

        Raises:
            DatasetError: strings are missing, unknown or stand twice, or a prediction is none.
            ConfigError: the run is there already, or its settings are no JSON.
        """
        frame = pd.DataFrame(predictions).reset_index(drop=True)
        by_id = "tokens" not in frame.columns
        columns = ["id" if by_id else "tokens", "prediction"]
        for name in columns:
            if name not in frame.columns:
                said = ", ".join(map(str, frame.columns))[:100]
                raise DatasetError(
                    f"predictions have the columns {said!r}: expected "
                    f"{'id or tokens' if name == 'id' else name}"
                )
        rows = frame[columns].itertuples(index=False, name=None)
        scores = frame["score"].tolist() if "score" in frame.columns else [None] * len(frame)
        given = [
            Prediction(f"row {number}", string, answer, score)
            for number, ((string, answer), score) in enumerate(zip(rows, scores, strict=True), 1)
        ]
        made = self.prepared(model, seed, given, by_id=by_id, config=config, losses=losses)
        return self.store([made])[0]

    def prepared(
        self,
        model: str,
        seed: int,
        given: Iterable[Prediction],
        *,
        by_id: bool,
        config: Mapping[str, Any] | None = None,
        losses: Sequence[Sequence[float]] | None = None,
    ) -> ImportedRun:
        """Checks a run; nothing is written. Raises as `run`."""
        seed = seed.item() if isinstance(seed, np.generic) else seed
        check_model_seed(seed)
        made = imported_config(self._fields, model, config)
        train, validation = _losses(losses)
        result = RunResult(
            train,
            validation,
            train_seconds=0.0,
            engine="imported",
            best_epoch=int(np.argmin(validation)) + 1 if validation else None,
            evaluation=evaluated(self._strings, given, by_id=by_id),
        )
        return ImportedRun(made, seed, result.sealed(made.key, seed))

    def store(self, runs: Sequence[ImportedRun]) -> list[int]:
        """Stores runs that were checked, all or none.

        Raises:
            ConfigError: one of them is there already.
        """
        drawn = self._strings.test.test_set
        return record_imported(self.opened, self.sweep, runs, drawn, self._replace)

    def close(self) -> None:
        """Ends the log; every run is stored already."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def import_predictions(
    db: Store | str | Path | None,
    path: str | Path,
    *,
    sweep: str,
    dataset: Dataset | str | Path | None = None,
    task: Mapping[str, Any] | str | None = None,
    replace: bool = False,
) -> list[int]:
    """Stores the predictions in a file: `model, seed, id|tokens, prediction`.

    All rows are checked before anything is written, and all runs are stored or none. Besides there
    may be the columns `score`, `split` (others than those of testing are left out), `config` (JSON)
    and `config.NAME`.

    Returns:
        The runs' ids, in the order of the file.

    Raises:
        DatasetError: a row is refused, with its line.
        ConfigError: as `log_results`.
    """
    named = str(path)[:200]
    try:
        by_id, rows = read_predictions(Path(path))
        log = log_results(db, sweep=sweep, dataset=dataset, task=task, replace=replace)
        runs: dict[tuple[str, int, str], list[Prediction]] = {}
        for row in rows:
            given = Prediction(row.place, row.string, row.prediction, row.score)
            runs.setdefault((row.model, row.seed, row.settings), []).append(given)
        made = []
        for (model, seed, settings), some in runs.items():
            try:
                made.append(
                    log.prepared(model, seed, some, by_id=by_id, config=json.loads(settings))
                )
            except DatasetError as error:
                who = f"model {model!r:.60}, seed {seed}: "
                raise DatasetError(f"{who if len(runs) > 1 else ''}{error}") from None
    except DatasetError as error:
        raise DatasetError(f"{named}: {error}") from None
    return log.store(made)


def log_results(
    db: Store | str | Path | None,
    *,
    sweep: str,
    dataset: Dataset | str | Path | None = None,
    task: Mapping[str, Any] | str | None = None,
    replace: bool = False,
) -> ResultLog:
    """A log for results of models trained elsewhere, tested on the same strings.

    Args:
        db: the database; made where there is none.
        sweep: a name for all of these runs; runs are added to those that it has.
        dataset: the test strings: the rows of a file whose split is `test`; all where it has no
            splits.
        task: instead of a dataset, a task and what determines its test strings, with the fields of
            a specification, as `{"task": "parity", "test_max_length": 40}`.
        replace: whether a run that is there already is replaced; else it is refused.

    Raises:
        DatasetError: the file cannot be read.
        ConfigError: there are no such test strings, or the sweep is one of trained models.
    """
    if (dataset is None) == (task is None):
        raise ConfigError("expected either dataset='test.jsonl' or task={'task': 'parity'}")
    store = to_write(db) if isinstance(db, Store) else open_writer(None if db is None else str(db))
    if dataset is not None:
        content = dataset if isinstance(dataset, Dataset) else read_dataset(dataset)
        content = _all_tested(content)
        fields: Mapping[str, Any] = {"task": content.task, "dataset": remember(content)}
    else:
        given = {"task": task} if isinstance(task, str) else dict(task or {})
        fields = with_digests({"fixed": given})["fixed"]
    return ResultLog(store, sweep, fields, replace=replace)


def _all_tested(content: Dataset) -> Dataset:
    """A file without splits as one of test strings alone."""
    if content.splits is not None:
        return content
    return Dataset.of(
        content.name,
        content.alphabet,
        content.strings,
        labels=content.labels,
        targets=content.targets,
        splits=np.full(len(content), SPLITS.index("test"), dtype=np.uint8),
        ids=content.ids,
    )
