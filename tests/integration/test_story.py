"""The loop from failing seeds to what a remedy mended: on the first page, and as suggestions."""

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dashboard.views import configurations
from seqcls.interpretability.mechanisms import BESIDE_NOT_LEARNED
from sweeps.api import failures
from sweeps.api.sweeping import submit, work
from sweeps.api.trials import all_spec, loops, trial_sentence, trials
from sweeps.cli.app import app as command
from sweeps.grid.spec import parse_spec
from sweeps.store.opening import open_reader, open_writer
from sweeps.store.reads import explained as stored_causes
from sweeps.store.reads import queries
from tests.app import open_app, rerun, said
from tests.conftest import ROOT

RUN = "all_initializations/2"
SEEDS = 7
"""Seeds of the report's eight that fail."""


@pytest.fixture(scope="module")
def explained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shipped models of `all_initializations`, with the causes of their errors."""
    path = Path(shutil.copy(ROOT / "runs.db", tmp_path_factory.mktemp("story") / "runs.db"))
    store = open_writer(str(path))
    runs = queries.runs(store)
    config_id = runs.set_index("id").loc[queries.find_run(store, RUN), "config_id"]
    failures.attribute(store, runs[runs["config_id"] == config_id]["id"].tolist(), 10)
    return path


@pytest.fixture(scope="module")
def mended(explained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """And with one remedy trained."""
    path = Path(shutil.copy(explained, tmp_path_factory.mktemp("mended") / "runs.db"))
    store = open_writer(str(path))
    (loop,) = loops(store)
    (first, *_) = trials(store, loop.run_ids[0], [loop.mechanism])
    submit(store, [first.spec])
    work(store)
    return path


def test_without_causes_the_page_says_what_to_do_next(monkeypatch: pytest.MonkeyPatch) -> None:
    assert loops(open_reader(str(ROOT / "runs.db"))) == ()
    app = open_app(monkeypatch, ROOT / "runs.db")
    assert "It isn't known yet why these models fail." in said(app)


def test_a_cause_without_a_remedy_is_a_card_that_names_one(
    monkeypatch: pytest.MonkeyPatch, explained: Path
) -> None:
    (loop,) = loops(open_reader(str(explained)))
    assert (len(loop.run_ids), loop.finished, loop.mechanism) == (SEEDS, 8, "dilution")
    assert loop.best is None
    text = "\n".join(own.value for own in open_app(monkeypatch, explained).markdown)
    assert "*dilution* in 7 of 8 seeds → try attention" in text.replace("\\", "")
    assert "not tried yet" in text


def test_the_first_page_tells_what_a_remedy_mended(
    monkeypatch: pytest.MonkeyPatch, mended: Path
) -> None:
    (loop,) = loops(open_reader(str(mended)))
    assert loop.best is not None
    runs = queries.runs(open_reader(str(mended)))
    before = runs[runs["config_id"] == loop.config_id].set_index("model_seed")["errors"]
    (tried,) = {*runs.set_index("id").loc[list(loop.best.run_ids), "config_id"]}
    changed = runs[runs["config_id"] == tried].set_index("model_seed")
    after, learned = changed["errors"], changed["outcome"] != "not learned"
    mended_seeds, seeds = sum(loop.best.results.values()), len(loop.best.results)
    assert seeds == int(((before > 0) & learned).sum()) < SEEDS
    assert loop.best.left_out[0] == int((~learned).sum()), "they are no measure of it"
    assert mended_seeds == int(((before > 0) & (after == 0)).sum()) > 0
    assert loop.best.broken == int(((before == 0) & learned & (after > 0)).sum())
    app = open_app(monkeypatch, mended)
    (told,) = [x.label for x in app.expander if "dilution" in x.label]
    plain = told.replace("\\", "")
    assert "*dilution* in 7 of 8 seeds → attention_scale=log_length → " in plain
    of = "" if mended_seeds == seeds else f" of {seeds}"
    left_out = f"{loop.best.left_out[0]} not learned"
    assert f"{mended_seeds}{of} mended, {loop.best.broken} broken, {left_out}" in plain
    assert configurations.STORY_TITLE in [own.value for own in app.caption]


def test_suggestions_say_how_often_they_mended_this_cause(mended: Path) -> None:
    store = open_reader(str(mended))
    (loop,) = loops(store)
    assert loop.best is not None
    first, *others = trials(store, loop.run_ids[0], [loop.mechanism])
    mended_seeds, seeds = sum(first.results.values()), len(first.results)
    assert first.mended == (mended_seeds, seeds)
    assert first.record() == loop.best.record(), "the card has what the page and the command have"
    assert [each.mended for each in others] == [(0, 0)] * len(others)
    shown = CliRunner().invoke(
        command, ["remedies", str(loop.run_ids[0]), "--db", str(mended), "--json"]
    )
    suggested = json.loads(shown.stdout)["suggestions"]
    assert suggested[0]["mended"] == {"seeds": mended_seeds, "of": seeds}
    text = (
        CliRunner().invoke(command, ["remedies", str(loop.run_ids[0]), "--db", str(mended)]).stdout
    )
    assert f"mended dilution in {mended_seeds} of {seeds} seeds of this" in text
    assert f"{loop.best.left_out[0]} with it left out: not learned" in text


def test_all_suggestions_are_launched_as_one_sweep(
    monkeypatch: pytest.MonkeyPatch, explained: Path
) -> None:
    store = open_reader(str(explained))
    (loop,) = loops(store)
    run_id = loop.run_ids[0]
    suggested = trials(store, run_id, [loop.mechanism])
    spec = all_spec(loop.run_ids[0], loop.config, suggested)
    assert {config.key for config in spec.configs()} == {
        config.key for each in suggested for config in each.spec.configs()
    }
    assert list(spec.model_seeds) == list(range(8))
    launched: list[object] = []
    monkeypatch.setattr("dashboard.actions.launch", lambda specs, _: launched.extend(specs))
    app = open_app(monkeypatch, explained, "model", run=str(run_id))
    button = app.button(f"train_all {run_id}")
    every = "both" if len(suggested) == 2 else f"all {len(suggested)}"
    assert button.label == f"Train {every} suggestions ({8 * len(suggested)} models)"
    button.click()
    rerun(app)
    assert [each.submitted for each in launched] == [spec.submitted]  # type: ignore[attr-defined]


TOO_SHORT = {
    "task": "first",
    "architecture": "lstm",
    "readout": "last",
    "hidden_size": 8,
    "train_size": 256,
    "train_max_length": 8,
    "validation_max_length": 8,
    "validation_size": 256,
    "test_size": 400,
    "test_max_length": 24,
    "max_num_epochs": 2,
    "learning_rate": 0.03,
}


@pytest.fixture(scope="module")
def untaught(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Models that were trained for too short, with their causes, and one remedy trained."""
    path = tmp_path_factory.mktemp("untaught") / "runs.db"
    store = open_writer(str(path))
    seeds = {"model_seeds": [0, 1]}
    submit(store, [parse_spec({"name": "short", **seeds, "fixed": TOO_SHORT})])
    work(store)
    failures.attribute(store, [1, 2], 20)
    (longer, *_) = trials(store, 1, ["not learned"])
    submit(store, [longer.spec])
    work(store)
    return path


