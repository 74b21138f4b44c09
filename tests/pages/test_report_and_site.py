"""Sweeps as one file, `seqcls report`, and as a folder for a static host, `seqcls site`."""

import itertools
import json
import re
import shutil
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pandas as pd
import pytest

from dashboard.report import failing_models, sweep_report
from seqcls.strings.tokenizer import Tokenizer
from sweeps.api import delete, failures, log_results
from sweeps.api.results import remedies
from sweeps.api.trials import trial_sentence
from sweeps.grid.spec import parse_spec
from sweeps.store import writer
from sweeps.store.findings import SHORT_TRIED
from sweeps.store.opening import open_reader, open_writer
from sweeps.store.reads import sweep_queries
from sweeps.store.reads.selection import Selection
from tests.app import open_app
from tests.commands import refused, run_main
from tests.conftest import ROOT
from tests.databases import put_failure, put_finding, rows
from tests.oracles.drawn import Chosen, Drawn
from tests.oracles.facts import Facts
from tests.oracles.ledger import Ledger
from tests.shown import Tables, kept_in

SHIPPED = str(ROOT / "runs.db")
MARKUP = "<img src=x onerror=alert(1)></script><!--"
TWO = ("all_initializations", "increased_num_attention_heads")


def written(folder: Path, db: str, *sweeps: str) -> str:
    """The report of sweeps, as the command writes it."""
    out = folder / "report.html"
    said = run_main("report", *sweeps, "--db", db, "-o", str(out))
    assert said.returncode == 0, said
    return out.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The report of two sweeps of the shipped database."""
    return written(tmp_path_factory.mktemp("two"), SHIPPED, *TWO)


def without_programs(page: str) -> str:
    """What a browser shows of it."""
    return re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)


def test_it_compares_the_configurations_with_the_numbers_of_compare(two: str) -> None:
    drawn = Drawn(Facts(SHIPPED), Ledger("two"), "report", Chosen(TWO))
    found = [row for row in Tables(two).rows if "failing_seeds" in row]
    assert len(found) == 2
    for row in found:
        drawn.configuration_of_report(row)
    shown = kept_in(two)
    frames = [
        pd.DataFrame(points)
        for name in ("every_seed", "seed_grid")
        for points in shown[name]["datasets"].values()
    ]
    drawn.charts([frames])
    assert not drawn.ledger.differences
    assert drawn.ledger.compared.total() > 300
    assert "<strong>7 of 16 models fail</strong>" in two
    for name in TWO:
        assert f"<summary>{name}</summary><pre>" in two, "its specification"


def test_every_misclassified_string_of_every_failing_seed_is_in_it(two: str) -> None:
    facts, shown = Facts(SHIPPED), kept_in(two)
    ids = {int(x) for x in re.findall(r'<details id="run-(\d+)"', two)}
    assert ids == {3, 4, 5, 6, 7, 9, 10}
    assert {name for name in shown if name.startswith("strings-")} == {f"strings-{x}" for x in ids}
    display = Tokenizer("abc").display
    for run_id in ids:
        own = shown[f"strings-{run_id}"]
        assert {row[0] for row in own["rows"]} == {display(x) for x in facts.errors[run_id]}
        assert len(own["rows"]) == len(facts.errors[run_id])
        assert own["left"] == 0
        (told,) = re.findall(rf'<details id="run-{run_id}">.*?</summary>\n<p>(.*?)</p>', two)
        run = facts.runs[run_id]
        right = run["tested_beyond"] - run["wrong_beyond"]
        assert f" {right:,} of {run['tested_beyond']:,} longer strings" in told
        assert "all 508 test strings of trained lengths 1 to 10" in told
        first = min(x for x, row in facts.lengths[run_id].items() if row["wrong"])
        assert f"wrong first at length {first} (trained to 10)" in told


def test_charts_are_live_in_both_themes_and_pictures_until_then(two: str) -> None:
    charts = re.findall(r'<figure data-chart="([^"]+)"', two)
    assert charts == ["by_length", "every_seed", "seed_grid", "mechanisms"]
    for name in charts:
        chart = kept_in(two)[name]
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


@pytest.mark.usefixtures("undrawn")
def test_stored_causes_and_remedies_stand_in_it_and_none_is_stored_by_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = str(shutil.copy(SHIPPED, tmp_path / "runs.db"))
    failures.attribute(open_writer(db), [3], 10)
    before = Path(db).read_bytes()
    monkeypatch.setattr(failing_models, "MOST_STRINGS", 100)
    monkeypatch.setattr(failing_models, "MOST_OF_ALL", 250)
    told = written(tmp_path, db, "all_initializations", "default_embeddings_initialization")
    assert Path(db).read_bytes() == before
    assert told.count("Of 10 errors that were looked at") == 1
    assert told.count("Of 50 errors that were looked at") >= 6
    assert re.search(r"Of 10 errors that were looked at:</p><ul><li>\d+%: \w+", told)
    # Of very many strings the shortest are in it, and the others counted.
    found = {name: value for name, value in kept_in(told).items() if name.startswith("strings-")}
    assert sum(len(own["rows"]) for own in found.values()) == 250
    facts = Facts(SHIPPED)
    for name, own in found.items():
        errors = facts.errors[int(name.removeprefix("strings-"))]
        assert len(own["rows"]) + own["left"] == len(errors)
    first = next(x["run_id"] for x in facts.sweeps["default_embeddings_initialization"]
                 if x["wrong"])  # fmt: skip
    (trial, *_) = remedies(open_writer(db), first).trials
    assert f"<td>{trial.suggestion.text}</td>" in told
    assert f"<td>{trial_sentence(trial)}</td>" in told


@pytest.mark.usefixtures("undrawn")
def test_what_people_wrote_is_text_whatever_it_holds_in_reports_and_sites(tmp_path: Path) -> None:
    db = str(shutil.copy(SHIPPED, tmp_path / "runs.db"))
    store = open_writer(db)
    for name in list(sweep_queries.specifications(store))[2:-1]:
        delete(store, name)
    with store.write() as connection:
        change = "UPDATE sweep SET name = ?, description = ? WHERE id = 2"
        connection.exec_driver_sql(change, (MARKUP, MARKUP))
        change = "UPDATE test_string SET string = ? || string WHERE string LIKE 'a{100}b%'"
        connection.exec_driver_sql(change, (MARKUP,))
    put_failure(store, [3], MARKUP)
    named = {"mechanism": MARKUP + SHORT_TRIED, "tokens": MARKUP}
    put_finding(store, 3, "cause", 0, head=0, share=1.0, strings=5, agreement=None, **named)
    writer.write_note(store, 2, title=f"{MARKUP} title", note=f"{MARKUP} note", tags=[])
    writer.submit(store, parse_spec({"name": "new", "model_seeds": [0]}))
    folder = tmp_path / "public"
    assert run_main("site", str(folder), "--db", db).returncode == 0
    (file,) = folder.glob("sweep_2*")
    page = file.read_text(encoding="utf-8")
    own = without_programs(page)
    assert "<img" not in own
    assert "<!--" not in own
    assert page.count("</script>") == page.count("<script")
    for kind in (" title</p>", " note</p>", "</td></tr>", " (head 0", ")</li>", "</summary>"):
        assert f"onerror=alert(1)&gt;&lt;/script&gt;&lt;!--{kind}" in own, kind
    sweeps = rows(Path(db), "SELECT count(*) FROM sweep")[0][0]
    assert len(list(folder.iterdir())) == sweeps + 1, "none of a sweep without results"
    for file in folder.glob("*.html"):
        text = without_programs(file.read_text(encoding="utf-8"))
        assert "<img" not in text
        assert "onerror=alert(1)&gt;" in text or MARKUP not in text
        assert "<" not in file.name


@pytest.mark.usefixtures("undrawn")
def test_a_median_between_two_lengths_is_the_same_in_a_report_and_on_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    strings = ["".join(x) for n in range(1, 6) for x in itertools.product("ab", repeat=n)]
    lines = [f"{string},{string.count('a') % 2}" for string in strings]
    (tmp_path / "odd.csv").write_text("\n".join(["tokens,label", *lines]))
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


def of_view(view: Selection, **given: object) -> str:
    """What a reader of the report of a view sees."""
    text = sweep_report.report(open_reader(SHIPPED), view, **given)  # type: ignore[arg-type]
    assert text is not None
    return without_programs(text)


@pytest.mark.usefixtures("undrawn")
def test_the_headline_counts_all_models_whatever_is_listed(two: str) -> None:
    view = Selection(sweeps=(TWO[0],), failing=True)
    text = of_view(view, only="Filtered by failing = True.")
    assert "<strong>7 of 8 models fail</strong>" in text
    assert "7 of these 8 are listed and drawn, as filtered; shares and medians cover all." in text
    assert "listed and drawn" not in two
    view = Selection(sweeps=(TWO[0],), model_seeds=(2,))
    said = "<strong>The only model that matches the filters fails</strong>"
    assert said in of_view(view, only="Filtered by seed = 2.")


@pytest.mark.usefixtures("undrawn")
def test_what_is_not_listed_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep_report, "MOST_SWEEPS", 2)
    monkeypatch.setattr(sweep_report, "MAX_ROWS", 1)
    names = list(sweep_queries.specifications(open_reader(SHIPPED)))
    text = of_view(Selection())
    assert f"The table has the latest 2 of {len(names)} sweeps." in text
    assert re.search(r"Causes and remedies are of the worst 1 of \d+ configurations", text)
    assert re.search(r"And \d+ more models fail\.", text)
    index = of_view(Selection(), pages={name: f"{name}.html" for name in names})
    assert [name for name in names if f'<a href="{name}.html">' not in index] == []


# A site.


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The files of the site of two of the shipped sweeps, by their names."""
    folder = tmp_path_factory.mktemp("site") / "public"
    sweeps = [f"--sweep={name}" for name in TWO]
    said = run_main("site", str(folder), *sweeps, "--db", SHIPPED)
    assert said.returncode == 0, said
    assert "2 sweeps and index.html" in said.stdout
    return {file.name: file.read_text(encoding="utf-8") for file in folder.iterdir()}


