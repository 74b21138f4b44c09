"""Results of models trained elsewhere: predictions for test strings, stored as runs.

Predictions are a frame, columns, or answers by string. Columns are joined by position, whatever
their index: they must be in the same order.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace as with_fields
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd

from seqcls.config import RunConfig
from seqcls.errors import ConfigError, DatasetError, Parameter
from seqcls.imported import imported_config, same_settings
from seqcls.problem import resolve
from seqcls.strings.datasets import MAX_NAME, SPLITS, Dataset, remember
from seqcls.strings.tokenizer import FIRST_LETTER, unpack_array
from seqcls.text import short
from sweeps.api.predictions import TestedStrings, evaluate_predictions
from sweeps.datasets import read_content, read_dataset
from sweeps.datasets.predictions import (
    Prediction,
    Predictions,
    are_predictions,
    read_predictions,
    seed_of,
)
from sweeps.datasets.summary import Summary, summary_of
from sweeps.datasets.tables import refused_in
from sweeps.grid.written_spec import with_digests
from sweeps.results import RunResult
from sweeps.store.database import Store
from sweeps.store.opening import open_writer
from sweeps.store.reads.queries import configs_since, has_run
from sweeps.store.test_sets import store_dataset
from sweeps.store.writes.importing import ImportedRun, check_sweep, record_imported

KNOWN = ("id", "tokens", "prediction", "score")
EXPECTED = (
    "expected columns 'tokens' (or 'id') and 'prediction', as in a frame or "
    "{'tokens': [...], 'prediction': [...]}, or a mapping of strings to predictions"
)


def prediction_rows(predictions: Any) -> Predictions:
    """Returns the predictions as rows.

    Args:
        predictions: a frame of any library, columns by name, rows as mappings by name, or
            predictions by string.

    Raises:
        DatasetError: it is none of these, or the columns differ in length.
    """
    columns = _columns(predictions)
    string = "tokens" if "tokens" in columns else "id"
    for name in (string, "prediction"):
        if name not in columns:
            shown = ", ".join(map(str, columns))[:100]
            missing = "id or tokens" if name == "id" else name
            raise DatasetError(f"predictions have the columns {shown!r}, not {missing}: {EXPECTED}")
    given = {x: _column(x, columns[x]) for x in (string, "prediction", "score") if x in columns}
    if len({*map(len, given.values())}) > 1:
        lengths = ", ".join(f"{name} {len(values):,}" for name, values in given.items())
        raise DatasetError(f"predictions have columns of different lengths: {lengths}")
    rows = zip(*given.values(), strict=True)
    return Predictions(
        string == "id", [Prediction(f"row {n}", *row) for n, row in enumerate(rows, 1)]
    )


def _columns(predictions: Any) -> Mapping[str, Any]:
    """Returns the given columns by name."""
    if callable(as_frame := getattr(predictions, "to_pandas", None)):
        predictions = as_frame()
    if isinstance(predictions, Mapping):
        # A mapping may be columns, or answers by string: a known name with several values decides.
        if any(name in KNOWN and not _is_answer(x) for name, x in predictions.items()):
            return predictions
        return {"tokens": list(predictions), "prediction": list(predictions.values())}
    if isinstance(predictions, list | tuple | np.ndarray | Iterator):
        rows = predictions if isinstance(predictions, np.ndarray) else list(predictions)
        # The 0 is for no rows.
        if getattr(rows, "dtype", np.dtype(int)).names or isinstance([*rows, 0][0], Mapping):
            predictions = pd.DataFrame(rows, dtype=object)
    if not isinstance(predictions, pd.DataFrame):
        raise DatasetError(f"predictions are {_describe(predictions)}: {EXPECTED}")
    if twice := {*predictions.columns[predictions.columns.duplicated()]} & {*KNOWN}:
        raise DatasetError(f"predictions have two columns {max(twice)!r}; remove one")
    return {str(name): predictions[name] for name in predictions.columns.drop_duplicates()}


def _describe(value: Any) -> str:
    return f"{short(value)}, of type {type(value).__name__}"


def _is_answer(value: Any) -> bool:
    """True if a value is one prediction, and not a column of several."""
    is_single = isinstance(value, str) or not isinstance(value, Iterable)
    return is_single or getattr(value, "ndim", None) == 0


def _column(name: str, values: Any) -> list[Any]:
    """Returns the values of a column in their order, as Python objects."""
    if isinstance(values, Mapping):
        # `frame.to_dict()` has values by index.
        values = list(values.values())
    elif _is_answer(values) or isinstance(values, bytes | set | frozenset):
        raise DatasetError(f"column {name!r} is {_describe(values)}, expected a list, or an array")
    # Numbers of NumPy, PyTorch and Arrow become Python's.
    as_list = getattr(values, "to_pylist", None) or getattr(values, "tolist", None)
    rows = map(unpack_array, as_list() if as_list else values)
    return [None if value is pd.NA or value is pd.NaT else value for value in rows]


def _losses(losses: Any) -> tuple[list[float], list[float], str]:
    """Returns train and validation losses up to the epoch in which training diverged, and a
    sentence about it.

    Raises:
        ConfigError: they are no pairs of numbers.
    """
    try:
        if isinstance(losses, Mapping | pd.DataFrame):
            frame = pd.DataFrame(losses).rename(columns=lambda x: str(x).removesuffix("_loss"))
            losses = frame[["train", "validation"]].to_numpy()
        pairs = np.array([(x, y) for x, y in ([] if losses is None else losses)], dtype=float)
    except (TypeError, ValueError, KeyError, OverflowError):
        raise ConfigError(
            f"losses={_describe(losses)}: expected a pair of numbers an epoch, or columns train "
            "and validation"
        ) from None
    train, validation = pairs.reshape(-1, 2).T.tolist()
    for epoch, pair in enumerate(zip(train, validation, strict=True), 1):
        for part, loss in zip(("train", "validation"), pair, strict=True):
            if not math.isfinite(loss):
                why = f"diverged in epoch {epoch}: the {part} loss became {loss}"
                return train[: epoch - 1], validation[: epoch - 1], why
    return train, validation, ""


class ResultLog:
    """Stores results of models trained elsewhere, one run at a time, each in one transaction."""

    def __init__(
        self, store: Store, sweep: str, fields: Mapping[str, Any], *, replace: bool = False
    ) -> None:
        self.sweep = sweep
        self.opened = store
        self._fields = dict(fields)
        self._replace = replace
        # The name is arbitrary: only the test strings are read.
        self._strings = TestedStrings(resolve(imported_config(fields, "any")))
        self._last = 0
        """Id of the last configuration that was read."""
        self._stored: dict[str, dict[str, RunConfig]] = {}
        """Configurations of models trained elsewhere by their settings, and by their keys."""
        # Checked before any result is taken: a refusal must not come after hours of work.
        check_sweep(store, sweep)

    @property
    def strings(self) -> pd.DataFrame:
        """The test strings: tokens, as a list, and label or target."""
        test, tokens = self._strings.test, self._strings.problem.task.alphabet
        encoded = (self._strings.tokenizer.encode(text)[1:] for text in test.texts)
        spelled = [[tokens[x - FIRST_LETTER] for x in ids] for ids in encoded]
        texts = test.target_texts
        right = {"label": test.targets} if texts is None else {"target": texts}
        return pd.DataFrame({"tokens": spelled, **right})

    def run(
        self,
        *,
        model: str,
        seed: int,
        predictions: Any,
        config: Mapping[str, Any] | None = None,
        losses: Any = None,
    ) -> int:
        """Stores one model's predictions.

        Args:
            model: its name.
            seed: distinguishes models of this name and config.
            predictions: a frame, or its columns: `id` or `tokens`, `prediction` (a label, or the
                text of an output), and `score`, where there is one; columns are joined by position.
                Or predictions by string.
            config: its settings, by name.
            losses: train and validation loss of each epoch, as sums over the strings: pairs, or a
                frame with the columns `train` and `validation`. Losses from the first that is not
                finite on are left out, and `engine_reason` records that training diverged.

        Returns:
            The run's id.

        Raises:
            DatasetError: strings are missing, unknown or repeated, or a prediction is none.
            ConfigError: the run is there already, or its settings are no JSON.
        """
        given = prediction_rows(predictions)
        return self.store([self.prepare(model, seed, given, config=config, losses=losses)])[0]

    def prepare(
        self,
        model: str,
        seed: int,
        given: Predictions,
        *,
        config: Mapping[str, Any] | None = None,
        losses: Any = None,
        source: str = "",
    ) -> ImportedRun:
        """Checks a run; nothing is written. Raises as `run`.

        Args:
            source: a description of the file that the predictions are from.
        """
        try:
            seed = seed_of(seed)
        except DatasetError as error:
            raise ConfigError(str(error)) from None
        config_as_written = imported_config(self._fields, model, config)
        stored = self._find_stored(config_as_written, seed, is_of_file=bool(source))
        train, validation, diverged = _losses(losses)
        result = RunResult(
            train,
            validation,
            train_seconds=0.0,
            engine="imported",
            engine_reason=diverged or source,
            best_epoch=int(np.argmin(validation)) + 1 if validation else None,
            evaluation=evaluate_predictions(self._strings, given),
        )
        return ImportedRun(stored, seed, result.seal(stored.key, seed))

    def _find_stored(self, config: RunConfig, seed: int, is_of_file: bool) -> RunConfig:
        """Returns the stored configuration with the same settings, where 64 equals 64.0.

        If it has a run of this seed already, results that are not of a file get a new one.
        """
        # Only configurations stored since the last run are read: a log may have thousands of runs.
        for config_id, known in configs_since(self.opened, self._last).items():
            self._last = config_id
            self._stored.setdefault(same_settings(known), {})[known.key] = known
        same = self._stored.get(same_settings(config), {})
        if config.key in same:
            return config
        free = (x for x in same.values() if self._replace or not has_run(self.opened, x, seed))
        return next(free, next(iter(same.values()), config) if is_of_file else config)

    def store(self, runs: Sequence[ImportedRun]) -> list[int]:
        """Stores checked runs, all or none.

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


