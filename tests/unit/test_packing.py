"""Packed errors, read back by the program and by SQL alone."""

import sqlite3
from contextlib import closing

import numpy as np
import pytest

from seqcls.results import StringErrors
from sweeps.store.migrations.strict_tables import statements
from sweeps.store.schema.packing import packed, unpacked

SIZES: dict[str, np.ndarray] = {
    "single": np.array([1.5, -0.1, 0.0, 3e38, -1e-38, 1e-44, 1.1754944e-38, np.inf], np.float32),
    "double": np.array([0.1, -1 / 3, 0.0, 1.7e308, -2.3e-308, 5e-324, 1e22, -np.pi], np.float64),
}


@pytest.mark.parametrize("kind", SIZES)
def test_what_is_packed_comes_back_to_the_last_bit(kind: str) -> None:
    logits = SIZES[kind]
    numbers = np.array([0, 1, 255, 256, 65_535, 65_536, 1_000_000, 2**24 - 1])
    numbers_packed, logits_packed = packed(StringErrors(numbers, logits))
    assert len(logits_packed) == logits.itemsize * len(logits)
    found = unpacked(numbers_packed, logits_packed)
    assert found.numbers.tolist() == numbers.tolist()
    assert found.logits.tolist() == logits.astype(np.float64).tolist()


@pytest.mark.parametrize("kind", SIZES)
def test_plain_sql_reads_the_same(kind: str) -> None:
    logits = SIZES[kind][np.isfinite(SIZES[kind])]
    numbers = np.arange(len(logits)) * 3
    with closing(sqlite3.connect(":memory:")) as connection:
        for statement in statements("sqlite"):
            connection.execute(statement)
        connection.execute("INSERT INTO test_set VALUES (1, 'k', '{}', NULL)")
        strings = [(number, f"s{number}") for number in range(100)]
        connection.executemany("INSERT INTO test_string VALUES (1, ?, ?, 5, 1, 2)", strings)
        connection.execute("INSERT INTO config VALUES (1, 'k', '{}', 1)")
        run = "INSERT INTO run (id, config_id, model_seed, state, attempt, failures)"
        connection.execute(f"{run} VALUES (7, 1, 0, 'done', 1, 0)")
        pack = packed(StringErrors(numbers, logits))
        connection.execute("INSERT INTO error_pack VALUES (7, ?, ?)", pack)
        found = connection.execute("SELECT * FROM misclassified").fetchall()
    expected = zip(numbers.tolist(), logits.tolist(), strict=True)
    assert found == [(7, f"s{number}", 5, 1, logit, 2) for number, logit in expected]
