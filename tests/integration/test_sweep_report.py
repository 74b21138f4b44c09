"""Sweeps as one file: `seqcls report`."""

import itertools
import json
import re
import shutil
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner

from dashboard import data
from dashboard.cli import app
from dashboard.report import failing_models, sweep_report
from dashboard.views import configurations
from seqcls.config import RunConfig
from seqcls.strings.tokenizer import Tokenizer
from sweeps.api import failures, log_results, naming
from sweeps.api.results import remedies
from sweeps.api.trials import trial_sentence
from sweeps.grid.spec import parse_spec
from sweeps.store import writer
from sweeps.store.opening import open_reader, open_writer
from sweeps.store.reads import explained, string_queries, sweep_queries
from sweeps.store.reads.selection import View
from tests.app import open_app
from tests.conftest import ROOT
from tests.databases import file_of, rows

SHIPPED = str(ROOT / "runs.db")
MARKUP = "<img src=x onerror=alert(1)></script><!--"
TWO = ("all_initializations", "increased_num_attention_heads")


def written(folder: Path, db: str, *sweeps: str) -> str:
    """The report of sweeps, as the command writes it."""
    out = folder / "report.html"
    said = CliRunner().invoke(app, ["report", *sweeps, "--db", db, "-o", str(out)])
    assert said.exit_code == 0, said
    assert "which needs no other file" in said.stdout
    return out.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The report of two sweeps of the shipped database."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEQCLS_DB", SHIPPED)
        return written(tmp_path_factory.mktemp("two"), SHIPPED, *TWO)


def kept(page: str) -> dict[str, Any]:
    """The data for the page's program, by their names."""
    found = re.findall(r'<script type="application/json" id="([^"]+)">(.*?)</script>', page)
    return {name: json.loads(text) for name, text in found}


def without_programs(page: str) -> str:
    """What a browser shows of it."""
    return re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)


def test_it_compares_the_configurations_with_the_numbers_of_compare(two: str) -> None:
    with data.reading_from(open_reader(SHIPPED)):
        table = configurations.table(View(sweeps=TWO))
    assert len(table) == 2
    for row in table.to_dict("records"):
        cells = (
            f"{row['failing']} of {row['seeds']}",
            row["failing_interval"],
            re.sub(r"\.?0*%", "%", f"{row['median_accuracy']:.2%}"),
            row["interval"],
        )
        in_order = r".*?".join(f"<td>{re.escape(str(cell))}</td>" for cell in cells)
        assert re.search(in_order, two, re.DOTALL), row
    assert "<strong>7 of 16 models fail</strong>" in two
    for name in TWO:
        assert f"<summary>{name}</summary><pre>" in two, "its specification"


def test_every_row_of_configurations_has_the_settings_of_its_own() -> None:
    store = open_reader(SHIPPED)
    with data.reading_from(store):
        table = configurations.table(View())
    config_ids = table["config_id"].tolist()
    assert config_ids != sorted(config_ids), "the worst is first, not that which came first"
    known = naming.settings_of(store, config_ids)
    for row in table.to_dict("records"):
        own = known[row["config_id"]]
        named = [name for name in RunConfig.model_fields if name in row]
        assert len(named) > 3
        assert {x: row[x] for x in named if not pd.isna(row[x])} == {
            x: own[x] for x in named if x in own
        }


def test_every_misclassified_string_of_every_failing_seed_is_in_it(two: str) -> None:
    store = open_reader(SHIPPED)
    runs = [3, 4, 5, 6, 7, 9, 10]
    assert re.findall(r'<details id="run-(\d+)"', two) != []
    shown = kept(two)
    names = {name for name in shown if name.startswith("strings-")}
    assert names == {f"strings-{run}" for run in map(int, re.findall(r'id="run-(\d+)"', two))}
    assert len(names) == len(runs)
    for name in names:
        errors = string_queries.string_errors(store, int(name.removeprefix("strings-")))
        written = errors["string"].map(Tokenizer("abc").display)
        assert [row[0] for row in shown[name]["rows"]] == written.tolist()
        assert shown[name]["left"] == 0


