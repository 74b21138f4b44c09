"""Files of every format, damaged at random, are read or refused in a line; nothing is half done."""

import json
import random
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from seqcls.errors import SeqclsError
from seqcls.interpretability.automaton import dot, record
from seqcls.tasks.regular import Regular
from sweeps import api
from sweeps.datasets import read_content
from tests.databases import rows

NUM_FILES_PER_SEED = 15
MAX_MESSAGE_LETTERS = 700
"""A message quotes no more of a file than helps to find the place."""

HOSTILE = (
    b"\0", b"\xff\xfe", b"\r", b'"', b",", b"\t", b"\n\n", b"=1+1", b"NaN", b"1e999", b"[" * 2000,
    b"{", b"<script>", "\u202e".encode(), "é".encode("latin-1"), b"a" * 20_000, b"PK\x03\x04",
)  # fmt: skip

Writer = Callable[[pd.DataFrame, Path], None]

FORMATS: dict[str, Writer] = {
    "csv": lambda frame, path: frame.to_csv(path, index=False),
    "tsv": lambda frame, path: frame.to_csv(path, index=False, sep="\t"),
    "jsonl": lambda frame, path: frame.to_json(path, orient="records", lines=True),
    "parquet": lambda frame, path: frame.to_parquet(path, index=False),
}

STRINGS = ["ab" * length + "a" * (length % 2) for length in range(1, 21)]
ROWS = pd.DataFrame(
    {
        "tokens": STRINGS,
        "label": [len(string) % 2 for string in STRINGS],
        "split": "test",
        "id": [f"s{number}" for number in range(len(STRINGS))],
    }
)


def damaged(content: bytes, rng: random.Random) -> bytes:
    """The content with a few bytes changed, cut out, repeated, or hostile ones put in."""
    found = bytearray(content)
    for _ in range(rng.choice([1, 1, 3, 20])):
        offset = rng.randrange(len(found) + 1)
        match rng.randrange(4):
            case 0:
                found[offset : offset + 1] = bytes([rng.randrange(256)])
            case 1:
                del found[offset : offset + rng.choice([1, 5, 100])]
            case 2:
                found[offset:offset] = found[offset : offset + rng.choice([1, 50])]
            case _:
                found[offset:offset] = rng.choice(HOSTILE)
    return bytes(found)


def in_one_line(message: str) -> None:
    """Checks that a message is short and of one line."""
    assert message.strip()
    assert "\n" not in message
    assert len(message) < MAX_MESSAGE_LETTERS, message


def read_or_refused(path: Path) -> None:
    """Checks that a file of strings is read whole, or each of its problems reported in one line."""
    try:
        found = read_content(path)
    except SeqclsError as error:
        in_one_line(str(error))
        return
    assert (found.dataset is None) == bool(found.problems)
    for problem in found.problems:
        in_one_line(problem)


@pytest.mark.cases(20)
@pytest.mark.parametrize("ending", FORMATS)
def test_a_damaged_file_of_strings_is_read_or_refused_in_one_line(
    tmp_path: Path, ending: str, seed: int
) -> None:
    path = tmp_path / f"data.{ending}"
    FORMATS[ending](ROWS, path)
    good = path.read_bytes()
    assert read_content(path).dataset is not None
    for number in range(NUM_FILES_PER_SEED * seed, NUM_FILES_PER_SEED * (seed + 1)):
        path.write_bytes(damaged(good, random.Random(number)))
        read_or_refused(path)


@pytest.mark.cases(20)
@pytest.mark.parametrize(
    ("names", "read"),
    [
        (("x_src.txt", "x_tgt.txt"), "x_src.txt"),
        (("main.tok", "labels.txt"), ""),
    ],
)
def test_damaged_strings_in_several_files_are_read_or_refused_in_one_line(
    tmp_path: Path, names: tuple[str, str], read: str, seed: int
) -> None:
    folder = tmp_path / "flare"
    folder.mkdir()
    contents = {
        names[0]: "\n".join(" ".join(string) for string in STRINGS).encode(),
        names[1]: "\n".join(str(len(string) % 2) for string in STRINGS).encode(),
    }
    for number in range(NUM_FILES_PER_SEED * seed, NUM_FILES_PER_SEED * (seed + 1)):
        rng = random.Random(number)
        for name, content in contents.items():
            (folder / name).write_bytes(content)
        if number == 0:
            assert read_content(folder / read).dataset is not None
        broken = rng.choice(names)
        (folder / broken).write_bytes(damaged(contents[broken], rng))
        if rng.random() < 0.1:
            (folder / broken).unlink()
        read_or_refused(folder / read)


@pytest.mark.cases(20)
@pytest.mark.parametrize("ending", FORMATS)
def test_damaged_predictions_are_imported_whole_or_not_at_all(
    tmp_path: Path, ending: str, seed: int
) -> None:
    data, db = tmp_path / "data.csv", tmp_path / "runs.db"
    ROWS.to_csv(data, index=False)
    store = api.open_store(db)
    given = ROWS[["id"]].assign(model="m", seed=0, prediction=ROWS["label"], score=0.5)
    path = tmp_path / f"predictions.{ending}"
    FORMATS[ending](given, path)
    good = path.read_bytes()
    for number in range(NUM_FILES_PER_SEED * seed, NUM_FILES_PER_SEED * (seed + 1)):
        path.write_bytes(damaged(good, random.Random(number)))
        before = counted(db)
        try:
            api.import_predictions(store, path, sweep=f"sweep {number}", dataset=data)
        except SeqclsError as error:
            in_one_line(str(error))
            assert counted(db) == before, "nothing is half written"
    assert api.verify(store).damages == []


EVEN = Regular("ab", "(b*ab*a)*b*").automaton

AUTOMATA = {
    "att": "0\t0\tb\tb\n0\t1\ta\ta\n1\t1\tb\tb\n1\t0\ta\ta\n0\n",
    "json": json.dumps(record(EVEN, "ab")),
    "dot": dot(EVEN, "ab"),
}


@pytest.mark.cases(20)
@pytest.mark.parametrize("ending", AUTOMATA)
def test_a_damaged_automaton_is_read_or_refused_in_one_line(
    tmp_path: Path, ending: str, seed: int
) -> None:
    db, path = tmp_path / "runs.db", tmp_path / f"lang.{ending}"
    store = api.open_store(db)
    for number in range(NUM_FILES_PER_SEED * seed, NUM_FILES_PER_SEED * (seed + 1)):
        good = AUTOMATA[ending].encode()
        path.write_bytes(damaged(good, random.Random(number)) if number else good)
        before = counted(db)
        fixed = {"task": "automaton", "path": str(path)}
        try:
            api.submit(store, {"name": f"sweep {number}", "model_seeds": [0], "fixed": fixed})
        except SeqclsError as error:
            assert number
            in_one_line(str(error))
            assert counted(db) == before, "nothing is half written"
    assert api.verify(store).damages == []


def counted(db: Path) -> list[tuple[int]]:
    """The number of rows in each table that an import or a sweep writes."""
    tables = ("run", "sweep", "config", "dataset", "test_string", "length_score")
    return [rows(db, f"SELECT count(*) FROM {table}")[0] for table in tables]
