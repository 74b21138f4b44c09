"""Strings tested and strings wrong, of any kind of answer; tn to tp only of answers of one bit."""

from alembic import context, op

from sweeps.store.migrations.second_digest import misfits
from sweeps.store.migrations.strict_tables import WORDS

revision = "0004"
down_revision = "0003"

CELLS = ("tn", "fp", "fn", "tp")
COUNTED = {"tested": "tn + fp + fn + tp", "wrong": "fp + fn"}
"""Columns that are added, and what they hold in rows that were there."""

LENGTH_SCORE = """
CREATE TABLE length_score (
    run_id INTEGER NOT NULL REFERENCES run (id),
    length INTEGER NOT NULL CHECK (length >= 0),
    tn INTEGER CHECK (tn >= 0),
    fp INTEGER CHECK (fp >= 0),
    fn INTEGER CHECK (fn >= 0),
    tp INTEGER CHECK (tp >= 0),
    tested INTEGER NOT NULL CHECK (tested >= 0),
    wrong INTEGER NOT NULL CHECK (wrong >= 0),
    PRIMARY KEY (run_id, length)
){strict_by_key}
"""

LENGTH_SUM = """
CREATE TABLE length_sum (
    config_id INTEGER NOT NULL,
    length INTEGER NOT NULL CHECK (length >= 0),
    runs INTEGER NOT NULL CHECK (runs >= 0),
    failing INTEGER NOT NULL CHECK (failing >= 0),
    tn {big} CHECK (tn >= 0),
    fp {big} CHECK (fp >= 0),
    fn {big} CHECK (fn >= 0),
    tp {big} CHECK (tp >= 0),
    tested {big} NOT NULL CHECK (tested >= 0),
    wrong {big} NOT NULL CHECK (wrong >= 0),
    PRIMARY KEY (config_id, length),
    FOREIGN KEY (config_id) REFERENCES config (id) ON DELETE CASCADE
){strict_by_key}
"""


def upgrade() -> None:
    attributes = context.config.attributes
    if "damaged" not in attributes:
        # Else what the migration before has just made is as it should be, or named already.
        attributes["damaged"] = list(misfits(op.get_bind()))
    _add_counts("run")
    _rebuild("length_score", LENGTH_SCORE, ("run_id", "length", *CELLS), "run")
    sums = ("config_id", "length", "runs", "failing", *CELLS)
    _rebuild("length_sum", LENGTH_SUM, sums, "config")


def _add_counts(table: str) -> None:
    for column in COUNTED:
        op.execute(f"ALTER TABLE {table} ADD COLUMN {column} INTEGER CHECK ({column} >= 0)")
    filled = ", ".join(f"{column} = {value}" for column, value in COUNTED.items())
    op.execute(f"UPDATE {table} SET {filled} WHERE {_are_counts(*CELLS)}")


def _rebuild(table: str, made_by: str, kept: tuple[str, ...], parent: str) -> None:
    """Makes a table anew: SQLite drops no NOT NULL. Only what means nothing is not taken over.

    One that another program made stays as it is: it checks nothing, and what it refers to may be
    nothing that a table of this program can refer to.

    Args:
        table: which.
        made_by: the statement that makes it.
        kept: its columns before, the first of which refers to `parent`.
        parent: the table that it refers to.
    """
    dialect = op.get_bind().dialect.name
    strict = f"SELECT strict FROM pragma_table_list WHERE schema = 'main' AND name = '{table}'"
    if dialect == "sqlite" and not op.get_bind().exec_driver_sql(strict).scalar():
        _add_counts(table)
        return
    op.execute(f"ALTER TABLE {table} RENAME TO old_{table}")
    if dialect == "postgresql":
        op.execute(f"ALTER INDEX {table}_pkey RENAME TO old_{table}_pkey")
    op.execute(made_by.format(**WORDS[dialect]).strip())
    op.execute(
        f"INSERT INTO {table} ({', '.join((*kept, *COUNTED))}) "
        f"SELECT {', '.join((*kept, *COUNTED.values()))} FROM old_{table} "
        f"WHERE {_are_counts(*kept)} AND {kept[0]} IN (SELECT id FROM {parent}) ORDER BY 1, 2"
    )
    op.execute(f"DROP TABLE old_{table}")


def _are_counts(*columns: str) -> str:
    """Whether values are whole numbers from 0, as tables that check nothing need not hold."""
    conditions = [f"{column} BETWEEN 0 AND {2**53}" for column in columns]
    if op.get_bind().dialect.name == "sqlite":
        conditions += [f"typeof({column}) = 'integer'" for column in columns]
    return " AND ".join(conditions)
