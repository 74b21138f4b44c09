"""Choosing a model among many: a few are offered, and any is found by what is typed."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from benchmarks.large import make_database
from dashboard.choosing.run import OFFERED_MODELS
from sweeps.store.opening import open_reader
from sweeps.store.reads import queries
from sweeps.store.reads.selection import View
from tests.app import open_app, rerun, said
from tests.conftest import ROOT

AXES = {"hidden_size": [2, 4], "num_attention_heads": [1, 2]}
SEEDS = 60


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """240 models, more than are offered."""
    path = tmp_path_factory.mktemp("many") / "many.db"
    make_database(str(path), AXES, seeds=SEEDS, errors=8)
    return path


def run_of(db: Path, hidden_size: int, heads: int, seed: int) -> int:
    fields = {"hidden_size": hidden_size, "num_attention_heads": heads}
    found = queries.runs(open_reader(str(db)), View(model_seeds=(seed,)), fields)
    return int(found["id"].iloc[0])


def typed(app: AppTest, text: str) -> AppTest:
    box = app.selectbox(key="model_run")
    # As the browser does with what is typed: it becomes an option.
    box.options.append(text)
    box.set_value(text)
    rerun(app)
    return app


def chosen(app: AppTest) -> int:
    named = app.query_params["run"]
    return int(named if isinstance(named, str) else named[0])


def offered(app: AppTest) -> list[str]:
    return app.selectbox(key="model_run").options


def test_the_worst_models_are_offered_and_not_all(
    monkeypatch: pytest.MonkeyPatch, many: Path
) -> None:
    app = open_app(monkeypatch, many, "model")
    wrong = [int(label.split(": ")[1].split()[0]) for label in offered(app)]
    assert len(wrong) == OFFERED_MODELS < SEEDS * 4
    assert wrong == sorted(wrong, reverse=True)


def test_any_model_is_found_by_its_run(monkeypatch: pytest.MonkeyPatch, many: Path) -> None:
    app = open_app(monkeypatch, many, "model")
    right = run_of(many, 2, 1, 3)
    assert right % 4 == 0, "this one makes no error, and so is not offered"
    typed(app, f"run {right}")
    assert chosen(app) == right
    assert app.selectbox(key="model_run").value == right
    assert "seed 3: no test string wrong" in offered(app)[0]


def test_a_number_is_that_of_a_model_and_offers_those_with_this_seed(
    monkeypatch: pytest.MonkeyPatch, many: Path
) -> None:
    app = open_app(monkeypatch, many, "model")
    for text in ("17", "Model 17", "model 17"):
        typed(app, text)
        assert chosen(app) == 17
    typed(app, "17")
    assert len(offered(app)) == 5
    assert sum("seed 17: " in label for label in offered(app)) == 4
    assert "5 of the models that match '17' are listed" in said(app).replace("\\", "")
    last = app.selectbox(key="model_run").options[-1]
    app.selectbox(key="model_run").select(last)
    rerun(app)
    assert len(offered(app)) >= OFFERED_MODELS, "what was searched is found"


@pytest.mark.parametrize(
    "text",
    [
        "hidden_size=4 num_attention_heads=2 seed 9",
        "hidden_size=4, num_attention_heads=2, 9",
        "seed=9 hidden_size = 4 num_attention_heads = 2",
    ],
)
def test_settings_and_a_seed_find_one_model(
    monkeypatch: pytest.MonkeyPatch, many: Path, text: str
) -> None:
    app = open_app(monkeypatch, many, "model")
    typed(app, text)
    assert chosen(app) == run_of(many, 4, 2, 9)
    # What was searched for is found; this database has no weights to look into.
    assert [error.value for error in app.error] == ["This run has no model to show."]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("seed 999", "no trained model matches in sweep 'large'"),
        ("run 99999", "no trained model matches"),
        ("run x", "expected a number, not 'x'"),
        ("hidden_sise=4", "did you mean 'hidden_size'?"),
        ("train_size=4", "train_size is the same for all models"),
        ("hidden_size=5", "no trained model matches"),
        ("9" * 30, "expected a number"),
    ],
)
def test_what_means_no_model_is_said_in_a_line(
    monkeypatch: pytest.MonkeyPatch, many: Path, text: str, problem: str
) -> None:
    app = open_app(monkeypatch, many, "model")
    before = app.selectbox(key="model_run").value
    typed(app, text)
    assert problem in app.error[0].value.replace("\\", "")
    assert app.selectbox(key="model_run").value == before
    assert not app.exception


def test_a_sweep_and_a_seed_mean_a_model_of_another_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    app = open_app(monkeypatch, ROOT / "runs.db", "model", run="43")
    typed(app, "all_initializations/2")
    assert chosen(app) == 5
    assert app.selectbox(key="model_sweep").value == "all_initializations"
