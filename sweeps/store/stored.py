"""A finished run as the database holds it: read back to be checked or copied."""

from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import Connection, inspect, select

from seqcls import results
from sweeps.store.digest import run_digest, verdict_digest
from sweeps.store.tables import Base, Checkpoint, Epoch, LengthScore, Run, StringError, Verdict

RESULT_TABLES = (Epoch, LengthScore, StringError, Checkpoint)
"""The tables that a run's digest covers."""

Row = dict[str, Any]


@dataclass(frozen=True)
class StoredRun:
    """A run's row, the key of its configuration, and its rows in the tables of results."""

    key: str
    run: Row
    rows: dict[type[Base], list[Row]]
    verdict: Row | None

    def digest(self) -> str:
        """The digest that these rows have, which need not be the one that is stored."""
        return run_digest(
            self.key,
            self.run["model_seed"],
            self.run,
            epochs=self.rows[Epoch],
            lengths=self.rows[LengthScore],
            errors=self.rows[StringError],
            checkpoints=self.rows[Checkpoint],
        )

    def verdict_digest(self) -> str | None:
        """The digest that the stored check has; None where there is no check."""
        if self.verdict is None:
            return None
        names = [field.name for field in fields(results.Verdict)]
        found = results.Verdict(**{name: self.verdict[name] for name in names})
        return verdict_digest(self.key, self.run["model_seed"], found)


def read_run(connection: Connection, key: str, run_id: int) -> StoredRun:
    """Everything that is stored of a run that exists."""
    (run,) = _rows(connection, Run, run_id, Run.id)
    rows: dict[type[Base], list[Row]] = {
        table: _rows(connection, table, run_id, table.run_id) for table in RESULT_TABLES
    }
    verdict = _rows(connection, Verdict, run_id, Verdict.run_id)
    return StoredRun(key, run, rows, verdict[0] if verdict else None)


def _rows(connection: Connection, table: type[Base], run_id: int, column: Any) -> list[Row]:
    found = connection.execute(select(inspect(table).local_table).where(column == run_id))
    return [dict(row) for row in found.mappings()]
