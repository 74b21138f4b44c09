"""Which models fail, on which strings, by which causes, and what a remedy mended."""

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from dashboard.views.configurations import story_sentence
from streamlit.testing.v1 import AppTest

from dashboard.server import visitors
from seqcls.config import RunConfig
from seqcls.interpretability.mechanisms import BESIDE_NOT_LEARNED, SAMPLE
from seqcls.interpretability.remedies import named_fields
from seqcls.problem import configuration
from seqcls.results import Cause
from sweeps import api
from sweeps.api import trials as remedy_trials
from sweeps.api.old_pages import breaking_strings
from sweeps.api.old_pages.judging_remedies import loops
from sweeps.api.trials import trial_sentence, trials
from sweeps.grid.spec import parse_spec
from sweeps.results import Outcome
from sweeps.store import writer
from sweeps.store.database import Store
from sweeps.store.opening import open_reader, open_writer
from sweeps.store.reads import explained as stored_causes
from sweeps.store.reads import queries
from sweeps.store.reads.selection import Selection
from tests.app import metrics, open_app, rerun, said
from tests.commands import run_main
from tests.conftest import ROOT
from tests.databases import rows
from tests.oracles.compared import spelled_out
from tests.oracles.drawn import Chosen, Drawn
from tests.oracles.facts import Facts
from tests.oracles.ledger import Ledger
from tests.stock import copy_of

SHIPPED = ROOT / "runs.db"


