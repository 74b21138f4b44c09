"""A first question by `seqcls try`: its file, its output, and its refusals."""

import re
import shlex
from pathlib import Path

import pytest

import seqcls
from sweeps import api
from sweeps.api.first_question import specify
from sweeps.grid.spec import load_specs, spec_as_written
from tests.blocks import DOCS
from tests.commands import printed, refused, run_main

QUICK = {
    "train_size": 256, "validation_size": 64, "test_size": 256, "hidden_size": 8,
    "feed_forward_size": 8, "num_attention_heads": 1, "attention_head_size": 8, "num_blocks": 1,
    "train_max_length": 6, "test_max_length": 9, "max_num_epochs": 2,
}  # fmt: skip
SMALL = [part for name, value in QUICK.items() for part in ("--set", f"{name}={value}")]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SEQCLS_DB", raising=False)
    return tmp_path


def test_a_first_question_is_answered_and_leaves_its_specification(folder: Path) -> None:
    command = ["try", "(ab|ba)*", "--positions", "none,rotary", "--seeds", "2", *SMALL]
    shown = printed(*command, "--db", "first.db", "--workers", "0")
    (spec,) = load_specs(str(folder / "ab-ba.toml"))
    assert {x.positions for x in spec.configs()} == {"none", "rotary"}
    assert {(x.task, x.pattern, x.hidden_size) for x in spec.configs()} == {
        ("regular", "(ab|ba)*", 8)
    }
    assert "10 strings that models train on" in shown
    assert "ab-ba: trained 4 runs" in shown
    assert "of these generalize" in shown
    assert "`seqcls sweep ab-ba.toml --db first.db`" in shown
    table = api.configurations(api.open_store("first.db"), "ab-ba")
    assert list(table["seeds"]) == [2, 2]
    for row in table.itertuples():
        assert f"{row.name}" in shown
    # The answer is printed again, and nothing is trained twice.
    again = run_main(*command, "--db", "first.db", "--workers", "0")
    assert "ab-ba: all runs are in first.db" in again.stdout
    assert run_main("sweep", "ab-ba.toml", "--db", "first.db").returncode == 0


def test_a_file_name_is_read_as_strings_and_in_quotes_as_an_expression(folder: Path) -> None:
    (folder / "my words.csv").write_text("tokens,label\nab,yes\nba,no\n")
    summary = run_main("data", "my words.csv").stdout
    assert "no is read as 0, yes is read as 1" in summary
    assert "no column split" in summary
    assert "`seqcls try 'my words.csv'`" in summary
    fields = specify("my words.csv")["fixed"]
    assert (fields["task"], len(fields["dataset"])) == ("file", 64)
    assert specify("'a.csv'")["fixed"]["task"] == "regular"


def test_a_question_does_not_overwrite_the_file_of_another(folder: Path) -> None:
    (folder / "parity.toml").write_text("name = 'parity'\n")
    line = refused("try", "parity", "--seeds", "2", *SMALL, "--db", "first.db")
    reason = "--name parity: parity.toml asks something else; give the question another name"
    assert reason in line
    assert (folder / "parity.toml").read_text() == "name = 'parity'\n"
    assert not (folder / "first.db").exists()


def test_a_name_with_slashes_writes_into_the_working_directory(folder: Path) -> None:
    command = ["try", "parity", "--name", "../../parity", "--seeds", "1", *SMALL]
    assert run_main(*command, "--db", "first.db", "--workers", "0").returncode == 0
    assert (folder / "parity.toml").exists()


def test_the_commands_of_open_problems_are_valid() -> None:
    page = (DOCS / "open_problems.md").read_text()
    commands = re.findall(r"`seqcls (try .+?)`", page, re.DOTALL)
    assert len(commands) >= 5
    for line in commands:
        words = shlex.split(line)[1:]
        given: dict[str, list[str]] = {}
        for name, value in zip(words[1::2], words[2::2], strict=True):
            given.setdefault(name.removeprefix("--"), []).append(value)
        table = specify(
            words[0],
            networks=given.get("network", ["transformer"])[0],
            positions=given.get("positions", [""])[0],
            seeds=given["seeds"][0],
            settings=given.get("set", []),
        )
        assert [*spec_as_written(table).configs()], line


def test_a_first_question_is_answered_from_python() -> None:
    db = seqcls.open("first.db")
    table = db.try_task("a > b", positions=["none", "rotary"], seeds=2, **QUICK)
    assert list(table["seeds"]) == [2, 2]
    assert set(table["positions"]) == {"none", "rotary"}
    assert list(db.configurations("a-b")["name"]) == list(table["name"])
