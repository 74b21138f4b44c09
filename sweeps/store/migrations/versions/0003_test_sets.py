"""Test sets, whose strings are stored once; strict tables; sums; digests of named columns."""

import sqlalchemy as sa
from alembic import context, op

from sweeps.store.migrations.carried_over import carry_over
from sweeps.store.migrations.strict_tables import SUMS_BY_LENGTH, statements

revision = "0003"
down_revision = "0002"

OLD = (
    *("checkpoint", "epoch", "failure", "length_score", "string_error", "verdict"),
    *("sweep_run", "run", "config", "sweep", "worker"),
)
"""Those that refer to others first."""


def upgrade() -> None:
    connection = op.get_bind()
    is_server = connection.dialect.name == "postgresql"
    for index in ("run_state", "sweep_run_run_id"):
        op.execute(f"DROP INDEX {index}")
    for table in OLD:
        op.execute(f"ALTER TABLE {table} RENAME TO old_{table}")
        if is_server:
            _rename_what_belongs_to(connection, table)
    for statement in statements(connection.dialect.name):
        connection.exec_driver_sql(statement)
    # Whoever asked for the upgrade says which runs those are.
    context.config.attributes["damaged"] = carry_over(connection)
    connection.exec_driver_sql(SUMS_BY_LENGTH)
    for table in OLD:
        op.execute(f"DROP TABLE old_{table}")


def _rename_what_belongs_to(connection: sa.Connection, table: str) -> None:
    """Frees the names of a table's indexes and sequence, which are those of the whole schema."""
    indexes = sa.text(
        "SELECT indexname FROM pg_indexes "
        "WHERE tablename = :table AND schemaname = current_schema()"
    )
    for (index,) in connection.execute(indexes, {"table": f"old_{table}"}).all():
        op.execute(f'ALTER INDEX "{index}" RENAME TO "old_{index}"')
    op.execute(f"ALTER SEQUENCE IF EXISTS {table}_id_seq RENAME TO old_{table}_id_seq")
