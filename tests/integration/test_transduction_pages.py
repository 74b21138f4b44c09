"""Pages and commands on models that write outputs: what they say and draw is true of these."""

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from dashboard.charts.colors import ON_DARK
from dashboard.charts.scales import OUTPUT_COLORS
from dashboard.views.error_places import alignment_table
from sweeps.api import errors, export, lengths, report
from sweeps.api.comparisons import compare_runs
from sweeps.cli.app import app as seqcls
from sweeps.grid.spec import parse_spec
from sweeps.store import writer
from sweeps.store.opening import open_reader, open_writer
from sweeps.store.reads.string_queries import string_errors
from sweeps.store.reads.sweep_queries import specifications
from sweeps.work.machine import WorkOptions
from sweeps.work.worker import work
from tests.app import metrics, open_app, rerun, said
from tests.conftest import SHORT
from tests.databases import file_of

TINY = {**SHORT, "train_size": 128, "max_num_epochs": 1, "test_size": 200}
TINY |= {"train_max_length": 4, "validation_max_length": 4, "test_max_length": 8}
COPY = {"task": "copy", "num_tokens": 3, "positions": "sinusoidal"}
AXES = {"num_blocks": [1, 2], "train_batch_size": [32, 64]}
MEASURES = ("Exact match", "Exact match, length given", "Token error rate")
RUN, OF_LANGUAGE = "1", "3"


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight models that copy, of four configurations."""
    return _filled(tmp_path_factory, "outputs", languages=False)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Models that copy, and one of a language."""
    return _filled(tmp_path_factory, "mixed", languages=True)


def _filled(tmp_path_factory: pytest.TempPathFactory, name: str, *, languages: bool) -> Path:
    folder = tmp_path_factory.mktemp(name)
    specs: list[dict[str, Any]] = [
        {
            "name": "copying",
            "model_seeds": [0, 1],
            "fixed": {**TINY, **COPY},
            "axes": {"num_blocks": [1], "train_batch_size": [32]} if languages else AXES,
        }
    ]
    if languages:
        specs.append({"name": "language", "model_seeds": [0], "fixed": {**TINY, "task": "parity"}})
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SEQCLS_CACHE", str(folder / "cache"))
        store = open_writer(str(folder / "outputs.db"))
        for spec in specs:
            # With what needs no compiling in a cache of its own.
            options = WorkOptions(workers=0, engine="torch")
            work(store, [writer.submit(store, parse_spec(spec))], options)
    return file_of(store)


SUMS: dict[str, Any] = {
    "task": "addition", "base": 10, "train_min_length": 4, "train_max_length": 5,
    "validation_min_length": 4, "validation_max_length": 5, "test_min_length": 5,
    "test_max_length": 7, "hidden_size": 4,
}  # fmt: skip