KINDS = ("predictions", "weights", "strings")
WEIGHTS = (".safetensors", ".npz", ".bin", ".pt", ".pth", ".ckpt")
"""Endings of files of weights; all but the first are refused with a way to convert them."""


def kind_of_file(path: str | Path, kind: str | None = None, *, tested: bool = False) -> str:
    """Returns the kind of a file or folder: one of `KINDS`.

    Args:
        path: the file.
        kind: the kind, if it is known; by default, it is detected by name and columns.
        tested: True if test strings are given for it: then it does not hold strings itself.

    Raises:
        ConfigError: the given kind is none of `KINDS`.
    """
    path = Path(path)
    if kind is not None and kind not in KINDS:
        raise ConfigError(Parameter("what", kind), f": expected {', '.join(KINDS)}")
    weights = ("config.json", "*.safetensors", "*.bin")
    if kind is None and (path.suffix in WEIGHTS or any(any(path.glob(x)) for x in weights)):
        return "weights"
    return kind or ("predictions" if tested or are_predictions(path) else "strings")


def import_strings(
    db: Store | str | Path | None, path: str | Path, *, name: str | None = None
) -> Summary:
    """Stores the strings or the automaton in a file, and returns a summary of it.

    A specification names them as `dataset = "…"`, by their digest, without the file. A file with a
    refused row is not stored.
    """
    content = read_content(path, name)
    if content.dataset is not None:
        with open_writer(db).write("configs") as connection:
            store_dataset(connection, content.dataset)
    return summary_of(content, str(path))


