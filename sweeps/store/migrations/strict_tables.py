"""The tables of the schema 0003 as SQL: strict, with the values that columns may take.

Written out, and not made from the program's classes: what a migration makes must not change.
"""

from sweeps.store.migrations.packed_views import postgres_views, sqlite_views

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
    label INTEGER NOT NULL CHECK (label IN (0, 1)),
    occurrences INTEGER NOT NULL CHECK (occurrences >= 1),
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
    verdict_digest TEXT,
    UNIQUE (config_id, model_seed)
){strict};
CREATE INDEX run_state ON run (state);
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
    tn INTEGER NOT NULL CHECK (tn >= 0),
    fp INTEGER NOT NULL CHECK (fp >= 0),
    fn INTEGER NOT NULL CHECK (fn >= 0),
    tp INTEGER NOT NULL CHECK (tp >= 0),
    PRIMARY KEY (run_id, length)
){strict_by_key};
CREATE TABLE length_sum (
    config_id INTEGER NOT NULL,
    length INTEGER NOT NULL CHECK (length >= 0),
    runs INTEGER NOT NULL CHECK (runs >= 0),
    failing INTEGER NOT NULL CHECK (failing >= 0),
    tn {big} NOT NULL CHECK (tn >= 0),
    fp {big} NOT NULL CHECK (fp >= 0),
    fn {big} NOT NULL CHECK (fn >= 0),
    tp {big} NOT NULL CHECK (tp >= 0),
    PRIMARY KEY (config_id, length),
    FOREIGN KEY (config_id) REFERENCES config (id) ON DELETE CASCADE
){strict_by_key};
CREATE TABLE error_pack (
    run_id INTEGER NOT NULL PRIMARY KEY REFERENCES run (id),
    numbers {bytes} NOT NULL CHECK (length(numbers) >= 3),
    logits {bytes} NOT NULL,
    CHECK (length(numbers) / 3 * 3 = length(numbers)),
    CHECK (length(logits) * 3 IN (length(numbers) * 4, length(numbers) * 8))
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

WORDS = {
    "sqlite": {
        "id": "INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT",
        "big": "INTEGER",
        "real": "REAL",
        "bytes": "BLOB",
        "strict": " STRICT",
        "strict_by_key": " WITHOUT ROWID, STRICT",
        "spec_is_object": "json_valid(spec) AND json_type(spec) = 'object'",
        "json_is_object": "json_valid(json) AND json_type(json) = 'object'",
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
    },
}


def statements(dialect: str) -> list[str]:
    """What makes the tables and views of an empty database, for `sqlite` or `postgresql`."""
    tables = _TABLES.format(**WORDS[dialect]).split(";\n")
    views = {"sqlite": sqlite_views, "postgresql": postgres_views}[dialect]()
    return [*(statement.strip() for statement in tables), *views]


SUMS_BY_LENGTH = """
INSERT INTO length_sum (config_id, length, runs, failing, tn, fp, fn, tp)
SELECT run.config_id, length, count(*), sum(CASE WHEN score.fp + score.fn > 0 THEN 1 ELSE 0 END),
    sum(score.tn), sum(score.fp), sum(score.fn), sum(score.tp)
FROM length_score AS score JOIN run ON run.id = score.run_id
WHERE run.state = 'done'
GROUP BY run.config_id, length
"""
"""Fills `length_sum` from the results that there are."""
