"""Files of every format, damaged at random, are read or refused in a line; nothing is half done."""

import json
import random
from collections.abc import Callable, Iterator
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


SEVERAL = {
    "pairs": ("x_src.txt", {"x_src.txt": " ".join, "x_tgt.txt": lambda x: str(len(x) % 2)}),
    "flare": ("", {"main.tok": " ".join, "labels.txt": lambda x: str(len(x) % 2)}),
}
"""Strings in several files: the name by which they are read, and the lines of each file."""


def generators(seed: int) -> Iterator[tuple[int, random.Random]]:
    """The numbers of files of a seed, each with a generator."""
    for number in range(NUM_FILES_PER_SEED * seed, NUM_FILES_PER_SEED * (seed + 1)):
        yield number, random.Random(number)


@pytest.mark.cases(20)
@pytest.mark.parametrize("form", [*FORMATS, *SEVERAL])
def test_damaged_strings_are_read_or_refused_in_one_line(
    tmp_path: Path, form: str, seed: int
) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    read, lines = SEVERAL.get(form, (f"data.{form}", {}))
    if form in FORMATS:
        FORMATS[form](ROWS, folder / read)
    for name, line in lines.items():
        (folder / name).write_text("\n".join(map(line, STRINGS)))
    assert read_content(folder / read).dataset is not None
    contents = {path: path.read_bytes() for path in sorted(folder.iterdir())}
    for _, rng in generators(seed):
        for path, content in contents.items():
            path.write_bytes(content)
        broken = rng.choice([*contents])
        broken.write_bytes(damaged(contents[broken], rng))
        if lines and rng.random() < 0.1:
            broken.unlink()
        read_or_refused(folder / read)


EVEN = Regular("ab", "(b*ab*a)*b*").automaton
AUTOMATA = {
    "att": "0\t0\tb\tb\n0\t1\ta\ta\n1\t1\tb\tb\n1\t0\ta\ta\n0\n",
    "json": json.dumps(record(EVEN, "ab")),
    "dot": dot(EVEN, "ab"),
}


@pytest.mark.cases(20)
@pytest.mark.parametrize("ending", [*FORMATS, *(f"lang.{x}" for x in AUTOMATA)])
def test_damaged_predictions_and_automata_are_stored_whole_or_not_at_all(
    tmp_path: Path, ending: str, seed: int
) -> None:
    data, db, path = tmp_path / "data.csv", tmp_path / "runs.db", tmp_path / f"given.{ending}"
    ROWS.to_csv(data, index=False)
    store = api.open_store(db)
    if ending in FORMATS:
        labels = ROWS["label"]
        named = ROWS[["id"]].assign(model="m", seed=0)
        predictions = named.assign(prediction=labels, score=3.0 * labels - 1.5)
        FORMATS[ending](predictions, path)
    else:
        path.write_text(AUTOMATA[ending.removeprefix("lang.")])
    whole = path.read_bytes()
    for number, rng in generators(seed):
        path.write_bytes(damaged(whole, rng) if number else whole)
        before, name = counted(db), f"sweep {number}"
        try:
            if ending in FORMATS:
                api.import_predictions(store, path, sweep=name, dataset=data)
            else:
                fixed = {"task": "automaton", "path": str(path)}
                api.submit(store, {"name": name, "model_seeds": [0], "fixed": fixed})
        except SeqclsError as error:
            assert number, "the whole file is read"
            in_one_line(str(error))
            assert counted(db) == before, "nothing is half written"
    assert api.verify(store).damages == []


def counted(db: Path) -> list[tuple[int]]:
    """The number of rows in each table that an import or a sweep writes."""
    tables = ("run", "sweep", "config", "dataset", "test_string", "length_score")
    return [rows(db, f"SELECT count(*) FROM {table}")[0] for table in tables]
