"""The first tables that this program can read: those of the schema 0004.

Written out as SQL, and not made from the program's classes: what a migration makes must not change.
"""

from alembic import op

from sweeps.store.migrations.packed_views import views

revision = "0004"
down_revision = None

_TABLES = """
CREATE TABLE revision (
    id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    configs {big} NOT NULL, members {big} NOT NULL, runs {big} NOT NULL
){strict};
CREATE TABLE sweep (
    id {id},
    name TEXT NOT NULL UNIQUE,
    description TEXT NOT NULL,
    spec TEXT NOT NULL CHECK ({spec_is_object}),
    created_at TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('queued', 'running', 'done', 'stopped')),
    launch_token TEXT NOT NULL UNIQUE
){strict};
CREATE TABLE dataset (
    id {id},
    digest TEXT NOT NULL UNIQUE CHECK (length(digest) = 64),
    name TEXT NOT NULL,
    task TEXT NOT NULL CHECK (task IN ('file', 'pairs')),
    row_count INTEGER NOT NULL CHECK (row_count >= 1),
    rows {bytes} NOT NULL,
    created_at TEXT NOT NULL
){strict};
CREATE TABLE test_set (
    id {id},
    key TEXT NOT NULL UNIQUE,
    json TEXT NOT NULL CHECK ({json_is_object}),
    digest TEXT
){strict};
CREATE TABLE test_string (
    test_set_id INTEGER NOT NULL REFERENCES test_set (id),
    number INTEGER NOT NULL CHECK (number >= 0 AND number < 16777216),
    string TEXT NOT NULL,
    length INTEGER NOT NULL CHECK (length >= 0),
    label INTEGER CHECK (label IN (0, 1)),
    occurrences INTEGER NOT NULL CHECK (occurrences >= 1),
    target TEXT,
    PRIMARY KEY (test_set_id, number)
){strict_by_key};
CREATE TABLE config (
    id {id},
    key TEXT NOT NULL UNIQUE,
    json TEXT NOT NULL CHECK ({json_is_object}),
    test_set_id INTEGER REFERENCES test_set (id)
){strict};
CREATE TABLE worker (
    id {id},
    host TEXT NOT NULL,
    pid INTEGER NOT NULL CHECK (pid >= 0),
    started_at TEXT NOT NULL,
    heartbeat_at TEXT NOT NULL,
    ended_at TEXT
){strict};
CREATE TABLE run (
    id {id},
    config_id INTEGER NOT NULL REFERENCES config (id),
    model_seed {big} NOT NULL CHECK (model_seed >= 0),
    state TEXT NOT NULL CHECK (state IN ('queued', 'running', 'done', 'failed')),
    attempt INTEGER NOT NULL CHECK (attempt >= 0),
    failures INTEGER NOT NULL CHECK (failures >= 0),
    worker_id INTEGER REFERENCES worker (id),
    started_at TEXT,
    finished_at TEXT,
    error TEXT,
    epochs INTEGER CHECK (epochs >= 0),
    best_epoch INTEGER CHECK (best_epoch >= 0),
    best_validation_loss {real},
    tn INTEGER CHECK (tn >= 0),
    fp INTEGER CHECK (fp >= 0),
    fn INTEGER CHECK (fn >= 0),
    tp INTEGER CHECK (tp >= 0),
    solved_length INTEGER CHECK (solved_length >= -1),
    engine TEXT,
    engine_reason TEXT,
    train_seconds {real} CHECK (train_seconds >= 0),
    digest TEXT,
    verdict_digest TEXT, tested INTEGER CHECK (tested >= 0), wrong INTEGER CHECK (wrong >= 0),
    UNIQUE (config_id, model_seed)
){strict};
CREATE INDEX run_state ON run ({of_state});
CREATE TABLE sweep_run (
    sweep_id INTEGER NOT NULL REFERENCES sweep (id),
    run_id INTEGER NOT NULL REFERENCES run (id),
    PRIMARY KEY (sweep_id, run_id)
){strict_by_key};
CREATE INDEX sweep_run_run_id ON sweep_run (run_id);
CREATE TABLE sweep_note (
    sweep_id INTEGER NOT NULL PRIMARY KEY REFERENCES sweep (id),
    title TEXT NOT NULL,
    note TEXT NOT NULL,
    archived_at TEXT
){strict};
CREATE TABLE sweep_tag (
    sweep_id INTEGER NOT NULL REFERENCES sweep (id),
    tag TEXT NOT NULL CHECK (tag <> ''),
    PRIMARY KEY (sweep_id, tag)
){strict_by_key};
CREATE TABLE saved_view (
    id {id},
    name TEXT NOT NULL UNIQUE,
    page TEXT NOT NULL,
    query TEXT NOT NULL,
    created_at TEXT NOT NULL
){strict};
CREATE TABLE epoch (
    run_id INTEGER NOT NULL REFERENCES run (id),
    epoch INTEGER NOT NULL CHECK (epoch >= 0),
    train_loss {real} NOT NULL,
    validation_loss {real} NOT NULL,
    PRIMARY KEY (run_id, epoch)
){strict_by_key};
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
    PRIMARY KEY (run_id, length),
    CONSTRAINT all_or_none CHECK (
        (right_length_given IS NULL) = (edits IS NULL) AND (edits IS NULL) = (target_tokens IS NULL)
    )
){strict_by_key};
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
    FOREIGN KEY (config_id) REFERENCES config (id) ON DELETE CASCADE,
    CONSTRAINT all_or_none CHECK (
        (right_length_given IS NULL) = (edits IS NULL) AND (edits IS NULL) = (target_tokens IS NULL)
    )
){strict_by_key};
CREATE TABLE error_pack (
    run_id INTEGER NOT NULL PRIMARY KEY REFERENCES run (id),
    numbers {bytes} NOT NULL CHECK (length(numbers) >= 3),
    logits {bytes} NOT NULL,
    CHECK (length(numbers) / 3 * 3 = length(numbers)),
    CHECK (length(logits) * 3 IN (length(numbers) * 4, length(numbers) * 8))
){strict};
CREATE TABLE output_pack (
    run_id INTEGER NOT NULL PRIMARY KEY REFERENCES run (id),
    outputs TEXT NOT NULL CHECK ({outputs_are_some})
){strict};
CREATE TABLE checkpoint (
    run_id INTEGER NOT NULL REFERENCES run (id),
    epoch INTEGER NOT NULL CHECK (epoch >= 0),
    weights {bytes} NOT NULL,
    PRIMARY KEY (run_id, epoch)
){strict};
CREATE TABLE verdict (
    run_id INTEGER NOT NULL PRIMARY KEY REFERENCES run (id),
    max_length INTEGER NOT NULL CHECK (max_length >= 0),
    unit TEXT NOT NULL CHECK (unit IN ('multiset', 'string')),
    inputs {big} NOT NULL CHECK (inputs >= 0),
    false_positives {big} NOT NULL CHECK (false_positives >= 0),
    false_negatives {big} NOT NULL CHECK (false_negatives >= 0),
    shortest_error TEXT,
    digest TEXT NOT NULL
){strict};
CREATE TABLE cause (
    run_id INTEGER NOT NULL REFERENCES run (id),
    number INTEGER NOT NULL CHECK (number >= 0),
    mechanism TEXT NOT NULL,
    head INTEGER CHECK (head >= 0),
    tokens TEXT NOT NULL,
    share {real} NOT NULL CHECK (share > 0 AND share <= 1),
    strings INTEGER NOT NULL CHECK (strings >= 1),
    agreement {real} CHECK (agreement >= 0 AND agreement <= 1),
    PRIMARY KEY (run_id, number)
){strict};
CREATE TABLE perturbation (
    run_id INTEGER NOT NULL REFERENCES run (id),
    number INTEGER NOT NULL CHECK (number >= 0),
    tn INTEGER NOT NULL CHECK (tn >= 0),
    fp INTEGER NOT NULL CHECK (fp >= 0),
    fn INTEGER NOT NULL CHECK (fn >= 0),
    tp INTEGER NOT NULL CHECK (tp >= 0),
    PRIMARY KEY (run_id, number)
){strict};
CREATE TABLE failure (
    run_id INTEGER NOT NULL REFERENCES run (id),
    attempt INTEGER NOT NULL CHECK (attempt >= 0),
    at TEXT NOT NULL,
    reason TEXT NOT NULL,
    PRIMARY KEY (run_id, attempt)
){strict};
INSERT INTO revision VALUES (1, 0, 0, 0)
"""

