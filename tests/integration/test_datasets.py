"""Strings of one's own: files of them, and datasets in a database."""

import json
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from dashboard.charts.model.token_states import prefix_logits
from seqcls.config import PARTS
from seqcls.datasets import Dataset, Row
from seqcls.datasets.known import dataset_of, remember
from seqcls.engines.initial import draw_initial
from seqcls.errors import DatasetError, StoreDamagedError
from seqcls.evaluation import distinct_test_strings
from seqcls.interpretability.automata.budget import Budget
from seqcls.interpretability.automata.learning import learn
from seqcls.interpretability.model.trained_model import TrainedModel
from seqcls.problem import Problem, configuration, resolve
from seqcls.tokens.strings import TokenStrings
from sweeps.analysis.state_frames import prefixes_frame
from sweeps.api import states
from sweeps.cli.app import app
from sweeps.datasets import read_dataset
from sweeps.datasets.summary import summary
from sweeps.grid.spec import parse_spec
from sweeps.store.databases.engine import Store
from sweeps.store.merging.databases import merge
from sweeps.store.opening import open_writer
from sweeps.store.results.datasets import load_dataset, store_dataset
from sweeps.store.runs.submitting import delete, submit
from sweeps.store.verification import verify
from tests.databases import rows

LABELED = "tokens,label,split,id\nba,0,test,2\nab,1,train,1\n,1,train,3\n"