def plain(app: AppTest) -> str:
    return said(app).replace("\\", "")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with copies of what pages are opened on."""
    folder = tmp_path_factory.mktemp("trained")
    for name in ("languages.db", "explained.db", "mended.db"):
        copy_of("trained", name, folder)
    return folder


# Models and their strings.


def test_of_failing_models_it_is_said_what_they_learned_and_where_they_are_wrong_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = open_app(monkeypatch, SHIPPED, "failing")
    assert "14 learned and fail beyond, 2 have not learned." in said(app)
    assert "of 16 failing models" in said(app)
    table = app.dataframe[0].value
    wrong = dict(
        rows(SHIPPED, "SELECT run_id, min(length) FROM length_score WHERE wrong GROUP BY run_id")
    )
    learned = table[table["outcome"] == "fails beyond"].set_index("run_id")["first_wrong_length"]
    assert learned.to_dict() == {x: wrong[x] for x in learned.index}
    others = table[table["outcome"] == "not learned"]
    assert others["first_wrong_length"].isna().all()
    assert f"it is wrong first at length {learned.iloc[0]} (trained to 10)." in plain(app)
    breaking = app.dataframe[-1].value
    assert breaking["models"].is_monotonic_decreasing
    assert (breaking["models"].iloc[0], breaking["share"].iloc[0]) == (8, 8 / 16)
    unlearned = int(others["run_id"].iloc[0])
    app = open_app(monkeypatch, SHIPPED, "failing", run=str(unlearned))
    assert "Not learned: it is right on 433 of 508 test strings" in plain(app)
    assert "Solved length" not in metrics(app)
    # By a lower threshold it has learned, and is wrong first within the lengths of its training.
    link = {"run": str(unlearned), "learned": "80", "seed": "0"}
    app = open_app(monkeypatch, SHIPPED, "failing", **link)
    assert "Learned, but fails beyond" in plain(app)
    assert f"it is wrong first at length {wrong[unlearned]} (trained to 10)." in plain(app)
    assert "is not in the table above" in said(app)


def test_the_worst_model_is_chosen_and_all_its_strings_are_listed_and_saved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    offered: list[Any] = []

    def later(make: Any) -> Any:
        offered.append(make)
        return lambda: ""

    monkeypatch.setattr(visitors, "later", later)
    app = open_app(monkeypatch, SHIPPED, "failing", sweep="all_initializations")
    models = app.dataframe[0].value
    assert sorted(models["model_seed"]) == [0, 1, 2, 3, 4, 6, 7]
    assert models["accuracy"].is_monotonic_increasing
    run = int(models["run_id"].iloc[0])
    assert app.query_params["run"] == str(run)
    counted = "SELECT count(*), sum(occurrences) FROM misclassified WHERE run_id = "
    ((number, occurring),) = rows(SHIPPED, f"{counted}{run}")
    # Those of the page itself, and not of what is shared of it.
    code = [getattr(make, "__code__", None) for make in offered]
    own = [
        make()
        for make, known in zip(offered, code, strict=True)
        if known is not None and known.co_filename.endswith("failing.py")
    ]
    texts = [x.decode() if isinstance(x, bytes) else str(x) for x in own]
    files = [pd.read_csv(io.StringIO(x)) for x in texts if x.startswith("string,")]
    assert [len(x) for x in files] == [number] * 2, "as CSV and for spreadsheets"
    assert files[0]["occurrences"].sum() == occurring
    assert number > len(app.dataframe[1].value), "of which a page shows the first"


def test_the_shortest_string_that_a_seed_gets_wrong_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = open_app(monkeypatch, SHIPPED, "failing", sweep="all_initializations", seed="2")
    drawn = Drawn(Facts(SHIPPED), Ledger("failing"), "page failing",
                  Chosen(("all_initializations",), seeds=(2,)))  # fmt: skip
    drawn.page(app)
    assert not drawn.ledger.differences
    shortest = app.dataframe[1].value.iloc[0]
    assert shortest["string"] in [code.value for code in app.code]
    assert metrics(app)["Solved length"] == str(shortest["length"] - 1) == "68"
    (link,) = (x for x in app.page_link if x.page != "launch")
    assert (link.page, link.proto.query_string) == ("model", "run=5")
    app.text_input(key="find").set_value("b{100}")
    strings = rerun(app).dataframe[1].value
    assert (strings["string"].str.extract(r"b\{(\d+)\}")[0].astype(int) >= 100).all()
    assert "ab{100}c{55}" in strings["string"].tolist()
    app.text_input(key="find").set_value("*no such*")
    assert "No misclassified string of this model matches" in rerun(app).info[0].value


def test_a_link_to_a_model_that_the_table_does_not_show_shows_it_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    link = {"run": "5", "sweep": "lower_magnitude_initializations", "string": "ab{68}"}
    app = open_app(monkeypatch, SHIPPED, "failing", **link)
    assert "Model 5" in [title.value for title in app.subheader]
    assert "Model 5 is not in the table above; select another there." in said(app)
    assert "run=5&string=ab%7B68%7D" in [x.proto.query_string for x in app.page_link]
    ((false_positives, false_negatives),) = rows(SHIPPED, "SELECT fp, fn FROM run WHERE id = 5")
    shown = metrics(app)
    assert shown["False positives"] == f"{false_positives:,}"
    assert shown["False negatives"] == f"{false_negatives:,}"


# Of several languages.


def test_failing_models_of_several_languages_are_told_apart(
    monkeypatch: pytest.MonkeyPatch, trained: Path
) -> None:
    db = trained / "languages.db"
    app = open_app(monkeypatch, db, "failing")
    assert app.dataframe[0].value["accuracy"].is_monotonic_increasing
    assert "the least accurate first" in said(app)
    (offered,) = [box.options for box in app.selectbox if box.label == "Language"]
    assert {name.split(",")[0] for name in offered} == {"parity", "first", "regular"}
    for name in offered:
        (chosen,) = [box for box in app.selectbox if box.label == "Language"]
        chosen.set_value(name)
        table = rerun(app).dataframe[-1].value
        letters = set("ab") if name.startswith("regular") else set("01")
        assert {x for text in table["string"] for x in spelled_out(text)} <= letters
        assert table["models"].iloc[0] == table["models"].max()
        assert (table["share"] <= 1).all()
    # A string that not every test set has is a share of those that have it.
    found = breaking_strings.breaking_strings(open_reader(str(db)), Selection(), limit=10)
    own = found.strings[found.strings["language"].str.startswith("regular")].iloc[0]
    ((tested,),) = rows(
        db,
        "SELECT count(*) FROM run JOIN config ON config.id = run.config_id JOIN test_string "
        f"USING (test_set_id) WHERE fp + fn > 0 AND string = '{own['string']}'",
    )
    assert own["models"] <= own["of"] == tested


@pytest.mark.parametrize("page", ["failing", "model"])
def test_a_model_gives_way_to_one_of_the_language_that_is_filtered_by(
    trained: Path, monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    store = open_reader(str(trained / "languages.db"))
    models = queries.runs(store)
    parity = int(models.loc[models["task"] == "parity", "id"].iloc[0])
    app = open_app(monkeypatch, trained / "languages.db", page, run=str(parity))
    assert app.query_params["run"] == str(parity)
    app.multiselect(key="task").set_value(["first"])
    shown = rerun(app).query_params["run"]
    assert queries.run_config(store, int(shown)).task == "first"
    app.multiselect(key="task").set_value(["first", "parity"])
    assert rerun(app).query_params["run"] == shown, "it is left, and stays"


def test_strings_are_handed_out_as_stored_and_written_out_where_they_are_shown(
    monkeypatch: pytest.MonkeyPatch, kinds: Path, tmp_path: Path
) -> None:
    """Brackets: repetitions are stored, and read as they are asked about."""
    facts = Facts(kinds / "kinds.db")
    db = copy_of("kinds", "kinds.db", tmp_path)
    run = next(
        x["run_id"] for x in facts.sweeps["brackets"]
        if any("({" in text for text in facts.errors[x["run_id"]])
    )  # fmt: skip
    stored = set(facts.errors[run])
    repeated = next(text for text in stored if "({" in text)
    assert set(api.errors_of_run(open_reader(str(db)), run)["string"]) == stored
    as_data = json.loads(run_main("errors", str(run), "--json", SEQCLS_DB=str(db)).stdout)
    assert {row["string"] for row in as_data} == stored
    shown = run_main("errors", str(run), SEQCLS_DB=str(db)).stdout
    assert "((" in shown
    assert repeated not in shown.split()
    app = open_app(monkeypatch, db, "failing", run=str(run), find="({2}")
    table = next(own.value for own in app.dataframe if "logit" in own.value)
    assert len(table)
    assert table["string"].str.contains("((", regex=False).all()
    # Errors are drawn by features of the task.
    across = next(box for box in app.selectbox if box.label == "Horizontal axis")
    assert {"nesting depth", "('s", ")'s", "length"} <= set(across.options)
    store = open_writer(str(db))
    found = api.causes(store, "brackets")
    wrong = sum(x["occurrences"] for x in facts.errors[run].values())
    assert found.loc[found["run_id"] == run, "strings"].sum() == min(SAMPLE, wrong)
    assert api.remedies(store, run).mechanisms


# The loop from failing seeds to what a remedy mended.

SEEDS = 7
"""Seeds of the report's eight that fail."""