def test_a_model_trained_for_too_short_fails_by_that_and_by_nothing_about_length(
    untaught: Path,
) -> None:
    store = open_reader(str(untaught))
    runs = queries.runs(store).set_index("id")
    for run_id, found in stored_causes.causes(store).groupby("run_id"):
        first, *others = found.to_dict("records")
        counts = runs.loc[run_id]
        assert first["mechanism"] == "not learned"
        assert first["tokens"] == (
            f"wrong on {counts['wrong_within']} of {counts['tested_within']} test strings of "
            "trained lengths; training loss was still falling at the end; 2 epochs, epoch 2 kept"
        )
        assert {each["mechanism"] for each in others} <= BESIDE_NOT_LEARNED
        assert found["share"].sum() == pytest.approx(1)


def test_a_remedy_of_learning_mended_what_has_learned_with_it(untaught: Path) -> None:
    store = open_reader(str(untaught))
    (loop,) = loops(store)
    assert loop.mechanism == "not learned"
    assert loop.best is not None
    assert loop.best.suggestion.fields == {"max_num_epochs": 8, "patience": 12}
    outcomes = queries.runs(store).set_index("id")["outcome"]
    learned = [run_id for run_id in loop.best.run_ids if outcomes[run_id] != "not learned"]
    assert loop.best.mended == (len(learned), 2)
    assert learned, "eight epochs are enough for some seed"
    said_of_it = CliRunner().invoke(command, ["remedies", "1", "--db", str(untaught)]).stdout
    assert f"trained: {2 - len(learned)} of 2 seeds have not learned, against 2 of 2" in said_of_it
    assert f"mended not learned in {len(learned)} of 2 seeds of this database" in said_of_it


def test_a_remedy_of_learning_is_judged_by_trained_lengths_alone(
    untaught: Path, tmp_path: Path
) -> None:
    store = open_writer(str(shutil.copy(untaught, tmp_path / "runs.db")))
    with store.begin() as connection:
        connection.exec_driver_sql("UPDATE run SET wrong_within = 0 WHERE id > 2")
    (mended,) = loops(store)
    assert mended.best is not None
    # Whatever becomes of longer strings.
    assert (queries.runs(store)["wrong_beyond"] > 0).any()
    assert (mended.best.mended, mended.best.left_out) == ((2, 2), (0, 0))
    columns = ("tested_within", "wrong_within", "within_from", "tested_beyond", "wrong_beyond")
    unknown = ", ".join(f"{name} = NULL" for name in columns)
    with store.begin() as connection:
        connection.exec_driver_sql(f"UPDATE run SET {unknown} WHERE id = 3")
    (one_unknown,) = loops(store)
    assert one_unknown.best is not None
    assert (one_unknown.best.mended, one_unknown.best.left_out) == ((1, 1), (1, 0))
    (told, *_) = map(trial_sentence, trials(store, 1, ["not learned"]))
    assert told.startswith("trained: 0 of 1 seed have not learned, against 2 of 2")
    assert told.endswith("; 1 with it left out: not judged on trained lengths")
    with store.begin() as connection:
        connection.exec_driver_sql(f"UPDATE run SET {unknown} WHERE id > 2")
    (told, *_) = map(trial_sentence, trials(store, 1, ["not learned"]))
    assert told == (
        "trained, and no seeds to compare: 2 with it left out: not judged on trained lengths"
    )
