"""Shortcut readers of test sets, and how their strings were drawn: fitted after training,
stored, merged, verified and shown.
"""

import json
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dashboard.report.command import write
from seqcls.cancellation import check
from seqcls.shortcuts import READERS
from sweeps import api
from sweeps.api import reading
from sweeps.store.database import Store
from sweeps.store.opening import open_reader, open_writer
from sweeps.store.shortcuts import unread_tests
from sweeps.store.verification import verify
from sweeps.work import readers, worker
from sweeps.work.machine import WorkOptions
from tests.app import open_app, page_text, rerun
from tests.commands import refused, run_main
from tests.databases import change, file_of, rows
from tests.stock import copy_of, stock
from tests.store.shortcuts import DECIDED, SPEC


@pytest.fixture
def read() -> Store:
    """Two runs, tested with and without near negatives, and fitted readers; not to be changed."""
    return open_reader(str(stock("shortcuts") / "read.db"))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """The same, to be changed."""
    return open_writer(str(copy_of("shortcuts", "read.db", tmp_path)))


@pytest.fixture
def forms(tmp_path: Path) -> Path:
    """The same before any reader was fitted, to be changed."""
    return copy_of("shortcuts", "forms.db", tmp_path)


# What is stored.


def test_reader_shares_equal_those_of_the_strings_that_they_label_correctly(read: Store) -> None:
    assert not unread_tests(read)
    shares = reading.shortcut_shares(reading.shortcut_scores(read, [1, 2]))
    shares = shares.set_index(["config_id", "reader"])
    for config_id in (1, 2):
        (test_set_id,) = rows(read, f"SELECT test_set_id FROM config WHERE id = {config_id}")[0]
        query = f"SELECT length, occurrences FROM test_string WHERE test_set_id = {test_set_id}"
        lengths, times = np.array(rows(read, f"{query} ORDER BY number")).T
        fitted = f"SELECT reader, correct FROM shortcut WHERE test_set_id = {test_set_id}"
        for reader, correct in rows(read, f"{fitted} AND correct IS NOT NULL"):
            right = np.unpackbits(np.frombuffer(correct, dtype=np.uint8)).astype(bool)
            for name, chosen in (
                ("within", lengths <= 8),
                ("beyond", lengths > 8),
                ("whole", lengths > 0),
            ):
                expected = (times * right[: len(times)])[chosen].sum() / times[chosen].sum()
                assert shares.loc[(config_id, reader), name] == pytest.approx(expected)
    # The best is right on most strings of the whole test, and of equals the first that is listed.
    scores = reading.shortcut_scores(read, [1, 2])
    by_reader = scores.groupby(["config_id", "reader"])["right"].sum()
    for number, some in reading.best_shortcut(scores).groupby("config_id"):
        assert some["reader"].nunique() == 1
        assert some["right"].sum() == by_reader[number].max()
    same = scores.assign(right=scores["tested"])
    assert set(reading.best_shortcut(same)["reader"]) == {"length"}


def test_accuracy_is_reported_for_each_way_of_drawing(read: Store) -> None:
    found = reading.accuracy_by_drawn(read, [1, 2])
    counts_of = {(row.run_id, row.drawn): (row.tested, row.wrong) for row in found.itertuples()}
    expected = rows(
        read,
        "SELECT run.id, own.drawn, sum(own.occurrences), sum(CASE WHEN wrong.number IS NULL "
        "THEN 0 ELSE own.occurrences END) FROM run JOIN config ON config.id = run.config_id "
        "JOIN test_string AS own ON own.test_set_id = config.test_set_id "
        "LEFT JOIN string_error AS wrong ON wrong.run_id = run.id AND wrong.number = own.number "
        "GROUP BY run.id, own.drawn",
    )
    assert counts_of == {(run_id, drawn): tuple(counts) for run_id, drawn, *counts in expected}
    assert {drawn for run_id, drawn in counts_of if run_id == 2} == {
        *("positive", "uniform", "edited", "near")
    }
    of_run = api.by_drawn(read, 2)
    assert of_run["accuracy"].tolist() == (1 - of_run["wrong"] / of_run["tested"]).tolist()
    counted = api.errors(read, 2).groupby("drawn")["occurrences"].sum().to_dict()
    wrong = of_run[of_run["wrong"] > 0].set_index("drawn")["wrong"]
    assert counted == wrong.to_dict()


def test_merging_copies_readers(forms: Path, read: Store, any_db: str) -> None:
    query = "SELECT test_set.key, training, reader, lengths, correct, reason FROM shortcut"

    def stored(store: Store) -> list[str]:
        joined = f"{query} JOIN test_set ON test_set.id = test_set_id"
        return sorted(map(repr, rows(store, joined)))

    new, old = open_writer(any_db), open_writer(str(forms))
    for _ in range(2):
        for target in (new, old):
            api.merge(target, read)
            assert stored(target) == stored(read)
            for found in (reading.shortcut_scores, reading.accuracy_by_drawn):
                assert found(target, [1, 2]).equals(found(read, [1, 2]))
    assert verify(old).damages == verify(new).damages == []


