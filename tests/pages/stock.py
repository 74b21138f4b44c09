"""Databases in every state in which a page may meet one."""

import shutil
from pathlib import Path

from sqlalchemy import text

from benchmarks.large import make_database
from sweeps.grid.grouping import make_groups
from sweeps.store import writer
from sweeps.store.database import Store
from sweeps.store.opening import open_writer
from sweeps.store.reads import workers
from tests.conftest import ASSETS, ROOT
from tests.databases import change, put_failure, rows, spec

HOSTILE = (
    "**bold** [link](javascript:alert(1)) <script>alert(1)</script> :red[x] $x^2$ [red]y[/red]"
)
"""A text that means something to a browser, to Markdown and to a terminal."""

LARGE_GRID = {"hidden_size": [2, 4, 8, 16, 32], "num_attention_heads": list(range(1, 11))}
LARGE_SEEDS = 6
SMALL_GRID = {"hidden_size": [2, 4], "num_attention_heads": [1, 2]}


def make_states(folder: Path) -> None:
    """Makes a file of every state, by its name."""
    (folder / "empty.db").touch()
    (folder / "damaged.db").write_bytes(b"\x00garbage" * 1000)
    torn = bytearray((ROOT / "runs.db").read_bytes())
    torn[40_000:] = b"\xff" * (len(torn) - 40_000)
    (folder / "torn.db").write_bytes(torn)
    change(folder / "foreign.db", "CREATE TABLE run (id INTEGER PRIMARY KEY, name TEXT)")
    open_writer(str(folder / "new.db"))
    _versioned(Path(shutil.copy(folder / "new.db", folder / "newer.db")), "9999")
    older = ASSETS / "databases" / "0005.db"
    shutil.copyfile(older, folder / "older.db")
    _versioned(Path(shutil.copyfile(older, folder / "oldest.db")), "0003")
    store = open_writer(str(folder / "queued.db"))
    writer.submit(store, spec(name="<b>*new*</b>", model_seeds="0..3"))
    make_database(str(folder / "large.db"), LARGE_GRID, LARGE_SEEDS, errors=20)
    _make_hostile(make_database(str(folder / "hostile.db"), SMALL_GRID, seeds=2, errors=8))


def begin(db: Path) -> None:
    """Makes a worker claim the queued runs of a database."""
    store = open_writer(str(db))
    group, *_ = make_groups(workers.queued_runs(store, [1]))
    writer.claim(store, writer.register_worker(store), group)


def _versioned(path: Path, version: str) -> None:
    change(path, f"UPDATE alembic_version SET version_num = '{version}'")


def _make_hostile(store: Store) -> None:
    """Writes the text into everything that somebody else may have written."""
    writer.submit(store, spec(name=HOSTILE, description=HOSTILE))
    with store.write(quiet=True) as connection:
        for statement in (
            "UPDATE sweep SET description = :hostile",
            "UPDATE sweep SET name = name || :hostile WHERE id = 1",
            "UPDATE run SET state = 'failed', error = :hostile WHERE state = 'queued'",
        ):
            connection.execute(text(statement), {"hostile": HOSTILE})
    failed = rows(store, "SELECT id FROM run WHERE state = 'failed'")
    put_failure(store, [run_id for (run_id,) in failed], HOSTILE)
    for sweep_id in (1, 2):
        writer.write_note(store, sweep_id, title=HOSTILE, note=HOSTILE, tags=[HOSTILE, "plain"])
