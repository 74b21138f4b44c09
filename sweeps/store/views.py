"""The views that people write SQL against, which spread out the JSON of rows.

The same text serves both databases, except for the words in `_ARRAYS`. This program's own readers
use none of them: SQLite before 3.41 regards JSON functions in a view as unsafe.
"""

from typing import get_args

from sqlalchemy import Connection

from sweeps.records import ERROR_FIELDS, LENGTH_COUNTS, LENGTH_FIELDS, LOSS_FIELDS
from sweeps.results import FINDINGS, RECORDS

_ARRAYS = {
    "sqlite": "json_each({})",
    "postgresql": "json_array_elements(CAST({} AS json))",
}
OBJECTS = {"sqlite": "json", "postgresql": "CAST(json AS json)"}
"""The left operand of `->>` for a finding's JSON, by dialect."""

_TYPES = {int: "BIGINT", float: "DOUBLE PRECISION", str: "TEXT"}


def _value(place: int, kind: str = "BIGINT") -> str:
    return f"CAST(item.value ->> {place} AS {kind})"


def _number(place: int) -> str:
    """The expression of a float, where PostgreSQL refuses to read one that is too large."""
    infinite = "CAST('{}Infinity' AS DOUBLE PRECISION)"
    return (
        f"CASE item.value ->> {place} WHEN '9e999' THEN {infinite.format('')} "
        f"WHEN '-9e999' THEN {infinite.format('-')} ELSE {_value(place, 'DOUBLE PRECISION')} END"
    )


_COUNTS = ", ".join(
    f"{_value(LENGTH_FIELDS.index(name))} AS {name}" for name in ("length", *LENGTH_COUNTS)
)
_LOSSES = ", ".join(
    f"{_number(place)} AS {name}" for place, name in enumerate(LOSS_FIELDS) if place
)
_LOGIT = _number(ERROR_FIELDS.index("logit"))

# SQLite takes tables that are CROSS JOINed in this order; else it would go through all strings
# first, and read every run's errors for each.
_STRINGS = f"""FROM run CROSS JOIN config CROSS JOIN {{errors}} AS item
    CROSS JOIN test_string AS wrong
WHERE config.id = run.config_id AND wrong.test_set_id = config.test_set_id
    AND wrong.number = {_value(0)}"""

_NUMBERS = {"proof": "number AS of_language, ", "failure": "number AS attempt, ", "verdict": ""}


def _finding(kind: str) -> str:
    """The query for all findings of a kind."""
    fields = []
    for name, hint in FINDINGS[kind].items():
        own = next((x for x in (int, float) if x in (hint, *get_args(hint))), str)
        fields.append(f"CAST({{object}} ->> '{name}' AS {_TYPES[own]}) AS {name}")
    last = {"verdict": ", digest", "proof": ", digest, certificate"}.get(kind, "")
    return (
        f"SELECT run_id, {_NUMBERS.get(kind, 'number, ')}{', '.join(fields)}{last}\n"
        f"FROM finding WHERE kind = '{kind}'"
    )


VIEWS = {
    **{kind: _finding(kind) for kind in FINDINGS},
    "length_score": f"SELECT run.id AS run_id, {_COUNTS}\nFROM run CROSS JOIN {{lengths}} AS item",
    "epoch": f"""SELECT run.id AS run_id, {_value(0)} AS epoch, {_LOSSES}
FROM run CROSS JOIN {{losses}} AS item""",
    "string_error": f"""SELECT run.id AS run_id, {_value(0)} AS number, {_LOGIT} AS logit
FROM run CROSS JOIN {{errors}} AS item""",
    "misclassified": f"""SELECT run.id AS run_id, wrong.string, wrong.length, wrong.label,
    {_LOGIT} AS logit, wrong.occurrences, wrong.target
{_STRINGS}""",
    "wrong_output": f"""SELECT run.id AS run_id, wrong.string, wrong.length, wrong.target,
    item.value ->> {ERROR_FIELDS.index("output")} AS output,
    {_value(ERROR_FIELDS.index("first_wrong"))} AS first_wrong, {_LOGIT} AS log_probability,
    item.value ->> {ERROR_FIELDS.index("error_kind")} AS error_kind, wrong.occurrences
{_STRINGS} AND item.value ->> {ERROR_FIELDS.index("error_kind")} IS NOT NULL""",
    "generalization": """SELECT id AS run_id, config_id, model_seed,
    (tested_within - wrong_within) / NULLIF(CAST(tested_within AS DOUBLE PRECISION), 0)
        AS accuracy_within,
    (tested_beyond - wrong_beyond) / NULLIF(CAST(tested_beyond AS DOUBLE PRECISION), 0)
        AS accuracy_beyond,
    within_from
FROM run WHERE state = 'done'""",
    "sweep_state": """SELECT sweep.id AS sweep_id, sweep.name, CASE
    WHEN count(CASE WHEN run.state IN ('queued', 'running') THEN 1 END) = 0 THEN 'done'
    WHEN sweep.stopped_at IS NOT NULL THEN 'stopped'
    WHEN count(CASE WHEN run.state = 'running' THEN 1 END) > 0 THEN 'running'
    ELSE 'queued' END AS state
FROM sweep LEFT JOIN sweep_run ON sweep_run.sweep_id = sweep.id
    LEFT JOIN run ON run.id = sweep_run.run_id
GROUP BY sweep.id, sweep.name, sweep.stopped_at""",
    "sweep_note": """SELECT id AS sweep_id, title, note, archived_at FROM sweep
WHERE title <> '' OR note <> '' OR archived_at IS NOT NULL""",
    "sweep_tag": """SELECT sweep.id AS sweep_id, {word} AS tag
FROM sweep CROSS JOIN {tags} AS item""",
}
"""The queries of the views, by name."""


def make_views(connection: Connection) -> None:
    """Makes the views of a new database."""
    dialect = connection.dialect.name
    words = {name: _ARRAYS[dialect].format(f"run.{name}") for name in RECORDS}
    words["object"] = OBJECTS[dialect]
    words["tags"] = _ARRAYS[dialect].format("sweep.tags")
    words["word"] = {"sqlite": "item.value", "postgresql": "item.value #>> '{}'"}[dialect]
    for name, query in VIEWS.items():
        connection.exec_driver_sql(f"CREATE VIEW {name} AS {query.format(**words)}")
