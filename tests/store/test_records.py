"""Numbers of a run as JSON, read back by the program and by SQL alone."""

from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import text

from sweeps.records import error_numbers, read_rows, texts_of_floats
from sweeps.store.opening import open_writer
from tests.databases import rows
from tests.results import filled

ODD = [0.0, -0.0, np.inf, -np.inf, np.nan]

LOGITS: dict[str, np.ndarray] = {
    "single": np.array([1.5, -0.1, 3e38, -1e-38, 1e-44, 1.1754944e-38, *ODD], np.float32),
    "double": np.array([0.1, -1 / 3, 1.7e308, -2.3e-308, 5e-324, 1e22, -np.pi, *ODD], np.float64),
}


def test_the_errors_of_each_run_are_read_once(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    filled(open_writer(str(path)))
    for view in ("misclassified", "wrong_output"):
        plan = [step for *_, step in rows(path, f"EXPLAIN QUERY PLAN SELECT * FROM {view}")]
        # Strings first, and every run's JSON would be read for each of them.
        assert [step.split()[1] for step in plan] == ["run", "config", "item", "wrong"], plan
        assert plan[-1].startswith("SEARCH wrong USING PRIMARY KEY (test_set_id=? AND number=?)")


@pytest.mark.parametrize("kind", LOGITS)
def test_written_logits_are_read_back_exactly_and_by_plain_sql(any_db: str, kind: str) -> None:
    logits = LOGITS[kind]
    texts = texts_of_floats(logits)
    assert max(map(len, texts)) <= (16 if kind == "single" else 24)
    numbers = range(0, 3 * len(logits), 3)
    errors = ",".join(f'[{n},{x},"b",0,"repeats"]' for n, x in zip(numbers, texts, strict=True))
    back = np.array([row[1] for row in read_rows(f"[{errors}]")], dtype=np.float64)
    assert error_numbers(f"[{errors}]").tolist() == [*numbers]
    np.testing.assert_array_equal(back.astype(logits.dtype), logits)
    store = open_writer(any_db)
    with store.write(quiet=True) as connection:
        for statement, values in (
            ("INSERT INTO test_set VALUES (1, 'k', '{}', NULL)", [{}]),
            ("INSERT INTO config VALUES (1, 'k', 'name', NULL, '{}', 1)", [{}]),
            (
                "INSERT INTO run (id, config_id, model_seed, state, attempt, failures, errors) "
                "VALUES (7, 1, 0, 'done', 1, 0, :errors)",
                [{"errors": f"[{errors}]"}],
            ),
            (
                "INSERT INTO test_string VALUES (1, :number, :string, 5, 1, 2, NULL, NULL)",
                [{"number": number, "string": f"s{number}"} for number in range(100)],
            ),
        ):
            connection.execute(text(statement), values)
    # NaN is no answer.
    expected = [None if np.isnan(x) else x for x in back.tolist()]
    stored = rows(store, "SELECT * FROM misclassified")
    assert sorted(stored, key=lambda row: int(row[1][1:])) == [
        (7, f"s{number}", 5, 1, logit, 2, None)
        for number, logit in zip(numbers, expected, strict=True)
    ]
    by_number = rows(store, "SELECT logit FROM string_error ORDER BY number")
    assert by_number == [(logit,) for logit in expected]
    outputs = rows(store, "SELECT string, log_probability FROM wrong_output")
    assert dict(outputs) == {f"s{n}": x for n, x in zip(numbers, expected, strict=True)}
