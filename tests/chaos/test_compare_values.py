"""Values of commands, files and Python equal those of SQL and SciPy.

A part of it where all tests run; in `make chaos` everything, of a large database too.
"""

import shutil
from pathlib import Path

import pytest

from seqcls.results import EpochLosses
from sweeps import api
from sweeps.store import writer
from sweeps.store.database import Store
from sweeps.store.opening import open_writer
from tests.chaos.compare_values import Comparison
from tests.conftest import LONG, ROOT
from tests.databases import MADE, change, new_database, reseal, spec
from tests.results import groups
from tests.stock import copy_of
from tests.world import parts_from_outside

STOCK = {
    "kinds": "kinds",
    "rows": "rows",
    "every": "proofs",
    **({"large": "states"} if LONG else {}),
}
"""Databases, and where they stand: every kind of model, of row and of result of a proof; and many
models.
"""


def put_unfinished(store: Store) -> None:
    """Adds runs that are queued and two in training, one with its first loss; archives a sweep."""
    fields = {"max_num_epochs": 3}
    sweep_id = writer.submit(store, spec(name="waiting", model_seeds="0..3", fixed=fields))
    (group,) = groups(store, sweep_id)
    claim = writer.claim(store, writer.register_worker(store), group[:2])
    assert claim is not None
    writer.record_losses(store, [(claim, [EpochLosses(0, 1, 700.0, 69.0)])])
    writer.archive(store, 1, archived=True)


@pytest.mark.timeout(7200)
def test_commands_files_and_python_return_the_values_of_sql(
    postgres_server: str, tmp_path: Path
) -> None:
    files = {name: copy_of(folder, f"{name}.db", tmp_path) for name, folder in STOCK.items()}
    if LONG:
        files["runs"] = Path(shutil.copy(ROOT / "runs.db", tmp_path))
    compared = 0
    with parts_from_outside():
        put_unfinished(open_writer(str(files["kinds"])))
        for name, file in files.items():
            # The matrix of commands has all kinds in a file.
            servers = [new_database(postgres_server, MADE)] if LONG or name == "kinds" else []
            for server in servers:
                api.merge(api.open_store(server), file)
            for number, db in enumerate([str(file)] * (LONG or not servers) + servers):
                folder = tmp_path / f"{name} {number}"
                folder.mkdir()
                compared += Comparison(db, folder, short=not LONG).all()
    assert compared > (500_000 if LONG else 200_000)


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE run SET wrong = wrong + 1 WHERE id = 1",
        "UPDATE run SET solved_length = solved_length + 1 WHERE id = 1",
        "UPDATE run SET lengths = replace(lengths, '[[1,', '[[1,1') WHERE id = 2",
    ],
)
def test_an_altered_stored_number_is_a_difference(tmp_path: Path, sql: str) -> None:
    db = copy_of("rows", "rows.db", tmp_path)
    change(db, sql)
    reseal(open_writer(str(db)))
    with pytest.raises(AssertionError, match=r"shown \d+, is \d+"):
        Comparison(db, tmp_path, short=True).all()
