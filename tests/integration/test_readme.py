"""Every command, query and example of the README works as written."""

import contextlib
import io
import re
import shlex
import shutil
import sqlite3
import tomllib
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from dashboard.cli import app
from seqcls.tokenizer import LETTERS, Tokenizer
from sweeps.spec import parse_spec
from sweeps.store.tables import Base
from tests.conftest import ROOT

README = (ROOT / "README.md").read_text()


def blocks(language: str, page: str = README) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)


def seqcls_lines(page: str = README) -> list[str]:
    lines = [line for block in blocks("bash", page) for line in block.splitlines()]
    return [line for line in lines if line.startswith("seqcls ")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder with a copy of the shipped database and the README's specification."""
    shutil.copy(ROOT / "runs.db", tmp_path)
    shutil.copy(ROOT / "runs.db", tmp_path / "colleague.db")
    (tmp_path / "heads.toml").write_text(
        blocks("toml")[0].replace('"0..15"', "[0]").replace("[fixed]", "[fixed]\ntrain_size = 64")
    )
    return tmp_path


def test_the_commands_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.delenv("SEQCLS_DB", raising=False)
    assert len(seqcls_lines()) >= 6
    for line in seqcls_lines():
        if line == "seqcls dashboard":
            continue  # It serves until it is interrupted; the tests in a browser start it.
        # In this process: to start Python for each would take most of the time.
        said = CliRunner().invoke(app, shlex.split(line)[1:])
        assert said.exit_code == 0, (line, said.output)
        assert said.stdout


def test_every_command_is_in_the_readme_or_the_pages_that_it_names() -> None:
    def names(group: Any) -> set[str]:
        found = set()
        for name, command in group.commands.items():
            inner = names(command) if hasattr(command, "commands") else {""}
            found |= {f"{name} {below}".strip() for below in inner}
        return found

    pages = [
        README,
        *((ROOT / link).read_text() for link in re.findall(r"\]\((docs/[\w/]+\.md)\)", README)),
    ]
    shown = {" ".join(line.split()[1:3]) for page in pages for line in seqcls_lines(page)}
    for command in names(typer.main.get_command(app)):
        assert any(f"{line} ".startswith(f"{command} ") for line in shown), command


def test_the_make_targets_and_files_that_it_names_are_there() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = re.findall(r"(?:^|`)make (\w+)", README, re.MULTILINE)
    assert {"run", "test", "bench"} <= set(targets)
    for target in targets:
        assert f"\n{target}:" in makefile, target
    for link in re.findall(r"\]\(([\w./]+)\)", README):
        assert (ROOT / link).exists(), link


def test_the_queries_answer() -> None:
    by_length, false_positives = blocks("sql")
    with closing(sqlite3.connect(f"file:{ROOT / 'runs.db'}?mode=ro", uri=True)) as connection:
        accuracies = dict(connection.execute(by_length).fetchall())
        strings = [string for string, _ in connection.execute(false_positives)]
    assert list(accuracies) == list(range(1, 201))
    assert set(accuracies.values()) > {1.0}
    assert all(accuracies[length] == 1.0 for length in range(1, 69))
    assert accuracies[69] < 1.0
    assert "b{2}c{152}" in strings
    assert all(0 in Tokenizer(LETTERS[:3]).counts(string)[:2] for string in strings)


def test_the_specification_is_a_ten_line_sweep() -> None:
    text, other = blocks("toml")
    spec = parse_spec(tomllib.loads(text))
    assert spec.num_runs() == 96
    assert parse_spec(tomllib.loads(other)).num_runs() == 20
    assert len([line for line in text.splitlines() if line]) <= 10


def printed_by(code: str) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(code, {})
    return printed.getvalue()


def test_the_python_examples_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    explains, notebook, trains = blocks("python")
    assert printed_by(explains).count("Dilution: in head 0, ") == 3
    assert "800 lengths" in printed_by(notebook)
    assert printed_by(trains).count("Confusion(tn=") == 8


def test_the_example_for_a_cluster_names_what_there_is() -> None:
    (code,) = blocks("py")
    own = [line for line in code.splitlines() if "dask_jobqueue" not in line]
    imports = "\n".join(line for line in own if "import" in line)
    exec(imports, {})
    compile(code, "README.md", "exec")


def test_the_tables_are_described_as_they_are() -> None:
    for table in Base.metadata.sorted_tables:
        row = re.search(rf"^\| `{table.name}` \|.*\| (.*) \|$", README, re.MULTILINE)
        assert row, table.name
        described = re.sub(r" \([^)]*\)", "", row[1]).split(", ")
        assert described == [column.name for column in table.columns]
