"""What each page says about the shipped models."""

import io
import json
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from dashboard import links
from dashboard.views.scores import limits
from dashboard.words.names import assign_colors
from seqcls.config import default_fields
from sweeps.grid.spec import parse_spec
from sweeps.store import writer
from sweeps.store.opening import open_writer
from sweeps.work.machine import WorkOptions
from sweeps.work.worker import work
from tests.app import metrics, open_app, rerun, said
from tests.conftest import ROOT, SHORT
from tests.databases import file_of, rows

SHIPPED = ROOT / "runs.db"
INITIALIZATIONS = "all_initializations, generalization_errors, walkthrough"


def test_configurations_are_compared_the_worst_first(monkeypatch: pytest.MonkeyPatch) -> None:
    app = open_app(monkeypatch, SHIPPED)
    assert metrics(app) == {
        "Models tested": "43",
        "Queued or in training": "0",
        "Training failed": "0",
    }
    table = app.dataframe[0].value.set_index("sweeps")
    assert len(table) == 7
    assert table.index[0] == "all_fixed_length_sequences"
    assert (
        "41 of 43 models learned the trained lengths; of these 27 generalize to longer strings."
        in said(app).replace("\\", "")
    )
    initializations = table.loc[INITIALIZATIONS]
    assert (initializations["seeds"], initializations["learned_of"]) == (8, "8 of 8")
    assert initializations["generalize_of"] == "1 of 8"
    assert initializations["generalizing_share"] == 1 / 8
    assert initializations["beyond_seeds"] == "0..4, 6, 7"
    lower = table.loc["lower_magnitude_initializations"]
    assert (lower["learned_of"], lower["unlearned_seeds"]) == ("7 of 8", "2")
    assert (lower["generalize_of"], lower["generalizing_interval"]) == ("2 of 7", "8% to 64%")
    assert "failing" not in table, "where outcomes are known, it says the same less well"
    assert initializations["median_accuracy"] == pytest.approx(0.9384, abs=1e-4)
    assert initializations["interval"] == "89.1% to 97.9%"
    assert table["interval"].isna()["attend_cls"], "one seed has no interval"
    assert {"hidden_size", "num_attention_heads", "train_sampler"} < set(table.columns)
    assert "train_seed" not in table.columns, "only fields that differ are shown"


def test_filters_come_from_the_address_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    app = open_app(monkeypatch, SHIPPED, seed="2", failing="true")
    assert app.multiselect(key="seed").value == [2]
    assert app.toggle(key="failing").value is True
    assert "2 of 43 runs match the filters." in said(app)
    table = app.dataframe[0].value
    # What has not learned is last: nothing is known of it on longer strings.
    assert table["sweeps"].tolist() == [INITIALIZATIONS, "lower_magnitude_initializations"]


def test_a_link_to_a_sweep_that_is_not_there_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    app = open_app(monkeypatch, SHIPPED, sweep="nope")
    assert "The link asks for sweep nope" in app.warning[0].value.replace("\\", "")


ASKED = {
    "hidden_size": "999",
    "hiden_size": "2",
    "weight_decay": "0.5",
    "tag": "nowhere",
    "kind": "sideways",
    "failing": "perhaps",
    "below": "200",
    "learned": "-1",
    "outcome": "sideways",
    "seed": "77",
    "sweeps": "heads",
}


