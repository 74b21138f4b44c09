"""Stored runs and configurations, read back to be checked, copied or counted."""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Int64
from sqlalchemy import Connection, func, select

from seqcls.config import RunConfig
from seqcls.errors import ConfigError, SeqclsError, StoreDamagedError
from seqcls.problem import Problem, resolve
from sweeps.records import LENGTH_COUNTS, LENGTH_FIELDS
from sweeps.results import run_digest
from sweeps.store.database import Store
from sweeps.store.statements import chunks, one_of
from sweeps.store.tables import Checkpoint, Config, Run, RunState, TestSetRow

if TYPE_CHECKING:
    import pandas as pd

Row = dict[str, Any]


@dataclass(frozen=True)
class StoredRun:
    """A run's row, the key of its configuration and its weights."""

    key: str
    test_set: str | None
    """The digest of its test set."""
    run: Row
    checkpoints: dict[int, bytes]

    def digest(self) -> str:
        """The digest of these values, which may differ from the stored one."""
        seed, test_set = self.run["model_seed"], str(self.test_set)
        return run_digest(self.key, seed, self.run, self.checkpoints, test_set)

    def misfit(self) -> str | None:
        """A clause if a finished run's results do not fit their digest; else None."""
        fits = self.digest() == self.run["digest"]
        return None if fits else "its results do not fit its digest"


IMPORTED_JSON = '"imported":"{'
"""Part of the JSON of configurations of models trained elsewhere, and of no others."""


@lru_cache(maxsize=2**14)
def read_config(text: str, key: str | None = None) -> RunConfig:
    """The configuration in a row's JSON; cached, since pages need it whenever a run ends.

    Args:
        key: the stored key, if it must match.

    Raises:
        ValueError: it is no configuration, or has another key.
    """
    try:
        config = RunConfig.from_stored(json.loads(text))
    except (ConfigError, ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"cannot be read ({' '.join(str(error).split())[:200]})") from None
    if key is not None and config.key != key:
        raise ValueError(f"its key is {key[:16]!r}, not that of its json")
    return config


def config_of(row_id: int, text: str, key: str | None = None) -> RunConfig:
    """The configuration of a row of `config`.

    Args:
        key: the key that it must have, for training: results are stored under it.

    Raises:
        StoreDamagedError: it is no configuration, or has another key.
    """
    try:
        return read_config(text, key)
    except ValueError as error:
        raise StoreDamagedError(f"config {row_id}: {error}") from None


def problem_of(text: str) -> Problem | None:
    """The problem of a stored configuration; None if it cannot be resolved here."""
    try:
        return _resolve_text(text)
    except (SeqclsError, ValueError):
        return None


@lru_cache(maxsize=4096)
def _resolve_text(text: str) -> Problem:
    return resolve(read_config(text))


def read_runs(connection: Connection, run_ids: Sequence[int]) -> Iterator[StoredRun]:
    """Yields the full contents of those of these runs that exist, in ascending order."""
    query = (
        select(
            Run.__table__,
            Config.key.label("config_key"),
            TestSetRow.digest.label("test_set"),
        )
        # Outer joins, since a damaged file may lack the configuration or the test set.
        .outerjoin(Config, Config.id == Run.config_id)
        .outerjoin(TestSetRow, TestSetRow.id == Config.test_set_id)
        .where(one_of(Run.id, run_ids))
        .order_by(Run.id)
    )
    stored = select(Checkpoint.run_id, Checkpoint.epoch, Checkpoint.weights)
    stored = stored.where(one_of(Checkpoint.run_id, run_ids)).order_by(Checkpoint.epoch)
    weights: dict[int, dict[int, bytes]] = {}
    for run_id, epoch, blob in connection.execute(stored):
        weights.setdefault(run_id, {})[epoch] = bytes(blob)
    for run in connection.execute(query).mappings().all():
        saved = weights.get(run["id"], {})
        yield StoredRun(str(run["config_key"]), run["test_set"], dict(run), saved)


# Counts by length. JSON is parsed and reduced run by run, since a million small lists at once keep
# Python's garbage collector busy.


def texts_of(store: Store, run_ids: Iterable[int], column: str) -> Iterator[tuple[int, str]]:
    """Yields (id, one column of `RECORDS`) of those of these runs that have it, by id."""
    for some in chunks(sorted(map(int, run_ids))):
        stored = getattr(Run, column)
        query = select(Run.id, stored).where(one_of(Run.id, some), stored.is_not(None))
        yield from map(tuple, store.rows(query.order_by(Run.id)))


_NUMBERS = re.compile(r"\[(\[[-\d,]+\],?)*\]", re.ASCII)
_BRACKETS = str.maketrans("", "", "[]")


def length_rows(text: str | None) -> Int64[np.ndarray, "length field"]:
    """The array (length, `LENGTH_FIELDS`) of a run's counts; -1 where there is no such count."""
    # Counts are never negative.
    known = (text or "[]").replace("null", "-1").replace(" ", "")
    rows: Any
    if _NUMBERS.fullmatch(known):
        # Six times as fast as through lists: pages read thousands of these.
        numbers = known.translate(_BRACKETS)
        flat = np.fromstring(numbers, dtype=np.int64, sep=",") if numbers else np.empty(0)
        rows = flat.reshape(known.count("[") - 1, -1) if numbers else []
    else:
        rows = json.loads(known)
    table = np.full((len(rows), len(LENGTH_FIELDS)), -1, dtype=np.int64)
    if len(rows):
        table[:, : len(rows[0])] = rows
    return table


def length_frame(store: Store, run_ids: Iterable[int]) -> "pd.DataFrame":
    """These runs' counts: run_id, length and `LENGTH_COUNTS`, missing where absent."""
    import pandas as pd

    parts = [
        np.column_stack([np.full(len(rows), run_id), rows])
        for run_id, text in texts_of(store, run_ids, "lengths")
        for rows in [length_rows(text)]
    ]
    table = np.concatenate([np.empty((0, len(LENGTH_FIELDS) + 1), dtype=np.int64), *parts])
    columns = {
        name: pd.arrays.IntegerArray(values, values < 0) if (values < 0).any() else values
        for name in ("run_id", "length", *LENGTH_COUNTS)
        for values in [table[:, ("run_id", *LENGTH_FIELDS).index(name)].copy()]
    }
    return pd.DataFrame(columns)


def tested_lengths(
    store: Store, config_ids: Collection[int]
) -> dict[int, Int64[np.ndarray, "length field"]]:
    """The `length_rows` of one finished run of each of these configurations, by config_id.

    All runs of a configuration have the same test, and so the same lengths and strings.
    """
    first = (
        select(func.min(Run.id))
        .where(one_of(Run.config_id, config_ids), Run.state == RunState.DONE)
        .group_by(Run.config_id)
    )
    query = select(Run.config_id, Run.lengths).where(Run.id.in_(first))
    return {config_id: length_rows(text) for config_id, text in store.rows(query)}
