"""What shortcut readers make of test sets and how test strings were drawn, as it is stored."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from dashboard.report.command import written
from dashboard.views import shortcuts
from seqcls.shortcuts import READERS
from sweeps import api
from sweeps.api import reading
from sweeps.api.presentation import display_strings
from sweeps.cli import models
from sweeps.store.databases.engine import Store
from sweeps.store.opening import open_reader, open_writer
from sweeps.store.reads.shortcuts import unread_tests
from sweeps.store.writes.shortcuts import fit_shortcuts
from tests.app import open_app, rerun, said
from tests.commands import run_main
from tests.databases import file_of, rows

FIXED: dict[str, Any] = {
    "task": "modular_arithmetic",
    "architecture": "lstm",
    "readout": "last",
    "hidden_size": 4,
    "train_min_length": 1,
    "train_max_length": 8,
    "train_size": 256,
    "validation_min_length": 1,
    "validation_max_length": 8,
    "validation_size": 32,
    "test_min_length": 1,
    "test_max_length": 16,
    "test_size": 300,
    "max_num_epochs": 2,
    "min_num_epochs": 2,
}
SPEC = {
    "name": "forms",
    "model_seeds": [0],
    "fixed": FIXED,
    "axes": {"negatives": ["mixed", "near"]},
}


@pytest.fixture(scope="module")
def trained_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs, trained and tested with and without near negatives; no reader was asked."""
    store = open_writer(str(tmp_path_factory.mktemp("forms") / "forms.db"))
    api.submit(store, SPEC)
    api.work(store)
    return file_of(store)