@pytest.fixture(scope="module")
def sums(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with places for some of its test strings, run 1, and one with places for all."""
    store = open_writer(str(tmp_path_factory.mktemp("sums") / "sums.db"))
    for positions in ("learned", "sinusoidal"):
        fixed = {**TINY, **SUMS, "positions": positions}
        spec = {"name": positions, "model_seeds": [0], "fixed": fixed}
        options = WorkOptions(workers=0, engine="torch")
        work(store, [writer.submit(store, parse_spec(spec))], options)
    return file_of(store)


def test_a_string_that_was_never_tested_is_neither_right_nor_wrong(
    monkeypatch: pytest.MonkeyPatch, sums: Path, tmp_path: Path
) -> None:
    store = open_reader(str(sums))
    tested = lengths(store, [1])["tested"].sum()
    partly = stored(
        sums,
        "SELECT score.length FROM length_score AS score JOIN test_string AS own USING (length) "
        "WHERE run_id = 1 GROUP BY length HAVING tested < sum(occurrences)",
    )
    assert partly, "of some lengths not all strings were tested"
    (path,) = export(store, tmp_path / "out", "jsonl")
    answers = [json.loads(line) for line in path.read_text().splitlines()]
    times = dict(stored(sums, "SELECT string, occurrences FROM test_string"))
    for run, of in ((1, tested), (2, sum(times.values()))):
        own = [row for row in answers if row["run"] == run]
        assert sum(times[row["input"]] for row in own) == of
        wrong = {row["input"] for row in own if not row["correct"]}
        assert wrong == set(errors(store, [run])["string"])
    both = compare_runs(store, 1, 2)
    assert both.table is not None
    asked = {row["input"] for row in answers if row["run"] == 1}
    assert both.table.pairs == len(asked) < len(times)
    assert both.strings is not None
    assert set(both.strings["string"]) <= asked
    app = open_app(monkeypatch, sums, "model", run="1")
    left = sum(times.values()) - tested
    assert f"of {tested} test strings" in said(app)
    assert f"{left} more were not tested" in said(app)


def test_no_length_is_solved_of_which_nothing_was_tested(
    monkeypatch: pytest.MonkeyPatch, sums: Path
) -> None:
    (of_run,) = stored(sums, "SELECT solved_length FROM run WHERE id = 1")
    assert of_run == (4,), "no string of up to 4 tokens is wrong, since none is tested"
    result = told(sums, "runs", "--columns", "id,solved_length")
    assert re.search(r"1\s+none", result.stdout)
    app = open_app(monkeypatch, sums, "failing", run="1")
    assert "Solved length" not in metrics(app), "it has not learned the trained lengths"
    app = open_app(monkeypatch, sums, "failing", run="1", learned="0")
    assert metrics(app)["Solved length"] == "none"
    app = open_app(monkeypatch, sums, "compare")
    (solved,) = [x for x in app.dataframe if "median_solved_length" in x.value]
    assert solved.value["median_solved_length"].isna().all()
    assert not app.exception


def told(db: Path, *arguments: str) -> Result:
    return CliRunner().invoke(seqcls, [*arguments, "--db", str(db)])


def stored(db: Path, query: str, *arguments: Any) -> list[Any]:
    with closing(sqlite3.connect(db)) as connection:
        return connection.execute(query, arguments).fetchall()


def blocks(app: Any) -> list[str]:
    """The strings that stand one below the other."""
    return [x.proto.body for x in app.get("html") if "aligned" in x.proto.body.split(">")[0]]


def charts(app: Any) -> str:
    return str([x.proto for x in app.get("vega_lite_chart")])


def test_failing_models_get_inputs_wrong(monkeypatch: pytest.MonkeyPatch, db: Path) -> None:
    app = open_app(monkeypatch, db, "failing", run=RUN)
    text = said(app)
    assert "8 models get test inputs wrong, the least accurate first: 8 have not learned." in text
    assert "different wrongly answered inputs, the shortest first." in text
    assert "misclassif" not in text
    assert "test inputs that most models get wrong" in text
    ((wrong,),) = stored(db, "SELECT wrong FROM run WHERE id = ?", RUN)
    assert metrics(app)["Wrongly answered"] == f"{wrong:,}"
    assert "Where letter counts explain" not in text
    assert "For wrong outputs, the cause is what most of a model's have in common" in text
    helps = [str(x.proto) for x in app.dataframe]
    assert not any("misclassif" in text for text in helps)
    assert "false_positives" not in app.dataframe[0].value


def doubled(string: str) -> str:
    """A stored string as it is shown: two letters in a row are written out, more are counted."""
    return re.sub(r"(\w)\{2\}", r"\1\1", string)


def test_wrong_outputs_stand_beside_their_targets(
    monkeypatch: pytest.MonkeyPatch, db: Path
) -> None:
    app = open_app(monkeypatch, db, "failing", run=RUN)
    (shown,) = [x for x in app.dataframe if "output" in x.value]
    assert list(shown.value)[:6] == [
        *("string", "target", "output", "error_kind", "first_wrong", "logit"),
    ]
    titles = json.loads(shown.proto.columns)
    assert [titles[name]["label"] for name in list(shown.value)[:6]] == [
        *("Input", "Target", "Output", "Error", "Right tokens", "Log-probability"),
    ]
    query = "SELECT string, output, error_kind, first_wrong FROM wrong_output WHERE run_id = ?"
    known = {
        (doubled(string), doubled(output), *others)
        for string, output, *others in stored(db, query, RUN)
    }
    rows = shown.value[["string", "output", "error_kind", "first_wrong"]]
    assert set(rows.itertuples(index=False, name=None)) == known


def test_the_first_wrong_token_is_marked(monkeypatch: pytest.MonkeyPatch, db: Path) -> None:
    query = """SELECT string, target, output, first_wrong FROM wrong_output
        WHERE run_id = ? AND error_kind = 'wrong token' AND output NOT LIKE '%{%'
        AND target NOT LIKE '%{%' AND length(output) > first_wrong + 1 ORDER BY length LIMIT 1"""
    ((string, target, output, first_wrong),) = stored(db, query, RUN)
    app = open_app(monkeypatch, db, "failing", run=RUN, string=string)
    (block,) = blocks(app)
    rows = re.findall(r"<tr>(.*?)</tr>", block)
    cells = [re.findall(r"<td.*?>(.*?)</td>", row) for row in rows]
    assert cells[0] == list(string)
    assert cells[1] == [*target, "END"]
    marked = [f"<mark>{x}</mark>" if i == first_wrong else x for i, x in enumerate(output)]
    assert cells[2] == marked
    assert rows[2].count('class="after"') == len(output) - first_wrong - 1
    assert "Marked: the first wrong token" in said(app)


def test_tokens_are_escaped_and_long_outputs_begin_before_the_first_wrong_one() -> None:
    shown = alignment_table(
        {"Input": ["<b>"], "Output": ["x"] * 400 + ["<i>"]}, 400, 380, "#FFFFFF"
    )
    assert "<b>" not in shown
    assert shown.count("<td>x</td>") == 20
    assert "<td><mark>&lt;i&gt;</mark></td>" in shown


def test_kinds_of_errors_and_first_wrong_places_are_drawn(
    monkeypatch: pytest.MonkeyPatch, db: Path
) -> None:
    for app in (
        open_app(monkeypatch, db, "failing", run=RUN),
        open_app(monkeypatch, db, "model", run=RUN, view="Answers"),
    ):
        drawn = charts(app)
        assert "Wrongly answered test inputs" in drawn
        assert "Where outputs go wrong first" in drawn
        assert "with that label" not in drawn
        for kind, color in OUTPUT_COLORS.items():
            assert kind in drawn
            assert color in drawn or ON_DARK[color] in drawn


def test_answers_are_outputs(monkeypatch: pytest.MonkeyPatch, db: Path) -> None:
    app = open_app(monkeypatch, db, "model", run=RUN, view="Answers")
    assert "Wrongly answered test inputs" in [x.value for x in app.subheader]
    asked = app.dataframe[0].value
    assert list(asked) == ["string", "target", "output", "correct", "log_probability"]
    assert (asked["correct"] == (asked["target"] == asked["output"])).all()
    assert (asked["log_probability"] <= 0).all()


@pytest.mark.parametrize(
    ("measure", "column"),
    [
        ("Exact match", "1.0 * (tested - wrong) / tested"),
        ("Exact match, length given", "1.0 * right_length_given / tested"),
        ("Token error rate", "1.0 * edits / target_tokens"),
    ],
)
def test_measures_of_outputs_are_drawn_by_length(
    monkeypatch: pytest.MonkeyPatch, db: Path, measure: str, column: str
) -> None:
    from dashboard import data
    from dashboard.views.scores import offered_measures, points

    app = open_app(monkeypatch, db, "compare", measure=measure)
    assert f"{measure} by string length" in charts(app)
    assert "false_positives" not in app.dataframe[0].value
    assert "mostly false" not in charts(app)
    measures = offered_measures([1])
    scores = data.scores_by_length((int(RUN),), 1)
    drawn = points(scores, measures[measure].name).set_index("middle")["value"]
    query = f"SELECT length, {column} FROM length_score WHERE run_id = ? AND length > 0"
    assert drawn.to_dict() == pytest.approx(dict(stored(db, query, RUN)))
    assert measures[measure].meaning in said(app).replace("\\", "")


@pytest.mark.parametrize("measure", MEASURES)
def test_measures_of_outputs_are_mapped(
    monkeypatch: pytest.MonkeyPatch, db: Path, measure: str
) -> None:
    app = open_app(monkeypatch, db, "map", mapped=measure)
    assert f"Median {measure.lower()}" in charts(app)
    assert f"{measure}: " in said(app)


def test_beside_languages_only_what_holds_of_both_is_drawn(
    monkeypatch: pytest.MonkeyPatch, mixed: Path
) -> None:
    app = open_app(monkeypatch, mixed, "compare")
    (measure,) = [x for x in app.get("button_group") if "Measure" in str(x.proto)]
    assert "Accuracy" in str(measure.proto)
    assert not any(name in str(measure.proto) for name in (*MEASURES, "False positive rate"))
    text = said(open_app(monkeypatch, mixed, "failing", run=RUN))
    assert "models get test strings wrong" in text
    assert "different wrongly answered inputs" in text
    text = said(open_app(monkeypatch, mixed, "failing", run=OF_LANGUAGE))
    assert "different misclassified strings" in text
    assert "Marked:" not in text
    labels = [box.label for box in open_app(monkeypatch, mixed, "map").selectbox]
    assert "Task" in labels
    for page in ("map", "sweeps"):
        assert not rerun(open_app(monkeypatch, mixed, page)).error


def test_predict_prints_outputs(db: Path) -> None:
    rows = json.loads(told(db, "predict", RUN, "ab", "c", "--json").stdout)
    assert [list(row) for row in rows] == [["string", "target", "output", "log_probability"]] * 2
    assert [row["target"] for row in rows] == ["ab", "c"]
    beams = json.loads(told(db, "predict", RUN, "ab", "c", "--beam", "4", "--json").stdout)
    for string in ("ab", "c"):
        sure = [row["log_probability"] for row in beams if row["string"] == string]
        assert sure == sorted(sure, reverse=True)
        assert 1 <= len(sure) <= 4
    assert all(isinstance(row["ended"], bool) for row in beams)
    assert "log_probability" in told(db, "predict", RUN, "ab", "--beam", "2").stdout


@pytest.mark.parametrize("beam", ["0", "1000000"])
def test_a_beam_of_no_use_is_refused_in_one_line(db: Path, beam: str) -> None:
    refused = told(db, "predict", RUN, "ab", "--beam", beam)
    assert refused.exit_code != 0
    assert str(refused.exception) == f"beam {beam}: expected 1 to 1,000 outputs"


def test_a_language_has_no_beam(mixed: Path) -> None:
    refused = told(mixed, "predict", OF_LANGUAGE, "ab", "--beam", "2")
    assert "is no transduction" in str(refused.exception)


def test_commands_say_what_is_wrong(db: Path, mixed: Path) -> None:
    assert "wrongly answered by run 1: " in told(db, "errors", RUN).stdout
    assert "misclassified by run 3: " in told(mixed, "errors", OF_LANGUAGE).stdout
    runs = told(db, "runs", "--wide").stdout
    assert " fp " not in runs
    assert " fp " in told(mixed, "runs", "--wide").stdout


def test_a_report_has_every_wrong_output_beside_its_target(db: Path, mixed: Path) -> None:
    page = report(open_reader(str(db)), "copying")
    shown = re.findall(r'<script type="application/json" id="strings-(\d+)">(.*?)</script>', page)
    assert shown
    for run, text in shown:
        table = json.loads(text)
        errors = string_errors(open_reader(str(db)), int(run))
        places = [table["columns"].index(name) for name in ("Target", "Output")]
        given = [[row[place] for place in places] for row in table["rows"]]
        assert given == errors[["target", "output"]].map(doubled).to_numpy().tolist()
    assert "different wrongly answered inputs" in page
    assert page.count('data-chart="by_length"') == 1
    both = report(open_reader(str(mixed)), *specifications(open_reader(str(mixed))))
    assert "<summary>copying</summary>" in both
    assert "<summary>language</summary>" in both