def test_a_cause_without_a_remedy_is_a_card_that_names_one(
    monkeypatch: pytest.MonkeyPatch, trained: Path
) -> None:
    store = open_reader(str(trained / "explained.db"))
    (loop,) = loops(store)
    assert (len(loop.run_ids), loop.finished, loop.mechanism) == (SEEDS, 8, "dilution")
    assert loop.best is None
    text = plain(open_app(monkeypatch, trained / "explained.db"))
    assert "*dilution* in 7 of 8 seeds → try attention" in text
    assert "not tried yet" in text
    # All suggestions are launched as one sweep.
    launched: list[Any] = []
    monkeypatch.setattr("dashboard.actions.launch", lambda specs, _: launched.extend(specs))
    run_id = loop.run_ids[0]
    suggested = trials(store, run_id, [loop.mechanism])
    app = open_app(monkeypatch, trained / "explained.db", "model", run=str(run_id))
    button = app.button(f"train_all {run_id}")
    assert f"({8 * len(suggested)} models)" in button.label
    button.click()
    rerun(app)
    (spec,) = launched
    assert list(spec.model_seeds) == list(range(8))
    assert {config.key for config in spec.configs()} == {
        config.key for each in suggested for config in each.spec.configs()
    }


def test_the_first_page_and_the_command_tell_what_a_remedy_mended(
    monkeypatch: pytest.MonkeyPatch, trained: Path
) -> None:
    db = trained / "mended.db"
    store = open_reader(str(db))
    (loop,) = loops(store)
    assert loop.best is not None
    runs = queries.runs(store)
    before = runs[runs["config_id"] == loop.config_id].set_index("model_seed")["errors"]
    (tried,) = {*runs.set_index("id").loc[list(loop.best.run_ids), "config_id"]}
    changed = runs[runs["config_id"] == tried].set_index("model_seed")
    after, learned = changed["errors"], changed["outcome"] != "not learned"
    mended, seeds = sum(loop.best.results.values()), len(loop.best.results)
    assert seeds == int(((before > 0) & learned).sum()) < SEEDS
    assert loop.best.left_out[0] == int((~learned).sum()), "they are no measure of it"
    assert mended == int(((before > 0) & (after == 0)).sum()) > 0
    assert loop.best.broken == int(((before == 0) & learned & (after > 0)).sum())
    app = open_app(monkeypatch, db)
    (told,) = [x.label for x in app.expander if "dilution" in x.label]
    told = told.replace("\\", "")
    assert "*dilution* in 7 of 8 seeds → attention_scale=log_length → " in told
    of = "" if mended == seeds else f" of {seeds}"
    left_out = f"{loop.best.left_out[0]} not learned"
    assert f"{mended}{of} mended, {loop.best.broken} broken, {left_out}" in told
    # Suggestions say how often they mended this cause.
    first, *others = trials(store, loop.run_ids[0], [loop.mechanism])
    assert first.mended == (mended, seeds)
    assert first.record() == loop.best.record(), "the card has what the page and the command have"
    assert [each.mended for each in others] == [(0, 0)] * len(others)
    asked = ("remedies", str(loop.run_ids[0]), "--db", str(db))
    suggested = json.loads(run_main(*asked, "--json").stdout)["suggestions"]
    assert suggested[0]["mended"] == {"seeds": mended, "of": seeds}
    text = run_main(*asked).stdout
    assert f"mended dilution in {mended} of {seeds} seeds of this" in text
    assert f"{loop.best.left_out[0]} with it left out: not learned" in text


