"""The same from Python as from the command line."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import seqcls
from seqcls.errors import PluginError
from sweeps import api
from sweeps.store.database import Store
from tests.conftest import ROOT, SHORT

RUN = "all_initializations/2"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A copy of the shipped database, in which findings are stored."""
    return api.open_store(shutil.copy(ROOT / "runs.db", tmp_path_factory.mktemp("python")))


def test_figures_are_charts_that_a_notebook_shows(store: Store) -> None:
    charts = api.figures(store, RUN, ["aac", "baac"])
    assert (charts[0] | charts[7]).to_dict()["hconcat"], "charts may stand beside each other"
    assert all("vegaEmbed" in chart._repr_mimebundle_()["text/html"] for chart in charts)
    specs = {}
    for spec in (chart.to_dict() for chart in charts):
        title = spec.get("title", "")
        specs[title["text"] if isinstance(title, dict) else title] = spec
    assert list(specs)[:2] == ["Loss by epoch", "Token embeddings"]
    for title in ("Embeddings of a string", "Attention output", "CLS after the block"):
        drawn = json.dumps(specs[title]["datasets"])
        assert '"aac"' in drawn
        assert '"baac"' in drawn


def test_a_notebook_needs_one_import(store: Store, tmp_path: Path) -> None:
    db = seqcls.open(store.path)
    assert "9 sweeps of 45 runs" in repr(db)
    pd.testing.assert_frame_equal(db.runs("walkthrough"), api.runs(store, "walkthrough"))
    assert db.model(RUN).answer("aab") == api.model(store, RUN).answer("aab")
    assert {"runs", "compare", "explain", "causes", "work"} <= set(dir(db))
    with pytest.raises(AttributeError, match="a database has no 'rums'; it has ablate, "):
        _ = db.rums
    spec = {"name": "two", "model_seeds": [0, 1], "fixed": SHORT}
    assert seqcls.sweep(spec, tmp_path / "new.db").runs("two")["state"].tolist() == ["done"] * 2


def test_questions_about_many_runs_take_the_selections_of_runs(
    store: Store, tmp_path: Path
) -> None:
    chosen: dict[str, Any] = {"outcome": "fails beyond", "num_attention_heads": 2}
    selected = api.runs(store, "all_initializations", **chosen)
    assert len(selected)
    causes = api.causes(store, "all_initializations", 2, **chosen)
    assert set(causes["run_id"]) == set(selected["id"])
    alike: dict[str, Any] = {"outcome": ["fails beyond"], "conditions": ["num_attention_heads=2"]}
    assert api.causes(store, "all_initializations", 2, **alike).equals(causes)
    number = api.export(store, tmp_path / "out", sweeps="all_initializations", **chosen)
    assert {x.name: n for x, n in number.items()}["runs.csv"] == len(selected)
    assert api.causes(store, "all_initializations", 2, hidden_size=3).empty
    assert len(api.runs(store, outcome=None))


def test_a_string_is_text_or_a_list_of_tokens_in_every_question(store: Store) -> None:
    model = api.model(store, RUN)
    answers = [model.answer(x) for x in ("baac", "ba{2}c", list("baac"), (1, 0, 0, 2))]
    assert len(set(answers)) == 1
    assert model.ask_all(["baac", list("ab"), (0, 1)]).predicted.tolist() == [True] * 3
    assert api.predict(store, RUN, "baac")["logit"].tolist() == pytest.approx([answers[0].logit])
    assert api.predict(store, RUN, [["b", "a"], "ba"])["logit"].nunique() == 1
    wrong = ["a", "b", *"c" * 200]
    assert api.explain(store, RUN, wrong).mechanism == api.explain(store, RUN, "abc{200}").mechanism


def test_sweeps_and_runs_are_accepted_by_name_id_or_list(store: Store) -> None:
    sweep = RUN.split("/")[0]
    run_id = int(api.runs(store, sweep, 2)["id"].iloc[0])
    sweep_id: Any = np.int64(api.status(store, sweep)[0].id)
    for named in (sweep, [sweep], {sweep}, sweep_id):
        assert [x.name for x in api.status(store, named)] == [sweep]
    number: Any = np.int64(run_id)
    for runs in (run_id, number, RUN, [RUN], {run_id}):
        assert set(api.lengths(store, runs)["run_id"]) == {run_id}
        assert set(api.errors(store, runs)["run_id"]) == {run_id}
    seed: Any = np.int64(2)
    assert api.runs(store, sweep, seed)["id"].tolist() == [run_id]
    assert api.runs(store, [sweep], model_seed=2)["id"].tolist() == [run_id]
    assert len(api.runs(store, sweep, hidden_size="2")) == len(api.runs(store, sweep))
    same = api.compare(store, run_id, RUN)
    assert same.verdict() == "No difference: all that is compared is the same."


def test_runs_that_leave_a_sweep_are_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = api.open_store(tmp_path / "own.db")
    spec = {"name": "two", "model_seeds": [0, 1, 2], "fixed": {**SHORT, "hidden_size": 4}}
    api.submit(store, spec)
    assert caplog.messages == []
    api.submit(store, {**spec, "model_seeds": [1]})
    assert caplog.messages == [
        "2 runs leave the sweep 'two', whose specification has changed: 1, 3; 2 not begun yet are "
        "deleted"
    ]
    assert api.runs(store)["id"].tolist() == [2]


def test_figures_without_the_dashboard_are_refused_in_one_line(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: ())
    with pytest.raises(PluginError, match=r"^figures: the dashboard, .* is not installed; `pip"):
        api.figures(store, RUN, ["aac"])


def test_frames_begin_with_the_main_columns_and_times_are_timestamps(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = api.open_store(tmp_path / "own.db")
    fixed = {**SHORT, "max_num_epochs": 1}
    spec = {"name": "s", "model_seeds": [0], "fixed": fixed, "axes": {"hidden_size": [2, 4]}}
    api.submit(store, spec)
    api.work(store, progress_bar=True)
    assert "2/2 runs" in capsys.readouterr().err
    frame = api.runs(store)
    assert list(frame)[:9] == [*api.FIRST, "hidden_size"]
    assert isinstance(frame["finished_at"].dtype, pd.DatetimeTZDtype)
    assert frame["finished_at"].notna().all()
    assert repr(store) == f"<Store {tmp_path / 'own.db'}>"
    compared = repr(api.compare(store, "s:hidden_size=2", "s:hidden_size=4"))
    assert "Too few seeds to tell: 1 and 1. At least 4 of each can show a difference." in compared
    model = repr(api.model(store, 1))
    assert "max_num_epochs=1" in model
    assert len(model) < 500, "no arrays"