def test_what_each_failing_seed_came_to_is_said_with_its_counts(two: str) -> None:
    counts = rows(
        Path(SHIPPED),
        "SELECT id, tested_beyond - wrong_beyond, tested_beyond FROM run WHERE id IN (3, 4)",
    )
    for run, right, tested in counts:
        (told,) = re.findall(rf'<details id="run-{run}">.*?</summary>\n<p>(.*?)</p>', two)
        assert "it is right on all 508 test strings of trained lengths 1 to 10, and on " in told
        assert f" {right:,} of {tested:,} longer strings" in told
        assert re.search(r"In the test it is wrong first at length \d+ \(trained to 10\)", told)


def test_of_very_many_strings_the_shortest_are_in_it_and_the_others_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEQCLS_DB", SHIPPED)
    monkeypatch.setattr(failing_models, "MOST_STRINGS", 100)
    monkeypatch.setattr(failing_models, "MOST_OF_ALL", 250)
    shown = kept(written(tmp_path, SHIPPED, "all_initializations"))
    strings = [value for name, value in shown.items() if name.startswith("strings-")]
    assert [len(own["rows"]) for own in strings] == [100, 100, 50]
    first = strings[0]
    assert len(first["rows"]) + first["left"] == 1_340


def test_charts_are_live_in_both_themes_and_pictures_until_then(two: str) -> None:
    charts = re.findall(r'<figure data-chart="([^"]+)"', two)
    assert charts == ["by_length", "every_seed", "seed_grid", "mechanisms"]
    for name in charts:
        chart = kept(two)[name]
        assert chart["light"]["title"] == chart["dark"]["title"]
        assert chart["light"]["config"] != chart["dark"]["config"]
        assert all(chart["datasets"].values())
    pictures = re.findall(r"<figure[^>]*>(<svg.*?</svg>)</figure>", two, re.DOTALL)
    assert len(pictures) == len(charts)
    for svg in pictures:
        ElementTree.fromstring(svg)


def test_it_may_ask_nothing_of_the_network(two: str) -> None:
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]+)"', two)
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    assert rules["img-src"] == "data:"
    assert re.fullmatch(r"('sha256-[\w+/]+='\s?){2}", rules["script-src"]), "its own two programs"
    asked = re.findall(r"""\b(?:src|href|url)\s*[=(]\s*["']?([^"')\s>]+)""", without_programs(two))
    assert not [address for address in asked if not address.startswith("#")]


def test_remedies_stand_with_what_came_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = str(shutil.copy(SHIPPED, tmp_path / "runs.db"))
    monkeypatch.setenv("SEQCLS_DB", db)
    page = written(tmp_path, db, "default_embeddings_initialization")
    (failed,) = re.findall(r'id="run-(\d+)"', page)
    (trial, *_) = remedies(open_writer(db), int(failed)).trials
    assert f"<td>{trial.suggestion.text}</td>" in page
    assert f"<td>{trial_sentence(trial)}</td>" in page


def test_causes_that_are_stored_are_those_of_the_report_and_none_is_stored_by_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = shutil.copy(SHIPPED, tmp_path / "runs.db")
    monkeypatch.setenv("SEQCLS_DB", str(db))
    failures.attribute(open_writer(str(db)), [3], 10)
    before = Path(db).read_bytes()
    told = written(tmp_path, str(db), "all_initializations")
    assert Path(db).read_bytes() == before
    assert told.count("Of 10 errors that were looked at") == 1
    assert told.count("Of 50 errors that were looked at") == 6
    assert re.search(r"Of 10 errors that were looked at:</p><ul><li>\d+%: \w+", told)


def test_what_people_wrote_is_text_whatever_it_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = str(shutil.copy(SHIPPED, tmp_path / "runs.db"))
    monkeypatch.setenv("SEQCLS_DB", db)
    store = open_writer(db)
    with store.change() as connection:
        change = "UPDATE sweep SET name = ?, description = ? WHERE id = 2"
        connection.exec_driver_sql(change, (MARKUP, MARKUP))
        connection.exec_driver_sql(
            "INSERT INTO failure VALUES (3, 1, '2026-01-01T00:00:00+00:00', ?)", (MARKUP,)
        )
        change = "UPDATE test_string SET string = ? || string WHERE string LIKE 'a{100}b%'"
        connection.exec_driver_sql(change, (MARKUP,))
        connection.exec_driver_sql(
            "INSERT INTO cause SELECT 3, 0, ?, 0, ?, 1, 5, NULL",
            (MARKUP + explained.SHORT_TRIED, MARKUP),
        )
    writer.write_note(store, 2, title=f"{MARKUP} title", note=f"{MARKUP} note", tags=[])
    page = written(tmp_path, db, MARKUP)
    own = without_programs(page)
    assert "<img" not in own
    assert "<!--" not in own
    assert page.count("</script>") == page.count("<script")
    for kind in (" title</p>", " note</p>", "</td></tr>", " (head 0", ")</li>", "</summary>"):
        assert f"onerror=alert(1)&gt;&lt;/script&gt;&lt;!--{kind}" in own, kind


