"""Several languages in one database: none is pooled with another or split; counts are whole."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dashboard.views import causes, error_places
from dashboard.views.heat_map import cells_of
from dashboard.views.importance import effect_text
from seqcls.kinds import MISCLASSIFIED
from sweeps.api.comparisons import compare
from sweeps.cli.any_model import comparison_sentences
from sweeps.grid.spec import parse_spec
from sweeps.statistics.differences import MEASURES, importance, without_unread
from sweeps.store import writer
from sweeps.store.opening import open_reader, open_writer
from sweeps.store.reads import overview, queries, string_queries
from sweeps.store.reads.selection import View
from sweeps.work.machine import WorkOptions
from sweeps.work.worker import work
from tests.app import metrics, open_app, rerun, said
from tests.conftest import ROOT
from tests.databases import rows

SHIPPED = ROOT / "runs.db"
AB = "regular, alphabet=ab, pattern=(ab)*"
TINY = {
    "attention_head_size": 2,
    "train_size": 128,
    "train_max_length": 8,
    "validation_size": 64,
    "validation_max_length": 8,
    "test_size": 200,
    "test_max_length": 20,
    "max_num_epochs": 1,
    "min_num_epochs": 1,
}
TRANSFORMERS = {"positions": ["none", "rotary"], "num_attention_heads": [1, 2]}
SWEEPS: list[dict[str, Any]] = [
    {"name": "parity", "fixed": {"task": "parity"}, "axes": TRANSFORMERS},
    {
        "name": "recurrent",
        "fixed": {"task": "parity", "architecture": "lstm", "readout": "last"},
        "axes": {"num_blocks": [1, 2]},
    },
    {
        "name": "first",
        "fixed": {"task": "first", "hidden_size": 8},
        "axes": {"positions": ["none", "rotary"]},
    },
    {
        "name": "ab",
        "fixed": {"task": "regular", "alphabet": "ab", "pattern": "(ab)*"},
        "axes": {"disjoint": [False, True], "negatives": ["edits", "mixed"]},
    },
    {
        "name": "larger",
        "model_seeds": [0],
        "fixed": {"task": "first", "test_size": 2000, "feed_forward_size": 4},
    },
]


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three languages in five sweeps."""
    path = tmp_path_factory.mktemp("languages") / "languages.db"
    store = open_writer(str(path))
    for own in SWEEPS:
        spec = {"model_seeds": "0..5", **own, "fixed": {**TINY, **own["fixed"]}}
        work(store, [writer.submit(store, parse_spec(spec))], WorkOptions(workers=0))
    return path


def test_the_settings_that_matter_are_those_of_one_language(
    monkeypatch: pytest.MonkeyPatch, db: Path
) -> None:
    app = open_app(monkeypatch, db)
    assert app.selectbox(key="language").value == "parity", "that of most models"
    assert set(app.selectbox(key="language").options) == {"parity", "first", AB}
    (shown,) = (x.value for x in app.markdown if "the median accuracy most" in x.value)
    assert shown.startswith("In parity, ")
    assert "chosen from these same models; the interval does not take this choice" in said(app)
    charts = [x.proto.spec for x in app.get("vega_lite_chart")]
    (drawn,) = (x for x in charts if "What moves the median accuracy" in x)
    assert "positions" in drawn
    assert "hidden_size" not in drawn, "it differs between languages only"
    app = open_app(monkeypatch, db, language=AB)
    charts = [x.proto.spec for x in app.get("vega_lite_chart")]
    (drawn,) = (x for x in charts if "What moves the median accuracy" in x)
    assert "disjoint" in drawn
    assert "positions" not in drawn


def test_where_a_measure_does_not_differ_nothing_is_said_to_move_it(
    monkeypatch: pytest.MonkeyPatch, db: Path
) -> None:
    app = open_app(monkeypatch, db, moves="Failing share", below="0")
    assert "failing share most" not in said(app)
    assert "Failing share: 0% with every value of every setting." in said(app)
    app = open_app(monkeypatch, db, moves="Median solved length")
    # None of them has learned, so none has a solved length that says anything.
    assert "length most" not in said(app)


def test_no_model_stands_in_a_cell_of_a_setting_that_it_does_not_read(
    monkeypatch: pytest.MonkeyPatch, db: Path
) -> None:
    app = open_app(monkeypatch, db, "map", x="positions", y="num_attention_heads")
    assert app.selectbox(key="language").value == "parity"
    assert "12 of 36 models are in no cell: their language or network does not use" in said(app)
    assert "task" not in app.selectbox(key="x").options
    app = open_app(monkeypatch, db, "map", language="All languages", x="task", y="positions")
    assert "task" in app.selectbox(key="x").options
    assert "12 of 73 models are in no cell" in said(app)
    store = open_reader(str(db))
    models = overview.models(store, View())
    settings = without_unread(overview.settings(store), queries.configs(store))
    models = models.join(settings, on="config_id").assign(language=models["config_id"])
    table = cells_of(models, ["task", "positions"])
    parity = table[table["task"] == "parity"].set_index("positions")
    assert parity["seeds"].to_dict() == {"none": 12, "rotary": 12}, "no LSTM"


