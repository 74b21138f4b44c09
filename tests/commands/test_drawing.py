"""`seqcls draw` and `seqcls shortcuts`: strings before anything is trained on them."""

import csv
import io
import itertools
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from seqcls.interpretability.wording import percent
from seqcls.problem import configuration, resolve
from sweeps import api
from sweeps.api.strings import drawn_strings, first_strings
from sweeps.grid.spec import load_specs
from tests.commands import printed, run_main
from tests.commands.files import table, written

SHORT_STRINGS = {
    "train_size": 200,
    "train_max_length": 12,
    "validation_size": 100,
    "validation_max_length": 16,
    "test_size": 300,
    "test_max_length": 20,
}
NAMED = {"task": "counting", "alphabet": "push pop a", "formula": "push == pop"}


def spec_file(folder: Path, fields: Mapping[str, Any], axes: Mapping[str, Any] = {}) -> str:
    """A specification with these fields, as a file."""
    fixed = {**({} if "path" in fields else SHORT_STRINGS), **fields}
    named = {"name": "drawn", "model_seeds": "0..1", "fixed": fixed, "axes": axes}
    return str(written(folder, "drawn.toml", tomli_w.dumps(named)))


def drawn(*arguments: str) -> list[dict[str, str]]:
    """The rows that a command prints as CSV."""
    return list(csv.DictReader(io.StringIO(printed("draw", *arguments, "--format", "csv"))))


def test_csv_and_lines_of_json_spell_strings_out(tmp_path: Path) -> None:
    spec = spec_file(tmp_path, {"task": "modular_arithmetic", "negatives": "near"})
    rows = drawn(spec, "-n", "150")
    assert list(rows[0]) == ["string", "label", "length", "kind"]
    assert {row["kind"] for row in rows} == {"positive", "uniform", "edited", "near"}
    assert all((row["kind"] == "positive") == (row["label"] == "1") for row in rows)
    assert all(len(row["string"]) == int(row["length"]) for row in rows)
    copy = spec_file(tmp_path, {"task": "copy"})
    completed = run_main("draw", copy, "-n", "30", "--format", "jsonl", "--part", "test")
    lines = [json.loads(line) for line in completed.stdout.splitlines()]
    rows = drawn(copy, "-n", "30", "--part", "test")
    assert lines == [{**row, "length": int(row["length"])} for row in rows]
    assert all(row["string"] == row["target"] for row in lines)
    assert all(len(row["target"]) == row["length"] for row in lines)


def test_names_of_tokens_are_separated_by_spaces(tmp_path: Path) -> None:
    spec = spec_file(tmp_path, NAMED)
    rows = drawn(spec, "-n", "100", "--label", "positive")
    assert any("push push" in row["string"] for row in rows), "no count stands for a repetition"
    for row in rows:
        tokens = row["string"].split()
        assert len(tokens) == int(row["length"])
        assert tokens.count("push") == tokens.count("pop")
    frame, counted = api.draw(spec, number=50), api.draw(spec, number=50, in_notation=True)
    assert [len(text.split()) for text in frame["string"]] == frame["length"].tolist()
    assert (frame["string"] != counted["string"]).any()
    table = run_main("draw", spec, "-n", "50").stdout
    assert "{3}" in table
    assert "{2}" not in table, "a table counts repetitions of more than two"
    assert "50 strings of train" in table


def test_strings_of_a_file_are_shown_by_label(tmp_path: Path) -> None:
    texts = ["".join(x) for n in range(1, 6) for x in itertools.product("ab", repeat=n)]
    odd = table("tokens,label", ((text, text.count("a") % 2) for text in texts))
    path = written(tmp_path, "rows.csv", odd)
    spec = spec_file(tmp_path, {"task": "file", "path": str(path)})
    (parsed,) = load_specs(spec)
    looked = first_strings(resolve(next(iter(parsed.configs()))), "train")
    assert not looked.drawn_apart
    assert [*looked.numbers] == ["positive", "negative"]
    for kind, first in looked.first.groupby("kind"):
        label = int(kind == "positive")
        assert set(first["label"]) == {label}
        rows = drawn(spec, "--label", str(kind))
        assert {row["label"] for row in rows} == {str(label)}
        # A file doesn't record how negative strings were drawn.
        assert {row["kind"] for row in rows} <= {"", "positive"}
    (of_rows,) = api.shortcuts(spec)
    assert "without knowing" not in (of_rows.advice or "")
    assert "decided by" not in (of_rows.advice or "")
    assert of_rows.remedy == {}


def test_configurations_that_draw_alike_need_no_choice(tmp_path: Path) -> None:
    spec = spec_file(tmp_path, {"task": "dyck"}, {"hidden_size": [2, 4], "bracket_types": [1, 2]})
    arguments = ("draw", spec, "--where", "bracket_types=2", "--part", "validation", "-n", "1000")
    completed = run_main(*arguments, "--format", "csv")
    assert completed.stderr == "the first epoch has only 100 strings\n"
    rows = list(csv.DictReader(io.StringIO(completed.stdout)))
    assert any("[" in row["string"] for row in rows)
    assert len(rows) == 100
    assert max(int(row["length"]) for row in rows) <= 16


