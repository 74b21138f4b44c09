"""The strings that break most runs."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Int64
from sqlalchemy import Connection, select

from seqcls.fields import language_of
from sweeps.records import error_numbers
from sweeps.store.database import Store
from sweeps.store.reads import frames
from sweeps.store.reads.misclassified import TestStrings, kinds_of_errors
from sweeps.store.reads.selection import KINDS, Selection
from sweeps.store.reads.stored import tested_lengths
from sweeps.store.reads.test_sets import names_of_datasets
from sweeps.store.statements import one_of
from sweeps.store.tables import Config, Run, TestSetRow, TestString

RUNS_AT_ONCE = 1_000
"""Runs whose errors are read together: of all of them they would be gigabytes."""

MOST_ERRORS = 20_000_000
"""That are counted by string."""


@dataclass(frozen=True)
class BreakingStrings:
    """The strings that most runs misclassified."""

    strings: pd.DataFrame
    """language, string, kind, length, models (how many runs misclassified it), of (how many of
    those counted were tested on it); of each language the first."""
    models: int
    """Failing runs whose errors were counted."""
    languages: dict[str, int]
    """How many of them each language has, the most first."""
    every: int
    """1 where that is all of them, 2 where it is every second, and so on."""


def breaking_strings(store: Store, selection: Selection, limit: int) -> BreakingStrings:
    """The strings that most failing runs of a selection misclassified.

    Where the runs made more than `MOST_ERRORS`, only every second, third, … of them is read, so
    that a page need not read gigabytes.

    Args:
        limit: how many strings of each language.
    """
    with store.read() as connection:
        runs = frames.runs(connection, selection)
        failing = runs[runs["picked"] & runs["failing"]]
        every = max(1, -(-int(failing["wrong"].sum()) // MOST_ERRORS))
        run_ids = failing["run_id"].tolist()[::every]
        strings, languages = _most_broken(connection, run_ids, selection, limit)
    return BreakingStrings(strings, len(run_ids), languages, every)


def _wrong_by_set(
    connection: Connection, run_ids: Sequence[int]
) -> tuple[dict[Any, Int64[np.ndarray, " string"]], Counter[tuple[Any, int]]]:
    """How many of these runs got each string of a test set wrong, and how many runs got any.

    Returns:
        By test set, strings by their numbers; and by test set and configuration.
    """
    query = (
        select(Config.test_set_id, Config.id, Run.errors)
        .join(Config, Config.id == Run.config_id)
        .where(one_of(Run.id, run_ids), Run.wrong > 0)
    )
    models: dict[Any, Int64[np.ndarray, " string"]] = {}
    runs = Counter[tuple[Any, int]]()
    for some in connection.execute(query).partitions(RUNS_AT_ONCE):
        by_set: dict[Any, list[Int64[np.ndarray, " error"]]] = {}
        for test_set_id, config_id, errors in some:
            by_set.setdefault(test_set_id, []).append(error_numbers(errors))
            runs[test_set_id, config_id] += 1
        for test_set_id, numbers in by_set.items():
            counts = np.bincount(np.concatenate(numbers))
            models[test_set_id] = _add_counts(models.get(test_set_id), counts)
    return models, runs


def _most_broken(
    connection: Connection, run_ids: Sequence[int], selection: Selection, limit: int
) -> tuple[pd.DataFrame, dict[str, int]]:
    models, runs = _wrong_by_set(connection, run_ids)
    names = names_of_datasets(connection)
    languages = {set_id: _language(connection, set_id, names) for set_id in models}
    of = Counter[str]()
    for (test_set_id, _), number in runs.items():
        of[languages[test_set_id]] += number
    readers = _readers(connection, runs)
    parts = [
        _count_errors(connection, set_id, counts, selection).assign(language=languages[set_id])
        for set_id, counts in models.items()
    ]
    columns = ["language", "string", "kind", "length", "models", "of"]
    if not parts:
        return pd.DataFrame(columns=columns), {}
    same = pd.concat(parts).groupby(["language", "string", "label", "length"], dropna=False)
    summed: pd.DataFrame = same.agg(models=("models", "sum")).reset_index()
    summed["kind"] = kinds_of_errors(summed["label"])
    # The language of most failing models comes first.
    ordered = dict(of.most_common())
    summed["place"] = summed["language"].map(list(ordered).index)
    summed = summed.sort_values(
        ["place", "models", "length", "string"], ascending=[True, False, True, True]
    )
    first = summed.groupby("language", sort=False).head(limit).reset_index(drop=True)
    tested = {
        str(language): _count_tested(
            connection,
            {x: by for x, by in readers.items() if languages[x] == language},
            rows["string"],
        )
        for language, rows in first.groupby("language")
    }
    pairs = zip(first["language"], first["string"], strict=True)
    first["of"] = [tested[language][string] for language, string in pairs]
    return first[columns], ordered


def _readers(
    connection: Connection, runs: Mapping[tuple[Any, int], int]
) -> dict[Any, Counter[int]]:
    """By test set: how many of these runs were tested on strings of up to each length."""
    ids = {config_id for _, config_id in runs}
    longest = {x: int(rows[-1, 0]) for x, rows in tested_lengths(connection, ids).items()}
    readers: dict[Any, Counter[int]] = {}
    for (test_set_id, config_id), number in runs.items():
        readers.setdefault(test_set_id, Counter())[longest[config_id]] += number
    return readers


def _count_tested(
    connection: Connection, readers: Mapping[Any, Counter[int]], strings: "pd.Series[str]"
) -> Counter[str]:
    """How many runs were tested on each string: those of one language may differ."""
    query = select(TestString.test_set_id, TestString.string, TestString.length).where(
        one_of(TestString.test_set_id, readers), TestString.string.in_(strings.tolist())
    )
    of = Counter[str]()
    for test_set_id, string, length in connection.execute(query):
        of[string] += sum(n for longest, n in readers[test_set_id].items() if length <= longest)
    return of


def _language(connection: Connection, test_set_id: int, names: Mapping[str, str]) -> str:
    query = select(TestSetRow.json).where(TestSetRow.id == test_set_id)
    return language_of(json.loads(connection.scalars(query).one()), names)


def _add_counts(
    first: Int64[np.ndarray, " string"] | None, second: Int64[np.ndarray, " strings"]
) -> Int64[np.ndarray, " string"]:
    """The sum of counts, of which either may know more strings."""
    if first is None:
        return second
    shorter, longer = sorted((second, first), key=len)
    longer[: len(shorter)] += shorter
    return longer


def _count_errors(
    connection: Connection,
    test_set_id: int,
    models: Int64[np.ndarray, " string"],
    selection: Selection,
) -> pd.DataFrame:
    """How many runs got each string of a test set wrong: string, label, length, models."""
    wrong = np.flatnonzero(models)
    strings: pd.DataFrame = TestStrings().of(connection, test_set_id, wrong).to_pandas()
    strings = strings.assign(models=models[wrong])
    if selection.kind is not None:
        strings = strings[strings["label"] == KINDS.index(selection.kind)]
    return strings[["string", "label", "length", "models"]]
