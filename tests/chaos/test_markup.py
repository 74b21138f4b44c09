"""Text of a database is printed literally: it sets no style and no terminal state."""

import json
import re
import string
from pathlib import Path

from sqlalchemy import text

from sweeps.store import writer
from sweeps.store.opening import open_writer
from tests.commands import run_main
from tests.conftest import ROOT
from tests.databases import spec

MARKUP = "**bold** [link](javascript:alert(1)) :red[x] [red]y[/red]"
STEERING = "\x1b]0;owned\x07\x1b[2J\x9b31m\r\u202ename\u2066"
SHOWN = r"\x1b]0;owned\x07\x1b[2J\x9b31m\x0d\u202ename\u2066"


def test_commands_print_no_control_characters_from_a_database(tmp_path: Path) -> None:
    database = ("--db", str(tmp_path / "x.db"))
    store = open_writer(database[1])
    writer.submit(store, spec(name=MARKUP))
    for command in (["status"], ["runs"]):
        assert "[red]y[/red]" in run_main(*command, *database).stdout.replace("\n", "")
    with store.write(quiet=True) as connection:
        connection.execute(text("UPDATE sweep SET name = :name"), {"name": STEERING})
        connection.execute(text("UPDATE run SET error = :name"), {"name": STEERING})
    for command in (["status"], ["runs", "--wide"], ["stop", STEERING], ["resume", STEERING]):
        found = run_main(*command, *database)
        printed = found.stdout + found.stderr
        assert not {*STEERING} - {*string.printable} & {*printed}, command
        assert "\r" not in printed
        assert SHOWN in printed.replace("\n", ""), command
    as_data = run_main("status", "--json", *database).stdout
    assert json.loads(as_data)[0]["name"] == STEERING
    refused = run_main("errors", STEERING, *database)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "\x1b" not in refused.stderr
    assert r"\x1b]0;owned" in refused.stderr


def test_only_the_terminal_module_prints() -> None:
    """So that none is forgotten."""
    prints = re.compile(r"(typer|click)\.(s?echo)\(|(?<![\w.])print\(|sys\.(stdout|stderr)\.write")
    sources = [*(ROOT / "sweeps").rglob("*.py"), *(ROOT / "dashboard").rglob("*.py")]
    own = {str(x.relative_to(ROOT)) for x in sources if prints.search(x.read_text())}
    assert own == {"sweeps/terminal.py"}
