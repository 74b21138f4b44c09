"""Expressions, formulas, strings and families of any kind get a short answer."""

import json
import os
import random
import resource
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from seqcls.config import RunConfig
from seqcls.errors import SeqclsError, SpecError
from seqcls.problem import configuration, resolve
from seqcls.strings.free_counts import parse_family
from seqcls.strings.tokenizer import Tokenizer
from sweeps.grid.spec import MAX_BYTES, load_specs, parse_spec, read_spec
from tests.commands import refused
from tests.conftest import ROOT

CATASTROPHIC = {
    "pattern": [
        "(a*)*b",
        "(a|a)*b",
        "((a*)*)*",
        "(a|aa)*(a|aa)*b",
        "(a+)+$",
        "(.*a){40}",
        "(a|b)*a(a|b){13}",
        "(a|b)*a(a|b){14}",
        "(a|b)*a(a|b){500}",
        "((a{9}){9}){9}",
        "((((a{9}){9}){9}){9}){9}",
        "a{999999999}",
        "a{0,2999}",
        "(a?){60}a{60}",
        "(((a|b)*&(b|a)*)&(a*b*)*)&((ab)*|(ba)*)",
        "(" * 500,
        "(" * 300 + "a" + ")" * 300,
        "(" * 300 + "a" + ")*" * 300,
        "a|" * 499 + "b",
        "[a-" + chr(0x10FFFF) + "]",
        "\\",
        "{1,2}",
        "a{2,1}",
        "^a",
        "()",
        "",
    ],
    "formula": [
        "a" + " + a" * 240 + " > 0",
        "(" * 200 + "a > 0" + ")" * 200,
        "not " * 200 + "a > 0",
        "-" * 900 + "a > 0",
        "a" + " * a" * 240 + " > b",
        "a ** 9 ** 9 ** 9 > 0",
        "a > 10 ** 9999",
        "9" * 900 + " > a",
        "a % 0 == 1",
        "a < b" + " < a" * 190,
        "__import__('os').system('true') > 0",
        "[a for a in range(10**9)] > a",
        "a if b > 0 else a",
        "lambda: a",
        "a > 1 << 999999",
        "#",
        "",
    ],
    "notation": [
        "<<ab>{9}>{9}",
        "<" * 5000,
        "<" * 40 + "a" + ">{9}" * 40,
        "<<<<<<<<ab>{9}>{9}>{9}>{9}>{9}>{9}>{9}>{9}",
        "a{" + "9" * 900 + "}",
        "a{-1}",
        "a{1",
        "}" * 1000,
        "<>{9}",
        "<a>{0}",
        "ab" * 50_000,
        "<ab>{1000000000}",
        "\N{LATIN SMALL LETTER A WITH DIAERESIS}",
    ],
    "family": ["a{n}" * 500, "a{m}b{n}c{k}", "<ab>{n}", "a{n}{n}", "{n}", "a{99999999999}b{n}"],
}

_PIECES = {
    "pattern": [*"ab.*+?|&()[]{}\\^$-,", "{2,5}", "{9}", "(a|b)", "[ab]", "(a*)*", "{,3}", "a{7}"],
    "formula": [*"abc()+-*%<>=!# ", " and ", " or ", " not ", "==", "<=", "12", "0", "1e9", "**"],
    "notation": [*"abc<>{}", "{9}", "{100}", "<ab>", "<a", ">{3}", "0", " ", "n"],
    "family": [*"abc<>{}mnk", "{n}", "{m}", "a{n}", "b{m}", "{3}", "<ab>{n}"],
}


_REPORT = RunConfig()

READ: dict[str, Callable[[str], object]] = {
    "pattern": lambda text: (
        resolve(configuration({"task": "regular", "alphabet": "ab", "pattern": text})).task
    ),
    "formula": lambda text: (
        resolve(configuration({"task": "counting", "alphabet": "abc", "formula": text})).task
    ),
    "notation": lambda text: (
        resolve(_REPORT).tokenizer.counts(text),
        resolve(_REPORT).tokenizer.encode(text),
    ),
    "family": lambda text: parse_family(Tokenizer("abc"), text),
}
"""Functions that read texts of each kind, and refuse most of them."""


def texts(number: int, seed: int = 0) -> Iterator[tuple[str, str]]:
    """Texts with their kind: those that are known to be bad, and then random ones."""
    known = [(kind, text) for kind, own in CATASTROPHIC.items() for text in own]
    yield from known[:number]
    generator = random.Random(seed)
    for _ in range(number - len(known)):
        kind = generator.choice(list(_PIECES))
        pieces = generator.choices(_PIECES[kind], k=generator.randrange(1, 40))
        if generator.random() < 0.1:
            pieces.insert(generator.randrange(len(pieces)), generator.choice(CATASTROPHIC[kind]))
        yield kind, "".join(pieces)


MAX_GROWTH = 500_000_000
MAX_SECONDS = 2.0
"""Seconds of computing, for any one text: a machine that is busy with other things is no fault."""


def try_texts(number: int, seed: int) -> dict[str, Any]:
    """Reads texts in this process; returns refusals, crashes, time and memory."""
    # What is loaded once counts for none of them.
    for kind, text in (("pattern", "ab"), ("formula", "a > b"), ("family", "a{n}")):
        READ[kind](text)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    wrong: list[str] = []
    refused, slowest = 0, (0.0, "")
    for kind, text in texts(number, seed):
        began = time.process_time()
        try:
            READ[kind](text)
        except SeqclsError as error:
            refused += 1
            if not str(error).strip():
                wrong.append(f"{kind} {text[:80]!r}: nothing is said")
        except Exception as error:
            wrong.append(f"{kind} {text[:80]!r}: {type(error).__name__}: {error}")
        slowest = max(slowest, (time.process_time() - began, f"{kind} {text[:80]!r}"))
    grown = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    return {"refused": refused, "wrong": wrong, "slowest": slowest, "grown": grown}


@pytest.mark.cases(25)
def test_every_expression_and_string_is_read_or_refused_quickly(seed: int) -> None:
    number = 400
    program = (
        f"import json; from {__name__} import try_texts; "
        f"print(json.dumps(try_texts({number}, {seed})))"
    )
    completed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT
    )
    assert completed.returncode == 0, completed.stderr
    found = json.loads(completed.stdout)
    assert found["wrong"] == []
    assert found["refused"] > number // 2
    assert found["slowest"][0] < MAX_SECONDS
    assert found["grown"] < MAX_GROWTH


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
    with pytest.raises(SpecError) as found:
        load_specs(str(path))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < MEMORY
    assert len(str(found.value)) < 500
    assert "\n" not in str(found.value)


def test_a_sparse_gigabyte_is_not_read_and_no_database_is_created(tmp_path: Path) -> None:
    path = tmp_path / "huge.toml"
    path.touch()
    os.truncate(path, 1 << 30)
    tracemalloc.start()
    message = refused("submit", str(path), "--db", str(tmp_path / "x.db"))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert "more than 1,000,000 bytes" in message
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