def test_a_sweep_without_results_and_a_name_that_is_not_there_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_writer(str(tmp_path / "new.db"))
    writer.submit(store, parse_spec({"name": "new", "model_seeds": [0]}))
    monkeypatch.setenv("SEQCLS_DB", file_of(store).as_posix())
    out = ["-o", str(tmp_path / "new.html"), "--db", str(file_of(store))]
    for name, says in (("new", "has no finished run"), ("nev", "did you mean 'new'?")):
        result = CliRunner().invoke(app, ["report", name, *out])
        assert says in str(result.exception)
    bad = CliRunner().invoke(app, ["report", "new", "-o", str(tmp_path / "no" / "x.html")])
    assert "expected a file in an existing folder" in str(bad.exception)
    assert not (tmp_path / "new.html").exists()


def test_a_median_between_two_lengths_is_the_same_in_a_report_and_on_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    strings = ["".join(x) for n in range(1, 6) for x in itertools.product("ab", repeat=n)]
    rows = [f"{string},{string.count('a') % 2}" for string in strings]
    (tmp_path / "odd.csv").write_text("\n".join(["tokens,label", *rows]))
    db = tmp_path / "halves.db"
    with log_results(str(db), sweep="halves", dataset=tmp_path / "odd.csv") as log:
        tokens, labels = log.strings["tokens"], log.strings["label"]
        for seed, first_wrong in enumerate((3, 4)):
            said = [bool(y) ^ (len(x) == first_wrong) for x, y in zip(tokens, labels, strict=True)]
            log.run(model="m", seed=seed, predictions={"tokens": tokens, "prediction": said})
    page = written(tmp_path, str(db), "halves")
    (cells,) = re.findall(r"<tbody>.*?<tr>(.*?)</tr>", page, re.DOTALL)
    assert "<td>2.5</td>" in cells
    table = open_app(monkeypatch, db).dataframe[0]
    assert table.value["median_solved_length"].tolist() == [2.5]
    column = json.loads(table.proto.columns)["median_solved_length"]
    assert "format" not in column["type_config"], "as it is, not rounded"


def of_view(view: View, **given: Any) -> str:
    """What a reader of the report of a view sees."""
    text = sweep_report.report(open_reader(SHIPPED), view, **given)
    assert text is not None
    return without_programs(text)


def test_the_headline_counts_all_models_whatever_is_listed() -> None:
    view = View(sweeps=(TWO[0],), failing=True)
    text = of_view(view, only="Filtered by failing = True.")
    assert "<strong>7 of 8 models fail</strong>" in text
    assert "7 of these 8 are listed and drawn, as filtered; shares and medians cover all." in text
    assert "listed and drawn" not in of_view(replace(view, failing=False))


def test_the_headline_of_chosen_seeds_says_that_they_are_chosen() -> None:
    view = View(sweeps=(TWO[0],), model_seeds=(2,))
    said = "<strong>The only model that matches the filters fails</strong>"
    assert said in of_view(view, only="Filtered by seed = 2.")
    assert "<strong>The only model of this report fails</strong>" in of_view(view)


def test_what_is_not_listed_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep_report, "MOST_SWEEPS", 2)
    monkeypatch.setattr(sweep_report, "MAX_ROWS", 1)
    text = of_view(View())
    number = len(set(sweep_queries.specifications(open_reader(SHIPPED))))
    assert f"The table has the latest 2 of {number} sweeps." in text
    assert f"These are the latest 1 of {number} sweeps." in text
    assert re.search(r"Causes and remedies are of the worst 1 of \d+ configurations", text)
    assert re.search(r"And \d+ more models fail\.", text)
    files = {name: f"{name}.html" for name in sweep_queries.specifications(open_reader(SHIPPED))}
    index = of_view(View(), pages=files)
    assert [name for name in files if f'<a href="{name}.html">' not in index] == []
