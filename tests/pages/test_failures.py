"""Page Failures: which models fail, by which causes, on which strings, and what a remedy mended."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from dashboard import background
from dashboard.failures import sections
from seqcls.config import RunConfig
from seqcls.interpretability.mechanisms import BESIDE_NOT_LEARNED, CAUSES
from seqcls.interpretability.remedies import named_fields
from seqcls.problem import configuration
from seqcls.results import Cause
from sweeps.api import failing
from sweeps.api import trials as remedy_trials
from sweeps.api.trials import remedies_tried, trial_sentence, trials
from sweeps.grid.spec import parse_spec
from sweeps.results import Outcome
from sweeps.store import writer
from sweeps.store.database import Store
from sweeps.store.opening import open_reader, open_writer
from sweeps.store.reads import explained as stored_causes
from sweeps.store.reads import queries
from sweeps.store.reads.selection import Selection
from tests.app import open_app, plain, rerun
from tests.commands import run_main
from tests.conftest import SHIPPED
from tests.databases import change, rows
from tests.oracles.chosen import Chosen
from tests.oracles.compared import spelled_out
from tests.oracles.facts import Facts, Row, outcome
from tests.stock import copy_of


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with copies of the databases."""
    folder = tmp_path_factory.mktemp("trained")
    for name in ("languages.db", "explained.db", "mended.db", "short.db"):
        copy_of("trained", name, folder)
    return folder


def table_with(app: AppTest, column: str) -> pd.DataFrame:
    """The table of a page that has this column; an empty one where none does."""
    return next((x.value for x in app.dataframe if column in x.value), pd.DataFrame())


# Numbers, compared with SQL.

FILTERS = {
    "all": Chosen(),
    "seeds": Chosen(seeds=(0, 1, 3)),
    "below": Chosen(below=0.95),
    "beyond": Chosen(outcomes=("fails beyond",), learned_at=0.85, below=0.97),
    "learned": Chosen(learned_at=1.0),
}


def true_cause(facts: Facts, run: Row, chosen: Chosen) -> str | None:
    """The main one of a run's stored causes at the accuracy from which it has learned."""
    sql = "SELECT mechanism, sum(share) AS share FROM cause WHERE run_id = ? GROUP BY mechanism"
    shares = {row["mechanism"]: row["share"] for row in facts.ask(sql, run["run_id"])}
    if shares and outcome(run, chosen.learned_at, chosen.below) == "not learned":
        return "not learned"
    shares.pop("not learned", None)
    if "order not seen" in shares:
        return "order not seen"
    return max(shares, key=lambda x: float(shares[x])) if shares else None


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("file", ["mended.db", "languages.db", "short.db"])
def test_the_numbers_of_failures_equal_those_of_sql(
    monkeypatch: pytest.MonkeyPatch, trained: Path, file: str, name: str
) -> None:
    facts, chosen = Facts(trained / file), FILTERS[name]
    app = open_app(monkeypatch, trained / file, "failures", **chosen.query)
    judged = (chosen.learned_at, chosen.below)
    tasks = Counter(facts.configs[x["config_id"]]["task"] for x in facts.scope((), ()))
    (task, _), *_ = tasks.most_common()
    scope = [x for x in chosen.scope(facts) if facts.configs[x["config_id"]]["task"] == task]
    own = [x for x in scope if chosen.picks(x)]
    fail = [x for x in own if outcome(x, *judged) in ("fails beyond", "not learned")]
    if not fail:
        none = f"None of {len(own)} tested models fails." if own else "No trained model matches"
        assert none in plain(app)
        return
    assert f"{len(fail)} of {len(own)} tested models fail" in plain(app)
    worst = sorted(fail, key=lambda x: (x["accuracy"], x["run_id"]))[: sections.PAGE]
    main = {x["run_id"]: true_cause(facts, x, chosen) for x in fail}
    known = {x: CAUSES[y].phrase for x, y in main.items() if y}
    expected = [
        (
            run["model_seed"],
            outcome(run, *judged),
            None if outcome(run, *judged) == "not learned" else run["shortest"],
            run["wrong"],
            known.get(run["run_id"]),
        )
        for run in worst
    ]
    columns = ["seed", "outcome", "first_wrong_length", "errors", "cause"]
    table_rows = table_with(app, "first_wrong_length")[columns].astype(object).to_numpy().tolist()
    assert [tuple(None if pd.isna(x) else x for x in row) for row in table_rows] == expected
    # Causes by configuration.
    counted = Counter((known[x], facts.runs[x]["config_id"]) for x in known)
    failing_by_config = Counter(x["config_id"] for x in fail)
    causes = table_with(app, "example")
    assert sorted(zip(causes["cause"], causes["failing"], strict=True) if len(causes) else []) == (
        sorted((cause, f"{n} of {failing_by_config[x]}") for (cause, x), n in counted.items())
    )
    if known:
        ((_, most),) = Counter(known.values()).most_common(1)
        assert f"Of {len(fail)} failing model" in plain(app)
        assert f"{most} fail" in plain(app)
    # Strings.
    broken = Counter(text for x in fail for text in facts.errors[x["run_id"]])
    strings = table_with(app, "breaks")
    numbers = [int(x.split(" of ")[0]) for x in strings["breaks"]]
    assert numbers == [n for _, n in broken.most_common(sections.STRINGS)]
    stored = {spelled_out(x): x for x in broken}
    for row in strings.head(20).to_dict("records"):
        string = stored[spelled_out(row["string"].replace("ε", ""))]
        tested = sum(string in facts.test_strings(x["run_id"]) for x in fail)
        assert row["breaks"] == f"{broken[string]} of {tested}"


