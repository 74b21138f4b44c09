"""Every block of code on every page of the documentation works as documented."""

import json
import os
import re
import shutil
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from seqcls.strings.tokenizer import LETTERS, Tokenizer
from sweeps.api import open_store, report
from sweeps.store.tables import Base
from tests.app import open_app, page_text
from tests.blocks import DOCS, PAGES, Reader, blocks_of, commands_of
from tests.commands import run_main, shown_commands
from tests.conftest import ASSETS, ROOT
from tests.plugins import found_in, write_metadata

pytestmark = pytest.mark.usefixtures("undrawn")

README = ROOT / "README.md"
ALL = [README, *PAGES]
CLUSTERS = DOCS / "sweeps.md"
HERE = [page for page in ALL if page != CLUSTERS]

SHORTER = {
    "seqcls report --site public": "seqcls report --site public --sweep walkthrough",
    "lower_magnitude_initializations --times 8": "walkthrough --times 2",
    "seqcls estimate known/": "seqcls estimate --engines known/",
    "report all_initializations increased_dimensionality": "report walkthrough attend_cls",
    "export answers --format": "export answers --sweep walkthrough --format",
}
"""The site of all sweeps is made in `test_site`; eight trainings are as two are; what an estimate
times is estimated of other sweeps.
"""


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shipped database with stored causes, which several pages show."""
    path = str(shutil.copy(ROOT / "runs.db", tmp_path_factory.mktemp("base")))
    for sweep in ("all_initializations", "lower_magnitude_initializations"):
        assert run_main("causes", sweep, "--db", path).returncode == 0
    return Path(path)


@pytest.fixture
def reader(base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reader]:
    """Somebody in an empty folder with that database, a colleague's copy of it and an older one."""
    for name in ("runs.db", "colleague.db"):
        shutil.copy(base, tmp_path / name)
    shutil.copy(ASSETS / "databases" / "0005.db", tmp_path / "old.db")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SEQCLS_DB", raising=False)
    reader = Reader(tmp_path, SHORTER)
    with reader.processes:
        yield reader


@pytest.mark.timeout(900)
def test_the_examples_of_the_page_on_clusters_work(reader: Reader, postgres_url: str) -> None:
    port = free_port()
    reader.instead = {
        **SHORTER,
        "dask scheduler": f"dask scheduler --host 127.0.0.1 --port {port}",
        "tcp://head-node:8786": f"tcp://127.0.0.1:{port}",
        "--nworkers 4": "--nworkers 1 --no-nanny",
        "postgresql://me@db-host/seqcls": postgres_url,
    }
    reader.follow(CLUSTERS.read_text())


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


# Where machine code is missing, it is compiled here.
@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", HERE, ids=lambda page: page.stem)
def test_the_examples_of_a_page_work(page: Path, reader: Reader) -> None:
    with found_in(reader.folder):
        reader.follow(page.read_text())


def test_every_command_is_documented() -> None:
    shown = {" ".join(line.split()[1:3]) for page in ALL for line in commands_of(page.read_text())}
    for command in shown_commands():
        hint = f"show `seqcls {command}` in a `bash` block of README.md or of a page in docs/"
        assert any(command in line.split() for line in shown), hint


def test_the_documented_tables_are_the_stored_ones() -> None:
    page = (DOCS / "database.md").read_text()
    for table in Base.metadata.sorted_tables:
        row = re.search(rf"^\| `{table.name}` \|.*\| (.*) \|$", page, re.MULTILINE)
        assert row, table.name
        described = re.sub(r" \([^)]*\)", "", row[1]).split(", ")
        assert described == [column.name for column in table.columns]


def test_the_documented_queries_give_the_documented_answers() -> None:
    page = (DOCS / "database.md").read_text()
    by_length, false_positives, *_ = [x.text for x in blocks_of(page) if x.language == "sql"]
    with closing(sqlite3.connect(f"file:{ROOT / 'runs.db'}?mode=ro", uri=True)) as connection:
        accuracies = dict(connection.execute(by_length).fetchall())
        strings = [string for string, _ in connection.execute(false_positives)]
    assert list(accuracies) == list(range(1, 201))
    assert all(accuracies[length] == 1.0 for length in range(1, 69))
    assert accuracies[69] < 1.0
    assert "b{2}c{152}" in strings
    assert all(0 in Tokenizer(LETTERS[:3]).counts(string)[:2] for string in strings)


def test_the_documented_section_can_be_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = {x.title: x.text for x in blocks_of((DOCS / "extending.md").read_text())}
    (tmp_path / "solved.py").write_text(blocks["solved.py"])
    write_metadata(tmp_path, "solved", "1.0", "[seqcls.sections]\nsolved = solved:solved\n")
    monkeypatch.syspath_prepend(tmp_path)
    page = open_app(monkeypatch, ROOT / "runs.db", sweep="all_initializations")
    assert "Solved lengths" in [x.value for x in page.header]
    assert "The longest solved length is 200." in page_text(page).replace("\\", "")
    printed = report(open_store(str(ROOT / "runs.db")), "all_initializations")
    assert "The longest solved length is 200." in printed
    # One that breaks leaves the page, and is reported.
    monkeypatch.setattr("solved.runs", lambda *_: 1 / 0)
    page = open_app(monkeypatch, ROOT / "runs.db", sweep="increased_dimensionality")
    assert "solved: ZeroDivisionError" in page_text(page).replace("\\", "")


def test_targets_and_links_of_the_readme_exist() -> None:
    text = README.read_text()
    makefile = (ROOT / "Makefile").read_text()
    targets = re.findall(r"(?:^|`)make (\w+)", text, re.MULTILINE)
    assert {"run", "test", "docs", "bench"} <= set(targets)
    for target in targets:
        assert f"\n{target}:" in makefile, target
    for link in re.findall(r"\]\(([\w./]+)\)", text):
        assert (ROOT / link).exists(), link
    index = (DOCS / "index.md").read_text()
    # The first page of the site leads to all others.
    assert {page.name for page in PAGES} - set(re.findall(r"\((\w+\.md)", index)) == {"index.md"}


EXECUTE = "from nbclient.cli import main; main()"


@pytest.mark.timeout(600)
def test_the_notebook_runs_and_draws_models(tmp_path: Path) -> None:
    # Its kernel works in the notebook's folder.
    notebook = shutil.copy(ROOT / "examples" / "first_question.ipynb", tmp_path)
    out = tmp_path / "out.ipynb"
    command = [sys.executable, "-c", EXECUTE, str(notebook), "--output", str(out)]
    environment = {x: y for x, y in os.environ.items() if x != "SEQCLS_DB"}
    completed = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert completed.returncode == 0, completed.stderr
    cells = [x for x in json.loads(out.read_text())["cells"] if x["cell_type"] == "code"]
    shown = [json.dumps(cell["outputs"]) for cell in cells]
    assert "generalize" in shown[0]
    assert "Accuracy by length" in shown[3]
    assert not any('"output_type": "error"' in output for output in shown)