def test_the_page_and_the_command_give_one_interval_for_one_difference(db: Path) -> None:
    store = open_reader(str(db))
    configs = queries.configs(store)
    pair = [i for i, own in configs.items() if own.task == "first" and own.test_size == 200]
    compared = compare(store, "first:positions=none", "first:positions=rotary")
    told = "\n".join(comparison_sentences(compared, MISCLASSIFIED))
    for method in ("exact paired permutation test", "exact McNemar"):
        assert method in told
    answers = compared.questions
    models = overview.models(store, View(config_ids=tuple(pair)))
    settings = overview.settings(store).loc[pair]
    own = importance(models, settings, MEASURES["Share that learned"]).iloc[0]
    answer = answers["learned"]
    assert own["fields"] == ("positions",)
    assert own["paired"] == answer.paired
    assert own["moves"] == pytest.approx(abs(answer.interval.value))
    ends = sorted(map(abs, (answer.interval.low, answer.interval.high)))
    assert sorted(map(abs, own[["low", "high"]])) == pytest.approx(ends)


def test_a_language_is_one_however_its_strings_are_drawn(db: Path) -> None:
    store = open_reader(str(db))
    found = string_queries.breaking_strings(store, View(), limit=10)
    failing = dict(
        rows(
            db,
            "SELECT json_extract(json, '$.task'), count(*) FROM run JOIN config "
            "ON config.id = config_id WHERE fp + fn > 0 GROUP BY 1",
        )
    )
    assert found.languages == {
        "parity": failing["parity"], AB: failing["regular"], "first": failing["first"]
    }  # fmt: skip
    # A string that not every test set has is a share of those that have it.
    own = found.strings[found.strings["language"] == AB].iloc[0]
    ((tested,),) = rows(
        db,
        "SELECT count(*) FROM run JOIN config ON config.id = run.config_id JOIN test_string "
        f"USING (test_set_id) WHERE fp + fn > 0 AND string = '{own['string']}'",
    )
    assert own["models"] <= own["of"] == tested


def test_the_worst_come_first_where_test_sets_differ_in_size(
    monkeypatch: pytest.MonkeyPatch, db: Path
) -> None:
    found = overview.failing_models(open_reader(str(db)), View(), limit=1000)
    assert found["accuracy"].is_monotonic_increasing
    errors = found["false_positives"] + found["false_negatives"]
    assert not errors.is_monotonic_decreasing, "the larger test has more errors, not a worse model"
    app = open_app(monkeypatch, db, "failing")
    assert app.dataframe[0].value["accuracy"].is_monotonic_increasing
    assert "the least accurate first" in said(app)


def test_errors_are_counted_from_all_that_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(error_places, "MAX_POINTS", 3)
    monkeypatch.setattr(causes, "AT_ONCE", 2)
    app = open_app(monkeypatch, SHIPPED, "failing", run="5")
    ((false_positives, false_negatives),) = rows(SHIPPED, "SELECT fp, fn FROM run WHERE id = 5")
    shown = metrics(app)
    assert shown["False positives"] == f"{false_positives:,}"
    assert shown["False negatives"] == f"{false_negatives:,}"
    assert "of 16 failing models" in said(app)
    assert app.button("find_causes").label == "Find why 2 models fail"


def test_the_tiles_and_the_sidebar_count_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    filters = {"failing": "true", "kind": "false positives"}
    app = open_app(monkeypatch, SHIPPED, **filters)
    ((both,),) = rows(SHIPPED, "SELECT count(*) FROM run WHERE fp > 0")
    assert f"{both} of 43 runs match the filters." in said(app)
    assert "count each of its models, whether it fails or not." in said(app)
    shown = metrics(app)
    assert (shown["Match the filters"], shown["Models tested"]) == (str(both), "43")
    (tested,) = (x for x in app.metric if x.label == "Models tested")
    assert "of all configurations" in tested.proto.help
    assert "Match the filters" not in metrics(open_app(monkeypatch, SHIPPED))


