"""How test strings were drawn, what shortcut readers make of them, how runs do on trained and on
longer lengths, proofs, and logits of wrong strings as they are stored: infinite ones too, and none
where there is NaN.

What the new columns of runs hold, `sweeps.store.migrate` works out after the migration.
"""

from alembic import op
from sqlalchemy import Connection

from sweeps.store.migrations.packed_views import views

revision = "0005"
down_revision = "0004"


_SHORTCUT = """
CREATE TABLE shortcut (
    test_set_id INTEGER NOT NULL REFERENCES test_set (id),
    training TEXT NOT NULL CHECK (length(training) = 64),
    reader TEXT NOT NULL,
    lengths TEXT,
    correct {bytes},
    reason TEXT,
    PRIMARY KEY (test_set_id, training, reader),
    CONSTRAINT read_or_not CHECK (
        (lengths IS NULL) = (correct IS NULL) AND (lengths IS NULL) <> (reason IS NULL)
    )
){strict}
"""

_PROOF = """
CREATE TABLE proof (
    run_id INTEGER NOT NULL REFERENCES run (id),
    of_language INTEGER NOT NULL CHECK (of_language IN (0, 1)),
    result TEXT NOT NULL CHECK (result IN ('proved', 'refuted', 'not decided')),
    states INTEGER NOT NULL CHECK (states >= 1),
    regions INTEGER NOT NULL CHECK (regions >= 0),
    seconds {real} NOT NULL CHECK (seconds >= 0),
    string TEXT,
    said INTEGER CHECK (said IN (0, 1)),
    details TEXT NOT NULL CHECK ({details_are_object}),
    weights TEXT NOT NULL CHECK (length(weights) = 64),
    version TEXT NOT NULL CHECK (version <> ''),
    digest TEXT NOT NULL,
    certificate {bytes},
    PRIMARY KEY (run_id, of_language),
    CONSTRAINT as_it_ended CHECK (
        (result = 'proved') = (certificate IS NOT NULL)
        AND (result = 'refuted') = (string IS NOT NULL)
        AND (result = 'refuted') = (said IS NOT NULL)
    )
){strict}
"""

_DATASET = """
CREATE TABLE dataset_0005 (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    digest TEXT NOT NULL UNIQUE CHECK (length(digest) = 64),
    name TEXT NOT NULL,
    task TEXT NOT NULL CHECK ({tasks}),
    row_count INTEGER NOT NULL CHECK (row_count >= 1),
    rows BLOB NOT NULL,
    created_at TEXT NOT NULL
) STRICT
"""

_RANGES = {
    "tested_within": "INTEGER CHECK (tested_within >= 0)",
    "wrong_within": "INTEGER CHECK (wrong_within >= 0)",
    "within_from": "TEXT CHECK (within_from IN ('test', 'validation'))",
    "tested_beyond": "INTEGER CHECK (tested_beyond >= 0)",
    "wrong_beyond": "INTEGER CHECK (wrong_beyond >= 0)",
}

_GENERALIZATION = """
CREATE VIEW generalization AS
SELECT id AS run_id, config_id, model_seed,
    (tested_within - wrong_within) / NULLIF(CAST(tested_within AS {real}), 0) AS accuracy_within,
    (tested_beyond - wrong_beyond) / NULLIF(CAST(tested_beyond AS {real}), 0) AS accuracy_beyond,
    within_from
FROM run
WHERE state = 'done'
"""


def upgrade() -> None:
    connection = op.get_bind()
    is_server = connection.dialect.name == "postgresql"
    ways = "'positive', 'uniform', 'edited', 'near', 'border'"
    connection.exec_driver_sql(
        f"ALTER TABLE test_string ADD COLUMN drawn TEXT CHECK (drawn IN ({ways}))"
    )
    connection.exec_driver_sql(
        _SHORTCUT.format(
            bytes="BYTEA" if is_server else "BLOB", strict="" if is_server else " STRICT"
        )
    )
    make_proofs(connection)
    for name, kind in _RANGES.items():
        connection.exec_driver_sql(f"ALTER TABLE run ADD COLUMN {name} {kind}")
    real = "double precision" if is_server else "REAL"
    connection.exec_driver_sql(_GENERALIZATION.format(real=real))
    _keep_automata(is_server)
    _make_views_anew()


def make_proofs(connection: Connection) -> None:
    """Makes the table `proof`, which a database that was made before it was added lacks."""
    words = {
        "sqlite": {
            "real": "REAL",
            "bytes": "BLOB",
            "strict": " STRICT",
            "details_are_object": "json_valid(details) AND json_type(details) = 'object'",
        },
        "postgresql": {
            "real": "DOUBLE PRECISION",
            "bytes": "BYTEA",
            "strict": "",
            "details_are_object": "json_typeof(details::json) = 'object'",
        },
    }
    connection.exec_driver_sql(_PROOF.format(**words[connection.dialect.name]))


def _keep_automata(is_server: bool) -> None:
    """Has table `dataset` hold automata too."""
    connection = op.get_bind()
    tasks = "task IN ('file', 'pairs', 'automaton')"
    if is_server:
        connection.exec_driver_sql("ALTER TABLE dataset DROP CONSTRAINT dataset_task_check")
        connection.exec_driver_sql(
            f"ALTER TABLE dataset ADD CONSTRAINT dataset_task_check CHECK ({tasks})"
        )
        return
    # SQLite changes no constraint of a table that is there. Nothing refers to this one.
    connection.exec_driver_sql(_DATASET.format(tasks=tasks))
    connection.exec_driver_sql("INSERT INTO dataset_0005 SELECT * FROM dataset")
    connection.exec_driver_sql("DROP TABLE dataset")
    connection.exec_driver_sql("ALTER TABLE dataset_0005 RENAME TO dataset")


def _make_views_anew() -> None:
    connection = op.get_bind()
    is_server = connection.dialect.name == "postgresql"
    for name, view in views(connection.dialect.name, finite_alone=False).items():
        if is_server:
            # Replaced, they keep who may read them, and other views may read them.
            connection.exec_driver_sql(view.replace("CREATE", "CREATE OR REPLACE", 1))
        else:
            connection.exec_driver_sql(f"DROP VIEW IF EXISTS {name}")
            connection.exec_driver_sql(view)
