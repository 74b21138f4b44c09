"""Reads of misclassified strings: those of a run, and those that break most runs."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Int64
from sqlalchemy import Connection, Select, select

from seqcls.errors import InvalidStringError
from seqcls.fields import language_of
from seqcls.problem import tokenizer_of
from seqcls.results import DRAWN
from sweeps.records import error_numbers
from sweeps.store.databases.engine import Store
from sweeps.store.databases.statements import one_of
from sweeps.store.reads import frames, queries
from sweeps.store.reads.errors import OUTPUT_COLUMNS, TestStrings, errors_of_runs
from sweeps.store.reads.selection import KINDS, Kind, View
from sweeps.store.reads.stored import tested_lengths
from sweeps.store.reads.test_sets import are_tested, names_of_datasets, stored_test_set
from sweeps.store.tables import Config, Run, TestSetRow, TestString

RUNS_AT_ONCE = 1_000
"""Runs whose errors are read together: of all of them they would be gigabytes."""


MOST_ERRORS = 20_000_000
"""That are counted by string."""


@dataclass(frozen=True)
class ErrorSearch:
    """Which misclassified strings to read."""

    text: str = ""
    """Text that the string contains, as it is stored, such as `ab{100}`, as it is shown, or with
    its repetitions written out."""
    kind: Kind | None = None
    drawn: str | None = None
    """How it was drawn, one of `seqcls.results.DRAWN`."""


EVERY_ERROR = ErrorSearch()

NO_ANSWER = "no answer"
"""The kind of error where a logit is NaN; sums count it by the label of its string."""


def count_string_errors(store: Store, run_id: int, search: ErrorSearch) -> int:
    """How many different strings of a search a run misclassified."""
    return len(_matching(store, run_id, search))


def string_errors(
    store: Store,
    run_id: int,
    search: ErrorSearch = EVERY_ERROR,
    limit: int | None = None,
    offset: int = 0,
) -> pd.DataFrame:
    """A run's misclassified strings, the shortest first.

    Returns:
        string, kind (`NO_ANSWER` where the model computed NaN), length (letters), label (1: in
        the language), logit, occurrences (in the test set); drawn, where it is known how; of other
        tasks target, and of transductions `OUTPUT_COLUMNS`.
    """
    errors = _matching(store, run_id, search)
    # Numbers sort strings as text, in every database alike.
    errors = errors.sort_values(["length", "number"], ignore_index=True)
    errors["kind"] = errors["error_kind"] if "error_kind" in errors else _kinds(errors["label"])
    unanswered = errors["logit"].isna()
    # Those who import answers need not know how sure of them the model was.
    if unanswered.any() and not queries.run_config(store, run_id).imported:
        errors["kind"] = errors["kind"].mask(unanswered, NO_ANSWER)
    columns = ["string", "kind", "length", "label", "logit", "occurrences"]
    columns += [name for name in ("drawn", "target", *OUTPUT_COLUMNS) if name in errors]
    end = None if limit is None else offset + limit
    return errors.iloc[offset:end][columns].reset_index(drop=True)


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


def breaking_strings(store: Store, view: View, limit: int) -> BreakingStrings:
    """The strings that most failing runs of a view misclassified.

    Where the runs made more than `MOST_ERRORS`, only every second, third, … of them is read, so
    that a page need not read gigabytes.

    Args:
        limit: how many strings of each language.
    """
    with store.begin() as connection:
        runs = frames.runs(connection, view)
        failing = runs[runs["picked"] & runs["failing"]]
        every = max(1, -(-int(failing["wrong"].sum()) // MOST_ERRORS))
        run_ids = failing["run_id"].tolist()[::every]
        strings, languages = _most_broken(connection, run_ids, view, limit)
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
    connection: Connection, run_ids: Sequence[int], view: View, limit: int
) -> tuple[pd.DataFrame, dict[str, int]]:
    models, runs = _wrong_by_set(connection, run_ids)
    names = names_of_datasets(connection)
    languages = {set_id: _language(connection, set_id, names) for set_id in models}
    of = Counter[str]()
    for (test_set_id, _), number in runs.items():
        of[languages[test_set_id]] += number
    readers = _readers(connection, runs)
    parts = [
        _count_errors(connection, set_id, counts, view).assign(language=languages[set_id])
        for set_id, counts in models.items()
    ]
    columns = ["language", "string", "kind", "length", "models", "of"]
    if not parts:
        return pd.DataFrame(columns=columns), {}
    same = pd.concat(parts).groupby(["language", "string", "label", "length"], dropna=False)
    summed: pd.DataFrame = same.agg(models=("models", "sum")).reset_index()
    summed["kind"] = _kinds(summed["label"])
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
    connection: Connection, test_set_id: int, models: Int64[np.ndarray, " string"], view: View
) -> pd.DataFrame:
    """How many runs got each string of a test set wrong: string, label, length, models."""
    wrong = np.flatnonzero(models)
    strings: pd.DataFrame = TestStrings().of(connection, test_set_id, wrong).to_pandas()
    strings = strings.assign(models=models[wrong])
    if view.kind is not None:
        strings = strings[strings["label"] == KINDS.index(view.kind)]
    return strings[["string", "label", "length", "models"]]


def _kinds(labels: "pd.Series[int]") -> list[str]:
    """What an error is, by the label of its string; without one there is one kind of error."""
    words = {0: "false positive", 1: "false negative"}
    return [words.get(label, "wrong") for label in labels.tolist()]


def _matching(store: Store, run_id: int, search: ErrorSearch) -> pd.DataFrame:
    with store.begin() as connection:
        errors = errors_of_runs(connection, [run_id])
        drawn = {row.number: row.drawn for row in connection.execute(_read_ways(run_id))}
    if drawn:
        errors["drawn"] = errors["number"].map(drawn)
    if search.drawn is not None:
        errors = errors[errors["drawn"] == search.drawn] if drawn else errors.head(0)
    if search.text:
        errors = errors[_contain(store, run_id, errors["string"], search.text)]
    if search.kind is not None:
        errors = errors[errors["label"] == KINDS.index(search.kind)]
    return errors


def _read_ways(run_id: int) -> Select[int, str | None]:
    """How the strings of a run's test set were drawn, where that is known: number, drawn."""
    query = select(TestString.number, TestString.drawn)
    query = query.join(Config, Config.test_set_id == TestString.test_set_id)
    query = query.join(Run, Run.config_id == Config.id)
    return query.where(Run.id == run_id, TestString.drawn.is_not(None))


