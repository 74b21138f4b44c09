"""Strings of one's own: files of them, and datasets in a database."""

import bz2
import gzip
import json
import lzma
import random
import re
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from dashboard.charts.token_states import prefix_logits
from seqcls.config import PARTS
from seqcls.engines.member import draw_initial
from seqcls.errors import DatasetError, InvalidStringError
from seqcls.evaluation import distinct_test_strings
from seqcls.interpretability.minimal import minimal_failing
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.problem import Problem, configuration, resolve
from seqcls.strings import datasets
from seqcls.strings.datasets import Row, dataset_of, remember, unpack
from seqcls.strings.token_strings import TokenStrings
from sweeps import api
from sweeps.api import fit_shortcuts, overlaps, populations, runs, states, work
from sweeps.api.presentation import prefixes_frame, said_of
from sweeps.api.protocols import protocol
from sweeps.cli.app import app
from sweeps.datasets import read_dataset
from sweeps.datasets.summary import summary
from sweeps.grid.spec import parse_spec
from sweeps.store.databases.engine import Store
from sweeps.store.merge import merge
from sweeps.store.opening import open_writer
from sweeps.store.reads.test_sets import stored_datasets
from sweeps.store.verification import verify
from sweeps.store.writes.sweep_actions import delete, submit
from tests.app import open_app
from tests.app import said as app_text
from tests.commands import run_main
from tests.databases import file_of, rows

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


LANGUAGE = {
    "Train": "abab\tTRUE\nabba\tFALSE\nabab\tTRUE\n",
    "Dev": "abbb\tFALSE\n",
    "TestSR": "aaab\tTRUE\nbbbb\tFALSE\n",
    "TestSA": "aaab\tTRUE\naabb\tFALSE\n",
    "TestLR": "aaaaab\tTRUE\n",
    "TestLA": "bbbbbb\tFALSE\n",
}
"""The parts of a language as MLRegTest lays them out: no names of columns."""


def _write_language(folder: Path, name: str, **others: str) -> Path:
    folder.mkdir(exist_ok=True)
    for part, content in {**LANGUAGE, **others}.items():
        _written(folder / f"{name}_{part}.txt", content)
    return folder / f"{name}_Train.txt"


def test_a_language_of_mlregtest_is_read_from_its_training_strings_or_its_folder(
    tmp_path: Path,
) -> None:
    path = _write_language(tmp_path / "Small", "04.03.TSL.2.1.0")
    language = read_dataset(path)
    assert (language.task, language.alphabet) == ("file", "ab")
    assert [(row.split, row.label) for row in language.rows()] == [
        *[("train", True)] * 2,
        ("train", False),
        ("validation", False),
        *[("test", True)] * 3,
        *[("test", False)] * 3,
    ]
    assert read_dataset(path.parent).digest == language.digest
    assert datasets.unpack(language.to_bytes()).digest == language.digest
    # Numbered tests are those with names; without a border the content is another.
    names = {"TestSR": "Test1", "TestLR": "Test2", "TestSA": "Test3", "TestLA": "Test4"}
    for part, content in LANGUAGE.items():
        _written(tmp_path / f"x_{names.get(part, part)}.txt", content)
    assert read_dataset(tmp_path / "x_Train.txt").digest == language.digest
    (path.parent / "04.03.TSL.2.1.0_TestSA.txt").unlink()
    assert read_dataset(path).digest != language.digest


def test_languages_of_mlregtest_in_one_folder_are_named_one_by_one(tmp_path: Path) -> None:
    path = _write_language(tmp_path, "04.03.TSL.2.1.0")
    _write_language(tmp_path, "04.04.SL.2.1.0", TestLA="aa\tTRUE\t1\n")
    with pytest.raises(DatasetError, match=r"a folder of 2 languages: name one by .*_Train\.txt'"):
        read_dataset(tmp_path)
    assert len(read_dataset(path)) == 10
    with pytest.raises(DatasetError, match=r"04.04.SL.2.1.0_TestLA.txt, line 1 has 3 cells"):
        read_dataset(tmp_path / "04.04.SL.2.1.0_Train.txt")
    with pytest.raises(DatasetError, match=r"a part of the language '04.03.TSL.2.1.0': name its"):
        read_dataset(tmp_path / "04.03.TSL.2.1.0_Dev.txt")
    # A table with names of columns is a table, whatever its own name.
    table = _written(tmp_path / "my_Train.txt", "tokens\tlabel\nab\t1\n")
    assert read_dataset(table).splits is None


