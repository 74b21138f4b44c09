"""Tables of the command on a narrow terminal, and examples in its help."""

import re
import shlex
import time

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from sweeps.cli.printing import print_table, table_of
from tests.commands import printed, run_main, shown_commands
from tests.conftest import ROOT

DB = ["--db", str(ROOT / "runs.db")]
COLORS = re.compile(r"\x1b\[[0-9;]*m")


def on_a_terminal(*arguments: str, columns: int = 80) -> str:
    """The output of the command on a terminal of so many columns."""
    terminal = {"FORCE_COLOR": "1", "COLUMNS": str(columns), "TERM": "xterm"}
    return COLORS.sub("", run_main(*arguments, *DB, **terminal).stdout)


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["runs"], ["configuration", "id", "model_seed", "outcome", "accuracy"]),
        (["status"], ["name", "state", "done", "failed"]),
        (["errors", "5"], ["string", "kind", "length", "logit"]),
    ],
    ids=["runs", "status", "errors"],
)
def test_tables_fit_eighty_columns_and_show_the_main_columns(
    arguments: list[str], shown: list[str]
) -> None:
    lines = on_a_terminal(*arguments).splitlines()
    assert max(len(line.rstrip()) for line in lines) <= 80
    heading = next(line for line in lines if line.split()[:1] == shown[:1])
    assert heading.split()[: len(shown)] == shown
    assert not [line for line in lines if re.match(r"^\s+\S{1,12}$", line)], "no name is broken"


def test_all_columns_or_named_ones_are_shown() -> None:
    wide = on_a_terminal("runs", "--seed", "2", "--wide")
    assert "best_epoch" in wide
    assert "all_initializations, generalization_errors" in wide
    heading = on_a_terminal("runs", "--seed", "2", "--columns", "accuracy,id").splitlines()
    assert next(line.split() for line in heading if "accuracy" in line) == ["accuracy", "id"]


def test_errors_are_sorted_and_limited() -> None:
    text = printed("errors", "5", "--limit", "3", *DB)
    assert "697 in the test set; the first 3 by length" in " ".join(text.split())
    lengths = re.findall(r"false (?:positive|negative)\s+(\d+)", text)
    assert len(lengths) == 3
    assert lengths == sorted(lengths, key=int)
    assert lengths[0] == "69", "its solved length is 68"
    rows = printed("errors", "5", "--sort", "logit", "-n", "2", "-j", *DB)
    logits = [float(x) for x in re.findall(r'"logit": (-?[\d.]+)', rows)]
    assert len(logits) == 2
    assert logits == sorted(logits)


def test_a_long_table_is_laid_out_as_by_rich_within_seconds(
    capsys: pytest.CaptureFixture[str],
) -> None:
    few = pd.DataFrame(
        {
            "string": ["", "[b]ab[/b]", "語語", "a\x1b"],
            "logit": [1.5, -2.0, None, 10.0],
            "n": [1, 2, 30, 4],
        }
    )
    print_table(few, "four rows")
    printed = capsys.readouterr().out
    Console(width=200).print(table_of(few.replace("", '""'), "four rows"))
    assert printed == capsys.readouterr().out
    for nothing in (few[:0], pd.DataFrame()):
        print_table(nothing, "no rows")
        assert "[b]" not in capsys.readouterr().out
    many = pd.DataFrame({str(name): np.arange(50_000) for name in range(12)})
    started = time.process_time()
    print_table(many, "many rows")
    # Rich takes a minute and a half for these.
    assert time.process_time() - started < 15
    assert capsys.readouterr().out.count("\n") > 50_000


def test_every_command_has_a_valid_example() -> None:
    for name, command in shown_commands().items():
        assert command.epilog is not None, name
        example = command.epilog.removeprefix("Example: ")
        words = shlex.split(example)
        named = words.index(name)
        assert words[:named] in (["seqcls"], ["seqcls", "db"], ["seqcls", "model"]), name
        command.make_context(name, words[named + 1 :])  # refuses what it does not take
