"""The same from Python as from the command line."""

import json
import shutil
import sqlite3
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from seqcls.errors import (
    ConfigError,
    InvalidStringError,
    PluginError,
    SpecError,
    UnknownRunError,
)
from seqcls.interpretability.family import Curve, FamilyMap
from sweeps import api
from sweeps.cli.app import app
from sweeps.store.databases.engine import Store
from tests.conftest import ROOT, SHORT

RUN = "all_initializations/2"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    shutil.copy(ROOT / "runs.db", tmp_path / "runs.db")
    return api.open_store(tmp_path / "runs.db")


def test_every_public_name_is_there() -> None:
    assert sorted(api.__all__) == api.__all__
    assert {*api.__all__} >= {
        *("explain", "predict", "verdict", "family", "causes", "compare", "figures")
    }
    assert all(callable(getattr(api, name)) for name in api.__all__)


def test_answers_are_those_of_the_command(store: Store) -> None:
    found = api.predict(store, RUN, ["baac", "ab{100}c{55}"])
    assert found["label"].tolist() == [True, True]
    assert found["predicted"].tolist() == [True, False]
    logits = [answer["logit"] for answer in said(store, "predict", RUN, "baac", "ab{100}c{55}")]
    assert found["logit"].tolist() == logits
    with pytest.raises(InvalidStringError):
        api.predict(store, RUN, ["xyz"])


def test_a_cause_and_the_causes_of_a_sweep_agree(store: Store) -> None:
    found = api.causes(store, "lower_magnitude_initializations", sample=5)
    assert found.groupby("run_id")["strings"].sum().tolist() == [5] * 6
    for run_id, mechanism in ((38, "two heads on one letter"), (39, "dilution")):
        own = found.loc[found["run_id"] == run_id, "mechanism"].tolist()
        one = api.explain(store, run_id, api.errors(store, [run_id])["string"].iloc[0]).mechanism
        assert one is not None
        assert one.name == mechanism
        assert mechanism in own
        assert (own[0] == "not learned") == ("not learned" in own) == (run_id == 38)
    with pytest.raises(UnknownRunError):
        api.causes(store, "nosuch")


def test_families_are_exact_where_letter_counts_decide(store: Store) -> None:
    curve = api.family(store, RUN, "ab{n}")
    assert isinstance(curve, Curve)
    assert curve.limit is not None
    groups = api.family(store, RUN, "a<b>{n}")
    assert isinstance(groups, Curve)
    assert groups.limit is None
    assert groups.first_wrong == curve.first_wrong
    grid = api.family(store, RUN, "a{m}b{n}")
    assert isinstance(grid, FamilyMap)
    assert grid.exact


def test_figures_are_charts_that_a_notebook_shows(store: Store) -> None:
    charts = api.figures(store, RUN, ["aac", "baac"])
    assert (charts[0] | charts[7]).to_dict()["hconcat"], "charts may stand beside each other"
    assert all("vegaEmbed" in chart._repr_mimebundle_()["text/html"] for chart in charts)
    specs = {_title(spec): spec for spec in (chart.to_dict() for chart in charts)}
    assert list(specs)[:2] == ["Loss by epoch", "Token embeddings"]
    for title in ("Embeddings of a string", "Attention output", "CLS after the block"):
        drawn = json.dumps(specs[title]["datasets"])
        assert '"aac"' in drawn
        assert '"baac"' in drawn


def _title(spec: dict[str, Any]) -> str:
    title = spec.get("title", "")
    return str(title["text"] if isinstance(title, dict) else title)


