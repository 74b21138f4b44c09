"""What runs have come to: not learned, fails beyond, generalizes, or not known."""

import json
import os
import shutil
import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from sqlalchemy import text

from dashboard import links
from seqcls.evaluation import evaluate
from seqcls.problem import resolve
from seqcls.weights import weights_of
from sweeps import api
from sweeps.results import RANGE_COLUMNS, Outcome, range_values
from sweeps.store import writer
from sweeps.store.databases.engine import Store
from sweeps.store.migrate import upgrade_with_backup
from sweeps.store.opening import open_reader, open_writer
from sweeps.store.reads import overview, queries
from sweeps.store.reads.selection import View
from sweeps.store.reads.stored import read_runs
from sweeps.store.verification import verify
from sweeps.store.writes import outcomes
from tests.app import open_app, said
from tests.chaos.damaged import unchecked
from tests.commands import run_main
from tests.conftest import ASSETS, ROOT
from tests.databases import fill_server, rows
from tests.results import claimed
from tests.results import outcomes as results_of

RANGES = f"SELECT id, {', '.join(RANGE_COLUMNS)} FROM run ORDER BY id"
BY_VALIDATION = 8
"""The run of the database of the version before whose test has too few strings of trained
lengths."""


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database of the version before, upgraded: one run is not judged yet."""
    path = tmp_path_factory.mktemp("older") / "older.db"
    shutil.copy(ASSETS / "databases" / "0004.db", path)
    upgrade_with_backup(open_writer(str(path), any_version=True))
    return path


@pytest.fixture(scope="module")
def judged(older: Path) -> Path:
    """The same, where it is."""
    path = Path(shutil.copy(older, older.with_name("judged.db")))
    api.judge(open_writer(str(path)))
    return path


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path, older: Path) -> Store:
    if request.param == "sqlite":
        return open_writer(str(shutil.copy(older, tmp_path / "older.db")))
    url = request.getfixturevalue("postgres_url")
    fill_server(url, ASSETS / "databases" / "0004.db")
    upgrade_with_backup(open_writer(url, any_version=True))
    return open_writer(url)


def fresh_ranges(store: Store, run_id: int) -> dict[str, Any]:
    """The counts of an evaluation with the weights that are stored."""
    with store.reader().begin() as connection:
        (run,) = read_runs(connection, [run_id])
    problem = resolve(api.config(store, run_id))
    weights = weights_of(problem, run.checkpoints[run.run["best_epoch"]])
    return range_values(evaluate(problem, [weights])[0].ranges)


def test_an_upgrade_counts_what_a_fresh_evaluation_does(store: Store) -> None:
    before = dict(rows(store, "SELECT id, digest FROM run"))
    counted = {run_id: own for run_id, *own in rows(store, RANGES)}
    filled = [run_id for run_id, own in counted.items() if own[0] is not None]
    assert filled == [1, 2, 3, 4, 11]
    judged = api.judge(store)
    assert (judged.runs, judged.skipped) == (1, {})
    counted = {run_id: own for run_id, *own in rows(store, RANGES)}
    # The last one's weights were changed after it was tested: its answers are no numbers.
    for run_id in (1, 2, 3, 4, BY_VALIDATION):
        assert counted[run_id] == list(fresh_ranges(store, run_id).values())
    assert counted[BY_VALIDATION][2] == "validation"
    # Failed, queued and imported runs.
    assert all(counted[run_id] == [None] * 5 for run_id in (5, 6, 7, 9, 10))
    after = dict(rows(store, "SELECT id, digest FROM run"))
    changed = [run_id for run_id, digest in after.items() if digest != before[run_id]]
    assert changed == [BY_VALIDATION]
    assert after[BY_VALIDATION].startswith("v5:")
    assert verify(store).damages == []
    again = api.judge(store)
    assert (again.runs, again.skipped) == (0, {})


def test_the_command_says_what_it_judged(tmp_path: Path, older: Path) -> None:
    db = str(shutil.copy(older, tmp_path / "older.db"))
    (asked,) = json.loads(run_main("runs", "--sweep", "copies", "--json", "--db", db).stdout)
    assert asked["outcome"] == "not known"
    said = run_main("db", "outcomes", "--db", db)
    assert said.stdout == f"{db}: 1 run judged on trained lengths\n"
    (asked,) = json.loads(run_main("runs", "--sweep", "copies", "--json", "--db", db).stdout)
    assert asked["outcome"] == "not learned"
    assert asked["tested_within"] == 128
    assert asked["accuracy_within"] == pytest.approx(1 - asked["wrong_within"] / 128)


def test_a_run_without_weights_is_left_out_with_the_reason(tmp_path: Path, older: Path) -> None:
    db = str(shutil.copy(older, tmp_path / "older.db"))
    with closing(sqlite3.connect(db)) as file, file:
        file.execute("DELETE FROM checkpoint WHERE run_id = ?", (BY_VALIDATION,))
    said = run_main("db", "outcomes", "--db", db)
    assert said.returncode == 0
    assert said.stderr.startswith(f"run {BY_VALIDATION} is left out: ")
    assert rows(Path(db), f"SELECT within_from FROM run WHERE id = {BY_VALIDATION}") == [(None,)]


def test_judging_blesses_no_damage(tmp_path: Path, older: Path) -> None:
    db = Path(shutil.copy(older, tmp_path / "older.db"))
    with closing(sqlite3.connect(db)) as file, file:
        file.execute("UPDATE epoch SET train_loss = 7 WHERE run_id = ?", (BY_VALIDATION,))
    assert list(api.judge(open_writer(str(db))).skipped) == [BY_VALIDATION]
    (damage,) = verify(open_reader(str(db))).damages
    assert damage.what.startswith(f"run {BY_VALIDATION} ")


def test_nothing_is_judged_where_nothing_may_be_written(tmp_path: Path, older: Path) -> None:
    db = Path(shutil.copy(older, tmp_path / "older.db"))
    before = db.read_bytes()
    said = run_main("db", "outcomes", "--db", str(db), SEQCLS_READ_ONLY="1")
    assert said.returncode != 0
    assert "SEQCLS_READ_ONLY" in said.stderr
    assert len(said.stderr.splitlines()) == 1
    assert db.read_bytes() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_judging_that_was_killed_goes_on(
    tmp_path: Path, older: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = Path(shutil.copy(older, tmp_path / "older.db"))
    with closing(sqlite3.connect(db)) as file, file:
        names = ", ".join(f"{name} = NULL" for name in RANGE_COLUMNS)
        file.execute(f"UPDATE run SET {names}")
    child = os.fork()
    if child == 0:

        def killed(*_: Any) -> Any:
            os.kill(os.getpid(), signal.SIGKILL)

        monkeypatch.setattr(outcomes, "judge_validation", killed)
        api.judge(open_writer(str(db)))
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    api.judge(open_writer(str(db)))
    assert rows(db, RANGES) == rows_of_judged(older)
    assert verify(open_reader(str(db))).damages == []


def rows_of_judged(older: Path) -> list[tuple[Any, ...]]:
    path = Path(shutil.copy(older, older.with_name("compared.db")))
    api.judge(open_writer(str(path)))
    return rows(path, RANGES)


@pytest.mark.parametrize(
    ("change", "how"),
    [
        ("tested_within = tested_within + 1 WHERE id = 1", "not those of its lengths"),
        ("wrong_within = wrong_within - 1 WHERE id = 1", "not those of its lengths"),
        ("wrong_beyond = wrong_beyond - 1 WHERE id = 1", "not those of its lengths"),
        ("within_from = 'validation' WHERE id = 1", "do not fit its digest"),
        ("wrong_beyond = wrong_beyond - 1 WHERE id = 8", "do not fit its digest"),
        ("wrong_within = wrong_within - 1 WHERE id = 8", "do not fit its digest"),
        ("tested_within = tested_within + 1 WHERE id = 8", "do not fit its digest"),
        ("wrong_within = tested_within + 1 WHERE id = 1", "more strings of trained"),
        ("wrong_beyond = NULL WHERE id = 1", "only some of its tested_within"),
    ],
)
def test_counts_that_are_changed_are_damage(
    tmp_path: Path, judged: Path, change: str, how: str
) -> None:
    db = Path(shutil.copy(judged, tmp_path / "damaged.db"))
    with closing(sqlite3.connect(db)) as file, file:
        file.execute(f"UPDATE run SET {change}")
    (damage,) = verify(open_reader(str(db))).damages
    assert damage.what.startswith(f"run {change[-1]} ")
    assert how in damage.how
    merged = writer.merge(open_writer(str(tmp_path / "new.db")), open_reader(str(db)))
    assert merged.damaged == [damage.what]


def test_pages_leave_out_runs_whose_counts_are_none(tmp_path: Path, judged: Path) -> None:
    """Such values only a file can hold whose tables check nothing."""
    db = unchecked(judged, tmp_path / "unchecked.db")
    with closing(sqlite3.connect(db)) as file, file:
        file.execute("UPDATE run SET tested_within = 'many' WHERE id = 1")
        file.execute("UPDATE run SET within_from = 'hearsay' WHERE id = 2")
        file.execute("UPDATE run SET wrong_beyond = -1 WHERE id = 3")
    store = open_reader(str(db))
    assert queries.runs(store)["id"].tolist() == [4, 5, 6, 7, 8, 9, 10, 11]
    assert set(overview.models(store, View())["run_id"]) == {4, 8, 9, 10, 11}


def test_a_merge_takes_over_whichever_side_is_judged(
    tmp_path: Path, older: Path, judged: Path
) -> None:
    for ours, theirs in ((older, judged), (judged, older)):
        store = open_writer(str(shutil.copy(ours, tmp_path / f"{ours.stem}.db")))
        merged = writer.merge(store, open_reader(str(theirs)))
        assert (merged.results, merged.same, merged.conflicts) == (0, 8, [])
        assert rows(store, RANGES) == rows(judged, RANGES)
        assert verify(store).damages == []
    new = open_writer(str(tmp_path / "new.db"))
    assert writer.merge(new, open_reader(str(older))).results == 8
    assert writer.merge(new, open_reader(str(judged))).same == 8
    assert rows(new, RANGES) == rows(judged, RANGES)


def test_a_merge_says_where_both_are_judged_otherwise(tmp_path: Path, judged: Path) -> None:
    db = Path(shutil.copy(judged, tmp_path / "other.db"))
    store = open_writer(str(db))
    with store.begin() as connection:
        connection.execute(
            text(f"UPDATE run SET wrong_within = wrong_within - 1 WHERE id = {BY_VALIDATION}")
        )
    with store.begin() as connection:
        (run,) = read_runs(connection, [BY_VALIDATION])
        connection.execute(
            text(f"UPDATE run SET digest = :digest WHERE id = {BY_VALIDATION}"),
            {"digest": run.digest()},
        )
    assert verify(store).damages == []
    ours = open_writer(str(shutil.copy(judged, tmp_path / "ours.db")))
    (conflict,) = writer.merge(ours, open_reader(str(db))).conflicts
    assert "counts on trained and longer lengths differ" in conflict
    assert rows(ours, RANGES) == rows(judged, RANGES)


def test_packing_keeps_the_counts(tmp_path: Path, judged: Path) -> None:
    db = Path(shutil.copy(judged, tmp_path / "packed.db"))
    assert run_main("pack", "--db", str(db)).returncode == 0
    assert rows(db, RANGES) == rows(judged, RANGES)


@pytest.fixture(scope="module")
def shipped() -> Store:
    return open_reader(str(ROOT / "runs.db"))


def test_the_shipped_models_have_these_outcomes(shipped: Store) -> None:
    found = api.runs(shipped)
    assert found["outcome"].value_counts().to_dict() == {
        "generalizes": 27,
        "fails beyond": 14,
        "not learned": 2,
    }
    failed = found[found["outcome"] == "not learned"]
    assert failed["wrong_within"].tolist() == [75, 75]
    assert failed["tested_within"].tolist() == [508, 508]
    assert set(found["within_from"]) == {"test"}


@pytest.fixture
def ranged(any_db: str) -> Store:
    """Eleven finished runs, by how many of 100 and 1,000 strings they are right on."""
    store = open_writer(any_db)
    sweep_id = api.submit(store, {"name": "s", "model_seeds": "0..10"})
    (sweep_id,) = [row[0] for row in rows(store, "SELECT id FROM sweep")]
    _, claim = claimed(store, sweep_id)
    writer.record(store, claim, results_of(claim))
    wrongs = [
        *((100, 0, 1000, 0), (100, 1, 1000, 0), (100, 2, 1000, 0), (100, 100, 1000, 0)),
        *((100, 0, 1000, 1), (100, 1, 1000, 10), (100, 1, 1000, 11), (100, 1, 1000, 1000)),
        *((0, 0, 1000, 0), (100, 0, 0, 0), (100, 5, 0, 0)),
    ]
    with store.begin() as connection:
        for run_id, counts in enumerate(wrongs, 1):
            names = ("tested_within", "wrong_within", "tested_beyond", "wrong_beyond")
            values = dict(zip(names, counts, strict=True))
            changed = ", ".join(f"{name} = :{name}" for name in names)
            connection.execute(
                text(f"UPDATE run SET within_from = 'test', {changed} WHERE id = {run_id}"), values
            )
    return store


LEARNED, FAILS, RIGHT, UNKNOWN = (
    "not learned", "fails beyond", "generalizes", "not known"
)  # fmt: skip


@pytest.mark.parametrize(
    ("learned_at", "below", "expected"),
    [
        (0.99, 1.0, [RIGHT, RIGHT, LEARNED, LEARNED, *[FAILS] * 4, UNKNOWN, UNKNOWN, LEARNED]),
        (
            0.99,
            0.99,
            [RIGHT, RIGHT, LEARNED, LEARNED, RIGHT, RIGHT, FAILS, FAILS, UNKNOWN, UNKNOWN, LEARNED],
        ),
        (1.0, 1.0, [RIGHT, *[LEARNED] * 3, FAILS, *[LEARNED] * 3, UNKNOWN, UNKNOWN, LEARNED]),
        (0.0, 0.0, [*[RIGHT] * 8, UNKNOWN, UNKNOWN, UNKNOWN]),
        (
            0.98,
            0.999,
            [RIGHT, RIGHT, RIGHT, LEARNED, RIGHT, FAILS, FAILS, FAILS, UNKNOWN, UNKNOWN, LEARNED],
        ),
    ],
)
def test_a_threshold_itself_is_enough(
    ranged: Store, learned_at: float, below: float, expected: list[str]
) -> None:
    view = View(learned_at=learned_at, below=below)
    models = overview.models(ranged, view).sort_values("run_id")
    assert models["outcome"].tolist() == expected
    found = api.runs(ranged, learned_at=learned_at, below=below)
    assert found["outcome"].tolist() == expected
    (row,) = overview.configurations(ranged, view).to_dict("records")
    judged = [each for each, own in zip(expected, range(11), strict=True) if own != 8]
    assert row["judged"] == len(judged) == 10
    assert row["learned"] == 10 - expected.count(LEARNED)
    assert row["judged_beyond"] == expected.count(RIGHT) + expected.count(FAILS)
    assert row["generalize"] == expected.count(RIGHT)
    for each in Outcome:
        only = api.runs(ranged, outcome=each.value, learned_at=learned_at, below=below)
        assert only["id"].tolist() == [n for n, own in enumerate(expected, 1) if own == each]
    both = api.runs(ranged, outcome=[LEARNED, UNKNOWN], learned_at=learned_at, below=below)
    assert len(both) == expected.count(LEARNED) + expected.count(UNKNOWN)


BORDERS = ((990, 1000, 99.0), (199, 200, 99.5), (999, 1000, 99.9), (7, 100, 7), (553, 1000, 55.3))
"""Strings that are right, of how many, and the percentage that these are."""


def test_a_run_on_the_border_is_on_the_same_side_of_it_everywhere(ranged: Store) -> None:
    """One that is right on exactly as many strings as a threshold asks for does not fail."""
    for right, tested, percentage in BORDERS:
        # As the sidebar has it, and a link; as a command has it.
        threshold = links.as_share(percentage)
        assert threshold == right / tested == float(f"{percentage}e-2")
        wrong = f"{tested - right} + CASE id WHEN 1 THEN 1 ELSE 0 END"
        with ranged.begin() as connection:
            connection.execute(
                text(
                    f"UPDATE run SET tested = {tested}, wrong = {wrong}, tested_within = {tested}, "
                    f"wrong_within = {wrong}, tested_beyond = {tested}, wrong_beyond = {wrong} "
                    "WHERE id <= 2"
                )
            )
        view = View(below=threshold, learned_at=threshold, run_ids=(1, 2))
        assert overview.models(ranged, view)["outcome"].tolist() == [LEARNED, RIGHT], right
        assert overview.models(ranged, view)["failing"].tolist() == [1, 0], right
        assert overview.configurations(ranged, view)["failing"].tolist() == [1], right
        found = api.runs(ranged, model_seeds=[0, 1], failing=True, below=threshold)
        assert found["id"].tolist() == [1], right


def test_runs_are_listed_by_their_outcome() -> None:
    arguments = ("runs", "--db", str(ROOT / "runs.db"), "--json")
    learned = json.loads(run_main(*arguments, "--outcome", "fails beyond").stdout)
    assert len(learned) == 14
    both = json.loads(
        run_main(*arguments, "--outcome", "fails beyond", "--outcome", "not learned").stdout
    )
    assert len(both) == 16
    failing = json.loads(run_main(*arguments, "--failing").stdout)
    assert [row["id"] for row in both] == [row["id"] for row in failing]
    easier = json.loads(run_main(*arguments, "--outcome", "generalizes", "--below", "0.9").stdout)
    assert {row["outcome"] for row in easier} == {"generalizes"}
    assert 27 < len(easier) == sum(row["accuracy_beyond"] >= 0.9 for row in easier)
    none = run_main(*arguments, "--outcome", "not learned", "--learned-at", "0.85").stdout
    assert json.loads(none) == []
    table = run_main("runs", "--db", str(ROOT / "runs.db"), "--outcome", "not learned", "--wide")
    assert "2 runs in" in table.stdout
    assert "accuracy_within" in table.stdout
    assert "85.24%" in table.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--outcome", "generalises"], "--outcome generalises: did you mean 'generalizes'?"),
        (["--learned-at", "99"], "--learned-at 99.0: expected an accuracy from 0 to 1, as 0.99"),
        (["--below", "-0.1"], "--below -0.1: expected an accuracy from 0 to 1, as 0.99"),
    ],
)
def test_what_is_no_outcome_and_no_threshold_is_said(arguments: list[str], said: str) -> None:
    given = run_main("runs", "--db", str(ROOT / "runs.db"), *arguments)
    assert (given.returncode, given.stdout) == (2, "")
    assert said in given.stderr


def test_two_configurations_are_compared_by_what_has_learned(shipped: Store) -> None:
    names = ("all_initializations", "lower_magnitude_initializations")
    compared = api.compare(shipped, *names)
    # One seed of the second learned nothing, and says nothing of longer strings.
    counts = {name: found.counts for name, found in compared.questions.items() if found.counts}
    assert counts == {"learned": ((8, 8), (7, 8)), "generalizes": ((1, 8), (2, 7))}
    # Of another size, the same seed starts them from different weights.
    assert compared.unpaired is not None
    assert "hidden_size" in compared.unpaired
    record = compared.record()
    assert record["questions"]["generalizes"]["counts"] == [[1, 8], [2, 7]]
    assert json.dumps(record, allow_nan=False)
    said = run_main("compare", *names, "--db", str(ROOT / "runs.db")).stdout
    assert "Chance alone may explain what differs." in said
    assert "share that learned: 8 of 8 and 7 of 8; difference 12.5% (95%: -21.52% to" in said
    # Their accuracy on longer strings is that of those that learned, by the table itself.
    learned = [
        api.runs(shipped, sweep=name).query("outcome != 'not learned'")["accuracy_beyond"]
        for name in names
    ]
    beyond = compared.questions["beyond"]
    assert beyond.seeds == tuple(map(len, learned)) == (8, 7)
    assert beyond.values == pytest.approx([x.mean() for x in learned])
    assert "accuracy on longer strings, of seeds that learned: mean " in said
    assert "8 and 7 seeds; exact permutation test, two-sided by doubling, p = " in said
    assert not compared.absent
    strict = api.compare(shipped, *names, learned_at=1.0, below=0.9)
    generalizing = strict.questions["generalizes"].counts
    assert generalizing is not None
    assert generalizing[0][0] > 1


def test_of_imported_runs_no_outcome_is_known(judged: Path) -> None:
    store = open_reader(str(judged))
    compared = api.compare(store, 9, 10)
    assert list(compared.questions) == ["accuracy", "fails"]
    assert json.dumps(compared.record(), allow_nan=False)
    said = run_main("compare", "9", "10", "--db", str(judged)).stdout
    assert "whether they learned is not known of both, so the whole test is compared" in said
    assert "Seeds are not paired: what a seed determines is not known of models that were" in said
    assert "generalize" not in said


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_exported_runs_have_counts_and_outcome(tmp_path: Path, judged: Path, kind: str) -> None:
    db = open_reader(str(judged))
    api.export(db, tmp_path / "out", kind)
    read = pd.read_csv if kind == "csv" else pd.read_parquet
    frame = read(tmp_path / "out" / f"runs.{kind}")
    expected = queries.runs(db)
    for name in (*RANGE_COLUMNS, "accuracy_within", "accuracy_beyond", "outcome"):
        shown, true = (
            [None if pd.isna(value) else value for value in each[name]]
            for each in (frame, expected)
        )
        assert shown == true, name


def test_a_page_speaks_of_no_longer_strings_where_no_test_has_any(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = api.open_store(tmp_path / "runs.db")
    sizes = {"hidden_size": 2, "train_max_length": 8, "test_max_length": 6, "readout": "last"}
    spec = {
        "name": "short", "model_seeds": "0..0",
        "fixed": {"task": "parity", "architecture": "rnn", "max_num_epochs": 1, **sizes},
    }  # fmt: skip
    api.submit(store, spec)
    api.work(store)
    assert set(api.runs(store)["outcome"]) == {"not learned"}
    page = said(open_app(monkeypatch, str(tmp_path / "runs.db")))
    assert "Lowest share of seeds that learned first." in page
    assert "share that generalizes" not in page
