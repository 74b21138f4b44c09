"""Names of databases: a file or a URL, shown without its password, and nothing that hangs."""

import os
from pathlib import Path

import pytest
from sqlalchemy import make_url

from seqcls.errors import StoreError
from sweeps.store.opening import locate, open_reader, open_writer
from tests.commands import run_main

SECRET = "s3cret"

SLIPS = [
    "postgresql//me:{}@host/db",
    "postgresql/me:{}@host/db",
    "postgresql:me:{}@host/db",
    "postgresql:/me:{}@host/db",
    "postgresq://me:{}@host/db",
    "Postgresql//me:{}@host/db",
    "psql//me:{}@host/db",
    "me:{}@host/db",
    "me:{}@host://db",
    "postgresql://me:p@{}@host/db",
    "postgresql//host/db?user=me&password={}",
    "mysql://me:{}@host/db",
]


SERVERS = [
    "postgresql://me:{}@127.0.0.1:1/db",
    "postgresql://127.0.0.1:1/db?user=me&password={}",
    "postgresql://127.0.0.1:1/db?user=me&pasword={}",
    "postgresql://127.0.0.1:1/db?sslpassword={}&sslmode=disable",
]


@pytest.mark.parametrize("url", [*SLIPS, *SERVERS])
def test_a_url_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(StoreError) as refused:
        open_reader(url.format(SECRET))
    assert SECRET not in str(refused.value)
    assert ("expected" if url in SLIPS else "127.0.0.1") in str(refused.value)


def test_a_complete_sweep_is_reported_without_the_password(
    postgres_url: str, short_spec: Path
) -> None:
    # The user and the password as options, where they are as secret as before the @.
    url = make_url(postgres_url)
    options = {**url.query, "user": url.username or "postgres", "password": SECRET}
    named = url.set(username=None, password=None, query=options)
    secret = named.render_as_string(hide_password=False)
    for expected in ("trained 6 runs", "all runs are in postgresql://"):
        completed = run_main("sweep", str(short_spec), "--workers", "0", SEQCLS_DB=secret)
        assert completed.returncode == 0, completed
        assert expected in completed.stdout
        assert SECRET not in completed.stdout + completed.stderr


def test_only_a_regular_file_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Messages cut long names.
    monkeypatch.chdir(tmp_path)
    fifo, loop, missing = tmp_path / "fifo", tmp_path / "loop", tmp_path / "missing"
    os.mkfifo(fifo)
    loop.symlink_to(loop)
    for path in (Path("fifo"), Path("loop"), Path("/dev/null")):
        for opened in (open_reader, open_writer):
            with pytest.raises(StoreError, match=f"cannot open '{path}'"):
                opened(str(path))
    link = tmp_path / "link"
    link.symlink_to(missing)
    assert locate(str(link)) == link
    assert locate(str(tmp_path / "a:b@c.db")) == tmp_path / "a:b@c.db"