def test_causes_of_an_unknown_name_are_ignored_and_found_again(looked_at: Store) -> None:
    found = failing.failing_models(looked_at, Selection())
    explain(looked_at, [1, 2, 3], "another language")
    assert failing.waiting(looked_at, found) == (found["run_id"].tolist(), {})
    (first, *_) = sections.causes(looked_at, Selection()).says
    assert first == "Cause not known yet for 6 failing models."


def test_models_of_unknown_outcome_are_listed_with_their_errors(
    monkeypatch: pytest.MonkeyPatch, db: Path
) -> None:
    app = open_app(monkeypatch, db, "failures", sweep="imported")
    table = table_with(app, "first_wrong_length")
    assert set(table["outcome"]) == {"not known"}
    assert (table["errors"] > 0).all()
    assert f"{len(table)} models make errors; their outcome is unknown" in plain(app)
    assert "No cause can be found for 4 models: it was trained elsewhere" in plain(app)


def test_wrong_outputs_are_listed_with_their_first_wrong_token(
    monkeypatch: pytest.MonkeyPatch, db: Path, facts: Facts
) -> None:
    app = open_app(monkeypatch, db, "failures", sweep="transduction")
    shown = table_with(app, "wrong_token")
    assert len(shown)
    sql = "SELECT string, output, first_wrong FROM wrong_output JOIN sweep_run USING (run_id)"
    sql += " JOIN sweep ON sweep.id = sweep_id WHERE name = 'transduction'"
    true = {
        (spelled_out(x["string"]), spelled_out(x["output"])): x["first_wrong"]
        for x in facts.ask(sql)
    }
    for row in shown.replace("ε", "").to_dict("records"):
        place = true[spelled_out(row["string"]), spelled_out(row["output"])]
        assert row["wrong_token"].startswith(f"{place + 1}: ")


def test_models_are_paged_and_the_link_names_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sections, "PAGE", 3)
    facts, errors = Facts(SHIPPED), []
    for number in range(1, 4):
        seeds = ["0", "1", "2"]
        app = open_app(monkeypatch, SHIPPED, "failures", models_page=str(number), seed=seeds)
        errors += table_with(app, "first_wrong_length")["errors"].tolist()
    own = [x["wrong"] for x in Chosen(seeds=(0, 1, 2)).scope(facts) if x["wrong"]]
    assert errors == sorted(own, reverse=True)[:9]


# Causes are found in the background.


