"""Every page under Streamlit's own test runner, on databases good and bad."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from sweeps.spec import parse_spec
from sweeps.store import writer
from sweeps.store.engine import open_writer
from sweeps.worker import work
from tests.conftest import ROOT, SHORT
from tests.integration.conftest import file_of


def open_app(monkeypatch: pytest.MonkeyPatch, db: Path, **query: str | list[str]) -> AppTest:
    monkeypatch.setenv("SEQCLS_DB", str(db))
    app = AppTest.from_file(str(ROOT / "dashboard" / "app.py"), default_timeout=60)
    for name, value in query.items():
        app.query_params[name] = value
    app.run()
    assert not app.exception
    return app


def metrics(app: AppTest) -> dict[str, str]:
    return {metric.label: metric.value for metric in app.metric}


def test_the_shipped_database_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    app = open_app(monkeypatch, ROOT / "runs.db")
    assert metrics(app) == {
        "Models trained and tested": "43",
        "Failing models": "16 (37%)",
        "Queued or in training": "0",
        "Training failed": "0",
    }
    table = app.dataframe[0].value.set_index("sweeps")
    assert len(table) == 7
    initializations = table.loc["all_initializations, generalization_errors, walkthrough"]
    assert (initializations["seeds"], initializations["failing_seeds"]) == (8, 7)
    assert initializations["median_accuracy"] == pytest.approx(0.9384, abs=1e-4)
    assert {"hidden_size", "num_attention_heads", "train_sampler"} < set(table.columns)
    assert "train_seed" not in table.columns, "only fields that differ are shown"


def test_filters_come_from_the_address_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    app = open_app(monkeypatch, ROOT / "runs.db", seed="2", failing="true")
    assert app.multiselect(key="seed").value == [2]
    assert app.toggle(key="failing").value is True
    assert metrics(app)["Models trained and tested"] == "5"
    assert len(app.dataframe[0].value) == 2
    labels = app.selectbox(key="run").options
    assert [label.rpartition(": ")[2] for label in labels] == [
        "697 misclassified",
        "1443 misclassified",
    ]
    errors = app.dataframe[1].value
    assert errors["string"].iloc[0] == "ab{100}c{55}"
    assert errors["kind"].iloc[0] == "false negative"


def test_several_seeds_and_sweeps_may_be_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = ["all_initializations", "attend_cls"]
    app = open_app(monkeypatch, ROOT / "runs.db", seed=["5", "7", "8"], sweep=chosen)
    assert metrics(app)["Models trained and tested"] == "3"


def test_where_no_model_fails_the_page_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    app = open_app(monkeypatch, ROOT / "runs.db", seed="5", failing="true")
    assert "None of these models misclassifies a test string." in app.success[0].value
    assert not app.dataframe


def test_filters_that_leave_nothing_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    app = open_app(monkeypatch, ROOT / "runs.db", seed="5", sweep="generalization_errors")
    assert "No run matches the filters" in app.info[0].value
    assert not app.dataframe


@pytest.mark.parametrize("make", [Path, Path.touch], ids=["missing", "empty"])
def test_without_models_the_page_says_what_to_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, make: object
) -> None:
    db = tmp_path / "none.db"
    assert callable(make)
    make(db)
    app = open_app(monkeypatch, db)
    assert "no models to show yet" in app.info[0].value
    assert "seqcls sweep report" in [code.value for code in app.code]
    assert not app.error


def test_a_damaged_a_foreign_and_a_newer_file_are_explained(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    damaged, newer = tmp_path / "damaged.db", tmp_path / "newer.db"
    damaged.write_bytes(b"\x00garbage" * 1000)
    open_writer(str(newer))
    with closing(sqlite3.connect(newer)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.commit()
    for db, says in ((damaged, "no SQLite database"), (newer, "upgrade seqcls")):
        app = open_app(monkeypatch, db)
        assert app.error[0].value == "The database cannot be shown."
        assert says in app.code[-1].value


def test_a_sweep_without_a_finished_run_is_said_to_be_unfinished(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store = open_writer(str(tmp_path / "queued.db"))
    writer.submit(store, parse_spec({"name": "<b>*new*</b>", "model_seeds": "0..3"}))
    app = open_app(monkeypatch, file_of(store))
    assert metrics(app)["Queued or in training"] == "4"
    assert "None of these runs is finished yet" in app.info[0].value


def test_configurations_of_one_sweep_are_told_apart_by_their_settings(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store = open_writer(str(tmp_path / "grid.db"))
    fixed = {**SHORT, "max_num_epochs": 1}
    axes = {"hidden_size": [2, 3], "num_attention_heads": [1, 2]}
    spec = {"name": "grid", "model_seeds": [0], "fixed": fixed, "axes": axes}
    work(store, [writer.submit(store, parse_spec(spec))], workers=1)
    app = open_app(monkeypatch, file_of(store))
    assert list(app.dataframe[0].value.columns[:2]) == ["hidden_size", "num_attention_heads"]
    labels = app.selectbox(key="run").options
    assert any(x.startswith("grid, hidden_size=2, num_attention_heads=1, seed 0") for x in labels)
    assert len(set(labels)) == len(labels)


def test_a_sweep_of_which_all_training_failed_says_why(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store = open_writer(str(tmp_path / "failed.db"))
    writer.submit(store, parse_spec({"name": "s", "model_seeds": [0]}))
    with store.begin() as connection:
        connection.exec_driver_sql("UPDATE run SET state = 'failed', error = 'diverged *here*'")
    app = open_app(monkeypatch, file_of(store))
    assert "training failed for all of them" in app.info[0].value
    assert app.dataframe[0].value["error"].tolist() == ["diverged *here*"]


def test_new_results_appear_without_a_restart(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store = open_writer(str(tmp_path / "growing.db"))
    writer.submit(store, parse_spec({"name": "s", "model_seeds": "0..3"}))
    assert metrics(open_app(monkeypatch, file_of(store)))["Queued or in training"] == "4"
    writer.submit(store, parse_spec({"name": "t", "model_seeds": "0..9"}))
    assert metrics(open_app(monkeypatch, file_of(store)))["Queued or in training"] == "10"


def test_the_page_loads_no_pytorch() -> None:
    check = (
        "import sys\n"
        "from streamlit.testing.v1 import AppTest\n"
        "app = AppTest.from_file('dashboard/app.py', default_timeout=60).run()\n"
        "assert not app.exception and app.metric\n"
        "print('torch' in sys.modules)"
    )
    said = subprocess.run(
        [sys.executable, "-c", check], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert said.stdout == "False\n"
