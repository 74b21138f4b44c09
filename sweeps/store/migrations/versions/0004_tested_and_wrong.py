"""Answers of any kind: strings tested and wrong, targets and outputs; tn to tp only of bits."""

import json

from alembic import context, op
from sqlalchemy import text

from seqcls.canonical import canonical_json
from seqcls.config import default_fields
from sweeps.store.migrations.packed_views import (
    postgres_views,
    sqlite_views,
    wrong_output_view,
)
from sweeps.store.migrations.second_digest import misfits
from sweeps.store.migrations.strict_tables import WORDS

revision = "0004"
down_revision = "0003"

CELLS = ("tn", "fp", "fn", "tp")
COUNTED = {"tested": "tn + fp + fn + tp", "wrong": "fp + fn"}
"""Columns that are added, and what they hold in rows that were there."""

OUTPUT_COUNTS = ("right_length_given", "edits", "target_tokens")
"""Columns that are added and hold nothing in rows that were there: none is of a transduction."""

ALL_OR_NONE = """
    CONSTRAINT all_or_none CHECK (
        (right_length_given IS NULL) = (edits IS NULL) AND (edits IS NULL) = (target_tokens IS NULL)
    )"""

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
    right_length_given INTEGER CHECK (right_length_given >= 0),
    edits {big} CHECK (edits >= 0),
    target_tokens {big} CHECK (target_tokens >= 0),
    PRIMARY KEY (run_id, length),{all_or_none}
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
    right_length_given {big} CHECK (right_length_given >= 0),
    edits {big} CHECK (edits >= 0),
    target_tokens {big} CHECK (target_tokens >= 0),
    PRIMARY KEY (config_id, length),
    FOREIGN KEY (config_id) REFERENCES config (id) ON DELETE CASCADE,{all_or_none}
){strict_by_key}
"""

OUTPUT_PACK = """
CREATE TABLE output_pack (
    run_id INTEGER NOT NULL PRIMARY KEY REFERENCES run (id),
    outputs TEXT NOT NULL CHECK ({outputs_are_some})
){strict}
"""

DATASET = """
CREATE TABLE dataset (
    id {id},
    digest TEXT NOT NULL UNIQUE CHECK (length(digest) = 64),
    name TEXT NOT NULL,
    task TEXT NOT NULL CHECK (task IN ('file', 'pairs')),
    row_count INTEGER NOT NULL CHECK (row_count >= 1),
    rows {bytes} NOT NULL,
    created_at TEXT NOT NULL
){strict}
"""

WORDS_HERE = {
    "sqlite": {
        "outputs_are_some": "json_valid(outputs) AND json_type(outputs) = 'array' "
        "AND json_array_length(outputs) > 0",
    },
    "postgresql": {
        "outputs_are_some": "json_typeof(outputs::json) = 'array' "
        "AND json_array_length(outputs::json) > 0",
    },
}


TEST_STRING = """
CREATE TABLE test_string (
    test_set_id INTEGER NOT NULL REFERENCES test_set (id),
    number INTEGER NOT NULL CHECK (number >= 0 AND number < 16777216),
    string TEXT NOT NULL,
    length INTEGER NOT NULL CHECK (length >= 0),
    label INTEGER CHECK (label IN (0, 1)),
    occurrences INTEGER NOT NULL CHECK (occurrences >= 1),
    target TEXT,
    PRIMARY KEY (test_set_id, number)
){strict_by_key}
"""

STRINGS = ("test_set_id", "number", "string", "length", "label", "occurrences")

MISCLASSIFIED = """
CREATE VIEW misclassified AS
SELECT wrong.run_id, said.string, said.length, said.label, wrong.logit, said.occurrences,
    said.target
FROM string_error AS wrong
JOIN run ON run.id = wrong.run_id
JOIN config ON config.id = run.config_id
JOIN test_string AS said
    ON said.test_set_id = config.test_set_id AND said.number = wrong.number
