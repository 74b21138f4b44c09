"""Finished runs as the database holds them: read back to be checked or copied."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from sqlalchemy import Connection, bindparam, inspect, select

from seqcls import results
from seqcls.results import StringErrors
from sweeps.digest import COLUMNS, Columns, run_digest, verdict_digest
from sweeps.store.packing import NO_ERRORS, unpacked
from sweeps.store.tables import (
    Base,
    Checkpoint,
    Config,
    Epoch,
    ErrorPack,
    LengthScore,
    Run,
    TestSet,
    Verdict,
)

RESULT_TABLES = (Epoch, LengthScore, ErrorPack, Checkpoint)
"""The tables that a run's digest covers."""

Row = dict[str, Any]


@dataclass(frozen=True)
class StoredRun:
    """A run's row, the key of its configuration, and its rows in the tables of results."""

    key: str
    test_set: str | None
    """The digest of its test set."""
    run: Row
    rows: dict[type[Base], list[tuple[Any, ...]]]
    """Their values, in the order of the tables' columns and of their first column but `run_id`."""
    verdict: Row | None

    def tables(self) -> dict[str, Columns]:
        """What the digest covers of the tables of results."""
        found: dict[str, Columns] = {}
        for table in (Epoch, LengthScore):
            names = list(COLUMNS[table.__tablename__])
            values = np.array([row[1:] for row in self.rows[table]], dtype=np.float64)
            columns = values.reshape(-1, len(names)).T
            found[table.__tablename__] = dict(zip(names, columns, strict=True))
        errors = self.errors()
        found["string_error"] = {"number": errors.numbers, "logit": errors.logits}
        return found

    def errors(self) -> StringErrors:
        """The misclassified strings."""
        packs = self.rows[ErrorPack]
        return unpacked(*packs[0][1:]) if packs else NO_ERRORS

    def digest(self) -> str:
        """The digest that these rows have, which need not be the one that is stored."""
        weights = {epoch: own for _, epoch, own in self.rows[Checkpoint]}
        seed = self.run["model_seed"]
        return run_digest(self.key, seed, self.run, self.tables(), weights, str(self.test_set))

    def verdict_digest(self) -> str | None:
        """The digest that the stored check has; None where there is no check."""
        if self.verdict is None:
            return None
        names = [field.name for field in fields(results.Verdict)]
        found = results.Verdict(**{name: self.verdict[name] for name in names})
        return verdict_digest(self.key, self.run["model_seed"], found)


def read_run(connection: Connection, run_id: int) -> StoredRun:
    """Everything that is stored of a run that exists."""
    (found,) = read_runs(connection, [run_id])
    return found


def read_runs(connection: Connection, run_ids: Sequence[int]) -> Iterator[StoredRun]:
    """Everything that is stored of these runs, in ascending order; of those that exist."""
    own = (
        select(Run.__table__, Config.key.label("config_key"), TestSet.digest.label("test_set"))
        .outerjoin(Config, Config.id == Run.config_id)
        .outerjoin(TestSet, TestSet.id == Config.test_set_id)
        .where(Run.id.in_(_literal(run_ids)))
        .order_by(Run.id)
    )
    rows = {table: _by_run(connection, table, run_ids) for table in RESULT_TABLES}
    verdicts = _by_run(connection, Verdict, run_ids)
    names = inspect(Verdict).local_table.columns.keys()
    for run in connection.execute(own).mappings().all():
        found: dict[type[Base], list[tuple[Any, ...]]] = {
            table: rows[table].get(run["id"], []) for table in RESULT_TABLES
        }
        (verdict,) = verdicts.get(run["id"], [None])
        row = None if verdict is None else dict(zip(names, verdict, strict=True))
        yield StoredRun(str(run["config_key"]), run["test_set"], dict(run), found, row)


def _by_run(
    connection: Connection, table: type[Base], run_ids: Sequence[int]
) -> dict[int, list[tuple[Any, ...]]]:
    described = inspect(table).local_table
    query = select(described).where(described.c.run_id.in_(_literal(run_ids)))
    found: dict[int, list[tuple[Any, ...]]] = {}
    for row in connection.execute(query.order_by(*described.primary_key)):
        values: tuple[Any, ...] = tuple(bytes(x) if isinstance(x, memoryview) else x for x in row)
        found.setdefault(values[0], []).append(values)
    return found


def _literal(run_ids: Sequence[int]) -> Any:
    # In the statement itself: a database takes only so many parameters.
    return bindparam("chosen", list(run_ids), unique=True, expanding=True, literal_execute=True)