def test_a_model_trained_for_too_short_fails_by_that_and_longer_training_mends_it(
    tmp_path: Path,
) -> None:
    store = open_writer(str(copy_of("trained", "short.db", tmp_path)))
    runs = queries.runs(store).set_index("id")
    for run_id, found in stored_causes.causes(store).groupby("run_id"):
        first, *others = found.to_dict("records")
        counts = runs.loc[run_id]
        assert first["mechanism"] == "not learned"
        assert f"{counts['wrong_within']} of {counts['tested_within']} test" in first["tokens"]
        assert "training loss was still falling" in first["tokens"]
        assert {each["mechanism"] for each in others} <= BESIDE_NOT_LEARNED
        assert found["share"].sum() == pytest.approx(1)
    (loop,) = loops(store)
    assert loop.mechanism == "not learned"
    assert loop.best is not None
    assert loop.best.suggestion.fields == {"max_num_epochs": 8, "patience": 12}
    learned = [x for x in loop.best.run_ids if runs.loc[x, "outcome"] != "not learned"]
    assert loop.best.mended == (len(learned), 2)
    assert learned, "eight epochs are enough for some seed"
    told = run_main("remedies", "1", "--db", store.location).stdout
    assert f"trained: {2 - len(learned)} of 2 seeds have not learned, against 2 of 2" in told
    # It is judged by trained lengths alone, whatever becomes of longer strings.
    with store.write(quiet=True) as connection:
        connection.exec_driver_sql("UPDATE run SET wrong_within = 0 WHERE id > 2")
    (mended,) = loops(store)
    assert mended.best is not None
    assert (queries.runs(store)["wrong_beyond"] > 0).any()
    assert (mended.best.mended, mended.best.left_out) == ((2, 2), (0, 0))
    columns = ("tested_within", "wrong_within", "within_from", "tested_beyond", "wrong_beyond")
    unknown = ", ".join(f"{name} = NULL" for name in columns)
    for which, mends, left_out, begins in (
        ("id = 3", (1, 1), (1, 0), "trained: 0 of 1 seed have not learned, against 2 of 2"),
        ("id > 2", None, None, "trained, and no seeds to compare: 2 with it left out"),
    ):
        with store.write(quiet=True) as connection:
            connection.exec_driver_sql(f"UPDATE run SET {unknown} WHERE {which}")
        if mends is not None:
            (one,) = loops(store)
            assert one.best is not None
            assert (one.best.mended, one.best.left_out) == (mends, left_out)
        (sentence, *_) = map(trial_sentence, trials(store, 1, ["not learned"]))
        assert sentence.startswith(begins)
        assert sentence.endswith("left out: not judged on trained lengths")


# What is said of a remedy follows from what is trained: nothing, a part, all, or in vain.

BLIND = {"task": "parity", "positions": "sinusoidal", "readout": "last"}


def submit(store: Store, config: RunConfig, seeds: str, name: str) -> None:
    spec = {"name": name, "model_seeds": seeds, "fixed": named_fields(config)}
    writer.submit(store, parse_spec(spec))


def set_done(store: Store, where: str) -> None:
    """Runs as they are once they are trained: their only error is longer than in training."""
    with store.write(quiet=True) as connection:
        connection.exec_driver_sql(
            "UPDATE run SET state = 'done', tn = 5, fp = 1, fn = 0, tp = 4, tested = 10, "
            "wrong = 1, tested_within = 5, wrong_within = 0, within_from = 'test', "
            f"tested_beyond = 5, wrong_beyond = 1 WHERE {where}"
        )


