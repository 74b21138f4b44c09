"""Shortcut readers are fitted after training; what is stored of them is merged, verified, shown."""

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
from typer.testing import CliRunner

from seqcls.cancellation import check
from sweeps import api
from sweeps.api import reading
from sweeps.cli.app import app
from sweeps.store.databases.engine import Store
from sweeps.store.opening import open_reader, open_writer
from sweeps.store.reads.shortcuts import unread_tests
from sweeps.store.verification import verify
from sweeps.work import readers, worker
from sweeps.work.machine import WorkOptions
from tests.chaos.damaged import unchecked
from tests.databases import file_of, rows
from tests.integration.test_stored_shortcuts import SPEC


@pytest.fixture(scope="module")
def trained_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs, trained and tested with and without near negatives; no reader was asked."""
    store = open_writer(str(tmp_path_factory.mktemp("forms") / "forms.db"))
    api.submit(store, SPEC)
    api.work(store)
    return file_of(store)


@pytest.fixture
def store(trained_file: Path, tmp_path: Path) -> Store:
    """The same, where all readers were asked."""
    store = open_writer(str(shutil.copy(trained_file, tmp_path / "read.db")))
    api.fit_shortcuts(store)
    return store


@pytest.fixture
def fits_after_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SEQCLS_SHORTCUTS")


def command(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments))


ALL = "SELECT test_set.key, training, reader, lengths, correct, reason FROM shortcut JOIN test_set"


def stored(store: Store) -> list[Any]:
    return sorted(map(repr, rows(store, f"{ALL} ON test_set.id = test_set_id")))


@pytest.mark.usefixtures("fits_after_training")
def test_workers_fit_readers_once_they_have_trained(trained_file: Path, tmp_path: Path) -> None:
    path = shutil.copy(trained_file, tmp_path / "work.db")
    other = {**SPEC, "name": "other", "model_seeds": [1], "axes": {"negatives": ["near"]}}
    api.submit(api.open_store(path), other)
    said = command("work", "other", "--workers", "0", "--db", str(path))
    assert said.exit_code == 0
    assert "trained 1 run in" in said.stdout
    # Only those of this sweep.
    assert set(reading.shortcut_scores(open_reader(str(path)), [1, 2])["config_id"]) == {2}
    api.work(api.open_store(path))
    assert not unread_tests(open_reader(str(path)))


@pytest.mark.usefixtures("fits_after_training")
def test_ctrl_c_while_readers_are_fitted_is_harmless(
    trained_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(readers, "fit_shortcuts", interrupt)
    path = shutil.copy(trained_file, tmp_path / "work.db")
    said = command("work", "--workers", "0", "--db", str(path))
    assert (said.exit_code, said.stderr.count("Traceback")) == (0, 0)
    assert "trained 0 runs" in said.stdout


def test_readers_are_not_fitted_where_that_is_turned_off(
    trained_file: Path, tmp_path: Path
) -> None:
    path = shutil.copy(trained_file, tmp_path / "work.db")
    assert command("work", "--workers", "0", "--db", str(path)).exit_code == 0
    assert len(unread_tests(open_reader(str(path)))) == 2


def test_a_worker_that_waits_fits_the_readers_of_one_test_at_a_time(
    trained_file: Path, tmp_path: Path
) -> None:
    store = open_writer(str(shutil.copy(trained_file, tmp_path / "idle.db")))
    fit_next = readers.fit_when_idle(store)
    left = []
    for _ in range(3):
        fit_next()
        left.append(len(unread_tests(store)))
    assert left == [1, 0, 0]


def test_a_worker_that_is_told_to_end_leaves_what_it_does_while_it_waits(
    trained_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "WATCH_SECONDS", 0)
    store = open_writer(str(shutil.copy(trained_file, tmp_path / "watch.db")))

    def fit() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        check()
        pytest.fail("it goes on")

    assert worker.work(store, how=WorkOptions(0, watch=True), when_idle=fit).signal == signal.SIGINT


def test_fitting_ends_where_runs_are_queued(trained_file: Path, tmp_path: Path) -> None:
    store = open_writer(str(shutil.copy(trained_file, tmp_path / "queued.db")))
    api.submit(store, {**SPEC, "model_seeds": [0, 1]})
    assert readers.fit_readers(store, until_queued=True) == readers.FittedReaders(is_queued=True)


def test_readers_of_stored_tests_are_fitted_by_name(trained_file: Path, tmp_path: Path) -> None:
    path = shutil.copy(trained_file, tmp_path / "old.db")
    said = command("db", "readers", "forms", "--db", str(path))
    assert said.exit_code == 0
    assert said.stdout == f"{path}: readers were fitted to 2 tests\n"
    assert command("db", "readers", "--db", str(path)).stdout.endswith("fitted to 0 tests\n")
    assert "did you mean 'forms'?" in str(
        command("db", "readers", "frms", "--db", str(path)).exception
    )


def test_a_test_that_is_drawn_otherwise_now_has_no_readers(
    trained_file: Path, tmp_path: Path
) -> None:
    store = open_writer(str(shutil.copy(trained_file, tmp_path / "otherwise.db")))
    with store.change() as connection:
        connection.exec_driver_sql("UPDATE test_set SET digest = 'other' WHERE id = 1")
    fitted = api.fit_shortcuts(store)
    assert fitted.tests == 1
    assert fitted.skipped == {1: "its strings are not those that are drawn now"}


def test_merging_takes_readers_over_and_how_strings_were_drawn(
    trained_file: Path, store: Store, any_db: str, tmp_path: Path
) -> None:
    new = open_writer(any_db)
    api.merge(new, store)
    assert stored(new) == stored(store)
    scores = reading.shortcut_scores(store, [1, 2])
    assert reading.shortcut_scores(new, [1, 2]).equals(scores)
    old = open_writer(str(shutil.copy(trained_file, tmp_path / "old.db")))
    with old.change() as connection:
        connection.exec_driver_sql("UPDATE test_string SET drawn = NULL")
    for _ in range(2):
        api.merge(old, store)
        assert stored(old) == stored(store)
        assert reading.accuracy_by_drawn(old, [1, 2]).equals(
            reading.accuracy_by_drawn(store, [1, 2])
        )
    assert verify(old).damages == verify(new).damages == []


def test_readers_go_with_their_test_set(store: Store) -> None:
    api.submit(store, {**SPEC, "name": "kept", "axes": {"negatives": ["near"]}})
    api.delete(store, "forms")
    assert set(reading.shortcut_scores(store, [1, 2])["config_id"]) == {2}
    api.delete(store, "kept")
    assert rows(store, "SELECT count(*) FROM shortcut") == [(0,)]


@pytest.mark.parametrize(
    ("change", "how"),
    [
        ("SET correct = x'00'", "it has not one bit for each of"),
        ("SET lengths = '[[1,2,1]]'", "its counts by length are not those of its bits"),
        ("SET lengths = 'none'", "lengths is 'none', expected a JSON array of arrays"),
    ],
)
def test_a_damaged_reader_is_named_and_costs_no_run(store: Store, change: str, how: str) -> None:
    with store.change() as connection:
        connection.exec_driver_sql(
            f"UPDATE shortcut {change} WHERE test_set_id = 1 AND reader = 'bigrams'"
        )
    damages = [str(damage) for damage in verify(store).damages]
    assert len(damages) == 1
    assert how in damages[0]
    assert len(api.runs(open_reader(str(store.path)))) == 2


def test_how_strings_were_drawn_fits_their_labels(store: Store) -> None:
    with store.change() as connection:
        connection.exec_driver_sql(
            "UPDATE test_string SET drawn = 'near' WHERE label = 1 AND test_set_id = 2"
        )
    (damage,) = verify(store).damages
    assert str(damage).startswith("test set 2: how ")
    assert str(damage).endswith("of its strings were drawn does not fit their labels")


@pytest.mark.parametrize("is_checked", [True, False])
def test_a_database_is_read_without_what_is_damaged_of_its_readers(
    store: Store, tmp_path: Path, is_checked: bool
) -> None:
    path = file_of(store) if is_checked else unchecked(file_of(store), tmp_path / "foreign.db")
    changes = ["UPDATE shortcut SET lengths = 'none' WHERE test_set_id = 1 AND reader = 'bigrams'"]
    if not is_checked:
        changes += [
            "UPDATE shortcut SET reason = 'none' WHERE test_set_id = 1 AND reader = 'ends'",
            "INSERT INTO shortcut SELECT * FROM shortcut WHERE test_set_id = 1 "
            "AND reader = 'counts'",
            "UPDATE test_string SET drawn = 'far' WHERE test_set_id = 2 AND label = 0",
        ]
    change_file(path, changes)
    damaged = open_reader(str(path))
    left = {"length", "counts_trees", "trigrams"} | ({"ends", "counts"} if is_checked else set())
    assert set(reading.shortcut_scores(damaged, [1])["reader"]) == left
    assert len(reading.shortcut_scores(damaged, [2])["reader"].unique()) == 6
    assert len(api.errors(damaged, [1, 2])) == len(api.errors(store, [1, 2]))
    ways = set(reading.accuracy_by_drawn(damaged, [2])["drawn"])
    assert ways == ({"positive"} if not is_checked else {"positive", "uniform", "edited", "near"})


def change_file(path: Path, changes: list[str]) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        for change in changes:
            connection.execute(change)


def test_runs_stand_beside_the_best_reader_of_their_test(store: Store, trained_file: Path) -> None:
    best = reading.best_shortcut(reading.shortcut_scores(store, [1, 2]))
    shares = reading.shortcut_shares(best).set_index("config_id")
    said = json.loads(command("runs", "--json", "--db", str(file_of(store))).stdout)
    for row, config_id in zip(said, (1, 2), strict=True):
        for name in ("within", "beyond"):
            assert row[f"shortcut_{name}"] == pytest.approx(shares.loc[config_id, name])
    shown = command("runs", "--wide", "--db", str(file_of(store))).stdout
    assert "shortcut_beyond" in shown
    unread = command("runs", "--json", "--db", str(trained_file)).stdout
    assert {row["shortcut_within"] for row in json.loads(unread)} == {None}
    assert "shortcut" not in command("runs", "--wide", "--db", str(trained_file)).stdout


def test_exports_have_what_readers_reach(store: Store, tmp_path: Path) -> None:
    for kind, read in (("csv", pd.read_csv), ("parquet", pd.read_parquet)):
        written = api.export(store, tmp_path / kind, kind)
        scores = reading.shortcut_scores(store, [1, 2])
        assert written[tmp_path / kind / f"shortcuts.{kind}"] == len(scores)
        exported: Any = read(tmp_path / kind / f"shortcuts.{kind}")
        assert exported[["config_id", "reader", "length", "tested", "right"]].values.tolist() == (
            scores[["config_id", "reader", "length", "tested", "right"]].values.tolist()
        )
        errors: Any = read(tmp_path / kind / f"errors.{kind}")
        assert errors["drawn"].tolist() == api.errors(store, [1, 2])["drawn"].tolist()


def test_accuracy_by_how_strings_were_drawn_is_said_of_a_run(store: Store) -> None:
    found = api.by_drawn(store, 2)
    assert found["accuracy"].tolist() == (1 - found["wrong"] / found["tested"]).tolist()
    said = command("errors", "2", "--db", str(file_of(store))).stdout
    assert "accuracy by how strings were drawn: positive " in said
    errors = api.errors(store, 2)
    counted = errors.groupby("drawn")["occurrences"].sum()
    wrong = found[found["wrong"] > 0].set_index("drawn")["wrong"]
    assert counted.to_dict() == wrong.to_dict()


def test_configurations_are_compared_beside_the_best_reader_of_each(store: Store) -> None:
    said = command("compare", "1", "2", "--db", str(file_of(store)))
    assert "best shortcut on the test of a: " in said.stdout
    record = json.loads(command("compare", "1", "2", "--json", "--db", str(file_of(store))).stdout)
    best = reading.shortcut_shares(
        reading.best_shortcut(reading.shortcut_scores(store, [1, 2]))
    ).drop(columns="config_id")
    assert record["shortcuts"] == best.assign(decided_by=None).to_dict("records")
