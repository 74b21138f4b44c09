"""Sweeps as one file, `seqcls report`, and as a folder for a static host, `report --site`."""

import re
import shutil
import xml.etree.ElementTree as ElementTree
from html import unescape
from pathlib import Path

import pytest

from dashboard.report import strings
from seqcls.strings.tokenizer import Tokenizer
from sweeps.api import delete, failures
from sweeps.grid.spec import parse_spec
from sweeps.store import writer
from sweeps.store.opening import open_writer
from sweeps.store.reads import sweep_queries
from tests.app import open_app, page_text
from tests.commands import printed, printed_json, refused, run_main
from tests.conftest import ROOT
from tests.databases import put_failure, put_finding, rows
from tests.oracles.facts import Facts
from tests.shown import page_data

SHIPPED = str(ROOT / "runs.db")
MARKUP = "<img src=x onerror=alert(1)></script><!--"
TWO = ("all_initializations", "increased_num_attention_heads")


def written(folder: Path, db: str, *sweeps: str) -> str:
    """The report of sweeps, as the command writes it."""
    out = folder / "report.html"
    printed("report", *sweeps, "--db", db, "-o", str(out))
    return out.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The report of two sweeps of the shipped database."""
    return written(tmp_path_factory.mktemp("two"), SHIPPED, *TWO)


def without_programs(page: str) -> str:
    """The page without its scripts."""
    return re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)


def test_a_report_agrees_with_the_command_and_the_page(
    two: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = Facts(SHIPPED)
    runs = [run for name in TWO for run in facts.sweeps[name]]
    learned = [run for run in runs if run["wrong_within"] <= 0.01 * run["tested_within"]]
    right = [run for run in learned if not run["wrong_beyond"]]
    headline = f"{len(learned)} of {len(runs)} models learned; of these "
    assert f"{headline}{len(right)} generalize" in two
    in_terminal = " ".join(printed("report", *TWO, "--db", SHIPPED).split())
    assert f"{headline}{len(right)} generalize" in in_terminal
    page = page_text(open_app(monkeypatch, SHIPPED, sweep=list(TWO)))
    assert f"{headline}{len(right)} generalize" in page.replace("\\", "")
    records = printed_json("report", *TWO, "--db", SHIPPED)
    (table,) = [x["table"] for x in records if x["table"] and "learned_of" in x["table"][0]]
    assert sum(row["learned"] for row in table) == len(learned)
    for sentence in (sentence for record in records for sentence in record["says"]):
        assert unescape(re.sub("<.*?>", "", two)).count(sentence.replace("`", "")) > 0, sentence


def test_a_report_contains_every_misclassified_string_of_every_failing_seed(two: str) -> None:
    facts, shown = Facts(SHIPPED), page_data(two)
    ids = {int(x) for x in re.findall(r'<details id="run-(\d+)"', two)}
    assert ids == {3, 4, 5, 6, 7, 9, 10}
    assert {name for name in shown if name.endswith("-strings")} == {
        f"run-{x}-strings" for x in ids
    }
    display = Tokenizer("abc").display
    for run_id in ids:
        own = shown[f"run-{run_id}-strings"]
        assert {row[0] for row in own["rows"]} == {display(x) for x in facts.errors[run_id]}
        assert len(own["rows"]) == len(facts.errors[run_id])
        assert own["left"] == 0


def test_pictures_of_a_report_adapt_to_dark_pages_and_link_to_strings(two: str) -> None:
    pictures = re.findall(r"<figure>.*?(<svg.*?</svg>)</figure>", two, re.DOTALL)
    assert len(pictures) >= 2
    for svg in pictures:
        ElementTree.fromstring(svg)
    assert "prefers-color-scheme: dark" in two
    assert "var(--generalizes)" in "".join(pictures)
    led_to = {int(x) for x in re.findall(r'href="#run-(\d+)"', "".join(pictures))}
    assert led_to == {3, 4, 5, 6, 7, 9, 10}, "those that generalize have none"


def test_a_report_loads_nothing_from_the_network(two: str) -> None:
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]+)"', two)
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    assert rules["img-src"] == "data:"
    assert re.fullmatch(r"'sha256-[\w+/]+='", rules["script-src"]), "its own program"
    addresses = re.findall(
        r"""\b(?:src|href|url)\s*[=(]\s*["']?([^"')\s>]+)""", without_programs(two)
    )
    assert not [address for address in addresses if not address.startswith("#")]


def test_a_report_contains_stored_causes_and_stores_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = str(shutil.copy(SHIPPED, tmp_path / "runs.db"))
    failures.attribute(open_writer(db), [3], 10)
    before = Path(db).read_bytes()
    monkeypatch.setattr(strings, "MOST_STRINGS", 100)
    monkeypatch.setattr(strings, "MOST_OF_ALL", 250)
    page = written(tmp_path, db, "all_initializations", "default_embeddings_initialization")
    assert Path(db).read_bytes() == before
    assert re.search(r"Of \d+ failing models .*dilut", unescape(page))
    # Of very many strings the shortest are in it, and the others counted.
    found = {name: value for name, value in page_data(page).items() if name.endswith("-strings")}
    assert sum(len(own["rows"]) for own in found.values()) == 250
    facts = Facts(SHIPPED)
    for name, own in found.items():
        errors = facts.errors[int(name.removeprefix("run-").removesuffix("-strings"))]
        assert len(own["rows"]) + own["left"] == len(errors)


@pytest.mark.usefixtures("undrawn")
def test_reports_and_sites_escape_what_people_wrote(tmp_path: Path) -> None:
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
    named = {"mechanism": "dilution", "tokens": MARKUP}
    put_finding(store, 3, "cause", 0, head=0, share=1.0, strings=5, agreement=None, **named)
    writer.write_note(store, 2, title=f"{MARKUP} title", note=f"{MARKUP} note", tags=[])
    writer.submit(store, parse_spec({"name": "new", "model_seeds": [0]}))
    folder = tmp_path / "public"
    assert run_main("report", "--site", str(folder), "--db", db).returncode == 0
    (file,) = folder.glob("sweep_2*")
    page = file.read_text(encoding="utf-8")
    own = without_programs(page)
    assert "<img" not in own
    assert "<!--" not in own
    assert page.count("</script>") == page.count("<script")
    for kind in (" title</p>", " note</p>", "</td>"):
        assert f"onerror=alert(1)&gt;&lt;/script&gt;&lt;!--{kind}" in own, kind
    sweeps = rows(Path(db), "SELECT count(*) FROM sweep")[0][0]
    assert len(list(folder.iterdir())) == 1 + sweeps - 1, "none of a sweep without results"
    for file in folder.glob("*.html"):
        text = without_programs(file.read_text(encoding="utf-8"))
        assert "<img" not in text
        assert "onerror=alert(1)&gt;" in text or MARKUP not in text
        assert "<" not in file.name


# A site.


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The files of the site of two of the shipped sweeps, by their names."""
    folder = tmp_path_factory.mktemp("site") / "public"
    sweeps = [f"--sweep={name}" for name in TWO]
    assert "2 sweeps and index.html" in printed("site", str(folder), *sweeps, "--db", SHIPPED)
    return {file.name: file.read_text(encoding="utf-8") for file in folder.iterdir()}


def test_all_links_of_a_site_point_to_its_files(public: dict[str, str]) -> None:
    assert sum(len(text.encode()) for text in public.values()) < 2_000_000
    links = re.findall(r'<a href="([^"#]+)"', public["index.html"])
    assert len(links) == 2
    assert {"index.html", *links} == set(public)
    # Models of the index lead to the page that has their strings.
    index = public["index.html"]
    assert "-strings" not in without_programs(index)
    led_to = set(re.findall(r'href="(sweep_[^"#]+)#run-(\d+)"', index))
    assert {int(run) for _, run in led_to} == {3, 4, 5, 6, 7, 9, 10}
    for file, run in led_to:
        assert f'<details id="run-{run}">' in public[file]


def test_a_report_without_a_finished_run_is_refused_and_not_written(tmp_path: Path) -> None:
    db = str(tmp_path / "new.db")
    writer.submit(open_writer(db), parse_spec({"name": "new", "model_seeds": [0]}))
    out = tmp_path / "new.html"
    assert "has no finished run" in refused("report", "new", "-o", str(out), "--db", db)
    assert not out.exists()