def explain(store: Store, run_ids: Sequence[int], mechanism: str = "simple rule") -> None:
    """As if the causes of these runs' errors had been found."""
    for run_id in run_ids:
        writer.record_causes(store, run_id, [Cause(mechanism, None, "a rule", 1.0, 1, 0.99)])


@pytest.fixture
def looked_at(store: Store) -> Store:
    """Six Transformers, all of which fail on parity; the causes of two of them are known."""
    submit(store, configuration(BLIND), "0..5", "parity")
    set_done(store, "true")
    explain(store, [1, 2])
    return store


def cards(store: Store, view: Selection | None = None) -> list[str]:
    found = loops(store, view)
    return [story_sentence(loop).replace("\\", "") for loop in found]


def test_a_card_knows_every_trial_that_the_page_knows(looked_at: Store) -> None:
    known = "*simple rule* in 2 of 2 failing seeds whose causes are known, of 6 that fail"
    lstm = "try architecture=lstm (now transformer), and with it positions=none: not tried yet"
    assert cards(looked_at) == [f"{known} → {lstm}"], "who nobody looked at does not count"
    explain(looked_at, [3, 4, 5, 6])
    assert cards(looked_at) == [f"*simple rule* in 6 of 6 seeds → {lstm}"]
    # It says another number of heads, which an LSTM does not read.
    fields = {"task": "parity", "architecture": "lstm", "readout": "last", "num_attention_heads": 5}
    submit(looked_at, configuration(fields), "0..4", "LSTMs")
    (sentence,) = cards(looked_at)
    assert sentence.endswith("positions=none: in training: none of 5 seeds is done yet")
    set_done(looked_at, "id > 6")
    with looked_at.write(quiet=True) as connection:
        connection.exec_driver_sql("UPDATE run SET fp = 0, tn = 6, wrong = 0 WHERE id > 6")
        connection.exec_driver_sql("UPDATE run SET wrong_beyond = 0 WHERE id > 6")
    (sentence,) = cards(looked_at)
    assert sentence.endswith("→ architecture=lstm, positions=none → **0 of 5 seeds fail with it**")
    (trial,) = remedy_trials.trials(looked_at, 1, ["simple rule"])
    assert trial_sentence(trial).startswith("trained: 0 of 5 seeds fail, against 6")
    (loop,) = loops(looked_at)
    assert loop.best is not None
    assert loop.best.record() == trial.record()
    # Of another configuration of the same failure it is said that this was elsewhere.
    submit(looked_at, configuration({**BLIND, "hidden_size": 4}), "0..1", "wider")
    set_done(looked_at, "id > 11")
    other = remedy_trials.trials(looked_at, 12, ["simple rule"])
    said_of_it = {x.suggestion.field: remedy_trials.sentences(x) for x in other}
    assert said_of_it["architecture"] == [
        "not tried on this configuration",
        "elsewhere in this database it mended simple rule in 5 of 5 seeds",
    ]


def test_cards_obey_filters_and_thresholds(looked_at: Store) -> None:
    submit(looked_at, configuration({**BLIND, "hidden_size": 4}), "0..1", "wider")
    set_done(looked_at, "id > 6")
    explain(looked_at, [7, 8], "errors by a feature")
    assert len(cards(looked_at)) == 2
    for sweep, cause in {"parity": "*simple rule*", "wider": "*errors by a feature*"}.items():
        (card,) = cards(looked_at, Selection(sweeps=(sweep,)))
        assert card.startswith(cause)
    (card,) = cards(looked_at, Selection(("parity",), model_seeds=(0, 3)))
    assert "in 1 of 1 failing seeds whose causes are known, of 2 that fail" in card
    assert cards(looked_at, Selection(("parity",), outcomes=(Outcome.GENERALIZES,))) == []
    # Each is right on nine of ten strings.
    assert cards(looked_at, Selection(below=0.9)) == []
    assert len(cards(looked_at, Selection(below=0.91))) == 2
    # By another accuracy on trained lengths, they have not learned.
    with looked_at.write(quiet=True) as connection:
        connection.exec_driver_sql("UPDATE run SET tested_within = 1000, wrong_within = 5")
    (card,) = cards(looked_at, Selection(("parity",), learned_at=0.999))
    assert card.startswith("*not learned* in 2 of 2")
    assert card.endswith("→ hidden_size=4 → **2 of 2 seeds have not learned with it**")
    (card,) = cards(looked_at, Selection(("parity",), learned_at=0.995))
    assert card.startswith("*simple rule*")
