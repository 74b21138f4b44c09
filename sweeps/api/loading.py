"""Weights trained elsewhere, loaded as runs: tested here, and analyzed like any other."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from seqcls.adapters import read_weights
from seqcls.adapters.formats import OWN, TABLE
from seqcls.config import ABOUT, IMPORTED, RunConfig
from seqcls.errors import ConfigError, DatasetError
from seqcls.evaluation import distinct_test_strings, evaluate
from seqcls.imported import MAX_NAME, plain_settings
from seqcls.models.positions import special_tokens, table_size
from seqcls.problem import Problem, check, plugins_of, resolve, with_samplers
from seqcls.standalone import network_settings
from seqcls.strings.datasets import Dataset
from seqcls.text import canonical_json, count, list_values
from seqcls.weights import shape_mismatch, to_bytes
from sweeps.api.importing import tested_fields
from sweeps.datasets.predictions import seed_of
from sweeps.results import RunResult
from sweeps.store.database import Store
from sweeps.store.opening import open_writer
from sweeps.store.writes.importing import ImportedRun, check_sweep, record_imported


class LoadedRun(int):
    """The id of a loaded run, with the reading of its weights."""

    reading: dict[str, Any]
    """The record of `seqcls.adapters.ForeignWeights.read`; and the fields of the `network`."""

    @classmethod
    def with_reading(cls, run: int, reading: Mapping[str, Any]) -> Self:
        loaded = cls(run)
        loaded.reading = dict(reading)
        return loaded

    @property
    def sentences(self) -> list[str]:
        """The reading in words."""
        return _sentences(self.reading)


def load_weights(
    db: Store | str | Path | None,
    path: str | Path,
    *,
    task: Mapping[str, Any] | str | None = None,
    dataset: Dataset | str | Path | None = None,
    sweep: str = "loaded",
    adapter: str | None = None,
    tokens: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
    model: str | None = None,
    seed: int = 0,
    replace: bool = False,
) -> LoadedRun:
    """Loads a model that was trained elsewhere, tests it, and stores it as a run.

    Args:
        db: the database; made where there is none.
        path: a safetensors file, or a folder with one, its `config.json` and its vocabulary, in a
            `vocabulary.json`, or as Hugging Face has it.
        task: the task that it is tested on, by name, or with the fields of a specification, as
            `{"task": "parity", "test_max_length": 40}`. With a field about its training strings,
            such as `train_max_length`, it is judged on trained and on longer lengths.
        dataset: instead of a task, the file of the test strings, as `log_results` takes it.
        sweep: a name for these runs; an existing sweep gets them in addition.
        adapter: one of `seqcls.adapters.FORMATS`; by default, detected from the tensors' names.
        tokens: a JSON file of the vocabulary: ids by token, or tokens in the order of their ids.
            Without one, and none beside the weights, they are the task's tokens in their order.
        settings: settings that tensors do not reveal, such as `{"heads": 2, "readout": "mean"}`.
        model: a name; by default, that of the file.
        seed: distinguishes models of this name.
        replace: replace a run that is there already; else it is refused.

    Returns:
        The run's id; its `reading` records how the weights were read, and assumptions.

    Raises:
        ConfigError: the file cannot be read, or is no model of such a task.
    """
    path = Path(path)
    foreign = read_weights(path, None if tokens is None else Path(tokens))
    name = foreign.format_name(adapter)
    called = model or (path.name if path.is_dir() else path.stem)
    if not called.isprintable() or not 1 <= len(called.strip()) <= MAX_NAME:
        raise ConfigError(f"model={called!r:.60}: expected 1 to {MAX_NAME} printable characters")
    try:
        seed = seed_of(seed)
        fields = _task_fields(tested_fields(dataset, task))
        written_settings = plain_settings({"weights": name, **(settings or {})})
    except (DatasetError, ValueError, TypeError) as error:
        raise ConfigError(str(error)) from None
    # Of such a configuration only the task and its test strings count.
    test_problem = resolve(
        RunConfig.from_mapping(with_samplers({**fields, "architecture": IMPORTED}))
    )
    if test_problem.network.head == "string" and test_problem.lacks("labels"):
        raise ConfigError(
            f"task={test_problem.config.task!r}: weights are loaded for languages and for "
            "transductions, and its answers are of another kind"
        )
    made = foreign.read(name, test_problem.task.alphabet, settings or {}, test_problem.network)
    # Without such a field its trained lengths are unknown, and so is its outcome.
    trained = any(field.startswith("train_") for field in fields)
    about = {"model": called, "config": written_settings, "trained": trained}
    weights = made.weights
    if made.fields.get("positions") == "learned" and not made.fields.get("position_range"):
        # Of two streams each has a table.
        about["places"] = next((len(x) for y, x in weights.items() if y.endswith(TABLE)), None)
    network = {**made.fields, "imported": canonical_json(about)}
    config = RunConfig.from_mapping(with_samplers({**fields, **network}))
    config = config.model_copy(update={"plugins": plugins_of(config)})
    problem = resolve(config)
    _check_places(problem)
    check(config)
    if (obstacle := shape_mismatch(problem, weights)) is not None:
        raise ConfigError(f"{path}: read as {name!r}, {obstacle}")
    store = open_writer(db)
    # Refused before the model is tested.
    check_sweep(store, sweep)
    reading = {**made.reading, "network": network_settings(problem.network)}
    (evaluation,) = evaluate(problem, [weights])
    result = RunResult(
        [],
        [],
        train_seconds=0.0,
        engine="loaded",
        engine_reason="; ".join(["weights trained elsewhere", *_sentences(reading)]),
        # One epoch is stored: whatever looks for the best one finds these weights.
        best_epoch=1,
        evaluation=evaluation,
        checkpoints={1: to_bytes(weights)},
    )
    run = ImportedRun(config, seed, result.seal(config.key, seed))
    drawn = distinct_test_strings(problem.test).test_set
    return LoadedRun.with_reading(record_imported(store, sweep, [run], drawn, replace)[0], reading)


def _sentences(reading: Mapping[str, Any]) -> list[str]:
    """Describes how weights were read."""
    network, settings = reading["network"], reading["settings"]
    places, found = reading["places"], reading["tensors"]
    sentences = [f"read as {reading['read_as']}: {list_values(network)}"]
    if "positions" in network or "num_attention_heads" in network:
        if places is not None:
            table = found.get("positions", "sines and cosines")
            sentences.append(f"positions: {table}, {count(places, 'place')}")
        elif network.get("positions", "none") == "none" and reading["read_as"] != OWN:
            sentences.append("positions: no table of them in the file, read as a model without")
    files = ", ".join(reading["vocabulary_files"])
    source = files or "no file of it, the task's tokens in their order"
    ids = [f"{token}={number}" for token, number in reading["vocabulary"].items()]
    special = [f"{x['token']}={x['id']} ({role})" for role, x in reading["special_tokens"].items()]
    shown = [*ids[:MOST_SHOWN], *(["…"] if len(ids) > MOST_SHOWN else []), *special]
    sentences.append(f"vocabulary: {source}: {', '.join(shown)}")
    if parts := {x: y for x, y in found.items() if x != "positions"}:
        sentences.append(f"tensors: {list_values(parts)}")
    sentences += [
        f"{x}: {list_values(settings[x])}" for x in ("given", "config.json") if x in settings
    ]
    if assumed := settings.get("assumed"):
        sentences.append(f"assumed, as nothing says it: {list_values(assumed)}")
    if unread := reading["not_read"]:
        sentences.append(f"not read: {', '.join(unread[:MOST_SHOWN])}")
    return sentences


MOST_SHOWN = 12
"""Maximum number of tokens, and of parts that were not read, in a sentence."""


def _task_fields(given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the fields of a configuration that determine the test of a loaded model."""
    for field in given:
        if field in ABOUT and ABOUT[field].group in ("Network", "Training"):
            raise ConfigError(f"{field}={given[field]!r:.60}: the weights say it; leave it out")
    if "train_max_length" in given:
        # The model is judged on trained lengths by validation strings.
        return {"validation_max_length": given["train_max_length"], **given}
    return dict(given)


def _check_places(problem: Problem) -> None:
    """Refuses a model whose position table is shorter than the longest test string.

    Raises:
        ConfigError: it is.
    """
    size = table_size(problem.network)
    needed = problem.longest_reading("test") + special_tokens(problem.network)
    if size is not None and size < needed:
        raise ConfigError(
            f"the model has {count(size, 'place')}, and the longest test string needs {needed:,}: "
            f"expected test_max_length={problem.config.test_max_length} to be lower by at least "
            f"{needed - size}"
        )
