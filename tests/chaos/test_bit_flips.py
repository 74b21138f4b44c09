"""Single flipped bits: whatever they change of the results, `verify` finds damage."""

import random
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from seqcls.errors import SeqclsError
from sweeps.store.opening import open_reader
from sweeps.store.verification import verify
from tests.stock import copy_of

RESULTS = {
    "config": "key, json",
    "run": (
        "id, config_id, model_seed, state, error, epochs, best_epoch, best_validation_loss, tn, "
        "fp, fn, tp, tested, wrong, solved_length, digest, lengths, losses, errors"
    ),
    "test_set": "id, digest",
    "test_string": "*",
    "shortcut": "test_set_id, lengths, correct",
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


@pytest.mark.cases(40)
def test_verify_finds_every_flipped_bit_that_changes_a_result(tmp_path: Path, seed: int) -> None:
    path = copy_of("rows", "rows.db", tmp_path)
    assert not finds_damage(path)
    whole, before, generator = path.read_bytes(), stored(path), random.Random(seed)
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
