"""Query plans of PostgreSQL that decide how long a large database takes."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, event, make_url

from sweeps.store import writer
from sweeps.store.database import Store
from sweeps.store.opening import open_writer
from sweeps.store.reads import sweep_queries
from sweeps.store.verification import verify
from tests.conftest import SHORT
from tests.databases import change, spec
from tests.results import claimed, outcomes


@contextmanager
def planned() -> Iterator[list[str]]:
    """The plans of the block's statements, each with its statement."""
    plans: list[str] = []

    def explain(connection: Connection, _: Any, sql: str, values: Any, *__: Any) -> None:
        if sql.split()[0] in ("SELECT", "INSERT", "UPDATE", "DELETE"):
            one = values[0] if isinstance(values, list) and values else values
            with closing(connection.connection.cursor()) as cursor:
                cursor.execute(f"EXPLAIN {sql}", one)
                plans.append("\n".join([sql, *(line for (line,) in cursor.fetchall())]))

    event.listen(Engine, "before_cursor_execute", explain)
    yield plans
    event.remove(Engine, "before_cursor_execute", explain)


@pytest.fixture
def cramped(postgres_url: str) -> Store:
    """10,000 runs on a server that has as little memory for them as others for a million."""
    url = make_url(postgres_url).update_query_dict({"options": "-c work_mem=64kB"})
    store = open_writer(url.render_as_string(hide_password=False))
    writer.submit(store, spec(name="many", model_seeds="0..9999"))
    return store


def test_no_statement_scans_all_runs_for_every_run(cramped: Store) -> None:
    sweep_id = writer.submit(cramped, spec(name="few", axes={"hidden_size": [3, 4]}))
    with planned() as plans:
        assert sweep_queries.runs_of_one_sweep_only(cramped, sweep_id) == 6
        writer.submit(cramped, spec(name="few", axes={"hidden_size": [3]}))
        assert verify(cramped).damages == []
        assert writer.delete(cramped, sweep_id) == 3
    assert len(plans) > 30
    # Of a subquery that is not hashed every row is compared, for every row outside.
    assert [plan for plan in plans if "= (SubPlan" in plan] == []


def test_a_commit_reads_only_its_own_runs(cramped: Store) -> None:
    """However many are done, and however many wait in other sweeps."""
    change(cramped, "UPDATE run SET state = 'done' WHERE id <= 5000", "ANALYZE")
    sweep_id = writer.submit(cramped, spec(name="last", fixed=SHORT))
    with planned() as plans:
        _, claim = claimed(cramped, sweep_id)
        assert writer.record(cramped, claim, outcomes(claim)) == 3
    assert any("UPDATE run" in plan for plan in plans)
    assert [plan for plan in plans if "Seq Scan on run" in plan] == []