@pytest.fixture(scope="module")
def read_file(trained_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, where all readers were asked."""
    path = shutil.copy(trained_file, tmp_path_factory.mktemp("read") / "read.db")
    store = open_writer(str(path))
    for unread in unread_tests(store):
        assert fit_shortcuts(store, unread) is None
    return Path(path)


@pytest.fixture
def store(read_file: Path, tmp_path: Path) -> Store:
    return open_writer(str(shutil.copy(read_file, tmp_path / "test.db")))


def test_readers_are_asked_about_each_test_once(trained_file: Path, store: Store) -> None:
    assert len(unread_tests(open_writer(str(trained_file)))) == 2
    assert not unread_tests(store)


def test_shares_of_readers_are_those_of_the_strings_that_they_are_right_on(store: Store) -> None:
    scores = reading.shortcut_scores(store, [1, 2])
    shares = reading.shortcut_shares(scores).set_index(["config_id", "reader"])
    for config_id in (1, 2):
        (test_set_id,) = rows(store, f"SELECT test_set_id FROM config WHERE id = {config_id}")[0]
        query = f"SELECT length, occurrences FROM test_string WHERE test_set_id = {test_set_id}"
        lengths, times = np.array(rows(store, f"{query} ORDER BY number")).T
        fitted = f"SELECT reader, correct FROM shortcut WHERE test_set_id = {test_set_id}"
        for reader, correct in rows(store, f"{fitted} AND correct IS NOT NULL"):
            right = np.unpackbits(np.frombuffer(correct, dtype=np.uint8)).astype(bool)
            for name, chosen in (
                ("within", lengths <= 8),
                ("beyond", lengths > 8),
                ("whole", lengths > 0),
            ):
                expected = (times * right[: len(times)])[chosen].sum() / times[chosen].sum()
                assert shares.loc[(config_id, reader), name] == pytest.approx(expected)


def test_the_best_reader_is_right_on_most_strings_of_the_whole_test(store: Store) -> None:
    scores = reading.shortcut_scores(store, [1, 2])
    best = reading.best_shortcut(scores)
    right = scores.groupby(["config_id", "reader"])["right"].sum()
    for config_id, some in best.groupby("config_id"):
        assert some["reader"].nunique() == 1
        assert some["right"].sum() == right[config_id].max()
    # Of equals the first that is listed.
    same = scores.assign(right=scores["tested"])
    assert set(reading.best_shortcut(same)["reader"]) == {"length"}


def test_of_tests_that_no_reader_was_asked_about_nothing_is_said(trained_file: Path) -> None:
    store = open_writer(str(trained_file))
    scores = reading.shortcut_scores(store, [1, 2])
    assert scores.empty
    assert reading.best_shortcut(scores).empty
    assert reading.shortcut_shares(scores).empty


def open_inside(monkeypatch: pytest.MonkeyPatch, path: Path, run: int) -> AppTest:
    """The page of a model, with what is said of shortcuts unfolded."""
    app = open_app(monkeypatch, path, "model", run=str(run))
    app.session_state["shortcuts"] = True
    return rerun(app)


def test_compare_says_what_can_be_reached_without_the_language(
    monkeypatch: pytest.MonkeyPatch, read_file: Path, trained_file: Path
) -> None:
    app = open_app(monkeypatch, read_file)
    table = app.dataframe[0].value
    shares = reading.best_shortcuts(open_reader(str(read_file)), [1, 2]).set_index("config_id")
    expected = {f"{x.within:.1%} / {x.beyond:.1%}".replace(".0%", "%") for x in shares.itertuples()}
    assert set(table["shortcut"].str.strip()) == expected
    # Two epochs teach nothing.
    assert "No better than a shortcut: 2 of 2 configurations" in [x.label for x in app.expander]
    assert "no better than a linear reader of the" in said(app)
    assert "shortcut" not in open_app(monkeypatch, trained_file).dataframe[0].value


def test_shares_of_readers_sort_as_numbers_do() -> None:
    numbers = [0.05, 0.5, 0.976, 0.98, 0.99991, 1.0]
    table = pd.DataFrame({"shortcut_within": numbers, "shortcut_beyond": [0.5] * 5 + [None]})
    texts = [text or "" for text in shortcuts.within_and_beyond(table)]
    assert texts == sorted(texts)
    assert texts[2].strip() == "97.6% / 50%"
    assert texts[-1] == "100% / none"


def test_a_model_is_shown_by_how_its_test_strings_were_drawn(
    monkeypatch: pytest.MonkeyPatch, read_file: Path
) -> None:
    store = open_reader(str(read_file))
    app = open_inside(monkeypatch, read_file, 2)
    assert "**No better than" in said(app)
    counts, strings, readers = (table.value for table in app.dataframe[:3])
    assert counts["drawn"].tolist() == ["positive", "uniform", "edited", "near"]
    found = reading.accuracy_by_drawn(store, [2])
    assert counts["tested"].tolist() == found["tested"].tolist()
    assert counts["accuracy"].tolist() == pytest.approx(1 - found["wrong"] / found["tested"])
    (config,) = reading.configs(store, (2,)).values()
    wrong = set(display_strings(reading.string_errors(store, 2), config)["string"])
    for row in strings.to_dict("records"):
        assert (row["string"] in wrong) == (row["answer"] == "wrong")
    assert set(strings["answer"]) == {"right", "wrong"}
    assert strings["drawn"].iloc[0] == "near", "the hardest kind first"
    assert readers["reader"].nunique() == len(READERS) - 3, "those of transductions are others"


def test_a_test_that_nobody_asked_about_is_said_to_be_one(
    monkeypatch: pytest.MonkeyPatch, trained_file: Path, tmp_path: Path
) -> None:
    path = tmp_path / "old.db"
    store = open_writer(str(shutil.copy(trained_file, path)))
    with store.change() as connection:
        connection.exec_driver_sql("UPDATE test_string SET drawn = NULL")
    told = said(open_inside(monkeypatch, path, 1))
    assert "No shortcut readers have been asked about this test yet" in told
    assert "How each test string was drawn is not stored" in told
    assert "No better than" not in told


def test_errors_are_picked_by_how_their_strings_were_drawn(
    monkeypatch: pytest.MonkeyPatch, read_file: Path
) -> None:
    errors = reading.string_errors(open_reader(str(read_file)), 2)
    of_kind = errors[errors["drawn"] == "near"]["string"].tolist()
    assert 0 < len(of_kind) < len(errors)
    app = open_app(monkeypatch, read_file, "failing", run="2", drawn="near")
    (table,) = [x.value for x in app.dataframe if "drawn" in x.value]
    assert table["string"].tolist() == of_kind
    assert set(table["drawn"]) == {"near"}


def test_a_report_says_what_can_be_reached_without_the_language(read_file: Path) -> None:
    text = written(open_reader(str(read_file)), "forms")
    assert "<th>shortcut</th>" in text
    assert "no better than a linear reader of the" in text
    assert "Dashed: best shortcut" in text.replace("\n", " ")


DECIDED = {"even_pairs": "first and last letters", "copy": "the input itself"}


@pytest.fixture(scope="module")
def decided_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two untrained models, of a language and of a transduction that a reader decides."""
    store = open_writer(str(tmp_path_factory.mktemp("decided") / "decided.db"))
    for task in DECIDED:
        fields = {**FIXED, "task": task}
        if task == "copy":
            del fields["readout"]
        api.submit(store, {"name": task, "model_seeds": [0], "fixed": fields})
    api.work(store)
    for unread in unread_tests(store):
        assert fit_shortcuts(store, unread) is None
    return file_of(store)


def test_what_a_reader_decides_is_no_shortcut_on_any_page(
    monkeypatch: pytest.MonkeyPatch, decided_file: Path
) -> None:
    store = open_reader(str(decided_file))
    app = open_app(monkeypatch, decided_file)
    pages = [said(app), *(x.label for x in app.expander)]
    pages += [written(store, task) for task in DECIDED]
    pages += [said(open_inside(monkeypatch, decided_file, run)) for run in (1, 2)]
    assert "no better than" not in " ".join(pages).lower()
    for number, by in enumerate(DECIDED.values()):
        assert f"This task is decided by {by}" in pages[-2 + number]
        assert f"decided by {by}" in pages[-4 + number]
        assert by in pages[0]


@pytest.mark.parametrize("most", [10, 1])
def test_runs_say_of_each_language_what_decides_it(
    monkeypatch: pytest.MonkeyPatch, decided_file: Path, tmp_path: Path, most: int
) -> None:
    store = open_writer(str(shutil.copy(decided_file, tmp_path / "more.db")))
    for pattern in ("(ab)*", "(ab|ba)*", "(ab)*a"):
        fields = {**FIXED, "task": "regular", "alphabet": "ab", "pattern": pattern}
        api.submit(store, {"name": f"one {len(pattern)}", "model_seeds": [0], "fixed": fields})
    api.work(store)
    for unread in unread_tests(store):
        assert fit_shortcuts(store, unread) is None
    monkeypatch.setattr(models, "MOST_NAMED", most)
    told = run_main("runs", "--db", str(file_of(store))).stdout.splitlines()
    end = ": to read nothing else is no shortcut"
    regular = [f"regular, alphabet=ab, pattern={x} is" for x in ("(ab)*", "(ab)*a")]
    assert [x.removesuffix(end) for x in told if end in x] == [
        "even_pairs is decided by first and last letters",
        "copy, distinct=false, num_tokens=2 is decided by the input itself",
        *(
            f"{which} decided by pairs of neighboring tokens"
            for which in (regular if most > 1 else ["of 5 tasks 2 are"])
        ),
    ]


def test_a_model_is_called_by_a_seed_only_where_it_names_no_other(
    monkeypatch: pytest.MonkeyPatch, decided_file: Path, read_file: Path
) -> None:
    for path, called in ((decided_file, "run 1 or even_pairs/0"), (read_file, "run 1")):
        told = said(open_app(monkeypatch, path, "model", run="1")).replace("\\", "")
        assert f"Commands call it {called}; its" in told


def test_what_a_reader_decides_is_said_beside_what_it_reaches(decided_file: Path) -> None:
    db = ("--db", str(decided_file))
    compared = run_main("compare", "1", "2", *db).stdout
    for by in DECIDED.values():
        assert f"no shortcut, as the task is decided by {by}" in compared
    record = api.compare(open_reader(str(decided_file)), "1", "2").record()
    assert [x["decided_by"] for x in record["shortcuts"]] == [*DECIDED.values()]


def test_accuracy_is_known_of_each_way_of_drawing(store: Store) -> None:
    found = reading.accuracy_by_drawn(store, [1, 2])
    said = {(row.run_id, row.drawn): (row.tested, row.wrong) for row in found.itertuples()}
    expected = rows(
        store,
        "SELECT run.id, own.drawn, sum(own.occurrences), sum(CASE WHEN wrong.number IS NULL "
        "THEN 0 ELSE own.occurrences END) FROM run JOIN config ON config.id = run.config_id "
        "JOIN test_string AS own ON own.test_set_id = config.test_set_id "
        "LEFT JOIN string_error AS wrong ON wrong.run_id = run.id AND wrong.number = own.number "
        "GROUP BY run.id, own.drawn",
    )
    assert said == {(run_id, drawn): tuple(counts) for run_id, drawn, *counts in expected}
    assert {drawn for run_id, drawn in said if run_id == 2} == {
        *("positive", "uniform", "edited", "near")
    }


def test_readers_fill_in_how_old_test_sets_were_drawn(trained_file: Path, tmp_path: Path) -> None:
    store = open_writer(str(shutil.copy(trained_file, tmp_path / "old.db")))
    ways = "SELECT test_set_id, number, drawn FROM test_string ORDER BY test_set_id, number"
    before = rows(store, ways)
    with store.change() as connection:
        connection.exec_driver_sql("UPDATE test_string SET drawn = NULL")
    assert reading.accuracy_by_drawn(store, [1, 2]).empty
    for unread in unread_tests(store):
        fit_shortcuts(store, unread)
    assert rows(store, ways) == before