_WORDS = {
    "sqlite": {
        "id": "INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT",
        "big": "INTEGER",
        "real": "REAL",
        "bytes": "BLOB",
        "strict": " STRICT",
        "strict_by_key": " WITHOUT ROWID, STRICT",
        "spec_is_object": "json_valid(spec) AND json_type(spec) = 'object'",
        "json_is_object": "json_valid(json) AND json_type(json) = 'object'",
        "outputs_are_some": "json_valid(outputs) AND json_type(outputs) = 'array' "
        "AND json_array_length(outputs) > 0",
        "of_state": "state",
    },
    "postgresql": {
        "id": "INTEGER GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY",
        "big": "BIGINT",
        "real": "DOUBLE PRECISION",
        "bytes": "BYTEA",
        "strict": "",
        "strict_by_key": "",
        "spec_is_object": "json_typeof(spec::json) = 'object'",
        "json_is_object": "json_typeof(json::json) = 'object'",
        "outputs_are_some": "json_typeof(outputs::json) = 'array' "
        "AND json_array_length(outputs::json) > 0",
        # Runs of a state in the order of their ids, as those of every index of SQLite are.
        "of_state": "state, id",
    },
}


def upgrade() -> None:
    connection = op.get_bind()
    dialect = connection.dialect.name
    for statement in _TABLES.format(**_WORDS[dialect]).split(";\n"):
        connection.exec_driver_sql(statement.strip())
    for view in views(dialect, finite_alone=True).values():
        connection.exec_driver_sql(view)
    if dialect == "postgresql":
        _state_rows_of_a_run()


def _state_rows_of_a_run() -> None:
    """Says that a run has about a hundred rows in these tables.

    From its samples the server takes the rows of a million runs for those of a few thousand, and
    then reads a whole table where it should read some runs of it.
    """
    for table in ("length_score", "epoch"):
        op.execute(f"ALTER TABLE {table} ALTER COLUMN run_id SET (n_distinct = -0.01)")
