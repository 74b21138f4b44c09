"""A page's question that takes too long is ended, with advice on filters."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from dashboard import data
from seqcls.errors import StoreError
from sweeps.store import database, writer
from sweeps.store.database import Store, limit_reads
from sweeps.store.opening import open_writer
from tests.app import open_app, page_text
from tests.databases import spec

ADVICE = "choose one sweep, or fewer model seeds or settings, in the filters of the sidebar"


@pytest.fixture(autouse=True)
def limits_are_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "read_seconds", None)


def submitted(db: str) -> Store:
    store = open_writer(db)
    writer.submit(store, spec())
    return store


def test_a_slow_question_to_a_file_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.db"
    submitted(str(path))
    # The clock is looked at once in a hundred thousand steps, more than these few rows take.
    monkeypatch.setattr(database, "STEPS", 1)
    monkeypatch.setattr(data, "PAGE_SECONDS", 0.0)
    shown = page_text(open_app(monkeypatch, path))
    assert "a page's question took too long, and was ended" in shown
    assert ADVICE in shown


def test_a_long_question_to_a_file_is_interrupted(tmp_path: Path) -> None:
    reader = submitted(str(tmp_path / "x.db"))
    limit_reads(0.2)
    endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT sum(x) FROM n"
    with pytest.raises(StoreError, match=ADVICE), reader.read() as connection:
        connection.exec_driver_sql(endless)


def test_a_slow_question_to_a_server_is_ended(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    submitted(postgres_url)
    # The page opens; then its table of runs is held by somebody, for as long as they please.
    monkeypatch.setattr(data, "PAGE_SECONDS", 0.2)
    with held(postgres_url, "run"):
        shown = page_text(open_app(monkeypatch, postgres_url))
    assert "a page's question took too long, and was ended" in shown
    assert ADVICE in shown


def test_writers_have_no_time_limit(tmp_path: Path) -> None:
    limit_reads(0.0)
    store = submitted(str(tmp_path / "x.db"))
    with store.write(quiet=True) as connection:
        counted = connection.exec_driver_sql(
            "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 200000) "
            "SELECT count(*) FROM n"
        )
        assert counted.scalar() == 200_000


@contextmanager
def held(url: str, table: str) -> Iterator[None]:
    """A block in which nobody else can read a table of a server."""
    with psycopg.connect(url.replace("+psycopg", "")) as connection:
        connection.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        yield
        connection.rollback()