def test_readers_are_deleted_with_their_test_set(store: Store) -> None:
    api.submit(store, {**SPEC, "name": "kept", "axes": {"negatives": ["near"]}})
    api.delete(store, "forms")
    assert set(reading.shortcut_scores(store, [1, 2])["config_id"]) == {2}
    api.delete(store, "kept")
    assert rows(store, "SELECT count(*) FROM shortcut") == [(0,)]


# How they are fitted.


def interrupt(*_: Any) -> None:
    raise KeyboardInterrupt


def test_workers_fit_readers_after_training(forms: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SEQCLS_SHORTCUTS")
    other = {**SPEC, "name": "other", "model_seeds": [1], "axes": {"negatives": ["near"]}}
    api.submit(api.open_store(forms), other)
    completed = run_main("work", "other", "--workers", "0", "--db", str(forms))
    assert completed.returncode == 0
    assert "trained 1 run in" in completed.stderr + completed.stdout
    # Only those of this sweep.
    assert set(reading.shortcut_scores(open_reader(str(forms)), [1, 2])["config_id"]) == {2}
    with monkeypatch.context() as patched:
        patched.setattr(readers, "fit_shortcuts", interrupt)
        completed = run_main("work", "--workers", "0", "--db", str(forms))
    assert (completed.returncode, completed.stderr.count("Traceback")) == (0, 0), (
        "Ctrl-C is harmless"
    )
    assert "trained 0 runs" in completed.stderr + completed.stdout
    api.work(api.open_store(forms))
    assert not unread_tests(open_reader(str(forms)))


def test_the_readers_command_fits_stored_tests_where_workers_do_not(forms: Path) -> None:
    db = ("--db", str(forms))
    assert run_main("work", "--workers", "0", *db).returncode == 0
    store = open_writer(str(forms))
    assert len(unread_tests(store)) == 2
    scores = reading.shortcut_scores(store, [1, 2])
    assert scores.empty
    assert reading.shortcut_shares(reading.best_shortcut(scores)).empty
    assert run_main("db", "readers", "forms", *db).stdout.endswith("fitted to 2 tests\n")
    assert run_main("db", "readers", *db).stdout.endswith("fitted to 0 tests\n")
    assert "did you mean 'forms'?" in refused("db", "readers", "frms", *db)


def test_a_signal_interrupts_what_an_idle_worker_does(
    forms: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "WATCH_SECONDS", 0)

    def fit() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        check()
        pytest.fail("it goes on")

    worked = worker.work(open_writer(str(forms)), how=WorkOptions(0, watch=True), when_idle=fit)
    assert worked.signal == signal.SIGINT


def test_idle_workers_fit_readers_unless_runs_are_queued_or_strings_differ(forms: Path) -> None:
    store = open_writer(str(forms))
    readers.fit_when_idle(store)()
    assert not unread_tests(store)
    change(store, "DELETE FROM shortcut")
    api.submit(store, {**SPEC, "model_seeds": [0, 1]})
    assert readers.fit_readers(store, until_queued=True) == readers.FittedReaders(is_queued=True)
    change(store, "UPDATE test_set SET digest = 'other' WHERE id = 1")
    fitted = api.fit_shortcuts(store)
    assert fitted.tests == 1
    assert fitted.skipped == {1: "its strings are not those that are drawn now"}


# How they are shown.


def test_commands_and_exports_report_reader_accuracies(
    read: Store, store: Store, tmp_path: Path
) -> None:
    scores = reading.shortcut_scores(read, [1, 2])
    best = reading.shortcut_shares(reading.best_shortcut(scores))
    db = ("--db", str(file_of(store)))
    listed = json.loads(run_main("runs", "--json", *db).stdout)
    for row, own in zip(listed, best.itertuples(), strict=True):
        assert row["shortcut_within"] == pytest.approx(own.within)
        assert row["shortcut_beyond"] == pytest.approx(own.beyond)
    assert "shortcut_beyond" in run_main("runs", "--wide", *db).stdout
    assert "accuracy by how strings were drawn: positive " in run_main("errors", "2", *db).stdout
    assert "best shortcut on the test of a: " in run_main("compare", "1", "2", *db).stdout
    record = json.loads(run_main("compare", "1", "2", "--json", *db).stdout)
    expected = best.drop(columns="config_id").assign(decided_by=None)
    assert record["shortcuts"] == expected.to_dict("records")
    for kind, read_table in (("csv", pd.read_csv), ("parquet", pd.read_parquet)):
        written_files = api.export(store, tmp_path / kind, kind)
        assert written_files[tmp_path / kind / f"shortcuts.{kind}"] == len(scores)
        exported: Any = read_table(tmp_path / kind / f"shortcuts.{kind}")
        columns = ["config_id", "reader", "length", "tested", "right"]
        assert exported[columns].values.tolist() == scores[columns].values.tolist()
        errors: Any = read_table(tmp_path / kind / f"errors.{kind}")
        assert errors["drawn"].tolist() == api.errors(store, [1, 2])["drawn"].tolist()


def test_tests_without_fitted_readers_show_no_shortcuts(
    monkeypatch: pytest.MonkeyPatch, forms: Path
) -> None:
    unread = run_main("runs", "--json", "--db", str(forms)).stdout
    assert {row["shortcut_within"] for row in json.loads(unread)} == {None}
    assert "shortcut" not in open_app(monkeypatch, forms).dataframe[0].value
    change(forms, "UPDATE test_string SET drawn = NULL")
    text = page_text(open_inside(monkeypatch, forms, 1))
    assert "No shortcut readers have been asked about this test yet" in text
    assert "Which kinds of strings are hard?" not in text, "how they were drawn is not stored"
    assert "no better than" not in text


def open_inside(monkeypatch: pytest.MonkeyPatch, path: Path, run: int) -> Any:
    """The page of a model, with its settings unfolded."""
    app = open_app(monkeypatch, path, "model", run=str(run), view="Errors")
    app.session_state["settings"] = True
    return rerun(app)


@pytest.mark.usefixtures("undrawn")
def test_pages_and_reports_show_the_best_shortcut(
    monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    path = file_of(store)
    best = reading.best_shortcuts(store, [1, 2]).set_index("config_id")
    table = open_app(monkeypatch, path).dataframe[0].value.set_index("config_id")
    for part in ("within", "beyond"):
        assert table[f"shortcut_{part}"].to_dict() == best[part].to_dict()
    report = write(store, "forms")
    assert "<th>Best shortcut</th>" in report
    for share in best["beyond"]:
        assert f"<td>{share:.2%}</td>" in report
    app = open_inside(monkeypatch, path, 2)
    assert "**It is no better than" in page_text(app)
    called = page_text(app).replace("\\", "")
    assert "Commands call it run 2; its" in called, "the sweep has another of this seed"
    kinds, wrong, of_readers = (
        next(table.value for table in app.dataframe if column in table.value)
        for column in ("interval", "occurrences", "reader")
    )
    found = reading.accuracy_by_drawn(store, [2])
    assert kinds["drawn"].tolist() == ["positive", "uniform", "edited", "near"]
    assert kinds["tested_strings"].tolist() == found["tested"].tolist()
    right = 1 - found["wrong"] / found["tested"]
    assert kinds["right_share"].tolist() == pytest.approx(right.tolist())
    errors = reading.string_errors(store, 2)
    assert wrong["stored"].tolist() == errors["string"].head(len(wrong)).tolist()
    assert wrong["drawn"].tolist() == errors["drawn"].head(len(wrong)).tolist()
    assert of_readers["reader"].nunique() == len(READERS) - 3, "those of transductions are others"
    of_kind = errors[errors["drawn"] == "near"]["string"].tolist()
    assert 0 < len(of_kind) < len(errors)


@pytest.mark.usefixtures("undrawn")
def test_a_reader_that_decides_the_task_is_never_called_a_shortcut(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = copy_of("shortcuts", "decided.db", tmp_path)
    store = open_reader(str(path))
    db = ("--db", str(path))
    compared, shown = run_main("compare", "1", "2", *db).stdout, []
    for number, (task, by) in enumerate(DECIDED.items(), 1):
        app = open_app(monkeypatch, path, task=task)
        assert not {"shortcut_within", "shortcut_beyond"} & {*app.dataframe[0].value}
        inside, pages = (
            page_text(open_inside(monkeypatch, path, number)),
            (page_text(app), write(store, task)),
        )
        assert f"This task is decided by {by}" in inside
        for page in pages:
            assert f"The task is decided by {by}" in page
        assert f"no shortcut, as the task is decided by {by}" in compared
        shown += [inside, *pages]
    assert "no better than" not in " ".join(shown).lower()
    record = api.compare(store, "1", "2").record()
    assert [x["decided_by"] for x in record["shortcuts"]] == [*DECIDED.values()]
    lines = run_main("runs", *db).stdout.splitlines()
    end = ": to read nothing else is no shortcut"
    assert [x.removesuffix(end) for x in lines if end in x] == [
        "even_pairs is decided by first and last letters",
        "copy, distinct=false, num_tokens=2 is decided by the input itself",
        *(
            f"regular, alphabet=ab, pattern={x} is decided by pairs of neighboring tokens"
            for x in ("(ab)*", "(ab)*a")
        ),
    ]