def import_predictions(
    db: Store | str | Path | None,
    path: str | Path,
    *,
    sweep: str,
    dataset: Dataset | str | Path | None = None,
    task: Mapping[str, Any] | str | None = None,
    model: str | None = None,
    replace: bool = False,
) -> list[int]:
    """Stores the predictions in a file: `model, seed, id|tokens, prediction`.

    All rows are checked before anything is written, and all runs are stored or none. Optional
    columns are `score`, `split` (only rows of the test split are read), `config` (JSON) and
    `config.NAME`.

    Args:
        db: the database; made where there is none.
        path: the file.
        sweep: a name for these runs.
        dataset: the test strings, as `log_results` takes them; or a `task`.
        task: see `dataset`.
        model: a name for the only model of the file, instead of its name there.
        replace: replace runs that are there already; else they are refused.

    Returns:
        The runs' ids, in the order of the file.

    Raises:
        DatasetError: a row is refused, with its line.
        ConfigError: as `log_results`.
    """
    # A file's name may hold line breaks, and becomes part of a sentence.
    shown = "".join(x if x.isprintable() else "?" for x in Path(path).name)
    source = f"predictions of {shown[:MAX_NAME]}"
    with refused_in(f"{str(path)[:200]}: "):
        runs = read_predictions(Path(path))
        log = log_results(db, sweep=sweep, dataset=dataset, task=task, replace=replace)
        if model is not None and len({called for called, _, _ in runs}) > 1:
            raise ConfigError(Parameter("model", model), ": the file has several models")
        made = []
        for (called, seed, settings), given in runs.items():
            # Rows of one model with different settings are two runs.
            several = sum(run[:2] == (called, seed) for run in runs) > 1
            who = f"model {called!r:.60}, seed {seed}{f', config {settings[:80]}' * several}: "
            with refused_in(who * (len(runs) > 1)):
                config, name = json.loads(settings), called if model is None else model
                made.append(log.prepare(name, seed, given, config=config, source=source))
    # Every run is checked by now: all of them are stored, or none.
    return log.store(made)


