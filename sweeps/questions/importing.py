"""Results of models trained elsewhere: predictions for test strings, stored as runs."""

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import pandas as pd

from seqcls.config import check_model_seed
from seqcls.datasets import SPLITS, Dataset
from seqcls.datasets.known import remember
from seqcls.errors import ConfigError, DatasetError, InvalidStringError
from seqcls.evaluation import DistinctStrings, distinct_test_strings, judged_evaluation
from seqcls.evaluation import evaluation_of as evaluation_of_outputs
from seqcls.fields.imported import imported_config
from seqcls.problem import Problem, resolve
from seqcls.results import Evaluation, StringErrors
from seqcls.tokens.strings import NO_LETTER
from seqcls.tokens.tokenizer import FIRST_LETTER, Tokenizer
from sweeps.datasets import read_dataset
from sweeps.datasets.predictions import read_predictions
from sweeps.datasets.reading import label_of
from sweeps.grid.paths import with_digests
from sweeps.results.run_result import RunResult
from sweeps.store.databases.engine import Store
from sweeps.store.opening import open_writer, to_write
from sweeps.store.runs.importing import check_sweep, record_imported, refuse_known

SHOWN = 5
"""Strings that are named at most where several are missing."""


@dataclass(frozen=True)
class Prediction:
    """One answer of a model, as it was given."""

    place: str
    """Such as `line 7`."""
    string: Any
    """Its tokens, or the id of its row."""
    answer: Any
    score: Any = None


