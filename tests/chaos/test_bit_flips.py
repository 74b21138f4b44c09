"""Single flipped bits: whatever they change of the results, `verify` finds damage."""

import random
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from seqcls.errors import SeqclsError
from sweeps.grid.spec import parse_spec
from sweeps.store import writer
from sweeps.store.opening import open_reader, open_writer, pack
from sweeps.store.verification import verify
from sweeps.work.machine import WorkOptions
from sweeps.work.worker import work
from tests import transductions
from tests.conftest import SHORT

SPEC: dict[str, Any] = {
    "name": "flips",
    "description": "Small, with every kind of row.",
    "model_seeds": [0, 1],
    "verdict": True,
    "fixed": {**SHORT, "test_max_length": 20, "test_size": 256},
}
RESULTS = {
    "config": "key, json",
    "run": (
        "id, config_id, model_seed, state, error, epochs, best_epoch, best_validation_loss, tn, "
        "fp, fn, tp, tested, wrong, solved_length, digest"
    ),
    "sweep": "id, name, description, spec, state",
    "sweep_run": "sweep_id, run_id",
    "epoch": "*",
    "length_score": "*",
    "length_sum": "*",
    "test_set": "*",
    "test_string": "*",
    "shortcut": "test_set_id, lengths, correct",
    "error_pack": "*",
    "output_pack": "*",
    "checkpoint": "*",
    "verdict": "*",
    "proof": "*",
}


def stored(path: Path) -> Any:
    """All results as plain SQL reads them, by scanning the tables; the error where it cannot."""
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            return {
                table: sorted(map(repr, connection.execute(f"SELECT {columns} FROM {table}")))
                for table, columns in RESULTS.items()
            }
    except (sqlite3.Error, UnicodeError) as error:
        return repr(error)


def finds_damage(path: Path) -> bool:
    try:
        return verify(open_reader(str(path))).damages != []
    except SeqclsError:
        # Refused as a whole, by name.
        return True


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("whole") / "x.db"
    store = open_writer(str(path))
    work(store, [writer.submit(store, parse_spec(SPEC))], WorkOptions(0))
    transductions.filled(store, fixed={**SPEC["fixed"], "test_seed": 6})
    pack(str(path))
    assert not finds_damage(path)
    return path.read_bytes()


@pytest.mark.cases(40)
def test_every_flip_that_changes_a_result_is_named(tmp_path: Path, whole: bytes, seed: int) -> None:
    path = tmp_path / "x.db"
    path.write_bytes(whole)
    before, generator = stored(path), random.Random(seed)
    changed, missed = 0, []
    for _ in range(30):
        bit = generator.randrange(8 * len(whole))
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        if stored(path) != before:
            changed += 1
            if not finds_damage(path):
                missed.append(bit)
    assert changed > 3
    assert missed == []