"""


def upgrade() -> None:
    attributes = context.config.attributes
    if "damaged" not in attributes:
        # Else what the migration before has just made is as it should be, or named already.
        attributes["damaged"] = list(misfits(op.get_bind()))
    _add_fields()
    _add_counts("run")
    _rebuild("length_score", LENGTH_SCORE, ("run_id", "length", *CELLS), "run")
    sums = ("config_id", "length", "runs", "failing", *CELLS)
    _rebuild("length_sum", LENGTH_SUM, sums, "config")
    _add_targets()
    dialect = op.get_bind().dialect.name
    op.execute(_written(OUTPUT_PACK))
    op.execute(_written(DATASET))
    op.get_bind().exec_driver_sql(wrong_output_view(dialect))
    if dialect == "postgresql":
        # Runs of a state in the order of their ids, as those of every index of SQLite are.
        op.execute("DROP INDEX run_state")
        op.execute("CREATE INDEX run_state ON run (state, id)")
        _state_rows_of_a_run()


def _state_rows_of_a_run() -> None:
    """Says that a run has about a hundred rows in these tables.

    From its samples the server takes the rows of a million runs for those of a few thousand, and
    then reads a whole table where it should read some runs of it.
    """
    for table in ("length_score", "epoch"):
        op.execute(f"ALTER TABLE {table} ALTER COLUMN run_id SET (n_distinct = -0.01)")


def _add_fields() -> None:
    """Writes fields of configurations that are new, at their defaults, beside those stored."""
    connection, defaults = op.get_bind(), default_fields()
    update = text("UPDATE config SET json = :json WHERE id = :id")
    for row_id, stored in connection.exec_driver_sql("SELECT id, json FROM config").all():
        try:
            fields = json.loads(stored)
        except (TypeError, ValueError, RecursionError):
            continue
        if isinstance(fields, dict) and defaults.keys() - fields:
            connection.execute(update, {"json": canonical_json(defaults | fields), "id": row_id})


def _add_targets() -> None:
    """Lets test strings have targets, and the views that read them."""
    dialect = op.get_bind().dialect.name
    op.execute("DROP VIEW misclassified")
    if _is_ours("test_string"):
        # A renamed table would be renamed in this view, too.
        op.execute("DROP VIEW string_error")
        made_again = {"sqlite": sqlite_views, "postgresql": postgres_views}[dialect]()[0]
        _make_anew("test_string", TEST_STRING)
        names = ", ".join(STRINGS)
        op.execute(f"INSERT INTO test_string ({names}) SELECT {names} FROM old_test_string")
        op.execute("DROP TABLE old_test_string")
        op.get_bind().exec_driver_sql(made_again)
    else:
        op.execute("ALTER TABLE test_string ADD COLUMN target TEXT")
    op.get_bind().exec_driver_sql(MISCLASSIFIED)


def _add_counts(table: str) -> None:
    for column in COUNTED:
        op.execute(f"ALTER TABLE {table} ADD COLUMN {column} INTEGER CHECK ({column} >= 0)")
    filled = ", ".join(f"{column} = {value}" for column, value in COUNTED.items())
    op.execute(f"UPDATE {table} SET {filled} WHERE {_are_counts(*CELLS)}")


def _rebuild(table: str, made_by: str, kept: tuple[str, ...], parent: str) -> None:
    """Makes a table anew, since SQLite cannot drop NOT NULL. Damaged rows are left out.

    A table that another program made stays as it is: it checks nothing, and may refer to rows
    that a table of this program cannot refer to.

    Args:
        table: its name.
        made_by: the statement that makes it.
        kept: its columns before, the first of which refers to `parent`.
        parent: the table that it refers to.
    """
    if not _is_ours(table):
        _add_counts(table)
        for column in OUTPUT_COUNTS:
            op.execute(f"ALTER TABLE {table} ADD COLUMN {column} INTEGER CHECK ({column} >= 0)")
        return
    _make_anew(table, made_by)
    op.execute(
        f"INSERT INTO {table} ({', '.join((*kept, *COUNTED))}) "
        f"SELECT {', '.join((*kept, *COUNTED.values()))} FROM old_{table} "
        f"WHERE {_are_counts(*kept)} AND {kept[0]} IN (SELECT id FROM {parent}) ORDER BY 1, 2"
    )
    op.execute(f"DROP TABLE old_{table}")


def _is_ours(table: str) -> bool:
    """Whether a table checks its values, as those that this program makes do."""
    if op.get_bind().dialect.name != "sqlite":
        return True
    strict = f"SELECT strict FROM pragma_table_list WHERE schema = 'main' AND name = '{table}'"
    return bool(op.get_bind().exec_driver_sql(strict).scalar())


def _make_anew(table: str, made_by: str) -> None:
    """Renames a table to `old_...`, and makes an empty one in its place."""
    dialect = op.get_bind().dialect.name
    op.execute(f"ALTER TABLE {table} RENAME TO old_{table}")
    if dialect == "postgresql":
        op.execute(f"ALTER INDEX {table}_pkey RENAME TO old_{table}_pkey")
    op.execute(_written(made_by))


def _written(made_by: str) -> str:
    """A statement in the words of the database."""
    dialect = op.get_bind().dialect.name
    words = {**WORDS[dialect], **WORDS_HERE[dialect], "all_or_none": ALL_OR_NONE}
    return made_by.format(**words).strip()


def _are_counts(*columns: str) -> str:
    """Whether values are whole numbers from 0, as tables that check nothing need not hold."""
    conditions = [f"{column} BETWEEN 0 AND {2**53}" for column in columns]
    if op.get_bind().dialect.name == "sqlite":
        conditions += [f"typeof({column}) = 'integer'" for column in columns]
    return " AND ".join(conditions)