class _Strings:
    """The strings that a test asks for, found by their tokens or by ids of a file's rows."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.test: DistinctStrings = distinct_test_strings(problem.test)
        self.tokenizer: Tokenizer = problem.tokenizer
        self._alphabet = {token: number for number, token in enumerate(problem.task.alphabet)}
        strings = self.test.strings
        if strings.is_counted:
            keys: list[Hashable] = [tuple(counts) for counts in strings.counts.tolist()]
        else:
            pairs = zip(strings.letters, strings.lengths.tolist(), strict=True)
            keys = [tuple(letters[:length].tolist()) for letters, length in pairs]
        self.rows = {key: row for row, key in enumerate(keys)}

    @cached_property
    def rows_of_ids(self) -> dict[str, int]:
        """The string of each id of the tested rows of a file."""
        task: Any = self.problem.task
        content: Dataset | None = getattr(task, "content", None)
        if content is None or content.ids is None:
            raise DatasetError("id: the test strings have none; give their tokens")
        test: Any = self.problem.test
        letters, lengths = content.strings.letters, content.strings.lengths
        return {
            content.ids[row]: self.rows[tuple(letters[row, : lengths[row]].tolist())]
            for row in test.rows.tolist()
        }

    def letters(self, value: Any) -> list[int]:
        """The letters of a string as it was given: a list of tokens, or text.

        Raises:
            DatasetError: it is no string of this alphabet.
        """
        if isinstance(value, float) and np.isnan(value):
            value = ""
        if isinstance(value, list | tuple | np.ndarray):
            tokens: Sequence[str] = [str(token) for token in value]
        elif isinstance(value, str | int) and not isinstance(value, bool):
            text = str(value).strip()
            tokens = text.split() if self.tokenizer.separator or " " in text else text
        else:
            raise DatasetError(f"{value!r:.60}, expected text or a list of tokens")
        if all(token in self._alphabet for token in tokens):
            return [self._alphabet[token] for token in tokens]
        try:
            ids = self.tokenizer.encode(str(value) if isinstance(value, str) else " ".join(tokens))
        except InvalidStringError as error:
            raise DatasetError(str(error)) from None
        return [number - FIRST_LETTER for number in ids[1:]]

    def row(self, value: Any) -> int | None:
        """Which test string is the one that was given; None where none is."""
        letters = self.letters(value)
        if self.test.strings.is_counted:
            counts = np.bincount(letters, minlength=len(self._alphabet))
            return self.rows.get(tuple(counts.tolist()))
        return self.rows.get(tuple(letters))

    def answer(self, value: Any) -> Any:
        """A label, or the letters of an output.

        Raises:
            DatasetError: it is none.
        """
        if self.problem.writes:
            try:
                return self.letters(value)
            except DatasetError as error:
                raise DatasetError(f"prediction: {error}") from None
        return label_of(value, "prediction")


def _score(value: Any) -> float:
    missing = value is None or value == "" or (isinstance(value, float) and np.isnan(value))
    if missing:
        return float("nan")
    try:
        score = float(value)
    except (TypeError, ValueError):
        raise DatasetError(f"score is {value!r:.60}, expected a number") from None
    if not np.isfinite(score) or abs(score) > 1e300:
        raise DatasetError(f"score is {value!r:.60}, expected a finite number")
    return score


def _evaluated(strings: _Strings, given: Iterable[Prediction], *, by_id: bool) -> Evaluation:
    """Predictions for every test string, held against what is right.

    Raises:
        DatasetError: strings are missing, unknown or stand twice, or a prediction is none.
    """
    number = len(strings.test.texts)
    answers: list[Any] = [None] * number
    scores = np.full(number, np.nan)
    before: dict[Any, str] = {}
    answered: dict[int, str] = {}
    for one in given:
        try:
            key = _key(strings, one.string, by_id=by_id)
            answer, score = strings.answer(one.answer), _score(one.score)
        except DatasetError as error:
            raise DatasetError(f"{one.place}: {error}") from None
        row = strings.rows_of_ids[key] if by_id else key
        if key in before:
            raise DatasetError(f"{one.place}: the string of {before[key]} again; keep one of them")
        if row in answered and answers[row] != answer:
            raise DatasetError(
                f"{one.place}: the string of {answered[row]} again, with another prediction"
            )
        before[key] = answered[row] = one.place
        answers[row], scores[row] = answer, score
    wanted: Any = strings.rows_of_ids if by_id else range(number)
    missing = [key for key in wanted if key not in before]
    if missing:
        shown = [repr(key if by_id else strings.test.texts[key])[:60] for key in missing[:SHOWN]]
        more = f" and {len(missing) - SHOWN:,} more" if len(missing) > SHOWN else ""
        raise DatasetError(
            f"no prediction for {len(missing):,} of {len(wanted):,} test strings: "
            f"{', '.join(shown)}{more}"
        )
    if strings.problem.writes:
        return _of_outputs(strings, answers, scores)
    return _of_labels(strings, np.array(answers, dtype=bool), scores)


def _key(strings: _Strings, value: Any, *, by_id: bool) -> Any:
    if by_id:
        text = str(value.item() if isinstance(value, np.generic) else value).strip()
        if text not in strings.rows_of_ids:
            raise DatasetError(f"id {text!r:.60} is not that of a test string")
        return text
    row = strings.row(value)
    if row is None:
        raise DatasetError(f"string {value!r:.60} is not a test string")
    return row


def _of_labels(strings: _Strings, answers: np.ndarray, scores: np.ndarray) -> Evaluation:
    test = strings.test
    evaluation = evaluation_of_outputs(strings.problem, test, np.where(answers, 1.0, -1.0))
    by_number = np.empty(len(scores))
    by_number[test.numbers] = scores
    errors = StringErrors(evaluation.errors.numbers, by_number[evaluation.errors.numbers])
    return Evaluation(**{**vars(evaluation), "errors": errors})


def _of_outputs(strings: _Strings, answers: list[list[int]], scores: np.ndarray) -> Evaluation:
    from seqcls.decoding.judging import Judged
    from seqcls.decoding.measures import edits, error_kind, first_wrong

    targets = [row[row != NO_LETTER].tolist() for row in strings.test.targets]
    is_wrong = np.array([a != b for a, b in zip(answers, targets, strict=True)], dtype=bool)
    pairs = [(answers[row], targets[row]) for row in np.flatnonzero(is_wrong).tolist()]
    distances = np.zeros(len(answers), dtype=np.int64)
    distances[is_wrong] = [edits(said, target) for said, target in pairs]
    judged = Judged(
        is_wrong,
        # What would have been written at the target's length is known of right outputs alone.
        ~is_wrong,
        scores,
        distances,
        [said for said, _ in pairs],
        np.array([first_wrong(said, target) for said, target in pairs], dtype=np.int64),
        [error_kind(said, target, ended=True) for said, target in pairs],
    )
    return judged_evaluation(strings.problem, strings.test, np.arange(len(answers)), judged)


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
        self._strings = _Strings(resolve(imported_config(fields, "any")))
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
        for name in ("id" if by_id else "tokens", "prediction"):
            if name not in frame.columns:
                said = ", ".join(map(str, frame.columns))[:100]
                raise DatasetError(
                    f"predictions have the columns {said!r}: expected "
                    f"{'id or tokens' if name == 'id' else name}"
                )
        columns = ["id" if by_id else "tokens", "prediction"]
        rows = frame[columns].itertuples(index=False, name=None)
        scores = frame["score"].tolist() if "score" in frame.columns else [None] * len(frame)
        given = [
            Prediction(f"row {number}", string, answer, score)
            for number, ((string, answer), score) in enumerate(zip(rows, scores, strict=True), 1)
        ]
        made = self.prepared(model, seed, given, by_id=by_id, config=config, losses=losses)
        return self.store(made)

    def prepared(
        self,
        model: str,
        seed: int,
        given: Iterable[Prediction],
        *,
        by_id: bool,
        config: Mapping[str, Any] | None = None,
        losses: Sequence[Sequence[float]] | None = None,
    ) -> "Prepared":
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
            evaluation=_evaluated(self._strings, given, by_id=by_id),
        )
        return Prepared(made, seed, result.sealed(made.key, seed))

    def store(self, made: "Prepared") -> int:
        """Stores a run that was checked. Raises `ConfigError` where it is there already."""
        drawn = self._strings.test.test_set
        return record_imported(
            self.opened, self.sweep, made.config, made.seed, made.result, drawn, self._replace
        )

    def close(self) -> None:
        """Ends the log; every run is stored already."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


@dataclass(frozen=True)
class Prepared:
    """A run that was checked, ready to be stored."""

    config: Any
    seed: int
    result: RunResult


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

    All rows are checked before anything is written. Besides there may be the columns `score`,
    `split` (others than those of testing are left out), `config` (JSON) and `config.NAME`.

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
    if not replace:
        refuse_known(log.opened, [(one.config, one.seed) for one in made])
    return [log.store(one) for one in made]


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
