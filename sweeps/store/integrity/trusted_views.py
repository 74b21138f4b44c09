"""Views that hide the tables of a damaged file: only what can be trusted is seen."""

from collections.abc import Iterator

from sqlalchemy import Table

from sweeps.store.integrity.row_checks import TABLES, fitting
from sweeps.store.integrity.survey import NOTES, SUMS, Survey
from sweeps.store.schema.tables import LENGTH_COUNTS, Revision

_SUMMED = f"""
SELECT run.config_id AS config_id, score.length AS length, count(*) AS runs,
    sum(score.wrong > 0) AS failing, {", ".join(f"sum(score.{x}) AS {x}" for x in LENGTH_COUNTS)}
FROM length_score AS score JOIN run ON run.id = score.run_id
WHERE run.state = 'done' GROUP BY run.config_id, score.length
"""


def views(survey: Survey) -> Iterator[str]:
    """The statements that hide tables behind views, which show only what can be trusted."""
    yield f"CREATE TEMP VIEW {SUMS} AS {_SUMMED}"
    for name, table in TABLES.items():
        if name == SUMS:
            continue
        if name == Revision.__tablename__:
            yield _revision(table)
            continue
        checked = table.columns if name in NOTES else table.primary_key
        conditions = [fitting(table, column.name) for column in checked]
        for column in table.columns:
            owner = _owner(table, column.name)
            if owner is not None and (left_out := survey.ids.get(owner)):
                listed = ", ".join(map(str, sorted(left_out)))
                conditions.append(f"({column.name} IS NULL OR {column.name} NOT IN ({listed}))")
        columns = ", ".join(column.name for column in table.columns)
        condition = " AND ".join(conditions)
        yield f"CREATE TEMP VIEW {name} AS SELECT {columns} FROM main.{name} WHERE {condition}"


def _revision(table: Table) -> str:
    """Always one row; of zeros where the file's own is damaged."""
    numbers = ", ".join(
        f"coalesce(max({column.name}), 0) AS {column.name}" for column in table.columns
    )
    fits = " AND ".join(fitting(table, column.name) for column in table.columns)
    return f"CREATE TEMP VIEW {table.name} AS SELECT {numbers} FROM main.{table.name} WHERE {fits}"


def _owner(table: Table, column: str) -> str | None:
    """Whose id a column holds, where a row is left out with that; a worker's is only named."""
    if column == "id":
        return table.name
    owner = column.removesuffix("_id")
    return owner if owner != column and owner != "worker" else None