def said(store: Store, *arguments: str) -> Any:
    """What a command says of that database, as data."""
    result = CliRunner().invoke(app, [*arguments, "--db", str(store.path), "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_what_a_command_says_of_one_model_python_answers(store: Store) -> None:
    reduced = api.minimal(store, RUN, "ab{100}c{55}")
    told = said(store, "minimal", RUN, "ab{100}c{55}")
    assert told["minimal"]["string"] == reduced.minimal.found.string
    assert told["nearest_right"]["edits"] == reduced.nearest.edits
    assert said(store, "minimal", RUN)["count"] == api.shortest(store, RUN).count
    rules = said(store, "rules", RUN)["rules"]
    assert [rule["text"] for rule in rules] == [rule.text for rule in api.rules(store, RUN).rules]
    along = api.states(store, RUN, "ab{10}")
    assert along.prefixes is not None
    assert along.output is None
    assert said(store, "states", RUN, "ab{10}")["prefix_logits"] == along.prefixes.logits.tolist()
    assert along.units is None
    patches = api.patch(store, RUN, "ab{100}c{55}")
    assert said(store, "patch", RUN, "ab{100}c{55}")["source"]["string"] == patches.source.string
    judged = api.ablate(store, RUN, ["head"], "mean", sample=50, prune=True)
    told = said(
        store, *("ablate", RUN, "--part", "head", "--how", "mean"), "--sample=50", "--prune"
    )
    assert [step["misclassified"] for step in told["steps"]] == [x.errors for x in judged.outcomes]
    assert not judged.exact
    judged = api.ablate(store, RUN, prune=True)
    told = said(store, "ablate", RUN, "--prune")
    assert (told["exact"], told["strings"]) == (judged.exact, judged.strings) == (True, 9984)
    wrong = api.runs(store).set_index("id")["wrong"]
    assert judged.outcomes[0].errors == wrong[told["run"]] > 0
    claims = [proof["claim"] for proof in said(store, "verdict", RUN, "--beyond")["supports"]]
    assert claims == [proof.claim for proof in api.proofs(store, RUN).supports]
    with pytest.raises(ConfigError, match="expected head, feed-forward, unit"):
        api.ablate(store, RUN, ["hed"])
    with pytest.raises(ConfigError, match="expected zero or mean"):
        api.ablate(store, RUN, how="off")


def test_strings_of_any_length_are_answered_where_letter_counts_suffice(store: Store) -> None:
    (answer,) = api.predict(store, RUN, ["a{3000000}b"]).to_dict("records")
    (told,) = said(store, "predict", RUN, "a{3000000}b")
    assert (answer["logit"], answer["probability"]) == (told["logit"], told["probability"])
    first, kept = (api.predict(store, RUN, ["aac"], epoch)["logit"].item() for epoch in (1, None))
    assert first != kept


def test_what_a_command_says_of_many_runs_python_answers(store: Store) -> None:
    errors = api.errors_of_run(store, RUN, sort="logit")
    assert said(store, "errors", RUN, "--sort", "logit") == errors.to_dict("records")
    with pytest.raises(ConfigError, match="did you mean 'length'"):
        api.errors_of_run(store, RUN, sort="lenght")
    told = said(store, "remedies", RUN)
    mechanisms, trials = api.remedies(store, RUN)
    assert told["mechanisms"] == mechanisms
    assert [x["field"] for x in told["suggestions"]] == [x.suggestion.field for x in trials]
    outcomes = api.sensitive(store, ["walkthrough"], times=2)
    assert outcomes["run_id"].tolist() == api.runs(store, "walkthrough")["id"].tolist()
    assert said(store, "sensitive", "walkthrough", "--times", "2") == outcomes.to_dict("records")
    assert api.in_both_precisions(store).empty
    engines = api.engines("report/increased_dimensionality")
    assert engines["hidden_size"].tolist() == [16]
    assert engines["engine"].tolist() == ["fused"]


def test_questions_about_many_runs_are_asked_like_runs(store: Store, tmp_path: Path) -> None:
    chosen: dict[str, Any] = {"outcome": "fails beyond", "num_attention_heads": 2}
    asked = api.runs(store, "all_initializations", **chosen)
    assert len(asked)
    causes = api.causes(store, "all_initializations", 2, **chosen)
    assert set(causes["run_id"]) == set(asked["id"])
    alike: dict[str, Any] = {"outcome": ["fails beyond"], "conditions": ["num_attention_heads=2"]}
    assert api.causes(store, "all_initializations", 2, **alike).equals(causes)
    number = api.export(store, tmp_path / "out", sweeps="all_initializations", **chosen)
    assert {x.name: n for x, n in number.items()}["runs.csv"] == len(asked)
    assert api.causes(store, "all_initializations", 2, hidden_size=3).empty
    asks: list[Any] = [api.runs, partial(api.causes, sweep="all_initializations")]
    for ask in asks:
        with pytest.raises(ConfigError, match=r"outcome 1\b|outcome=1"):
            ask(store, outcome=1)
        assert len(ask(store, outcome=None))
        with pytest.raises(ConfigError, match="did you mean 'hidden_size'"):
            ask(store, hidden_sise=3)


def test_what_is_asked_of_a_database_that_is_only_read_may_still_be_stored(store: Store) -> None:
    reading = store.reader()
    with sqlite3.connect(str(store.path)) as connection:
        connection.execute("DELETE FROM verdict WHERE run_id = 3")
    verdict = api.verdict(reading, 3)
    with sqlite3.connect(str(store.path)) as connection:
        assert connection.execute("SELECT inputs FROM verdict WHERE run_id = 3").fetchone() == (
            verdict.inputs,
        )


def test_sweeps_are_stopped_resumed_estimated_and_deleted(store: Store, tmp_path: Path) -> None:
    spec = {"name": "two", "model_seeds": [0, 1], "fixed": {**SHORT, "hidden_size": 4}}
    assert api.estimate(store, spec).there == 0
    assert api.submit(store, spec) == ["two"]
    api.stop(store, "two")
    (stopped,) = api.status(store, "two")
    assert (stopped.state, stopped.queued) == ("stopped", 2)
    api.resume(store, ["two"])
    assert api.status(store, "two")[0].state == "queued"
    assert api.retry(store, "two") == 0
    written = api.export(store, tmp_path / "files", sweeps=["two"])
    assert sorted(written.values()) == [0, 0, 0, 2]
    other = api.open_store(tmp_path / "other.db")
    assert api.merge(other, store.reader()).waiting == 2
    assert api.verify(other).damages == []
    assert api.delete(store, "two") == 2
    with pytest.raises(UnknownRunError, match="no sweep 'two'"):
        api.stop(store, "two")


def test_a_string_is_text_or_a_list_of_tokens_wherever_one_is_asked_about(store: Store) -> None:
    model = api.model(store, RUN)
    answers = [model.answer(x) for x in ("baac", "ba{2}c", list("baac"), (1, 0, 0, 2))]
    assert len(set(answers)) == 1
    assert model.ask_all(["baac", list("ab"), (0, 1)]).predicted.tolist() == [True] * 3
    assert api.predict(store, RUN, "baac")["logit"].tolist() == pytest.approx([answers[0].logit])
    assert api.predict(store, RUN, [["b", "a"], "ba"])["logit"].nunique() == 1
    wrong = ["a", "b", *"c" * 200]
    assert api.explain(store, RUN, wrong).mechanism == api.explain(store, RUN, "abc{200}").mechanism
    for no_string in (None, 5, {"a"}, ["a", "x"], (7,)):
        with pytest.raises(InvalidStringError):
            model.answer(no_string)


def test_sweeps_and_runs_are_named_as_one_likes(store: Store) -> None:
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
    for nothing in (None, 1.5, True, ["nope"], [10**6]):
        with pytest.raises(UnknownRunError):
            api.stop(store, nothing)  # type: ignore[arg-type]
    for no_spec in (None, 5, [1]):
        with pytest.raises(SpecError, match="is no specification"):
            api.submit(store, no_spec)  # type: ignore[arg-type]


def test_runs_that_leave_a_sweep_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
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


def test_a_report_is_of_the_database_that_is_asked(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEQCLS_DB", str(tmp_path / "another.db"))
    page = api.report(store, "walkthrough")
    assert page.startswith("<!doctype html>")
    assert "<h1>walkthrough</h1>" in page
    assert not (tmp_path / "another.db").exists()
    with pytest.raises(UnknownRunError, match="did you mean 'walkthrough'"):
        api.report(store, "walktrough")


def test_without_the_dashboard_one_line_says_so(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: ())
    with pytest.raises(PluginError, match=r"^figures: the dashboard, .* is not installed; `pip"):
        api.figures(store, RUN, ["aac"])