def _contain(store: Store, run_id: int, strings: "pd.Series[str]", text: str) -> "pd.Series[bool]":
    """Which strings contain a text as they are stored, as pages show them, or written out."""
    tokenizer = tokenizer_of(queries.run_config(store, run_id))
    contain = strings.str.contains(text, regex=False)
    if tokenizer is None:
        return contain
    shown = strings.map(tokenizer.display)
    contain |= shown.str.contains(tokenizer.display(text), regex=False)
    try:
        length = len(tokenizer.encode(text))
    except InvalidStringError:
        return contain  # A part of the notation, such as `{10`.
    part = tokenizer.characters(text, length)
    has_counts = strings.str.contains("{", regex=False)
    written = strings[has_counts & ~contain].map(lambda x: tokenizer.characters(x, length))
    contain[written.index] = written.str.contains(part, regex=False)
    return contain


def errors_of(store: Store, run_ids: Sequence[int]) -> pd.DataFrame:
    """Misclassified strings of these runs, as `errors_of_runs` but for their numbers."""
    with store.begin() as connection:
        return errors_of_runs(connection, run_ids).drop(columns="number")


def tested_strings(store: Store, config_id: int) -> set[str]:
    """The different strings that a configuration's models are tested on: those they can read."""
    config = queries.configs(store, (config_id,))[config_id]
    query = select(Config.test_set_id).where(Config.id == config_id)
    with store.begin() as connection:
        test = stored_test_set(connection, connection.scalars(query).one() or 0)
    return set(compress(test.texts, are_tested(config, test)))


def strings_by_drawn(store: Store, run_id: int, each: int) -> pd.DataFrame:
    """Some test strings of a run of each kind, by how they were drawn: right ones and wrong ones.

    Args:
        each: of right ones and of wrong ones at most so many of each kind, evenly from the shortest
            to the longest.

    Returns:
        drawn (one of `seqcls.results.DRAWN`, in their order), right, string, length; no row where
        it is not known how they were drawn.
    """
    query = select(Config.id, Config.test_set_id).join(Run, Run.config_id == Config.id)
    with store.begin() as connection:
        config_id, test_set_id = connection.execute(query.where(Run.id == run_id)).one()
        test = stored_test_set(connection, test_set_id or 0)
        wrong = errors_of_runs(connection, [run_id])["number"].to_numpy(dtype=np.int64)
    right = np.ones(len(test.texts), dtype=bool)
    right[wrong] = False
    columns = {"drawn": test.drawn, "right": right, "string": test.texts, "length": test.lengths}
    table = pd.DataFrame(columns)[are_tested(queries.configs(store, (config_id,))[config_id], test)]
    table = table[table["drawn"].notna()].sort_values("length", kind="stable")
    parts = [
        rows.iloc[np.linspace(0, len(rows) - 1, min(each, len(rows))).round().astype(int)]
        for drawn in DRAWN
        for is_right in (False, True)
        for rows in [table[(table["drawn"] == drawn) & (table["right"] == is_right)]]
        if len(rows)
    ]
    return pd.concat([table.head(0), *parts], ignore_index=True)