def _records() -> bytes:
    file = BytesIO()
    pq.write_table(pa.table({"tokens": [{"a": 1}], "label": [1]}), file)
    return file.getvalue()


MALFORMED: dict[str, tuple[str | bytes, str]] = {
    "empty.csv": ("", "line 1 is empty"),
    "no_rows.csv": ("tokens,label\n", "no rows"),
    "columns.csv": ("token,label\nab,1\n", "expected one named 'tokens'"),
    "neither.csv": ("tokens,labels\nab,1\n", "either 'label' or 'target'"),
    "both.csv": ("tokens,label,target\nab,1,b\n", "either 'label' or 'target'"),
    "twice.csv": ("tokens,tokens,label\nab,ab,1\n", "two columns are 'tokens'"),
    "cells.csv": ("tokens,label\nab,1\nab\n", "line 3 has 1 cell, expected 2"),
    "latin.csv": ("tokens,label\né,1\n".encode("latin-1"), "line 2 is no text in UTF-8"),
    "utf16.csv": ("tokens,label\nab,1\n".encode("utf-16"), "UTF-8"),
    "zero.csv": ("tokens,label\na\0b,1\n", "zero byte"),
    "long.csv": ("tokens,label\n" + "a" * 10_000_001 + ",1\n", "line 2 has more than 10,000,000"),
    "tokens.csv": ("tokens,label\n" + "a" * 10_001 + ",1\n", "10,001 tokens"),
    "label.csv": ("tokens,label\nab,2\n", "line 2: label is '2'"),
    "nan.csv": ("tokens,label\nab,NaN\n", "line 2: label is 'NaN'"),
    "formula.csv": ("tokens,label\nab,=1+1\n", "label is '=1+1'"),
    "input.csv": ("tokens,target\n,1\n", "line 2: tokens is empty"),
    "split.csv": ("tokens,label,split\nab,1,exam\n", "split is 'exam', expected one of train"),
    "id.csv": ("tokens,label,id\nab,1,x\nba,1,x\n", "line 3: id 'x' stands before"),
    "cls.csv": ("tokens,label\nCLS x,1\n", "line 2: tokens: expected no token 'CLS'"),
    "control.csv": ("tokens,label\na\x07b,1\n", "line 2: 'a\\x07b' has a control character"),
    "quote.csv": (
        'tokens,label\n"ab,1\n',
        "line 2: a quotation mark opens a cell and none closes it",
    ),
    "all_empty.csv": ("tokens,label\n,1\n", "every string is empty"),
    "many.csv": (
        "tokens,label\n" + "".join(f"{chr(0x4E00 + i)},1\n" for i in range(300)),
        "one too many, expected at most 250 different ones; there are 300 (tokens: read as ch",
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
    "header.csv": (
        "ab,1\nba,0\n",
        "line 1 is 'ab, 1', expected a header with the names of columns",
    ),
    "text.txt": ("22+1=23\n", "line 1 is '22+1=23', expected a header"),
    "late.jsonl": (
        '{"tokens": "ab", "label": 1}\n{"tokens": "b", "label": 0, "split": "test"}',
        "line 2 has 'split', but line 1 has not",
    ),
    "gone.jsonl": (
        '{"tokens": "ab", "label": 1, "split": "test"}\n{"tokens": "b", "label": 0}',
        "line 2: split is None, expected one of train",
    ),
    "keys.jsonl": ('{"tokens": "ab", "tokens": "ba", "label": 1}', "line 1 has 'tokens' twice"),
    "case.jsonl": ('{"tokens": "ab", "Label": 1, "label": 0}', "differ in nothing but capitals"),
    "digits.jsonl": ('{"tokens": ' + "9" * 5000 + "}", "a number has too many digits"),
    "nested.jsonl": ('{"tokens": [["a"]], "label": 1}', "no text without spaces: ['a']"),
    "nested.csv": ('tokens,label\n"[[0, 1], [1]]",1\n', "no text without spaces: [0, 1]"),
    "set.csv": ("tokens,label\n\"{'a', 'b'}\",1\n", "is a set, whose items have no order"),
    "floats.csv": ("tokens,label\n[0. 1.],1\n", "no text without spaces: 0.0"),
    "truths.csv": ("tokens,label\n[ True False],1\n", "no text without spaces: True"),
    "heart.csv": ("tokens,label\n\u2764\ufe0f,1\n", "VARIATION SELECTOR-16 (U+FE0F)"),
    "filler.csv": ("tokens,label\na\u3164,1\n", "HANGUL FILLER (U+3164) at character 2"),
    "braille.csv": ("tokens,label\n\u2800,1\n", "BRAILLE PATTERN BLANK (U+2800)"),
    "shortened.csv": ("tokens,label\n[0 1 ... 1],1\n", "was shortened to '...'"),
    "lists.csv": ('tokens,label\n"[0, 1]",1\nab,0\n', "line 3: texts and lists"),
    "space.csv": ("tokens,label\na\xa0b,1\n", "NO-BREAK SPACE (U+00A0) at character 2"),
    "outer.csv": ("tokens,label\n\xa0ab,1\n", "NO-BREAK SPACE (U+00A0) at character 1"),
    "joiner.csv": ("tokens,label\na\u200db,1\n", "ZERO WIDTH JOINER (U+200D) at character 2"),
    "line.jsonl": ('{"tokens": "a\u2028b", "label": 1}', "LINE SEPARATOR (U+2028)"),
    "quoted.tsv": ('tokens\tlabel\n"a b"\t1\n', "line 2: '\"a b\"' stands in quotation marks"),
    "inside.csv": ('tokens,label\n"a"b,1\n', "line 2: text follows a quotation mark"),
    "returns.csv": (b"tokens,label\nab,1\rba,0\n", "line 2: a carriage return (CR)"),
    "two.csv": ("text,source,label\na,b,1\n", "two columns are 'tokens' ('text' and 'source')"),
    "wrapped.json": ('{"data": [{"tokens": "ab", "label": 1}]}', "no array, with 'data'; expected"),
    "numbers.json": ("[1, 2]", "object 1 is 1, expected"),
    "plain.csv.gz": (LABELED, "cannot be unpacked as its name, which ends in '.gz'"),
    "cut.csv.gz": (gzip.compress(b"tokens,label\n" + b"ab,1\n" * 99)[:-9], "'.gz'"),
    "packed.csv": (gzip.compress(LABELED.encode()), "compressed by gzip: end its name in .gz"),
    "sheet.csv": (b"PK\x03\x04", "a zip archive"),
    "sheet.xlsx": (b"PK", "save its sheet as CSV"),
    "none.parquet": (b"PAR1 nothing", "no Parquet file"),
    "records.parquet": (_records(), "column 'tokens' holds 'struct<a: int64>', expected"),
    "file.zip": (b"PK", "a name that ends in '.zip'"),
    "alone_src.txt": ("ab\n", "no 'alone_tgt.txt' beside alone_src.txt"),
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


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "json", "parquet", "lists.jsonl"])
def test_a_letter_is_one_in_whatever_form_it_is_written(ending: str, tmp_path: Path) -> None:
    texts = ["caf\u00e9", "cafe\u0301", "fac", "acf"]
    tokens: list[Any] = texts
    if "lists" in ending:
        tokens = [["c", "a", "f", x[3:]] if x[3:] else list(x) for x in texts]
    path, rows_ = tmp_path / f"a.{ending}", pd.DataFrame({"tokens": tokens, "label": [1, 0, 0, 0]})
    if ending.endswith("sv"):
        rows_.to_csv(path, index=False, sep="\t" if ending == "tsv" else ",")
    elif ending == "parquet":
        rows_.to_parquet(path)
    else:
        rows_.to_json(path, orient="records", lines=ending != "json", force_ascii=True)
    found = summary(path)
    assert "".join(found.tokens) == "acf\u00e9"
    said = " ".join(found.sentences)
    assert "1 text has letters in another form, read as NFC has them, first" in said
    assert "2 rows contradict others" in said


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (("ab", "\u0430b"), r"tokens U\+0061 and U\+0430 look alike: 'a', '\u0430'"),
        (("\u00b5", "\u03bc"), r"tokens U\+00B5 and U\+03BC look alike"),
        (("q\u0301", "q"), r"token U\+0301 is a mark, drawn on the letter before it"),
    ],
)
def test_tokens_that_nobody_tells_apart_are_named(
    texts: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    rows = "\n".join(f"{x},{n % 2}" for n, x in enumerate(texts))
    path = _written(tmp_path / "a.csv", f"tokens,label\n{rows}\n")
    assert re.search(said, " ".join(summary(path).sentences))


def test_a_letter_is_no_two_tokens(tmp_path: Path) -> None:
    path = _written(tmp_path / "a.jsonl", '{"tokens": ["a", "e", "\\u0301"], "label": 1}')
    with pytest.raises(DatasetError, match=r"tokens side by side are the letter 'é' \(U\+00E9\)"):
        read_dataset(path)
    # A mark that no letter is composed with is a token.
    path = _written(tmp_path / "b.csv", "tokens,label\n\u025b\u0303,1\n\u1ebd,0\n")
    assert summary(path).tokens == sorted("\u0303\u025b\u1ebd")


NOISY = "tokens,label\nab,1\nab,0\nba,0\nab,1\nba,1\nbb,0\n"


def test_rows_that_contradict_are_listed_with_what_a_perfect_model_reaches(tmp_path: Path) -> None:
    path = _written(tmp_path / "noisy.csv", NOISY)
    shown = " ".join(CliRunner().invoke(app, ["data", str(path)]).output.split())
    said = "3 rows contradict others of the same string, whose label is another: line 3, line 4, "
    assert f"{said}line 6" in shown
    assert "could be right on 66.7% of the rows" in shown
    # One row in 4,000 is not none.
    lines = [f"{number:b},1" for number in range(3_999)]
    path = _written(tmp_path / "nearly.csv", "\n".join(["tokens,label", *lines, "0,0"]))
    assert any("right on 99.98% of the rows" in line for line in summary(path).sentences)


def test_what_most_rows_of_a_string_say_is_right_and_others_are_trained_on_alone(
    store: Store, tmp_path: Path
) -> None:
    def noisy(split: str) -> str:
        return NOISY.replace("tokens,label\n", "").replace("\n", f",{split}\n")

    content = f"tokens,label,split\n{noisy('train')}{noisy('test')}b,1,validation\n"
    path = _written(tmp_path / "noisy.csv", content)
    problem = resolve(configuration({"task": "file", "dataset": remember(read_dataset(path))}))
    test, train = (next(iter(x.epochs())) for x in (problem.test, problem.train))
    spelled = [problem.tokenizer.spell(x[x < 2].tolist()) for x in test.strings.letters]
    assert sorted(zip(spelled, test.labels.tolist(), strict=True)) == [
        ("ab", True), ("ab", True), ("bb", False),
    ]  # fmt: skip
    assert len(train.labels) == 6
    strings = TokenStrings.of_lists(2, [(0, 1), (1, 0), (1, 1)])
    assert problem.knows(strings).tolist() == [True, False, True]
    with pytest.raises(InvalidStringError, match="'ba' has rows in the file with different labels"):
        problem.kind.targets(problem.task, strings)

    with api.log_results(store, sweep="theirs", dataset=path) as log:
        given = {"tokens": ["ab", "ba", "bb"], "prediction": [1, 1, 0]}
        run = log.run(model="perfect", seed=0, predictions=given)
    assert runs(store, "theirs")[["errors", "tested"]].to_numpy().tolist() == [[0, 3]]
    assert runs(store, "theirs", failing=True).empty
    assert "without rows that contradict others" in " ".join(protocol(store, run))
    assert "In noisy.csv 6 rows contradict others" in overlaps.contradictions([problem.config])


LABELS = "tokens,label\nab,1\nba,0\n"

ALIKE: dict[str, str | bytes] = {
    "semicolons.csv": LABELS.replace(",", ";"),
    "tabs.csv": LABELS.replace(",", "\t"),
    "bars.csv": LABELS.replace(",", "|"),
    "commas.tsv": LABELS,
    "excel.csv": "\ufeffsep=;\r\n" + LABELS.replace(",", ";").replace("\n", "\r\n"),
    "macintosh.csv": LABELS.replace("\n", "\r"),
    "text.txt": LABELS.replace(",", "\t"),
    "quoted.tsv": '"tokens"\t"label"\n"ab"\t"1"\n"ba"\t"0"\n',
    "capitals.csv": " Tokens ,LABEL\nab,1\nba,0\n",
    "other_names.csv": "Sequence,label\nab,1\nba,0\n",
    "index.csv": ",tokens,label\n0,ab,1\n1,ba,0\n",
    "floats.csv": "tokens,label\nab,1.0\nba,0.0\n",
    "yes_no.csv": "text,label\nab,yes\nba,No\n",
    "lists.csv": "tokens,label\n\"['a', 'b']\",1\n\"['b', 'a']\",0\n",
    "numpy.csv": "tokens,label\n['a' 'b'],1\n['b' 'a'],0\n",
    "packed.csv.gz": gzip.compress(LABELS.encode()),
    "packed.csv.bz2": bz2.compress(LABELS.encode()),
    "packed.csv.xz": lzma.compress(LABELS.encode()),
    "array.json": '[{"tokens": "ab", "label": 1},\n {"tokens": "ba", "label": 0}]',
    "lines.json": '{"tokens": "ab", "label": 1}\n{"tokens": "ba", "label": 0}\n',
    "lines.ndjson": '{"tokens": "ab", "label": 1}\n\n{"label": 0, "tokens": "ba"}\n',
}


@pytest.mark.parametrize("name", ALIKE)
def test_one_content_is_read_however_programs_write_it(tmp_path: Path, name: str) -> None:
    dataset = read_dataset(_written(tmp_path / name, ALIKE[name]))
    assert dataset.digest == read_dataset(_written(tmp_path / "x.csv", LABELS)).digest


@pytest.mark.parametrize(
    "tokens",
    [
        pa.array([["a", "b"], ["b", "a"]], pa.list_(pa.string(), 2)),
        pa.array([["a", "b"], ["b", "a"]], pa.large_list(pa.large_string())),
        pa.array([["a", "b"], ["b", "a"]], pa.list_(pa.dictionary(pa.int32(), pa.string()))),
        pa.array(["ab", "ba"]).dictionary_encode(),
    ],
    ids=["fixed size", "large", "lists of dictionaries", "dictionary"],
)
def test_lists_of_every_kind_in_parquet_are_read(tmp_path: Path, tokens: pa.Array) -> None:
    table = pa.table({"tokens": tokens, "label": pa.array([1, 0]).dictionary_encode()})
    pq.write_table(table, tmp_path / "a.parquet")
    written = gzip.compress((tmp_path / "a.parquet").read_bytes())
    expected = read_dataset(_written(tmp_path / "x.csv", LABELS)).digest
    assert read_dataset(tmp_path / "a.parquet").digest == expected
    assert read_dataset(_written(tmp_path / "b.parquet.gz", written)).digest == expected


def test_a_folder_has_a_file_for_each_split(tmp_path: Path) -> None:
    _written(tmp_path / "mine_train.csv", "tokens,label\nab,1\nb,0\n")
    _written(tmp_path / "mine_dev.tsv.gz", gzip.compress(b"label\ttokens\n1\taab\n"))
    _written(tmp_path / "test-00000-of-00002.jsonl", '{"tokens": "aa", "label": 0}')
    _written(tmp_path / "test-00001-of-00002.jsonl", '{"tokens": "bb", "label": 0}')
    _written(tmp_path / "more.csv", "")
    _written(tmp_path / "README.md", "")
    found = summary(tmp_path)
    assert [(part.split, part.label, part.rows) for part in found.parts] == [
        *[("train", "0", 1), ("train", "1", 1), ("validation", "1", 1), ("test", "0", 2)]
    ]
    assert found.unread == ("more.csv",)
    assert "files of no split, not read: more.csv" in found.sentences
    (tmp_path / "test-00001-of-00002.jsonl").unlink()
    with pytest.raises(DatasetError, match=r"1 file of the split 'test' .* all of its shards"):
        read_dataset(tmp_path)


FOLDERS: dict[str, tuple[dict[str, str], str]] = {
    "twice": ({"train.csv": LABELS, "train.tsv": LABELS}, "2 files of the split 'train'"),
    "no split": ({"a.csv": LABELS}, "a folder of a.csv; expected a file for each split"),
    "columns": (
        {"train.csv": LABELS, "test.csv": "tokens,label,id\nb,1,7\n"},
        "train.csv has no 'id', which test.csv has",
    ),
    "no header": (
        {"train.csv": LABELS, "test.csv": "ab,1\n"},
        "test.csv, line 1 is 'ab, 1', expected a header",
    ),
    "cells": (
        {"train.csv": LABELS, "test.csv": "tokens,label\nab,1,\n"},
        "test.csv, line 2 has 3 cells",
    ),
    "another split": (
        {"train.csv": "tokens,label,split\nab,1,test\n"},
        "train.csv, line 2: split is 'test', but the file is of 'train'",
    ),
    "one shard twice": (
        {f"train-00000-of-00002.{x}": LABELS for x in ("csv", "tsv")},
        "2 files of the split 'train' (train-00000-of-00002.csv, train-00000-of-00002.tsv)",
    ),
    "a split without rows": (
        {"train.csv": LABELS, "dev.csv": "tokens,label\n"},
        "dev.csv has no rows; remove it",
    ),
    "pairs twice": (
        {"train_src.txt": "a\n", "train_src.txt.gz": "", "train_tgt.txt": "b\n"},
        "train_src.txt and train_src.txt.gz are for the same rows; keep one of them",
    ),
    "targets twice": (
        {"train_src.txt": "a\n", "train_tgt.txt": "b\n", "train_tgt.txt.xz": ""},
        "train_tgt.txt and train_tgt.txt.xz are for the same rows",
    ),
    "pairs of one split": (
        {f"{x}_{y}.txt": "a\n" for x in ("val", "dev") for y in ("src", "tgt")},
        "dev_src.txt and val_src.txt are both for the split 'validation'",
    ),
    "targets alone": (
        {"train_src.txt": "a\n", "train_tgt.txt": "b\n", "test_tgt.txt": "b\n"},
        "no 'test_src.txt' beside test_tgt.txt, with the inputs",
    ),
    "pairs without rows": (
        {"train_src.txt": "a\n", "train_tgt.txt": "b\n", "dev_src.txt": "", "dev_tgt.txt": ""},
        "dev_src.txt has no rows",
    ),
    "pairs and tables": (
        {"train_src.txt": "a\n", "train_tgt.txt": "b\n", "test.csv": LABELS},
        "test.csv is a table of a split, beside train_src.txt, which is none",
    ),
    "FLaRe twice": (
        {"main.tok": "0\n", "main.tok.gz": "", "labels.txt": "1\n"},
        "main.tok and main.tok.gz are for the same rows",
    ),
    "labels of FLaRe twice": (
        {"main.tok": "0\n", "labels.txt.bz2": "", "labels.txt": "1\n"},
        "labels.txt and labels.txt.bz2 are for the same rows",
    ),
    "a part of FLaRe without rows": (
        {x + y: "1\n" * (not x) for x in ("", "test/") for y in ("main.tok", "labels.txt")},
        "test/main.tok has no rows",
    ),
    "a part of MLRegTest twice": (
        {"a_Train.txt": "ab\tTRUE\n", "a_TestSR.txt": "b\tTRUE\n", "a_TestSR.txt.gz": ""},
        "a_TestSR.txt and a_TestSR.txt.gz are for the same rows",
    ),
    "a part of MLRegTest by both names": (
        {"a_Train.txt": "ab\tTRUE\n", "a_TestSR.txt": "b\tTRUE\n", "a_Test1.txt": "b\tTRUE\n"},
        "a_Test1.txt and a_TestSR.txt are for the same rows",
    ),
    "an empty part of MLRegTest": (
        {"a_Train.txt": "ab\tTRUE\n", "a_Dev.txt": ""},
        "a_Dev.txt has no rows; remove it",
    ),
}


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_that_can_mean_two_things_is_refused(tmp_path: Path, name: str) -> None:
    files, said = FOLDERS[name]
    for file, content in files.items():
        (tmp_path / file).parent.mkdir(exist_ok=True)
        _written(tmp_path / file, content)
    with pytest.raises(DatasetError) as refused:
        read_dataset(tmp_path)
    assert said in str(refused.value)


def test_what_is_passed_over_beside_a_split_is_said(tmp_path: Path) -> None:
    path = _write_language(tmp_path / "Small", "04.03.TSL.2.1.0")
    _written(path.with_name("04.03.TSL.2.1.0_TestXX.txt"), "")
    _written(path.with_name("04.03.TSL.2.1.0_Dev.csv"), "")
    for given in (path, path.parent):
        assert summary(given).unread == ("04.03.TSL.2.1.0_Dev.csv", "04.03.TSL.2.1.0_TestXX.txt")
    tables = tmp_path / "tables"
    (tables / "test").mkdir(parents=True)
    _written(tables / "train.csv", "tokens,label\nab,1\nb,0\n")
    _written(tables / "test.xlsx", "")
    assert summary(tables).unread == ("test", "test.xlsx")


def test_files_of_a_folder_may_be_packed(tmp_path: Path) -> None:
    flare, texts = tmp_path / "flare", tmp_path / "pairs"
    for folder in (flare, flare / "test", texts):
        folder.mkdir()
    for folder in (flare, flare / "test"):
        _written(folder / "main.tok.gz", gzip.compress(b"0 1\n1 1\n"))
        _written(folder / "labels.txt.xz", lzma.compress(b"1\n0\n"))
    assert [row.split for row in read_dataset(flare).rows()] == [*["train"] * 2, *["test"] * 2]
    _written(texts / "train_src.txt.bz2", bz2.compress(b"ab\n"))
    _written(texts / "train_tgt.txt", "ba\n")
    assert [row.split for row in read_dataset(texts).rows()] == ["train"]
    assert len(read_dataset(texts / "train_src.txt.bz2")) == 1


READ_AS: dict[str, tuple[str, str]] = {
    "lists of NumPy 2": (
        '"[np.int64(0), np.int64(1)]",1\n[np.int64(1)],0\n',
        "tokens: read as lists written as text",
    ),
    "lists of tensors": (
        '"[tensor(0), tensor(1, device=\'cuda:0\')]",1\n"tensor([0, 1])",0\n',
        "tokens: read as lists written as text",
    ),
    "characters": ("ab,1\nba,0\n", "tokens: read as characters, since no text has a space"),
    "words": ("a b,1\nb a,0\n", "tokens: read as words, with spaces between"),
    "one space": (
        "abb,1\nba,0\nab ba,0\n",
        "tokens: read as words, since 1 of 3 texts has a space, first line 4, 'ab ba'; remove it",
    ),
    "lists": ('"[0, 1]",1\n[],0\n', "tokens: read as lists written as text"),
    "brackets": ("[],1\n[[]],1\n[0],1\n", "tokens: read as characters"),
    "spaced brackets": ('"[ 0 , 1 ]",1\n[ ],0\n', "tokens: read as words"),
}


TOKENS: dict[str, tuple[str, Sequence[str]]] = {
    "lists.csv": ('tokens,label\n[],0\n"[0, 10]",1\n[10  0],0\n"(10,)",1\n', ("0", "10")),
    "one_item.csv": ('input,target\n"[1, 2]",[3]\n[2],[2]\n"[1, 0]",[]\n', "0123"),
    "quotes.tsv": ('tokens\tlabel\n" a b\t1\nb a "\t0\n', '"ab'),
    "brackets.csv": ("tokens,label\n([{<>}]),1\n([{<>)]},0\n", "()<>[]{}"),
    "spaces.csv": ('label, tokens\n1, "ab"\n0, "bba"\n', "ab"),
}


@pytest.mark.parametrize("name", TOKENS)
def test_the_tokens_of_a_file_are_those_that_are_meant(tmp_path: Path, name: str) -> None:
    content, tokens = TOKENS[name]
    dataset = read_dataset(_written(tmp_path / name, content))
    assert tuple(dataset.alphabet) == tuple(tokens)
    assert unpack(dataset.to_bytes()).digest == dataset.digest


@pytest.mark.parametrize("name", READ_AS)
def test_data_says_what_the_tokens_are_and_by_which_row(tmp_path: Path, name: str) -> None:
    rows, said = READ_AS[name]
    sentences = summary(_written(tmp_path / "a.csv", f"tokens,label\n{rows}")).sentences
    assert any(sentence.startswith(said) for sentence in sentences)


def test_a_string_of_ten_thousand_long_tokens_is_read(tmp_path: Path) -> None:
    tokens = ["abcdefghijklmnopqrstuvwxyz0123456789"] * 9_999 + ["文" * 40]
    path = _written(tmp_path / "a.csv", f"tokens,label\n{' '.join(tokens)},1\n")
    assert read_dataset(path).strings.lengths.tolist() == [10_000]


def test_a_model_of_pairs_is_asked_about_an_input_that_its_file_lacks(tmp_path: Path) -> None:
    path = _written(tmp_path / "a.csv", "input,target\nab,ba\nabb,bba\nba,ab\nbb,bb\naab,baa\n")
    digest = remember(read_dataset(path))
    fields = {"task": "pairs", "dataset": digest, "architecture": "gru", **SMALL}
    problem = resolve(configuration(fields | {"test_share": 0.4, "validation_share": 0.2}))
    model = TrainedModel(problem, draw_initial([(problem, 0)])[0])
    for new in ("abba", "b"):
        answer = model.answer(model.letters(new))
        assert answer.label is None
        assert not answer.is_wrong
        assert "target not known, predicted" in said_of(answer)
    assert model.answer(model.letters("ab")).label == "ba"
    with pytest.raises(InvalidStringError, match="not in the file"):
        minimal_failing(model, model.letters("abba"))


def _even(path: Path, rows: int = 300) -> Path:
    rng = random.Random(0)
    strings = {"".join(rng.choices("ab", k=rng.randrange(1, 12))) for _ in range(rows)}
    lines = [f"{string},{int(string.count('a') > string.count('b'))}" for string in sorted(strings)]
    return _written(path, "\n".join(["tokens,label", *lines]))


SMALL = {"hidden_size": 4, "max_num_epochs": 2, "min_num_epochs": 0, "train_batch_size": 32}


def test_models_of_files_need_the_files_no_longer_and_are_called_by_their_names(
    monkeypatch: pytest.MonkeyPatch, store: Store, tmp_path: Path
) -> None:
    """Rows with labels, languages whose names say their class, and an automaton."""
    lines = "0 0 b b\n0 1 a a\n1 1 b b\n1 0 a a\n0\n"
    automaton, even = _written(tmp_path / "even.att", lines), _even(tmp_path / "even.csv")
    named = ("04.04.SL.2.1.0", "04.04.SL.2.1.1", "04.03.TSL.2.1.0", "04.03.TSL.2.1.1")
    paths = [
        _write_language(tmp_path, name, Dev=f"{'ab' * (place + 2)}\tTRUE\n")
        for place, name in enumerate(named)
    ]
    short = {"train_max_length": 6, "validation_max_length": 6, "test_max_length": 9}
    asked: dict[str, dict[str, Any]] = {
        "mine": {"task": "file", "path": str(even)},
        "files": {"task": "file", "architecture": "rnn", "readout": "last"},
        "machine": {"task": "automaton", "path": str(automaton), **short},
        "patterns": {"task": "regular", "alphabet": "ab", **short},
    }
    for name, fields in asked.items():
        axes = {
            "files": {"path": list(map(str, paths))},
            "patterns": {"pattern": ["(ab)*", "a*(ba*ba*)*"]},
        }.get(name, {})
        fixed = {"architecture": "gru", "readout": "last", **SMALL, **fields}
        spec = {"name": name, "model_seeds": [0, 1], "fixed": fixed, "axes": axes}
        submit(store, parse_spec(spec))
    digest = read_dataset(even).digest
    for path in tmp_path.glob("*[!db]"):
        path.unlink()
    # Found in the database alone, as by a process that read no file.
    datasets._known.clear()
    work(store, workers=0)
    fit_shortcuts(store, "files")
    assert verify(store).damages == []
    assert rows(store, "SELECT DISTINCT state FROM run") == [("done",)]

    found = populations(store, "files")
    assert found.by == ["language_class"]
    assert found.shares[["languages", "seeds"]].to_numpy().tolist() == [[2, 4]] * 2
    assert found.table()[["reader_random", "reader_border"]].notna().all(axis=None)
    db = str(store.path)
    said = run_main("populations", "--sweep", "files", "--db", db, "--json")
    assert [row["language_class"] for row in json.loads(said.stdout)] == ["SL", "TSL"]
    by_class = populations(store, by="language_class").shares.set_index("language_class")
    assert by_class["languages"].to_dict() == {"SL": 3, "TSL": 2, "Zp": 2}

    run = api.runs(store, "mine")["id"].tolist()[0]
    along = states(store, run, "a{12}b{5}").prefixes
    assert along is not None
    assert along.labels[-1] is None, "no string of the file is so long"
    assert "not known" in run_main("states", str(run), "a{12}b{5}", "--db", db).stdout
    frame = prefixes_frame(along).assign(letter=range(18), prefix="")
    answers = prefix_logits(frame, [""] * 18).data["prefixes"]["answer"].tolist()
    assert answers[-1] == "label not known" != answers[1]

    every = {row[0] for row in rows(store, "SELECT digest FROM dataset")}
    listed = run_main("runs", "--wide", "--db", db).stdout
    assert "even.att" in listed
    assert not any(each[:12] in listed for each in every)
    for page in ("compare", "map", "failing"):
        shown = app_text(open_app(monkeypatch, file_of(store), page))
        assert not any(each in shown for each in every), page
    other = open_writer(str(tmp_path / "other.db"))
    merge(other, store)
    assert verify(other).damages == []
    assert set(stored_datasets(other)) == every
    delete(other, api.status(other, "mine")[0].id)
    assert digest not in stored_datasets(other)


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
    assert "1 string stands in train and in test" in said.output
    assert "1 of the 2 test rows are trained on too" in said.output
    _written(path, "tokens,label\nab,1\nb,2\nab,\n")
    said = CliRunner().invoke(app, ["data", str(path)])
    assert said.exit_code == 2
    assert "line 3: label is '2'" in said.output
    assert "line 4: label is ''" in said.output


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
