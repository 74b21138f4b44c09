"""The code blocks of a page of the documentation, and what it takes to run them."""

import contextlib
import io
import json
import re
import shlex
import sqlite3
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from typer.testing import CliRunner

from dashboard.cli import app
from sweeps.grid.spec import parse_spec
from tests.conftest import ROOT, SHORT
from tests.plugins import forget_parts, write_metadata

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))

_FENCE = re.compile(
    r'^(?P<indent> *)```(?P<language>\w*)(?: title="(?P<title>[^"]*)")?\n(?P<text>.*?)^ *```$',
    re.DOTALL | re.MULTILINE,
)
SERVES = ("seqcls dashboard", "seqcls mcp --db runs.db")
"""Commands that serve until they are ended; other tests start them."""

TRAINS = ("sweep", "try", "work", "more")
"""Commands that train, here in this process, since starting others takes most of the time."""

SETS_UP = ("make ", "python3 -m venv ", ".venv/bin/", "git clone ", "source ", "cd ")
"""Commands that would change the environment of the tests, which are not run."""

QUICK = {
    **SHORT, "validation_size": 64, "test_size": 256, "max_num_epochs": 1,
    "train_max_length": 8, "validation_max_length": 8, "test_max_length": 12,
}  # fmt: skip


@dataclass(frozen=True)
class Block:
    """One block of code."""

    language: str
    title: str
    text: str


def blocks_of(page: str) -> list[Block]:
    """All blocks in order, without the indentation of a surrounding list."""
    found = []
    for match in _FENCE.finditer(page):
        indent = match["indent"]
        lines = [line.removeprefix(indent) for line in match["text"].splitlines(keepends=True)]
        found.append(Block(match["language"], match["title"] or "", "".join(lines)))
    return found


def rows_of(page: str) -> dict[str, list[str]]:
    """The cells of rows of tables of a page whose first cell is one name."""
    found = re.findall(r"^\| `(\w+)` \|(.*)\|$", (DOCS / page).read_text(), re.MULTILINE)
    return {name: [cell.strip() for cell in rest.split("|")] for name, rest in found}


def commands_of(page: str) -> list[str]:
    """Every line of every block of commands."""
    own = [block.text for block in blocks_of(page) if block.language == "bash"]
    return [line for text in own for line in text.splitlines() if line and line[0] != "#"]


@dataclass
class Reader:
    """Runs the blocks of a page, in a folder with the shipped database."""

    folder: Path
    instead: Mapping[str, str] = field(default_factory=dict)
    """Replacements for the names of the page's machines."""
    processes: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    printed: str = ""
    """The output of the last command or program."""

    def follow(self, page: str) -> None:
        for block in blocks_of(page):
            getattr(self, f"_{block.language}")(block)

    def _text(self, block: Block) -> None:
        """Asserts that each line of the documented output was printed; spaces and rules aside."""
        if block.title == "Output":
            printed = _plain(self.printed)
            for line in block.text.splitlines():
                assert _plain(line) in printed, (line, self.printed)

    def _json(self, block: Block) -> None:
        """Parses the settings of another program."""
        json.loads(block.text)

    def _csv(self, block: Block) -> None:
        """Writes a file of the page."""
        (self.folder / block.title).write_text(block.text)

    def _bash(self, block: Block) -> None:
        """Runs every line of a block, which is a separate shell."""
        outputs = []
        with pytest.MonkeyPatch.context() as environment:
            for line in block.text.splitlines():
                command = self._here(line.partition(" #")[0].strip())
                if command.startswith("seqcls ") and command not in SERVES:
                    outputs.append(self.seqcls(command))
                elif command.startswith("dask "):
                    self._start(command)
                elif command.startswith("export "):
                    environment.setenv(*command.removeprefix("export ").split("=", 1))
                elif command not in SERVES:
                    assert not command or command.startswith(SETS_UP), f"what is this? {command}"
        self.printed = "\n".join(outputs)

    def _here(self, line: str) -> str:
        for theirs, ours in self.instead.items():
            line = line.replace(theirs, ours)
        return line

    def _start(self, command: str) -> None:
        """Starts a process that serves until the page is read."""
        own = [sys.executable, "-m", *shlex.split(command), "--no-dashboard"]
        process = subprocess.Popen(own, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.processes.callback(process.wait)
        self.processes.callback(process.kill)

    def seqcls(self, line: str) -> str:
        """Runs a command in this process, since starting Python takes most of the time."""
        arguments = shlex.split(line)[1:]
        if arguments[0] in TRAINS and "--dask" not in arguments:
            arguments += ["--workers", "0"]
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, (line, result.output, result.exception)
        assert result.stdout, line
        return result.stdout

    def _toml(self, block: Block) -> None:
        data = tomllib.loads(block.text)
        if block.title.endswith("pyproject.toml"):
            install(self.folder, data)
            return
        if "task" not in data.get("fixed", {}) or data["fixed"]["task"] != "no_repeats":
            parse_spec(data)
        if block.title:
            (self.folder / block.title).write_text(tomli_w.dumps(quick(data)))

    def _python(self, block: Block) -> None:
        code = compile(block.text, block.title or "example", "exec")
        if "/" in block.title:
            assert (ROOT / block.title).exists(), block.title
            return  # A part of that file.
        if block.title:
            (self.folder / block.title).write_text(block.text)
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(code, {"__name__": "example"})
        self.printed = printed.getvalue()

    def _py(self, block: Block) -> None:
        """Compiles a program for a cluster, and runs its imports."""
        own = [line for line in block.text.splitlines() if "dask_jobqueue" not in line]
        exec("\n".join(line for line in own if "import" in line), {})
        compile(block.text, "cluster", "exec")

    def _sql(self, block: Block) -> None:
        with closing(sqlite3.connect(f"file:{self.folder}/runs.db?mode=ro", uri=True)) as database:
            for query in block.text.split(";\n"):
                if query.strip():
                    # The shipped database has no transduction.
                    answered = database.execute(query).fetchall() or block.title == "Transductions"
                    assert answered, query


def quick(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The same sweep with one seed, on so few and short strings that it takes a second."""
    own = {**spec, "model_seeds": [0]}
    return {**own, "fixed": {**spec.get("fixed", {}), **_short(spec)}}


def _short(spec: Mapping[str, Any]) -> dict[str, Any]:
    varied = {*spec.get("axes", {}), *(x for own in spec.get("configurations", ()) for x in own)}
    return {name: value for name, value in QUICK.items() if name not in varied}


def install(folder: Path, project: Mapping[str, Any]) -> None:
    """Writes the metadata that pip makes of a project with entry points."""
    lines = []
    for group, points in project["project"]["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in points.items())]
    names = project["project"]["name"], project["project"]["version"]
    write_metadata(folder, *names, "\n".join(lines))
    forget_parts()


def _plain(text: str) -> str:
    return re.sub(r"[\s─]+", " ", text).strip()