def test_all_links_of_a_site_lead_to_its_files_which_share_what_draws_the_charts(
    public: dict[str, str],
) -> None:
    # All nine sweeps take less than 5 MB.
    assert sum(len(text.encode()) for text in public.values()) < 3_000_000
    links = re.findall(r'<a href="([^"#]+)"', public["index.html"])
    assert len(links) == 2
    assert {"index.html", "vega.js", *links} == set(public)
    for name in ("index.html", *links):
        assert '<script src="vega.js"></script>' in public[name], "shared, not in every page"
        assert "script-src 'self' 'sha256-" in public[name]
    # Models of the index lead to the page that has their strings.
    index = public["index.html"]
    pages = kept_in(index)["pages"]
    assert len(pages) == 16
    assert 'id="strings-' not in index
    assert {int(x) for x in re.findall(r'"run_id": ?(\d+)', index)} <= set(map(int, pages))
    for run in ("3", "4"):
        assert f'<details id="run-{run}">' in public[pages[run]]


def test_what_cannot_be_written_is_said_and_nothing_is_left(tmp_path: Path) -> None:
    db = str(tmp_path / "new.db")
    writer.submit(open_writer(db), parse_spec({"name": "new", "model_seeds": [0]}))
    out = ("-o", str(tmp_path / "new.html"), "--db", db)
    assert "has no finished run" in refused("report", "new", *out)
    assert "did you mean 'new'?" in refused("report", "nev", *out)
    there = str(tmp_path / "no" / "x.html")
    assert "existing folder" in refused("report", "new", "--db", db, "-o", there)
    assert not (tmp_path / "new.html").exists()
    folder = tmp_path / "public"
    assert "no sweep 'none'" in refused("site", str(folder), "--sweep", "none", "--db", SHIPPED)
    assert not folder.exists()
    folder.mkdir()
    (folder / "index.html").write_text("mine")
    assert "is there; move it" in refused("site", str(folder), "--db", SHIPPED)
    assert [file.name for file in folder.iterdir()] == ["index.html"]