def log_results(
    db: Store | str | Path | None,
    *,
    sweep: str,
    dataset: Dataset | str | Path | None = None,
    task: Mapping[str, Any] | str | None = None,
    replace: bool = False,
) -> ResultLog:
    """Opens a log for results of models trained elsewhere, tested on the same strings.

    Args:
        db: the database; made where there is none.
        sweep: a name for all of these runs; an existing sweep gets them in addition.
        dataset: the test strings: the rows of a file whose split is `test`; all where it has no
            splits.
        task: instead of a dataset, a task and the fields that determine its test strings, as in a
            specification: `{"task": "parity", "test_max_length": 40}`.
        replace: replace a run that is there already; else it is refused.

    Raises:
        DatasetError: the file cannot be read.
        ConfigError: there are no such test strings, or the sweep is one of trained models.
    """
    fields = tested_fields(dataset, task)
    return ResultLog(open_writer(db), sweep, fields, replace=replace)


def tested_fields(
    dataset: Dataset | str | Path | None, task: Mapping[str, Any] | str | None
) -> Mapping[str, Any]:
    """Returns the fields of a configuration that determine its test strings.

    Args:
        dataset: the strings, as `log_results` takes them.
        task: or a task.

    Raises:
        ConfigError: neither is given, or both.
        DatasetError: the file cannot be read.
    """
    if (dataset is None) == (task is None):
        either = Parameter("dataset", "test.jsonl"), " or ", Parameter("task", "parity")
        raise ConfigError("expected either ", *either)
    if dataset is not None:
        content = dataset if isinstance(dataset, Dataset) else read_dataset(dataset)
        if content.splits is None:
            tested = np.full(len(content), SPLITS.index("test"), dtype=np.uint8)
            content = with_fields(content, splits=tested)
        return {"task": content.task, "dataset": remember(content)}
    given = {"task": task} if isinstance(task, str) else task
    if not isinstance(given, Mapping):
        raise ConfigError(f"task={task!r:.60}: expected a task's name, or a table of fields")
    return with_digests({"fixed": given})["fixed"]  # type: ignore[no-any-return]
