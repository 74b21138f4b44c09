"""What stands in a database is shown as it is, never interpreted."""

import json
import re
import string
from pathlib import Path

import pytest
from sqlalchemy import text
from typer.testing import CliRunner

from dashboard.cli import app
from sweeps.store import writer
from sweeps.store.opening import open_writer
from sweeps.store.reads.sweep_queries import NamedView
from tests.commands import run
from tests.conftest import ROOT
from tests.databases import spec

HOSTILE = (
    "**bold** [link](javascript:alert(1)) <script>alert(1)</script> :red[x] $x^2$ [red]y[/red]"
)


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    path = tmp_path / "x.db"
    store = open_writer(str(path))
    writer.submit(store, spec(name=HOSTILE, description=HOSTILE))
    with store.begin() as connection:
        change = text("UPDATE run SET state = 'failed', error = :said WHERE id = 1")
        connection.execute(change, {"said": HOSTILE})
        connection.execute(text("UPDATE sweep SET state = 'done'"))
        add = "INSERT INTO failure VALUES (1, 1, '2026-01-01T00:00:00+00:00', :said)"
        connection.execute(text(add), {"said": HOSTILE})
    writer.write_note(store, 1, title=HOSTILE, note=HOSTILE, tags=[HOSTILE, "plain"])
    writer.save_view(store, NamedView(HOSTILE, "map", ""))
    return path


def test_commands_print_it_as_it_is(hostile: Path) -> None:
    for command in (["status"], ["runs"]):
        found = CliRunner().invoke(app, [*command, "--db", str(hostile)])
        assert "[red]y[/red]" in "".join(found.stdout.split("\n"))


STEERING = "\x1b]0;owned\x07\x1b[2J\x9b31m\r\u202ename\u2066"
SHOWN = r"\x1b]0;owned\x07\x1b[2J\x9b31m\x0d\u202ename\u2066"


def test_nothing_that_commands_print_steers_the_terminal(hostile: Path) -> None:
    with open_writer(str(hostile)).begin() as connection:
        connection.execute(text("UPDATE sweep SET name = :name"), {"name": STEERING})
        connection.execute(text("UPDATE run SET error = :name"), {"name": STEERING})
    for command in (["status"], ["runs", "--wide"], ["stop", STEERING], ["resume", STEERING]):
        found = CliRunner().invoke(app, [*command, "--db", str(hostile)])
        assert not {*STEERING} - {*string.printable} & {*found.output}, command
        assert "\r" not in found.output
        assert SHOWN in found.output.replace("\n", ""), command
    as_data = CliRunner().invoke(app, ["status", "--json", "--db", str(hostile)])
    assert json.loads(as_data.stdout)[0]["name"] == STEERING
    said = run("errors", STEERING, "--db", str(hostile))
    assert (said.returncode, said.stdout) == (2, "")
    assert "\x1b" not in said.stderr
    assert r"\x1b]0;owned" in said.stderr


def test_every_line_of_a_command_goes_through_one_place() -> None:
    """So that none is forgotten."""
    prints = re.compile(r"(typer|click)\.(s?echo)\(|(?<![\w.])print\(|sys\.(stdout|stderr)\.write")
    sources = [*(ROOT / "sweeps").rglob("*.py"), *(ROOT / "dashboard").rglob("*.py")]
    own = {str(x.relative_to(ROOT)) for x in sources if prints.search(x.read_text())}
    # What ends a process before it has loaded anything says words of its own alone; a report's
    # JavaScript is handed from one process to another; a program that is given away prints itself.
    others = {"sweeps/limits.py", "dashboard/report/document.py", "sweeps/api/giving.py"}
    assert own == {"sweeps/terminal.py"} | others