def test_causes_are_found_in_the_background_for_requested_models_first(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    db = copy_of("trained", "explained.db", tmp_path)
    store = open_writer(str(db))
    change(store, "DELETE FROM finding WHERE kind = 'cause'")
    app = open_app(monkeypatch, db, "failures")
    assert "Cause not known yet for 16 failing models." in plain(app)
    assert "being looked for" not in plain(app), "no server runs here, and so nobody does"
    assert not background.request([1])
    monkeypatch.setattr(background, "SECONDS", 0.1)
    monkeypatch.setattr(background, "AT_ONCE", 1)
    background.start()
    try:
        assert background.request([37])
        order: list[int] = []
        until = monotonic() + 120
        while len(order) < 2 and monotonic() < until:
            known = stored_causes.runs_with_causes(open_reader(str(db)))
            order += sorted(known - {*order})
            sleep(0.1)
    finally:
        background.stop()
    assert order[0] == 37
    assert len(order) >= 2
    app = open_app(monkeypatch, db, "failures")
    assert "The causes of" in plain(app)
    monkeypatch.setenv("SEQCLS_READ_ONLY", "1")
    background.start()
    assert not background.request([1]), "what only reads finds none"


# The loop from failing seeds to what a remedy mended.

SEEDS = 7
"""Seeds of the report's eight that fail."""


def test_a_remedy_is_launched_from_the_page_of_a_model(
    monkeypatch: pytest.MonkeyPatch, trained: Path
) -> None:
    store = open_reader(str(trained / "explained.db"))
    (tried,) = remedies_tried(store, Selection())
    assert (len(tried.run_ids), tried.mechanism, tried.best) == (SEEDS, "dilution", None)
    app = open_app(monkeypatch, trained / "explained.db", "failures")
    assert "No remedy was tried yet" in plain(app)
    (row,) = table_with(app, "remedy").to_dict("records")
    assert row["came_of_it"] == "not tried yet"
    launched: list[Any] = []
    monkeypatch.setattr("dashboard.actions.launch", lambda specs, _: launched.append(specs))
    run_id = tried.run_ids[0]
    suggested = trials(store, run_id, [tried.mechanism])
    app = open_app(monkeypatch, trained / "explained.db", "model", run=str(run_id))
    button = app.button(f"try {run_id} 0")
    assert "8 models" in button.label
    button.click()
    rerun(app)
    # All suggestions are launched as one sweep.
    app.button(f"train_all {run_id}").click()
    rerun(app)
    (one,), (every,) = launched
    assert [x.key for x in one.configs()] == [x.key for x in suggested[0].spec.configs()]
    assert list(one.model_seeds) == list(every.model_seeds) == list(range(8))
    assert {config.key for config in every.configs()} == {
        config.key for suggestion in suggested for config in suggestion.spec.configs()
    }


def test_page_and_command_report_the_seeds_that_a_remedy_mended(
    monkeypatch: pytest.MonkeyPatch, trained: Path
) -> None:
    db = trained / "mended.db"
    store = open_reader(str(db))
    (tried,) = remedies_tried(store, Selection())
    assert tried.best is not None
    runs = queries.runs(store)
    before = runs[runs["config_id"] == tried.config_id].set_index("model_seed")["errors"]
    (with_it,) = {*runs.set_index("id").loc[list(tried.best.run_ids), "config_id"]}
    changed = runs[runs["config_id"] == with_it].set_index("model_seed")
    after, learned = changed["errors"], changed["outcome"] != "not learned"
    seeds = int(((before > 0) & learned).sum())
    mended = int(((before > 0) & (after == 0)).sum())
    broken = int(((before == 0) & learned & (after > 0)).sum())
    left_out = int((~learned).sum())
    app = open_app(monkeypatch, db, "failures")
    (row,) = table_with(app, "remedy").to_dict("records")
    assert row["mended"] == f"{mended} of {seeds}"
    assert (row["broken"], row["came_of_it"]) == (str(broken), f"{left_out} not learned")
    assert f"attention_scale=log_length mends {mended}." in plain(app)
    first, *_ = trials(store, tried.run_ids[0], [tried.mechanism])
    assert row["p_of_remedy"] == first.record()["trained"]["p_value"]
    arguments = ("remedies", str(tried.run_ids[0]), "--db", str(db))
    suggested = json.loads(run_main(*arguments, "--json").stdout)["suggestions"]
    assert suggested[0]["mended"] == {"seeds": mended, "of": seeds}
    text = run_main(*arguments).stdout
    assert f"mended dilution in {mended} of {seeds} seeds of this" in text
    assert f"{left_out} with it left out: not learned" in text
    names = [name for (name,) in rows(db, "SELECT name FROM sweep")]
    report = " ".join(run_main("report", *names, "--db", str(db)).stdout.split())
    assert f"{SEEDS} fail by dilution" in report
    sentence = f"attention_scale=log_length mends {mended}."
    assert f"Of {seeds} seeds that fail by dilution, {sentence}" in report


def test_short_training_is_a_cause_that_longer_training_mends(tmp_path: Path) -> None:
    store = open_writer(str(copy_of("trained", "short.db", tmp_path)))
    runs = queries.runs(store).set_index("id")
    for run_id, found in stored_causes.causes(store).groupby("run_id"):
        first, *others = found.to_dict("records")
        counts = runs.loc[run_id]
        assert first["mechanism"] == "not learned"
        assert f"{counts['wrong_within']} of {counts['tested_within']} test" in first["tokens"]
        assert "training loss was still falling" in first["tokens"]
        assert {cause["mechanism"] for cause in others} <= BESIDE_NOT_LEARNED
        assert found["share"].sum() == pytest.approx(1)
    (tried,) = remedies_tried(store, Selection())
    assert tried.mechanism == "not learned"
    assert tried.best is not None
    assert tried.best.suggestion.fields == {"max_num_epochs": 8, "patience": 12}
    learned = [x for x in tried.best.run_ids if runs.loc[x, "outcome"] != "not learned"]
    assert sum(tried.best.results.values()) == len(learned)
    assert len(tried.best.results) == 2
    assert learned, "eight epochs are enough for some seed"
    output = run_main("remedies", "1", "--db", store.location).stdout
    assert f"trained: {2 - len(learned)} of 2 seeds have not learned, against 2 of 2" in output
    # It is judged by trained lengths alone, whatever becomes of longer strings.
    change(store, "UPDATE run SET wrong_within = 0 WHERE id > 2")
    (mended,) = remedies_tried(store, Selection())
    assert mended.best is not None
    assert (queries.runs(store)["wrong_beyond"] > 0).any()
    assert [*mended.best.results.values()] == [True, True]
    columns = ("tested_within", "wrong_within", "within_from", "tested_beyond", "wrong_beyond")
    unknown = ", ".join(f"{name} = NULL" for name in columns)
    for which, left_out, begins in (
        ("id = 3", (1, 0), "trained: 0 of 1 seed have not learned, against 2 of 2"),
        ("id > 2", None, "trained, and no seeds to compare: 2 with it left out"),
    ):
        change(store, f"UPDATE run SET {unknown} WHERE {which}")
        if left_out is not None:
            (one,) = remedies_tried(store, Selection())
            assert one.best is not None
            assert (len(one.best.results), one.best.left_out) == (1, left_out)
        (sentence, *_) = map(trial_sentence, trials(store, 1, ["not learned"]))
        assert sentence.startswith(begins)
        assert sentence.endswith("left out: not judged on trained lengths")


# Reports on a remedy while nothing, a part, or all of it is trained, or in vain.

BLIND = {"task": "parity", "positions": "sinusoidal", "readout": "last"}


def submit(store: Store, config: RunConfig, seeds: str, name: str) -> None:
    spec = {"name": name, "model_seeds": seeds, "fixed": named_fields(config)}
    writer.submit(store, parse_spec(spec))


def set_done(store: Store, where: str) -> None:
    """Runs as they are once they are trained: their only error is longer than in training."""
    change(
        store,
        "UPDATE run SET state = 'done', tn = 5, fp = 1, fn = 0, tp = 4, tested = 10, "
        "wrong = 1, tested_within = 5, wrong_within = 0, within_from = 'test', "
        f"tested_beyond = 5, wrong_beyond = 1 WHERE {where}",
    )


def explain(store: Store, run_ids: Sequence[int], mechanism: str = "simple rule") -> None:
    """Stores a cause of these runs' errors, as if it had been found."""
    for run_id in run_ids:
        writer.record_findings(
            store, run_id, "cause", [Cause(mechanism, None, "a rule", 1.0, 1, 0.99)]
        )


@pytest.fixture
def looked_at(store: Store) -> Store:
    """Six Transformers, all of which fail on parity; the causes of two of them are known."""
    submit(store, configuration(BLIND), "0..5", "parity")
    set_done(store, "true")
    explain(store, [1, 2])
    return store


def rows_of(store: Store, selection: Selection = Selection()) -> list[dict[str, Any]]:  # noqa: B008
    table = sections.remedies(store, selection).table
    return (
        []
        if table is None
        else [{str(x): y for x, y in r.items()} for r in table.to_dict("records")]
    )


def test_the_table_of_remedies_has_every_trial_of_the_page_of_a_model(looked_at: Store) -> None:
    lstm = "architecture=lstm, positions=none"
    (row,) = rows_of(looked_at)
    assert (row["cause"], row["remedy"]) == ("a simple rule of their own", lstm)
    assert row["came_of_it"] == "not tried yet"
    explain(looked_at, [3, 4, 5, 6])
    # Its number of heads differs, which an LSTM does not read.
    fields = {"task": "parity", "architecture": "lstm", "readout": "last", "num_attention_heads": 5}
    submit(looked_at, configuration(fields), "0..4", "LSTMs")
    (row,) = rows_of(looked_at)
    assert row["came_of_it"] == "5 in training"
    set_done(looked_at, "id > 6")
    change(looked_at, "UPDATE run SET fp = 0, tn = 6, wrong = 0, wrong_beyond = 0 WHERE id > 6")
    (row,) = rows_of(looked_at)
    assert row["mended"] == "5 of 5"
    (trial,) = remedy_trials.trials(looked_at, 1, ["simple rule"])
    assert trial_sentence(trial).startswith("trained: 0 of 5 seeds fail, against 6")
    # For another configuration of the same failure it is reported as elsewhere.
    submit(looked_at, configuration({**BLIND, "hidden_size": 4}), "0..1", "wider")
    set_done(looked_at, "id > 11")
    other = remedy_trials.trials(looked_at, 12, ["simple rule"])
    sentences_by_field = {x.suggestion.field: remedy_trials.sentences(x) for x in other}
    assert sentences_by_field["architecture"] == [
        "not tried on this configuration",
        "elsewhere in this database it mended simple rule in 5 of 5 seeds",
    ]


def test_remedies_obey_filters_and_thresholds(looked_at: Store) -> None:
    submit(looked_at, configuration({**BLIND, "hidden_size": 4}), "0..1", "wider")
    set_done(looked_at, "id > 6")
    explain(looked_at, [7, 8], "errors beyond a bound")
    assert len(rows_of(looked_at)) == 2
    for sweep, cause in {"parity": "simple rule", "wider": "errors beyond a bound"}.items():
        (row,) = rows_of(looked_at, Selection(sweeps=(sweep,)))
        assert row["cause"] == CAUSES[cause].phrase
    parity = Selection(("parity",))
    assert not rows_of(looked_at, replace(parity, outcomes=(Outcome.GENERALIZES,)))
    # Each is right on nine of ten strings.
    assert not rows_of(looked_at, Selection(below=0.9))
    assert len(rows_of(looked_at, Selection(below=0.91))) == 2
    # By another accuracy on trained lengths, they have not learned.
    change(looked_at, "UPDATE run SET tested_within = 1000, wrong_within = 5")
    (row,) = rows_of(looked_at, replace(parity, learned_at=0.999))
    assert (row["cause"], row["mended"]) == ("not having learned", "0 of 2")
    (row,) = rows_of(looked_at, replace(parity, learned_at=0.995))
    assert row["cause"] == "a simple rule of their own"