def test_ten_strings_of_each_kind_are_shown() -> None:
    problem = resolve(configuration({**SHORT_STRINGS, "task": "dyck", "negatives": "near"}))
    looked = first_strings(problem, "test")
    assert [*looked.numbers] == ["positive", "uniform", "edited", "near"]
    assert sum(looked.numbers.values()) == 300
    assert not looked.drawn_apart
    whole = drawn_strings(problem, "test", in_notation=True)
    assert looked.numbers == whole["kind"].value_counts().to_dict()
    for kind, first in looked.first.groupby("kind"):
        rows = whole[whole["kind"] == kind].head(10).sort_values("length", kind="stable")
        assert first["string"].tolist() == rows["string"].tolist()


def test_an_empty_string_is_visible_in_a_table(tmp_path: Path) -> None:
    rows = "tokens,label,split\n,1,train\na,0,train\na,0,validation\nb,1,test\n"
    path = written(tmp_path, "strings.csv", rows)
    shown = run_main("draw", spec_file(tmp_path, {"task": "file", "path": str(path)})).stdout
    assert re.search('^ "" +1 +0 ', shown, re.MULTILINE), shown


@pytest.mark.parametrize(
    "fields",
    [
        {"task": "dyck", "test_size": 100_000, "test_max_length": 10_000},
        {"task": "dyck", "disjoint": True, "test_seed": 77},
    ],
)
def test_strings_that_are_slow_to_draw_are_shown_in_part(fields: dict[str, Any]) -> None:
    problem = resolve(configuration(fields))
    looked = first_strings(problem, "test")
    assert looked.drawn_apart
    assert sum(looked.numbers.values()) * looked.lengths[-1] < 3_000_000
    assert {*looked.numbers} == {"positive", "uniform", "edited"}


def test_advice_names_the_fields_that_would_help() -> None:
    """A test of mostly ill-formed strings is passed by a reader of bigrams."""
    fields = {"task": "cycle_navigation", **SHORT_STRINGS, "train_size": 2_000}
    cases: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({}, {"negatives": "near"}),
        (
            {"negatives": "near", "test_negatives": "uniform"},
            {"negatives": "near", "test_negatives": "as_trained"},
        ),
        ({"negatives": "near"}, {}),
    ]
    for changed, remedy in cases:
        found = api.shortcuts({"name": "s", "model_seeds": [0], "fixed": {**fields, **changed}})
        assert found[0].remedy == remedy
        for name, value in remedy.items():
            assert f'{name} = "{value}"' in (found[0].advice or "")


@pytest.mark.parametrize("lengths", ["redrawn", "uniform"])
def test_the_reported_shares_of_negatives_are_the_drawn_ones(tmp_path: Path, lengths: str) -> None:
    """`(ab|ba)*` has no string of an odd length, so no near negative of one can be made."""
    fields = {"task": "regular", "alphabet": "ab", "pattern": "(ab|ba)*", "negatives": "near"}
    spec = spec_file(tmp_path, {**fields, "negative_lengths": lengths, "train_size": 2_000})
    kinds = api.draw(spec, number=None)["kind"]
    negative = kinds[kinds != "positive"]
    shares = [
        f"{percent((negative == kind).mean(), 1)} {kind}" for kind in ("uniform", "edited", "near")
    ]
    sentence = f"{len(negative):,} negative strings were drawn: {', '.join(shares)}"
    assert sentence in run_main("draw", spec).stdout
    assert ((negative == "near").mean() < 0.2) == (lengths == "uniform")
    assert "negative strings were drawn" not in run_main("draw", spec, "--format", "csv").stdout


DECIDED = [
    ({"task": "majority"}, "letter counts"),
    ({"task": "regular", "alphabet": "ab", "pattern": "((a|b)(a|b))*"}, "the length"),
    ({"task": "copy"}, "the input itself"),
]
"""A task for each reader; deciding a language is tested in `test_shortcuts`."""


def test_a_task_that_a_reader_decides_has_no_shortcut(tmp_path: Path) -> None:
    for fields, by in DECIDED:
        spec = spec_file(tmp_path, {**SHORT_STRINGS, "train_size": 2_000, **fields})
        (reached,) = api.shortcuts(spec)
        assert f"is decided by {by}" in (reached.advice or "")
        assert reached.remedy == {}
        if by == "the length":
            output = " ".join(printed("shortcuts", spec).split())
            assert f"is decided by {by}" in output
            assert "without knowing" not in output


def test_a_language_without_near_negatives_is_reported_before_and_after_training(
    tmp_path: Path,
) -> None:
    reason = "no near negative was found among 2,000 positive strings"
    fields = {"task": "regular", "alphabet": "ab", "pattern": "(ab)*", "hidden_size": 2}
    for negatives, is_reported in (("near", True), ("mixed", False)):
        spec = spec_file(tmp_path, {**fields, "negatives": negatives, "max_num_epochs": 1})
        db = str(tmp_path / f"{negatives}.db")
        commands = [("submit", spec, "--db", db), ("sweep", spec, "--db", db, "--workers", "0")]
        for command in (("draw", spec), *commands[: 1 + is_reported]):
            found = run_main(*command)
            assert found.returncode == 0, found.stderr
            assert (reason in " ".join(found.stderr.split())) == is_reported, command
        protocol = " ".join(api.protocol(api.open_store(db), "drawn/0"))
        drawn_as = "mixed, as the language has no near ones" if is_reported else "mixed"
        assert protocol.count(f"negatives {drawn_as},") == 3
