"""Packed errors, read back by the program and by SQL alone."""

import json

import numpy as np
import pytest
from sqlalchemy import text

from seqcls.results import StringErrors
from sweeps.store.columns import pack_errors, unpack_errors
from sweeps.store.opening import open_writer
from tests.databases import rows

ODD = [0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan]

SIZES: dict[str, np.ndarray] = {
    "single": np.array([1.5, -0.1, 3e38, -1e-38, 1e-44, 1.1754944e-38, *ODD], np.float32),
    "double": np.array([0.1, -1 / 3, 1.7e308, -2.3e-308, 5e-324, 1e22, -np.pi, *ODD], np.float64),
}


@pytest.mark.parametrize("kind", SIZES)
def test_what_is_packed_is_read_back_and_read_by_plain_sql(any_db: str, kind: str) -> None:
    logits = SIZES[kind]
    known = ~np.isnan(logits)
    odd = np.array([0, 1, 255, 256, 257, 65_535, 65_536, 10**6, 2**23, 2**24 - 2, 2**24 - 1])
    odd = odd[: known.sum()]
    packed = pack_errors(StringErrors(odd, logits[known]))
    assert len(packed[1]) == logits.itemsize * known.sum()
    back = unpack_errors(*packed)
    assert back.numbers.tolist() == odd.tolist()
    assert back.logits.tolist() == logits[known].astype(np.float64).tolist()
    numbers = np.arange(len(logits)) * 3
    store = open_writer(any_db)
    numbers_packed, logits_packed = pack_errors(StringErrors(numbers, logits))
    if kind == "single":
        # `pack_errors` gives doubles where there is NaN, which need not be how others wrote them.
        logits_packed = logits.astype(">f4").tobytes()
    with store.begin() as connection:
        for statement, values in (
            ("INSERT INTO test_set VALUES (1, 'k', '{}', NULL)", [{}]),
            ("INSERT INTO config VALUES (1, 'k', '{}', 1)", [{}]),
            (
                "INSERT INTO run (id, config_id, model_seed, state, attempt, failures) "
                "VALUES (7, 1, 0, 'done', 1, 0)",
                [{}],
            ),
            (
                "INSERT INTO test_string VALUES (1, :number, :string, 5, 1, 2, NULL, NULL)",
                [{"number": number, "string": f"s{number}"} for number in range(100)],
            ),
            (
                "INSERT INTO error_pack VALUES (7, :numbers, :logits)",
                [{"numbers": numbers_packed, "logits": logits_packed}],
            ),
            (
                "INSERT INTO output_pack VALUES (7, :outputs)",
                [{"outputs": json.dumps([["b", 0, "repeats"]] * len(logits))}],
            ),
        ):
            connection.execute(text(statement), values)
    # NaN is no answer, whatever its sign and its other bits.
    expected = [None if np.isnan(logit) else float(logit) for logit in logits]
    told = rows(store, "SELECT * FROM misclassified")
    assert sorted(told, key=lambda row: int(row[1][1:])) == [
        (7, f"s{number}", 5, 1, logit, 2, None)
        for number, logit in zip(numbers.tolist(), expected, strict=True)
    ]
    by_number = rows(store, "SELECT logit FROM string_error ORDER BY number")
    assert by_number == [(logit,) for logit in expected]
    outputs = rows(store, "SELECT string, log_probability FROM wrong_output")
    assert dict(outputs) == {f"s{n}": x for n, x in zip(numbers.tolist(), expected, strict=True)}
