"""Specifications made to exhaust whoever reads them are refused at once, and leave nothing."""

import os
import tracemalloc
from pathlib import Path

import pytest
from typer.testing import CliRunner

from seqcls.errors import SpecError
from sweeps.cli.app import app
from sweeps.grid.spec import MAX_BYTES, load_specs, parse_spec, read_spec

GOOD = 'name = "good"\nmodel_seeds = [0]\n'

BOMBS = {
    "a dotted key": ".".join("a" * 20_000) + " = 1",
    "a quoted dotted key": ".".join(['"a"'] * 20_000) + " = 1",
    "a dotted key with spaces": " . ".join("a" * 20_000) + " = 1",
    "a dotted key in a table": "x = {" + ".".join("a" * 20_000) + " = 1}",
    "a dotted header": "[" + ".".join("a" * 20_000) + "]",
    "arrays in arrays": "x = " + "[" * 20_000,
    "tables in tables": "x = " + "{a=" * 20_000,
    "a large file": "#" * MAX_BYTES,
    "a long number": "x = 0x" + "f" * 100_000,
    "a string without an end": 'x = "' + '\\"' * 200_000,
    "strings without an end": 'x = "\\' * 100_000,
    "a long name": 'name = "' + "n" * 100_000 + '"',
}

MEMORY = 50_000_000


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_is_refused_in_one_line_and_a_little_memory(tmp_path: Path, bomb: str) -> None:
    path = tmp_path / "bomb.toml"
    path.write_text(f"{BOMBS[bomb]}\n{GOOD}")
    tracemalloc.start()
    with pytest.raises(SpecError) as refused:
        load_specs(str(path))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < MEMORY
    assert len(str(refused.value)) < 500
    assert "\n" not in str(refused.value)


def test_a_sparse_gigabyte_is_not_read_and_no_database_is_created(tmp_path: Path) -> None:
    path = tmp_path / "huge.toml"
    path.touch()
    os.truncate(path, 1 << 30)
    tracemalloc.start()
    result = CliRunner().invoke(app, ["submit", str(path), "--db", str(tmp_path / "x.db")])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert isinstance(result.exception, SpecError)
    assert "more than 1,000,000 bytes" in str(result.exception)
    assert [file.name for file in tmp_path.iterdir()] == ["huge.toml"]
    assert peak < MEMORY


def test_names_have_a_limit_and_texts_may_have_dots(tmp_path: Path) -> None:
    assert parse_spec({"name": "n" * 200, "model_seeds": [0]}).name == "n" * 200
    with pytest.raises(SpecError, match=r"name=.*: expected at most 200 characters"):
        parse_spec({"name": "n" * 201, "model_seeds": [0]})
    path = tmp_path / "dots.toml"
    dots = ".".join("a" * 100)
    path.write_text(f'{GOOD}description = """{dots}\n"{dots}"\n""" # {dots}\n[fixed]\n')
    assert dots in read_spec(path).description