def _written(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_one_content_has_one_digest_in_every_format_and_order(tmp_path: Path) -> None:
    csv = read_dataset(_written(tmp_path / "a.csv", LABELED))
    head, *lines = LABELED.splitlines()
    tsv = "\n".join([head, *reversed(lines)]).replace(",", "\t")
    found = [
        {"tokens": tokens, "label": int(label), "split": split, "id": int(row_id)}
        for tokens, label, split, row_id in (line.split(",") for line in lines)
    ]
    jsonl = "\n".join(json.dumps({**row, "tokens": list(str(row["tokens"]))}) for row in found)
    pq.write_table(pa.Table.from_pylist(found), tmp_path / "a.parquet")
    others = [
        read_dataset(_written(tmp_path / "a.tsv", tsv)),
        read_dataset(_written(tmp_path / "a.jsonl", jsonl)),
        read_dataset(tmp_path / "a.parquet"),
    ]
    assert {other.digest for other in others} == {csv.digest}
    assert (csv.name, csv.task, csv.alphabet) == ("a.csv", "file", "ab")
    assert list(csv.rows()) == [
        Row((), True, None, "train", "3"),
        Row((0, 1), True, None, "train", "1"),
        Row((1, 0), False, None, "test", "2"),
    ]


def test_pairs_words_and_the_layouts_of_other_programs(tmp_path: Path) -> None:
    _written(tmp_path / "train_src.txt", "h i\nh o\n")
    _written(tmp_path / "train_tgt.txt", "HH AY1\nHH OW1\n")
    pairs = read_dataset(tmp_path / "train_src.txt")
    assert (pairs.task, pairs.alphabet) == ("pairs", ("AY1", "HH", "OW1", "h", "i", "o"))
    assert next(pairs.rows()).target == (1, 0)
    assert {row.split for row in read_dataset(tmp_path).rows()} == {"train"}
    written = read_dataset(_written(tmp_path / "b.csv", "length,input,target\n2,01,10\n"))
    assert list(written.rows()) == [Row((0, 1), None, (1, 0), None, None)]
    flare = tmp_path / "even-pairs"
    for folder in (flare, flare / "validation-short", flare / "test"):
        folder.mkdir()
        _written(folder / "main.tok", "0 1 0\n1 1\n")
        _written(folder / "labels.txt", "1\n0\n")
    assert [row.split for row in read_dataset(flare).rows()] == [
        *["train"] * 2,
        *["validation"] * 2,
        *["test"] * 2,
    ]


def test_a_dataset_is_stored_once_and_taken_over(store: Store, tmp_path: Path) -> None:
    dataset = read_dataset(_written(tmp_path / "a.csv", LABELED))
    with store.begin() as connection:
        assert store_dataset(connection, dataset) == store_dataset(connection, dataset) == 1
        assert load_dataset(connection, "0" * 64) is None
    other = open_writer(str(tmp_path / "other.db"))
    merge(other, store)
    with other.begin() as connection:
        loaded = load_dataset(connection, dataset.digest)
        assert loaded is not None
        assert (loaded.name, list(loaded.rows())) == ("a.csv", list(dataset.rows()))
        connection.exec_driver_sql("UPDATE dataset SET rows = substr(rows, 1, 20)")
    with pytest.raises(StoreDamagedError, match="dataset 1: rows"), other.begin() as connection:
        load_dataset(connection, dataset.digest)


def test_what_is_no_pack_is_refused(tmp_path: Path) -> None:
    packed = read_dataset(_written(tmp_path / "a.csv", LABELED)).to_bytes()
    for damaged in (b"", b"x", packed[:-3], packed + b"x"):
        with pytest.raises(DatasetError, match="cannot be unpacked"):
            Dataset.from_bytes(damaged)


MALFORMED: dict[str, tuple[str | bytes, str]] = {
    "empty.csv": ("", "line 1 is empty"),
    "no_rows.csv": ("tokens,label\n", "no rows"),
    "columns.csv": ("token,label\nab,1\n", "expected one named 'tokens'"),
    "neither.csv": ("tokens,labels\nab,1\n", "either 'label' or 'target'"),
    "both.csv": ("tokens,label,target\nab,1,b\n", "either 'label' or 'target'"),
    "twice.csv": ("tokens,tokens,label\nab,ab,1\n", "two columns are 'tokens'"),
    "cells.csv": ("tokens,label\nab,1\nab\n", "line 3 has 1 cells, expected 2"),
    "latin.csv": ("tokens,label\né,1\n".encode("latin-1"), "line 2 is no text in UTF-8"),
    "utf16.csv": ("tokens,label\nab,1\n".encode("utf-16"), "UTF-8"),
    "zero.csv": ("tokens,label\na\0b,1\n", "zero byte"),
    "long.csv": ("tokens,label\n" + "a" * 10_000_001 + ",1\n", "line 2 has more than 10,000,000"),
    "tokens.csv": ("tokens,label\n" + "a" * 10_001 + ",1\n", "10,001 tokens"),
    "label.csv": ("tokens,label\nab,2\n", "line 2: label is '2'"),
    "nan.csv": ("tokens,label\nab,NaN\n", "line 2: label is 'NaN'"),
    "formula.csv": ("tokens,label\nab,=1+1\n", "label is '=1+1'"),
    "answers.csv": ("tokens,label\nab,1\nba,1\nab,0\n", "line 4: the string of line 2 again"),
    "targets.csv": ("tokens,target\nab,1\nab,0\n", "line 3: the string of line 2 again"),
    "input.csv": ("tokens,target\n,1\n", "line 2: tokens is empty"),
    "split.csv": ("tokens,label,split\nab,1,exam\n", "split is 'exam', expected one of train"),
    "id.csv": ("tokens,label,id\nab,1,x\nba,1,x\n", "line 3: id 'x' stands before"),
    "cls.csv": ("tokens,label\nCLS x,1\n", "line 2: tokens: expected no token 'CLS'"),
    "control.csv": ("tokens,label\na\x07b,1\n", "line 2: 'a\\x07b' has a control character"),
    "quote.csv": ('tokens,label\n"ab,1\n', "line 2: a quotation mark opens a cell and none closes it"),
    "all_empty.csv": ("tokens,label\n,1\n", "every string is empty"),
    "many.csv": (
        "tokens,label\n" + "".join(f"{chr(0x4E00 + i)},1\n" for i in range(300)),
        "one too many, expected at most 250",
    ),
    "json.jsonl": ("{", "line 1 is no JSON"),
    "array.jsonl": ("[1]", "line 1 is no JSON object"),
    "deep.jsonl": ("[" * 100_000, "line 1 is no JSON"),
    "nan.jsonl": ('{"tokens": "ab", "label": NaN}', "label is nan"),
    "null.jsonl": ('{"tokens": null, "label": 1}', "line 1: None, expected text"),
    "half.jsonl": ('{"tokens": "ab", "label": 0.5}', "label is 0.5"),
    "absent.jsonl": ('{"tokens": "ab", "label": 1}\n{"label": 1}', "line 2 has no 'tokens'"),
    "mixed.jsonl": (
        '{"tokens": "ab", "label": 1}\n{"tokens": ["a"], "label": 1}',
        "line 2: texts and lists",
    ),
    "inner.jsonl": ('{"tokens": ["a b"], "label": 1}', "has a token that is no text"),
    "other.jsonl": (
        '{"tokens": "ab", "label": 1}\n{"tokens": "b", "label": 1, "target": "a"}',
        "line 2 has 'target', but line 1 has not",
    ),
    "none.parquet": (b"PAR1 nothing", "no Parquet file"),
    "file.zip": (b"PK", "a name that ends in '.zip'"),
    "alone_src.txt": ("ab\n", "no 'alone_tgt.txt' beside it"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_file_is_refused_in_one_line(tmp_path: Path, name: str) -> None:
    content, said = MALFORMED[name]
    path = _written(tmp_path / name, content)
    with pytest.raises(DatasetError) as refused:
        read_dataset(path)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 700


def _even(path: Path, rows: int = 300) -> Path:
    rng = random.Random(0)
    strings = {"".join(rng.choices("ab", k=rng.randrange(1, 12))) for _ in range(rows)}
    lines = [f"{string},{int(string.count('a') > string.count('b'))}" for string in sorted(strings)]
    return _written(path, "\n".join(["tokens,label", *lines]))


SMALL = {"hidden_size": 4, "max_num_epochs": 2, "min_num_epochs": 0, "train_batch_size": 32}


def test_a_sweep_on_a_file_needs_the_file_no_longer(store: Store, tmp_path: Path) -> None:
    path = _even(tmp_path / "even.csv")
    assert "\na,1\n" in path.read_text()
    fixed = {"task": "file", "path": str(path), **SMALL}
    submit(store, parse_spec({"name": "mine", "model_seeds": [0, 1], "fixed": fixed}))
    path.unlink()
    done = subprocess.run(
        [sys.executable, "-m", "sweeps", "work", "--workers", "1", "--db", str(store.path)],
        capture_output=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    assert rows(store, "SELECT state, tested FROM run") == [("done", 41)] * 2
    along = states(store, 1, "a{12}b{5}").prefixes
    assert along is not None
    assert along.labels[-1] is None, "no string of the file is so long"
    assert along.labels[1] is True, "`a` is in it"
    said = CliRunner().invoke(app, ["states", "1", "a{12}b{5}", "--db", str(store.path)])
    assert "not known" in said.output
    frame = prefixes_frame(along).assign(letter=range(18), prefix="")
    answers = prefix_logits(frame, [""] * 18).data["prefixes"]["answer"].tolist()
    assert answers[-1] == "label not known"
    assert answers[1] != "label not known"
    (sweep_id,) = rows(store, "SELECT id FROM sweep")[0]
    delete(store, sweep_id)
    assert rows(store, "SELECT count(*) FROM dataset") == [(0,)]


def test_an_automaton_is_learned_of_what_a_file_does_not_say(tmp_path: Path) -> None:
    digest = remember(read_dataset(_even(tmp_path / "even.csv")))
    fields = {"task": "file", "dataset": digest, **SMALL}
    # It has no answer to the empty string, which the file has not either.
    problem = resolve(configuration(fields | {"architecture": "lstm", "readout": "last"}))
    assert not problem.knows(TokenStrings.of_lists(2, [()])).any()
    model = TrainedModel(problem, draw_initial([(problem, 0)])[0])
    learned = learn(model, Budget(rounds=5, strings=2**6, single=100), stepped=False)
    test = distinct_test_strings(problem.test).strings
    wrong = model.ask(test).predicted != problem.language.labels(test)
    assert learned.wrong == wrong.sum() > 0
    assert learned.error is not None
    assert problem.knows(TokenStrings.of_lists(2, [model.letters(learned.error.string)])).all()


def test_data_says_what_is_in_a_file(tmp_path: Path) -> None:
    lines = "tokens,label,split,note\nab,1,train,x\nab,1,test,x\nb,0,test,x\n"
    path = _written(tmp_path / "a.csv", lines)
    found = summary(path)
    assert (found.rows, found.duplicates, found.left_out) == (3, 1, ("note",))
    assert found.overlaps == [("train", "test", 1)]
    assert [(x.split, x.label, x.rows) for x in found.parts] == [
        *[("train", "1", 1), ("test", "0", 1), ("test", "1", 1)]
    ]
    said = CliRunner().invoke(app, ["data", str(path)])
    assert said.exit_code == 0
    assert "1 strings stand in train and in test" in said.output
    _written(path, "tokens,label\nab,1\nb,2\nab,\n")
    said = CliRunner().invoke(app, ["data", str(path)])
    assert said.exit_code == 2
    assert "line 3: label is '2'" in said.output
    assert "line 4: label is ''" in said.output


def test_verify_finds_damaged_rows(store: Store, tmp_path: Path) -> None:
    dataset = read_dataset(_written(tmp_path / "a.csv", LABELED))
    with store.begin() as connection:
        store_dataset(connection, dataset)
    assert verify(store).damages == []
    with store.begin() as connection:
        connection.exec_driver_sql("UPDATE dataset SET row_count = 4")
    (damage,) = verify(store).damages
    assert "row_count" in str(damage)
    with store.begin() as connection:
        connection.exec_driver_sql("UPDATE dataset SET rows = x'00'")
    (damage,) = verify(store).damages
    assert "cannot be unpacked" in str(damage)


def test_splits_are_drawn_alike_by_length_and_label(tmp_path: Path) -> None:
    digest = remember(read_dataset(_even(tmp_path / "even.csv", 2000)))
    fields = {"task": "file", "dataset": digest, **SMALL}
    parts = [resolve(configuration(fields | {"train_seed": seed})) for seed in (1, 1, 2)]
    drawn = [{part: next(problem.sampler(part).epochs()) for part in PARTS} for problem in parts]
    assert sum(map(len, drawn[0].values())) == len(dataset_of(digest))
    shares = {part: len(examples) / len(dataset_of(digest)) for part, examples in drawn[0].items()}
    assert shares == pytest.approx({"train": 0.7, "validation": 0.1, "test": 0.2}, abs=0.005)
    means = [examples.labels.mean() for examples in drawn[0].values()]
    assert max(means) - min(means) < 0.02
    texts = [set(problem_texts(problem)) for problem in parts]
    assert texts[0] == texts[1] != texts[2]


def problem_texts(problem: Problem) -> list[str]:
    """The test strings."""
    return list(distinct_test_strings(problem.test).texts)


def test_a_small_parquet_file_of_long_texts_is_not_unpacked(tmp_path: Path) -> None:
    zeros = pa.array(np.zeros(10_000, dtype=np.int32))
    long = pa.DictionaryArray.from_arrays(zeros, pa.array(["a" * 900_000]))
    bombs = {
        "dictionary": pa.table({"tokens": long, "label": zeros}),
        "texts": pa.table({"tokens": long, "label": zeros}).replace_schema_metadata(None),
        "lists": pa.table({"tokens": pa.ListArray.from_arrays([0, 10_000], long), "label": [1]}),
    }
    for name, table in bombs.items():
        path = tmp_path / f"{name}.parquet"
        pq.write_table(table, path, store_schema=name != "texts", compression="zstd")
        assert path.stat().st_size < 100_000
        with pytest.raises(DatasetError, match=r"rows 1 to .* are more than 1,000,000,000 bytes"):
            read_dataset(path)


def test_a_parquet_column_of_records_is_refused(tmp_path: Path) -> None:
    table = pa.table({"tokens": [{"a": 1}], "label": [1]})
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(DatasetError, match="column 'tokens' holds 'struct<a: int64>', expected"):
        read_dataset(tmp_path / "a.parquet")