def test_the_share_that_generalizes_has_its_wilson_interval(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = open_app(monkeypatch, SHIPPED, sweep="all_initializations").dataframe[0].value
    shown = table[["generalize_of", "learned_of", "generalizing_interval"]].iloc[0]
    assert shown.tolist() == ["1 of 8", "8 of 8", "2% to 47%"]


def test_an_exhaustive_check_says_whether_the_empty_string_is_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = open_app(monkeypatch, SHIPPED, "model", run="5", view="All strings")
    assert "All strings of 1 to 200 letters" in [x.value for x in app.subheader]
    assert "without the empty string ε, there are 1,373,700" in said(app).replace("\\", "")


def test_too_few_seeds_give_a_difference_without_an_interval() -> None:
    frame = pd.DataFrame(
        {"config_id": [1, 1, 2, 2], "model_seed": [0, 1] * 2, "accuracy": [0.5, 0.5, 0.7, 0.7]}
    )
    settings = pd.DataFrame({"positions": ["none", "rotary"]}, index=[1, 2])
    own = importance(frame, settings, MEASURES["Median accuracy"]).iloc[0]
    assert (own["worst"], own["best"]) == ("none", "rotary")
    assert own["moves"] == pytest.approx(0.2)
    assert pd.isna(own["low"])
    assert effect_text(own["at_worst"], "Median accuracy") == "50%"


def test_what_is_predicted_stands_beside_what_is_measured(
    monkeypatch: pytest.MonkeyPatch, db: Path
) -> None:
    app = open_app(monkeypatch, db)
    (table,) = (x.value for x in app.dataframe if "predicted" in x.value)
    names = table["sweeps"]
    predicted = [
        set(table["predicted"][names.str.startswith(sweep)])
        for sweep in ("parity", "recurrent", "first", "ab")
    ]
    assert predicted == [{"cannot"}, {"can"}, {"cannot", "not known"}, {"cannot"}]
    assert "01 and 10 get one answer" in said(app)
    app = open_app(monkeypatch, db, "map", x="positions", y="num_attention_heads")
    assert "theory predicts that these networks cannot be right at every length" in said(app)
    assert "of 24 models of these cells fail" in said(app)
    charts = [x.proto.spec for x in app.get("vega_lite_chart")]
    assert any("predicted" in drawn for drawn in charts)


def test_models_that_do_what_is_predicted_to_be_impossible_are_named(
    monkeypatch: pytest.MonkeyPatch, db: Path
) -> None:
    app = open_app(monkeypatch, db, below="10")
    assert "Predicted cannot, but not all models fail: " in said(app)
    app = open_app(monkeypatch, db, "map", x="positions", y="num_attention_heads", below="10")
    assert "0 of 24 models of these cells fail" in said(app)
    assert "Either the tested strings alone are solved, or a condition" in said(app)


def test_random_languages_of_several_classes_and_widths_are_compared_and_mapped_by_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store = open_writer(str(tmp_path / "random.db"))
    fixed = {**TINY, "task": "subregular", "architecture": "rnn", "readout": "last"}
    axes = {
        "language_class": ["SL", "SP"],
        "width": [2, 3],
        "hidden_size": [2, 3],
        "biases": [True],
    }
    spec = {"name": "random", "model_seeds": [0], "fixed": fixed, "axes": axes}
    work(store, [writer.submit(store, parse_spec(spec))], WorkOptions(workers=0))
    app = open_app(monkeypatch, tmp_path / "random.db", lengths="10")
    assert app.segmented_control(key="lengths").value == 10
    assert app.multiselect(key="width").options == ["2", "3"]
    mapped = open_app(monkeypatch, tmp_path / "random.db", "map")
    assert mapped.selectbox(key="language").value == "All languages"
    assert mapped.selectbox(key="x").value == "language_class"
    assert "means over languages" in said(mapped)


@pytest.mark.parametrize("page", ["compare", "map", "failing"])
def test_a_link_that_names_a_language_is_no_mistake_in_a_filter(
    db: Path, monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    app = open_app(monkeypatch, db, page, language="first")
    assert not app.warning
    app.switch_page("screens/compare.py")
    assert not rerun(app).warning
    app = open_app(monkeypatch, db, page, language="second")
    assert all("not one of the choices" in warning.value for warning in app.warning)


def test_of_a_language_that_filters_leave_no_longer_no_link_is_blamed(
    db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = open_app(monkeypatch, db, "map")
    app.selectbox(key="language").select("first")
    # As the browser has it then.
    rerun(app).query_params["language"] = "first"
    app.multiselect(key="task").set_value(["parity", "regular"])
    assert not rerun(app).warning


@pytest.mark.parametrize("page", ["failing", "model"])
def test_a_model_gives_way_to_one_of_the_language_that_is_filtered_by(
    db: Path, monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    store = open_reader(str(db))
    models = queries.runs(store)
    parity = int(models.loc[models["task"] == "parity", "id"].iloc[0])
    app = open_app(monkeypatch, db, page, run=str(parity))
    assert app.query_params["run"] == str(parity)
    app.multiselect(key="task").set_value(["first"])
    shown = rerun(app).query_params["run"]
    assert queries.run_config(store, int(shown)).task == "first"
    assert not app.warning
    app.multiselect(key="task").set_value(["first", "parity"])
    assert rerun(app).query_params["run"] == shown, "it is left, and stays"


def test_a_filter_of_a_link_is_counted_in_the_sidebar_at_once(
    db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = open_app(monkeypatch, db, task=["first", "parity"], positions="rotary")
    labels = [x.proto.popover.label for x in app.sidebar.children.values() if x.type == "popover"]
    assert "Settings (2 chosen)" in labels
    assert app.multiselect(key="positions").value == ["rotary"]
    opened = open_app(monkeypatch, db, "model", learned="50")
    (filters,) = (x for x in opened.expander if x.label.startswith("Thresholds"))
    assert filters.proto.expanded