@pytest.mark.parametrize("page", ["compare", "map", "failing"])
def test_what_a_link_asks_for_and_no_filter_has_is_said_by_name(
    monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    app = open_app(monkeypatch, SHIPPED, page, **ASKED)
    warned = [warning.value.replace("\\", "") for warning in app.main.warning]
    for name, value in ASKED.items():
        assert any(f"The link asks for {name} {value}, which is not" in x for x in warned), name
    assert "43 of 43 runs match the filters." in said(app)
    app.button("clear_filters").click()
    rerun(app)
    assert "hiden_size" not in app.query_params
    decay = str(default_fields()["weight_decay"])
    known = open_app(monkeypatch, SHIPPED, page, weight_decay=decay, hidden_size="2")
    assert not known.main.warning


@pytest.mark.parametrize(
    ("page", "query"),
    [
        ("map", {"x": "nothing", "facet": "nowhere"}),
        ("compare", {"config": "999", "measure": "Beauty"}),
        ("sweeps", {"sweep_id": "999"}),
    ],
)
def test_what_a_link_asks_for_and_a_page_does_not_offer_is_said_by_name(
    monkeypatch: pytest.MonkeyPatch, page: str, query: dict[str, str]
) -> None:
    app = open_app(monkeypatch, SHIPPED, page, **query)
    warned = [warning.value.replace("\\", "") for warning in app.main.warning]
    for name, value in query.items():
        assert any(f"The link asks for {name} {value}, which is not" in x for x in warned), name


def test_half_a_link_that_is_known_is_shown_and_the_other_half_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = open_app(monkeypatch, SHIPPED, seed=["2", "77"], hidden_size=["999", "2"])
    warned = " ".join(warning.value for warning in app.main.warning)
    assert "77" in warned
    assert "999" in warned
    assert app.multiselect(key="seed").value == [2]
    assert app.multiselect(key="hidden_size").value == [2]


def test_a_clicked_cell_of_a_map_is_compared_with_the_models_that_it_has(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store = open_writer(str(tmp_path / "cells.db"))
    axes = {"weight_decay": [0.1, 1, 10], "num_attention_heads": [1, 2]}
    spec = {"name": "a", "model_seeds": [0, 1], "axes": axes}
    writer.submit(store, parse_spec({**spec, "fixed": {"hidden_size": 4}}))
    recurrent = {"architecture": "lstm", "readout": "last", "weight_decay": 1}
    writer.submit(store, parse_spec({"name": "b", "model_seeds": [0], "fixed": recurrent}))
    for text in ("1", "1.0"):
        app = open_app(monkeypatch, file_of(store))
        assert "13 of 13 runs match" in said(app)
        app.session_state[links.CHOSEN] = {"weight_decay": text, "num_attention_heads": "1"}
        app.session_state[links.SWITCHED] = True
        # A recurrent network has no heads, whatever is stored of them.
        assert "2 of 13 runs match" in said(rerun(app))


def test_a_setting_is_a_filter_too(monkeypatch: pytest.MonkeyPatch) -> None:
    app = open_app(monkeypatch, SHIPPED, hidden_size="2", train_sampler="variable_length")
    assert metrics(app)["Models tested"] == "9"
    assert app.multiselect(key="hidden_size").value == [2]
    app.button("clear_filters").click()
    assert "43 of 43 runs match" in said(rerun(app))


def test_the_threshold_says_what_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    ((below,),) = rows(
        SHIPPED, "SELECT count(*) FROM run WHERE 10 * (tn + tp) < 9 * (tn + fp + fn + tp)"
    )
    ((beyond,),) = rows(
        SHIPPED,
        "SELECT count(*) FROM run WHERE 100 * wrong_within <= tested_within "
        "AND 10 * wrong_beyond <= tested_beyond",
    )
    app = open_app(monkeypatch, SHIPPED, below="90")
    assert f"of these {beyond} generalize to longer strings" in said(app).replace("\\", "")
    app = open_app(monkeypatch, SHIPPED, below="90", failing="true")
    assert f"{below} of 43 runs match the filters." in said(app)


def count_outcomes(learned_at: int = 99, below: int = 100) -> Counter[str]:
    """What the models of the shipped database came to, at thresholds in percent."""
    counts = rows(
        SHIPPED, "SELECT tested_within, wrong_within, tested_beyond, wrong_beyond FROM run"
    )
    return Counter(
        "not learned"
        if 100 * (within - wrong) < learned_at * within
        else "fails beyond"
        if 100 * (beyond - missed) < below * beyond
        else "generalizes"
        for within, wrong, beyond, missed in counts
    )


def test_compare_says_what_its_parts_count_under_a_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    app = open_app(monkeypatch, SHIPPED, outcome="not learned")
    assert "An empty cell has no finished model of that seed that matches the filters." in said(app)
    assert "Only configurations with a model that matches the filters are compared" in said(app)
    app = open_app(monkeypatch, SHIPPED)
    assert "An empty cell has no finished model of that seed." in said(app)
    assert "are compared, each by all its models" not in said(app)


@pytest.mark.parametrize("page", ["compare", "failing", "sweeps", "map"])
def test_what_a_model_came_to_is_a_filter_of_several_values(
    monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    assert count_outcomes() == {"generalizes": 27, "fails beyond": 14, "not learned": 2}
    app = open_app(monkeypatch, SHIPPED, page, outcome=["not learned", "fails beyond"])
    assert app.multiselect(key="outcome").value == ["not learned", "fails beyond"]
    assert "16 of 43 runs match the filters." in said(app)
    assert "count each of its models, whatever its outcome." in said(app)
    app = open_app(monkeypatch, SHIPPED, page, outcome="not learned")
    assert "2 of 43 runs match the filters." in said(app)
    app.button("clear_filters").click()
    assert "43 of 43 runs match the filters." in said(rerun(app))
    assert not app.multiselect(key="outcome").value


def test_the_thresholds_say_what_has_learned_and_what_generalizes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for thresholds in ({"learned_at": 100}, {"learned_at": 80}, {"learned_at": 80, "below": 95}):
        counts = count_outcomes(**thresholds)
        link = {name.removesuffix("_at"): str(value) for name, value in thresholds.items()}
        for outcome in ("not learned", "fails beyond", "generalizes"):
            app = open_app(monkeypatch, SHIPPED, "map", outcome=outcome, **link)
            assert f"{counts[outcome]} of 43 runs match the filters." in said(app)
    assert app.number_input(key="learned").value == 80


def test_sweeps_are_judged_by_the_thresholds_too(monkeypatch: pytest.MonkeyPatch) -> None:
    for learned_at, below in ((99, 100), (80, 90)):
        true = rows(
            SHIPPED,
            f"SELECT name, avg(learned), avg(CASE WHEN learned THEN {below} * tested_beyond <= "
            "100 * (tested_beyond - wrong_beyond) END), "
            f"avg({below} * tested > 100 * (tested - wrong)), sum(NOT learned) FROM "
            f"(SELECT s.name, run.*, {learned_at} * tested_within <= "
            "100 * (tested_within - wrong_within) AS learned FROM run "
            "JOIN sweep_run ON run_id = run.id JOIN sweep s ON s.id = sweep_id) GROUP BY name",
        )
        link = {"learned": str(learned_at), "below": str(below)}
        app = open_app(monkeypatch, SHIPPED, "sweeps", **link)
        table = app.dataframe[0].value.set_index("name")
        for name, *shares, _ in true:
            shown = table.loc[name, ["learned", "generalize", "failing"]]
            assert shown.tolist() == pytest.approx(shares), name
        first = table.index[0]
        ((waiting),) = (unlearned for name, *_, unlearned in true if name == first)
        assert ("not learned." in said(app)) == (waiting > 0)


def test_of_failing_models_that_learned_it_is_said_at_which_length_they_are_wrong_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = open_app(monkeypatch, SHIPPED, "failing")
    assert "14 learned and fail beyond, 2 have not learned." in said(app)
    table = app.dataframe[0].value
    wrong = dict(
        rows(SHIPPED, "SELECT run_id, min(length) FROM length_score WHERE wrong GROUP BY run_id")
    )
    learned = table[table["outcome"] == "fails beyond"].set_index("run_id")["first_wrong_length"]
    assert learned.to_dict() == {x: wrong[x] for x in learned.index}
    others = table[table["outcome"] == "not learned"]
    assert others["first_wrong_length"].isna().all()
    text = said(app).replace("\\", "")
    assert "Learned, but fails beyond: it is right on all 508 test strings of trained" in text
    assert f"it is wrong first at length {learned.iloc[0]} (trained to 10)." in text
    app = open_app(monkeypatch, SHIPPED, "failing", run=str(others["run_id"].iloc[0]))
    text = said(app).replace("\\", "")
    assert "Not learned: it is right on 433 of 508 test strings of trained lengths 1 to 10" in text
    assert "on. That it is right on " in text
    assert "Solved length" not in metrics(app)
    # By a lower threshold it has learned, and is wrong first within the lengths of its training.
    linked = int(others["run_id"].iloc[0])
    app = open_app(monkeypatch, SHIPPED, "failing", run=str(linked), learned="80")
    text = said(app).replace("\\", "")
    assert "Learned, but fails beyond" in text
    assert wrong[linked] <= 10
    assert f"it is wrong first at length {wrong[linked]} (trained to 10)." in text
    # What is not in the table is judged by the thresholds of the filters, too.
    app = open_app(monkeypatch, SHIPPED, "failing", run=str(linked), seed="0", learned="80")
    assert f"Model {linked} is not in the table above" in said(app)
    assert "Learned, but fails beyond" in said(app).replace("\\", "")


def test_errors_of_a_kind_are_a_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    app = open_app(monkeypatch, SHIPPED, kind="false positives")
    assert "3 of 43 runs match the filters." in said(app)
    app = open_app(monkeypatch, SHIPPED, "failing", kind="false positives", seed="2")
    assert app.dataframe[0].value["false_positives"].tolist() == [1443, 6]
    assert "They are among the 5 tested models that match the filters." in said(app)
    assert set(app.dataframe[1].value["kind"]) == {"false positive"}


def test_where_no_model_fails_the_pages_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    app = open_app(monkeypatch, SHIPPED, seed="5", failing="true", sweep="all_initializations")
    assert "No model that matches the filters fails." in app.success[0].value
    app = open_app(monkeypatch, SHIPPED, "failing", seed="5", sweep="all_initializations")
    assert "The only tested model that matches the filters is not one" in app.success[0].value
    app = open_app(monkeypatch, SHIPPED, kind="false positives", seed="0")
    assert "No model that matches the filters has false positives." in app.success[0].value
    app = open_app(monkeypatch, SHIPPED, outcome="not known")
    assert "No model that matches the filters has the outcome *not known*." in app.success[0].value
    app = open_app(monkeypatch, SHIPPED, "failing", kind="false positives", seed="0")
    assert "leave has false positives" in app.success[0].value


def test_selected_configurations_are_in_the_link(monkeypatch: pytest.MonkeyPatch) -> None:
    app = open_app(monkeypatch, SHIPPED, config=["3", "7"])
    assert sorted(app.query_params["config"]) == ["3", "7"]
    drawn = list(app.get("vega_lite_chart"))
    assert len(drawn) == 7
    assert "embeddings init linear like" in str(drawn[0].proto)
    assert "increased_dimensionality" not in str(drawn[0].proto)


def test_a_map_sets_two_settings_against_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    app = open_app(monkeypatch, SHIPPED, "map")
    assert app.selectbox(key="x").value == "hidden_size"
    spec = app.get("vega_lite_chart")[0].proto.spec
    for title in ("width", "heads", "width (hidden_size)"):
        assert f'"title": "{title}"' in spec, "axes are called what models are called by"
    titles = "".join(str(x.proto) for x in app.get("html"))
    assert len(app.get("vega_lite_chart")) == 6
    for title in ("Share that learned", "Share that generalizes, of those that learned"):
        assert title in titles
    assert "Share of failing models" not in titles, "it says the same less well"
    assert "Some cells hold models that differ in other settings" in said(app)
    app = open_app(monkeypatch, SHIPPED, "map", x="train_sampler", y="train_sampler")
    assert "Choose different settings" in app.info[0].value


def test_a_map_covers_all_models_where_only_failing_ones_are_listed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def charts(**filters: str) -> list[str]:
        app = open_app(monkeypatch, SHIPPED, "map", **filters)
        return [chart.proto.spec for chart in app.get("vega_lite_chart")]

    assert charts(failing="true") == charts()


def test_a_map_names_the_other_settings_that_differ_in_a_cell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = open_app(monkeypatch, SHIPPED, "map")
    chart = app.get("vega_lite_chart")[0].proto
    tips = json.loads(chart.spec)["layer"][0]["encoding"]["tooltip"]
    (data,) = chart.datasets
    frame = pa.ipc.open_stream(data.data.data).read_pandas()
    named = [tip["field"] for tip in tips if tip["field"] in frame]
    assert named[:2] == ["hidden_size", "num_attention_heads"]
    # Of two heads and 2 dimensions there are models of the report's two samplers.
    narrow = frame[(frame["hidden_size"] == "2") & (frame["num_attention_heads"] == "2")]
    assert narrow["train_sampler"].item() == "fixed_length, variable_length"
    assert "train_sampler" in named
    # All were tested alike, which no line repeats.
    assert "test_max_length" not in named


def test_a_charts_title_stands_above_it_where_its_lines_can_break(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = open_app(monkeypatch, SHIPPED)
    specs = [json.loads(chart.proto.spec) for chart in app.get("vega_lite_chart")]
    assert all("text" not in spec.get("title", {}) or not spec["title"]["text"] for spec in specs)
    titles = [x.proto.body for x in app.get("html") if 'class="title"' in x.proto.body]
    assert any("Accuracy by string length</b><span>Thin: one model." in x for x in titles)
    # Who cannot see it is told all the same.
    assert any(spec["description"].startswith("Accuracy by string length") for spec in specs)


def test_a_map_of_models_that_do_not_differ_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = open_app(monkeypatch, SHIPPED, "map", sweep="all_initializations")
    assert "no setting differs" in app.info[0].value


def test_the_worst_model_is_chosen_and_its_strings_are_listed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = open_app(monkeypatch, SHIPPED, "failing", sweep="all_initializations")
    models = app.dataframe[0].value
    assert sorted(models["model_seed"]) == [0, 1, 2, 3, 4, 6, 7]
    assert models["errors"].is_monotonic_decreasing
    assert app.query_params["run"] == str(models["run_id"].iloc[0])
    strings = app.dataframe[1].value
    assert strings["length"].is_monotonic_increasing


def test_the_shortest_string_that_a_seed_gets_wrong_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = open_app(monkeypatch, SHIPPED, "failing", sweep="all_initializations", seed="2")
    shortest = app.dataframe[1].value.iloc[0]
    assert shortest["string"] in [code.value for code in app.code]
    assert metrics(app)["Solved length"] == str(shortest["length"] - 1) == "68"
    (link,) = (x for x in app.page_link if x.page != "launch")
    assert link.page == "model"
    assert link.proto.query_string == "run=5"


def test_strings_are_searched_and_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = {"sweep": "all_initializations", "seed": "2"}
    app = open_app(monkeypatch, SHIPPED, "failing", **chosen, find="b{100}")
    assert app.text_input(key="find").value == "b{100}"
    strings = app.dataframe[1].value
    assert (strings["string"].str.extract(r"b\{(\d+)\}")[0].astype(int) >= 100).all()
    assert "ab{100}c{55}" in strings["string"].tolist()
    app = open_app(monkeypatch, SHIPPED, "failing", **chosen, find="*no such*")
    assert "No misclassified string of this model matches" in app.info[0].value


def test_the_strings_that_break_most_models_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    app = open_app(monkeypatch, SHIPPED, "failing")
    table = app.dataframe[-1].value
    assert table["models"].is_monotonic_decreasing
    assert table["models"].iloc[0] == 8
    assert table["share"].iloc[0] == 8 / 16


def test_a_share_is_written_alike_in_sentences_and_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table's column of the format `percent` has up to two digits, and no zeros at their end."""
    app = open_app(monkeypatch, SHIPPED, "sweeps")
    assert app.dataframe[0].value["median"].iloc[0] == 1
    assert (
        json.loads(app.dataframe[0].proto.columns)["median"]["type_config"]["format"] == "percent"
    )
    assert "median accuracy 100%." in said(app)
    assert '"format": ".2~%"' in open_app(monkeypatch, SHIPPED).get("vega_lite_chart")[1].proto.spec


def test_a_sweep_is_shown_as_a_file_that_makes_the_same_sweep(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store = open_writer(str(tmp_path / "own.db"))
    spec = parse_spec({"name": 'a "name"', "model_seeds": [3, 1], "axes": {"hidden_size": [2, 4]}})
    writer.submit(store, spec)
    app = open_app(monkeypatch, file_of(store), "sweeps")
    shown = next(code.value for code in app.code if "model_seeds" in code.value)
    assert shown.startswith("name = ")
    assert parse_spec(tomllib.loads(shown)) == spec


def test_why_training_failed_is_on_the_page_of_sweeps(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store = open_writer(str(tmp_path / "failed.db"))
    writer.submit(store, parse_spec({"name": "s", "model_seeds": [0]}))
    with store.begin() as connection:
        connection.exec_driver_sql("UPDATE run SET state = 'failed', error = 'diverged *here*'")
        connection.exec_driver_sql("UPDATE sweep SET state = 'done'")
        connection.exec_driver_sql(
            "INSERT INTO failure (run_id, attempt, at, reason) "
            "VALUES (1, 1, '2026-01-01T00:00:00+00:00', 'diverged *here*')"
        )
    app = open_app(monkeypatch, file_of(store))
    assert "training failed for all of these runs" in app.info[0].value
    app = open_app(monkeypatch, file_of(store), "sweeps")
    assert app.dataframe[1].value["reason"].tolist() == ["diverged *here*"]
    assert "Retry 1 failed" in [button.label for button in app.button]


def test_configurations_of_one_sweep_are_told_apart_by_their_settings(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store = open_writer(str(tmp_path / "grid.db"))
    fixed = {**SHORT, "max_num_epochs": 1}
    axes = {"hidden_size": [2, 3], "num_attention_heads": [1, 2]}
    spec = {"name": "grid", "model_seeds": [0], "fixed": fixed, "axes": axes}
    work(store, [writer.submit(store, parse_spec(spec))], WorkOptions(workers=0))
    app = open_app(monkeypatch, file_of(store))
    columns = list(app.dataframe[0].value.columns)
    assert columns[:2] == ["configuration", "learned_of"], "what tells them apart, results"
    named = {f"width {x}, {y}" for x in (2, 3) for y in ("1 head", "2 heads")}
    assert {*app.dataframe[0].value["configuration"]} == named
    chosen = open_app(monkeypatch, file_of(store), columns=["interval", "hidden_size"])
    assert [*chosen.dataframe[0].value] == ["configuration", "interval", "hidden_size"]
    app = open_app(monkeypatch, file_of(store), "failing")
    models = app.dataframe[0].value
    assert models.columns[0] == "configuration"
    assert {*models["configuration"]} == named
    assert "Seed 0 of grid" in said(app)
    assert "hidden_size</em> <b>2</b>" in str([x.proto for x in app.get("html")]), "as a chip"


def test_what_is_saved_as_csv_reads_back(monkeypatch: pytest.MonkeyPatch) -> None:
    from dashboard import data
    from sweeps.store.reads.string_queries import ErrorSearch

    monkeypatch.setenv("SEQCLS_DB", str(SHIPPED))
    saved = data.string_errors(5, ErrorSearch()).to_csv(index=False)
    back = pd.read_csv(io.StringIO(saved))
    assert len(back) == 697 - back["occurrences"].sub(1).sum()
    assert list(back.columns) == ["string", "kind", "length", "label", "logit", "occurrences"]


def test_a_link_with_an_accuracy_that_is_none_says_what_one_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = open_app(monkeypatch, SHIPPED, below="500", learned="90")
    [warned] = [x.value.replace("\\", "") for x in app.warning]
    assert warned == (
        "The link asks for below 500, which is not a number from 0 to 100; it changes nothing."
    )


def test_a_link_to_a_model_that_the_table_does_not_show_shows_it_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = open_app(
        monkeypatch, SHIPPED, "failing", run="5", sweep="lower_magnitude_initializations"
    )
    assert "Model 5" in [title.value for title in app.subheader]
    assert "Model 5 is not in the table above; select another there." in said(app)
    app = open_app(monkeypatch, SHIPPED, "failing", run="999")
    assert "Model 999 (from the link) is not in this database" in app.warning[0].value
    assert app.query_params["run"] != "999", "the worst is shown instead"


def test_the_selected_string_is_in_the_link(monkeypatch: pytest.MonkeyPatch) -> None:
    app = open_app(monkeypatch, SHIPPED, "failing", run="5", string="ab{68}")
    queries = [link.proto.query_string for link in app.page_link]
    assert "run=5&string=ab%7B68%7D" in queries


def test_the_page_of_a_model_puts_the_filters_away_and_keeps_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = open_app(monkeypatch, SHIPPED, "model", run="5", seed="2")
    assert "Thresholds, and filters for other pages" in [panel.label for panel in app.expander]
    assert app.multiselect(key="seed").value == [2]


def test_a_configuration_keeps_its_color_while_filters_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def colors(**filters: str) -> set[str]:
        app = open_app(monkeypatch, SHIPPED, **filters)
        spec = json.loads(app.get("vega_lite_chart")[1].proto.spec)
        scale = spec["vconcat"][0]["layer"][3]["encoding"]["color"]["scale"]
        return set(scale["range"])

    everything, few = colors(), colors(seed="2", failing="true")
    assert few < everything


def test_colors_are_those_that_were_seen_before_and_never_shared() -> None:
    known = list(range(20))
    few = assign_colors([3, 10], known, {})
    assert len({*few.values()}) == 2, "the color of their places is the same"
    # Others come, whose places have these colors; those that were there keep theirs.
    more = assign_colors([2, 3, 9, 10, 11], known, few)
    assert {key: more[key] for key in few} == few
    assert len({*more.values()}) == 5
    # They go again, and one comes back after the first has taken its color.
    assert assign_colors([10], known, more) == {10: few[10]}
    seven = assign_colors(list(range(4, 11)), known, {4: few[3], 5: few[3]})
    assert len({*seven.values()}) == 7


def test_the_settings_that_matter_are_named_with_their_uncertainty(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = open_app(monkeypatch, SHIPPED, moves="Failing share")
    assert "moves the failing share most: 100% of models fail" in said(app)
    assert "95% interval" in said(app)
    assert len(app.get("vega_lite_chart")) == 7
    assert len(app.title) == 1, "one heading of the first level"


def test_a_chart_has_words_and_the_shades_of_its_ground(monkeypatch: pytest.MonkeyPatch) -> None:
    app = open_app(monkeypatch, SHIPPED, "map")
    drawn = app.get("vega_lite_chart")
    assert drawn
    for chart in drawn:
        spec = json.loads(chart.proto.spec)
        assert "Most models fail with" in spec["description"]
        assert spec["config"]["axis"]["labelColor"] == "#5A5A5A"


def test_the_end_of_training_or_validation_is_drawn_only_among_the_tested_lengths(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "short.db"
    fixed = {"train_max_length": 8, "test_max_length": 20, "validation_max_length": 50}
    spec: dict[str, Any] = {"name": "short", "model_seeds": [0], "fixed": fixed}
    writer.submit(open_writer(str(path)), parse_spec(spec))
    monkeypatch.setenv("SEQCLS_DB", str(path))
    assert limits([1]).to_numpy().tolist() == [[8, "end of training", 1]], "and where it begins"
    assert limits([]).columns.tolist() == ["length", "label", "first"]
    longer = {**spec, "name": "longer", "fixed": {**fixed, "train_max_length": 12}}
    writer.submit(open_writer(str(path)), parse_spec(longer))
    marks = [[8, "end of training: 8", 1], [12, "end of training: 12", 1]]
    assert limits([1, 2]).to_numpy().tolist() == marks, "each length once"
