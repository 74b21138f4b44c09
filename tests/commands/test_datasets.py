"""Users' strings: files of them, and datasets in a database."""

import bz2
import gzip
import json
import lzma
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from seqcls.cache import Memory
from seqcls.config import STRING_PARTS
from seqcls.errors import DatasetError, InvalidStringError
from seqcls.evaluation import distinct_test_strings
from seqcls.problem import configuration, resolve
from seqcls.strings.datasets import SPLITS, dataset_of, remember, unpack
from seqcls.strings.token_strings import NO_LETTER, TokenStrings
from sweeps import api
from sweeps.api import fit_shortcuts, overlaps, populations, runs, work
from sweeps.api.protocols import protocol
from sweeps.datasets import read_dataset
from sweeps.datasets.summary import summary
from sweeps.grid.spec import parse_spec
from sweeps.store.database import Store
from sweeps.store.merge import merge
from sweeps.store.opening import open_writer
from sweeps.store.test_sets import stored_datasets
from sweeps.store.verification import verify
from sweeps.store.writes.sweep_actions import delete, submit
from tests.app import open_app, page_text
from tests.commands import printed, printed_json, run_main
from tests.commands.files import Content, folder_of, table, written
from tests.databases import file_of, rows

HEAD = "tokens,label\n"
LABELS = f"{HEAD}ab,1\nba,0\n"
LABELED = "tokens,label,split,id\nba,0,test,2\nab,1,train,1\n,1,train,3\n"
LISTS = [["a", "b"], ["b", "a"]]


def packed(content: bytes) -> bytes:
    """The content as gzip packs it, alike in every process: by default it notes the time."""
    return gzip.compress(content, mtime=0)


def _parquet(tokens: pa.Array) -> pa.Table:
    return pa.table({"tokens": tokens, "label": pa.array([1, 0]).dictionary_encode()})


ALIKE: dict[str, Content] = {
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
    "floats.csv": f"{HEAD}ab,1.0\nba,0.0\n",
    "yes_no.csv": "text,label\nab,yes\nba,No\n",
    "lists.csv": f"{HEAD}\"['a', 'b']\",1\n\"['b', 'a']\",0\n",
    "numpy.csv": f"{HEAD}['a' 'b'],1\n['b' 'a'],0\n",
    "packed.csv.gz": packed(LABELS.encode()),
    "packed.csv.bz2": bz2.compress(LABELS.encode()),
    "packed.csv.xz": lzma.compress(LABELS.encode()),
    "array.json": '[{"tokens": "ab", "label": 1},\n {"tokens": "ba", "label": 0}]',
    "lines.json": '{"tokens": "ab", "label": 1}\n{"tokens": "ba", "label": 0}\n',
    "lines.ndjson": '{"tokens": "ab", "label": 1}\n\n{"label": 0, "tokens": "ba"}\n',
    "fixed.parquet": _parquet(pa.array(LISTS, pa.list_(pa.string(), 2))),
    "large.parquet": _parquet(pa.array(LISTS, pa.large_list(pa.large_string()))),
    "codes.parquet": _parquet(pa.array(LISTS, pa.list_(pa.dictionary(pa.int32(), pa.string())))),
    "dictionary.parquet": _parquet(pa.array(["ab", "ba"]).dictionary_encode()),
}


def test_one_content_has_one_digest_in_every_format_and_order(tmp_path: Path) -> None:
    expected = read_dataset(written(tmp_path, "x.csv", LABELS)).digest
    for name, content in ALIKE.items():
        path = written(tmp_path, name, content)
        assert read_dataset(path).digest == expected, name
    archive = written(tmp_path, "packed.parquet.gz", packed(path.read_bytes()))
    assert read_dataset(archive).digest == expected
    # With splits and ids; the empty string is one.
    csv = read_dataset(written(tmp_path, "a.csv", LABELED))
    head, *lines = LABELED.splitlines()
    split = [dict(zip(head.split(","), line.split(","), strict=True)) for line in lines]
    others: dict[str, Content] = {
        "a.tsv": "\n".join([head, *reversed(lines)]).replace(",", "\t"),
        "a.jsonl": [{**x, "tokens": [*x["tokens"]], "label": int(x["label"])} for x in split],
        "a.parquet": pa.Table.from_pylist([{**x, "label": int(x["label"])} for x in split]),
    }
    digests = {read_dataset(written(tmp_path, x, y)).digest for x, y in others.items()}
    assert digests == {csv.digest}
    assert (csv.name, csv.task, csv.alphabet) == ("a.csv", "file", "ab")
    assert csv.strings.letters.tolist() == [[NO_LETTER] * 2, [0, 1], [1, 0]]
    labels, splits = csv.labels, csv.splits
    assert labels is not None
    assert splits is not None
    assert (labels.tolist(), splits.tolist()) == ([True, True, False], [0, 0, 2])
    assert csv.ids == ["3", "1", "2"]


def _language(name: str, **others: str) -> dict[str, Content]:
    """The parts of a language as MLRegTest lays them out: no names of columns."""
    parts = {
        "Train": "abab\tTRUE\nabba\tFALSE\nabab\tTRUE\n",
        "Dev": "abbb\tFALSE\n",
        "TestSR": "aaab\tTRUE\nbbbb\tFALSE\n",
        "TestSA": "aaab\tTRUE\naabb\tFALSE\n",
        "TestLR": "aaaaab\tTRUE\n",
        "TestLA": "bbbbbb\tFALSE\n",
    }
    return {f"{name}_{part}.txt": content for part, content in (parts | others).items()}


TSL, SL = "04.03.TSL.2.1.0", "04.04.SL.2.1.0"
NUMBERED = {"TestSR": "Test1", "TestLR": "Test2", "TestSA": "Test3", "TestLA": "Test4"}
FLARE = [("main.tok", b"0 1\n1 1\n"), ("labels.txt", b"1\n0\n")]
PAIRS: dict[str, Content] = {"train_src.txt": "a b\na\n", "train_tgt.txt": "B A1\nA1\n"}
FOLDERS: list[tuple[dict[str, Content], str, dict[str | None, int]]] = [
    (PAIRS, "", {"train": 2}),
    (PAIRS, "train_src.txt", {None: 2}),
    (
        {"train_src.txt.bz2": bz2.compress(b"ab\n"), "train_tgt.txt": "ba\n"},
        "train_src.txt.bz2",
        {None: 1},
    ),
    (
        {f"{part}{x}": y for part in ("", "validation-short/", "test/") for x, y in FLARE},
        "",
        {"train": 2, "validation": 2, "test": 2},
    ),
    (
        {f"{part}{x}.gz": packed(y) for part in ("", "test/") for x, y in FLARE},
        "",
        {"train": 2, "test": 2},
    ),
    (_language(TSL), "", {"train": 3, "validation": 1, "test": 6}),
    (_language(TSL) | _language(SL), f"{SL}_Train.txt", {"train": 3, "validation": 1, "test": 6}),
    (
        {
            "mine_train.csv": f"{HEAD}ab,1\nb,0\n",
            "mine_dev.tsv.gz": packed(b"label\ttokens\n1\taab\n"),
            "test-00000-of-00002.jsonl": '{"tokens": "aa", "label": 0}',
            "test-00001-of-00002.jsonl": '{"tokens": "bb", "label": 0}',
            "README.md": "",
        },
        "",
        {"train": 2, "validation": 1, "test": 2},
    ),
]
"""Files of a folder, the name by which they are read, and the rows of each split."""


@pytest.mark.parametrize(("files", "name", "expected"), FOLDERS, ids=lambda x: str(x)[:30])
def test_a_folder_has_rows_of_each_split_as_programs_lay_them_out(
    files: dict[str, Content], name: str, expected: dict[str | None, int], tmp_path: Path
) -> None:
    found = read_dataset(folder_of(tmp_path, files) / name)
    splits = [None] * len(found) if found.splits is None else [SPLITS[x] for x in found.splits]
    assert Counter(splits) == expected
    assert unpack(found.packed).digest == found.digest


def test_pairs_are_words_and_a_language_is_all_its_parts(tmp_path: Path) -> None:
    pairs = read_dataset(folder_of(tmp_path / "pairs", PAIRS))
    assert (pairs.task, pairs.alphabet) == ("pairs", ("A1", "B", "a", "b"))
    assert pairs.targets is not None
    assert pairs.targets[0].tolist() == [0, *[NO_LETTER] * (pairs.targets.shape[1] - 1)]
    other = read_dataset(written(tmp_path, "b.csv", "length,input,target\n2,01,10\n"))
    assert other.targets is not None
    assert (other.strings.letters.tolist(), other.targets.tolist()) == ([[0, 1]], [[1, 0]])
    path = folder_of(tmp_path / "Small", _language(TSL)) / f"{TSL}_Train.txt"
    language = read_dataset(path)
    assert language.labels is not None
    assert language.labels.tolist() == [*[True] * 2, *[False] * 2, *[True] * 3, *[False] * 3]
    assert read_dataset(path.parent).digest == language.digest
    # Numbered tests are those with names; without a border the content is another.
    for name, content in _language(TSL).items():
        part = name.removeprefix(f"{TSL}_").removesuffix(".txt")
        written(tmp_path, f"x_{NUMBERED.get(part, part)}.txt", content)
    assert read_dataset(tmp_path / "x_Train.txt").digest == language.digest
    folder_of(path.parent, {f"{TSL}_TestXX.txt": "", f"{TSL}_Dev.csv": ""})
    for given in (path, path.parent):
        assert summary(given).unread == [f"{TSL}_Dev.csv", f"{TSL}_TestXX.txt"]
    (path.parent / f"{TSL}_TestSA.txt").unlink()
    assert read_dataset(path).digest != language.digest
    # A table with names of columns is a table, whatever its own name.
    table = written(tmp_path, "my_Train.txt", "tokens\tlabel\nab\t1\n")
    assert read_dataset(table).splits is None
    others: dict[str, Content] = {"test.xlsx": "", "more.csv": "", "test/x": ""}
    tables = folder_of(tmp_path / "tables", {"train.csv": LABELS, **others})
    assert summary(tables).unread == ["more.csv", "test", "test.xlsx"]
    assert "files ignored, of no split: more.csv, test, test.xlsx" in summary(tables).sentences


MALFORMED: list[tuple[str, Content, str]] = [
    ("empty.csv", "", "no rows"),
    ("no_rows.csv", HEAD, "no rows"),
    ("columns.csv", "token,label\nab,1\n", "one named 'tokens'"),
    ("neither.csv", "tokens,labels\nab,1\n", "either 'label' or 'target'"),
    ("both.csv", "tokens,label,target\nab,1,b\n", "either 'label' or 'target'"),
    ("twice.csv", "tokens,tokens,label\nab,ab,1\n", "two columns are 'tokens'"),
    ("text.txt", "22+1=23\n1+1=2\n", "columns '22+1=23', expected one named"),
    ("cells.csv", f"{HEAD}ab,1\nab\n", "line 3 has 1 cell, not 2"),
    ("latin.csv", f"{HEAD}é,1\n".encode("latin-1"), "line 2 is not UTF-8 text"),
    ("zero.csv", f"{HEAD}a\0b,1\n", "line 2 is not UTF-8 text"),
    ("tokens.csv", f"{HEAD}{'a' * 10_001},1\n", "10,001 tokens"),
    ("label.csv", f"{HEAD}ab,2\n", "line 2: label is '2'"),
    ("nan.csv", f"{HEAD}ab,NaN\n", "line 2: label is 'NaN'"),
    ("input.csv", "tokens,target\n,1\n", "line 2: tokens is empty"),
    ("split.csv", "tokens,label,split\nab,1,exam\n", "split is 'exam', expected train"),
    ("id.csv", "tokens,label,id\nab,1,x\nba,1,x\n", "line 3: id 'x' occurs twice"),
    ("cls.csv", f"{HEAD}CLS x,1\n", "line 2: tokens: expected no token 'CLS'"),
    ("control.csv", f"{HEAD}a\x07b,1\n", "line 2: 'a\\x07b' has a control character"),
    ("quote.csv", f'{HEAD}"ab,1\n', "line 2 is not CSV (unexpected end of data); close quotation"),
    ("inside.csv", f'{HEAD}"a"b,1\n', "line 2 is not CSV"),
    ("quoted.tsv", 'tokens\tlabel\n"a b"\t1\n', "line 2: '\"a b\"' stands in quotation marks"),
    (
        "returns.csv",
        f"{HEAD}ab,1\rba,0\n",
        "line 2 is not CSV (new-line character seen in unquoted field); ",
    ),
    ("all_empty.csv", f"{HEAD},1\n", "every string is empty"),
    (
        "many.csv",
        HEAD + "".join(f"{chr(0x4E00 + i)},1\n" for i in range(300)),
        "at most 250 differ",
    ),
    ("json.jsonl", "{", "line 1 is not JSON"),
    ("array.jsonl", "[1]", "line 1 is not a JSON object"),
    ("deep.jsonl", "[" * 100_000, "line 1 is not JSON"),
    ("digits.jsonl", '{"tokens": ' + "9" * 5000 + "}", "line 1 is not JSON"),
    ("nan.jsonl", '{"tokens": "ab", "label": NaN}', "label is nan"),
    ("absent.jsonl", '{"tokens": "ab", "label": 1}\n{"label": 1}', "line 2: no 'tokens'"),
    ("inner.jsonl", '{"tokens": ["a b"], "label": 1}', "has a token that is not text"),
    ("nested.jsonl", '{"tokens": [["a"]], "label": 1}', "not text without spaces: ['a']"),
    ("names.jsonl", [{"tokens": "a", "label": 1, str(x): 1} for x in range(300)], "line 249: more"),
    ("keys.jsonl", '{"tokens": "ab", "tokens": "ba", "label": 1}', "line 1 has 'tokens' twice"),
    (
        "case.jsonl",
        '{"tokens": "ab", "Label": 1, "label": 0}',
        "two columns are 'label': 'La",
    ),
    ("line.jsonl", '{"tokens": "a\u2028b", "label": 1}', "LINE SEPARATOR (U+2028)"),
    ("side.jsonl", '{"tokens": ["e", "\\u0301"], "label": 1}', "are the letter 'é' (U+00E9)"),
    (
        "wrapped.json",
        '{"data": [{"tokens": "ab", "label": 1}]}',
        "columns 'data', expected one named",
    ),
    ("nested.csv", f'{HEAD}"[[0, 1], [1]]",1\n', "not text without spaces: [0, 1]"),
    ("set.csv", f"{HEAD}\"{{'a', 'b'}}\",1\n", "is a set, whose items have no order"),
    ("shortened.csv", f"{HEAD}[0 1 ... 1],1\n", "was shortened to '...'"),
    ("lists.csv", f'{HEAD}"[0, 1]",1\nab,0\n', "line 3: texts and lists"),
    ("odd.csv", f"{HEAD}ab,1\n[0 1],0\n[1 1],1\n", "line 2: texts and lists"),
    ("heart.csv", f"{HEAD}\u2764\ufe0f,1\n", "VARIATION SELECTOR-16 (U+FE0F)"),
    ("space.csv", f"{HEAD}\xa0ab,1\n", "NO-BREAK SPACE (U+00A0) at character 1"),
    ("joiner.csv", f"{HEAD}a\u200db,1\n", "ZERO WIDTH JOINER (U+200D) at character 2"),
    ("plain.csv.gz", LABELED, "damaged, or not a .gz file"),
    ("cut.csv.gz", packed(f"{HEAD}{'ab,1' * 99}".encode())[:-9], ".gz"),
    ("packed.csv", packed(LABELED.encode()), "line 1 is not UTF-8 text"),
    ("sheet.csv", b"PK\x03\x04\xff", "unpack what is packed"),
    ("sheet.xlsx", b"PK", "save sheets as CSV"),
    ("file.zip", b"PK", "can't read .zip files"),
    ("none.parquet", b"PAR1 nothing", "not a Parquet file"),
    (
        "records.parquet",
        pa.table({"tokens": [{"a": 1}], "label": [1]}),
        "row 1: {'a': 1}",
    ),
    ("alone_src.txt", "ab\n", "no 'alone_tgt.txt', which has the other half"),
]
"""Name, content and the reason for which it is refused."""

FIRST = '{"tokens": "ab", "label": 1}\n'
LATER: list[tuple[str, Content, str]] = [
    ("a.jsonl", FIRST + '{"tokens": ["a"], "label": 1}', "line 2: texts and lists"),
    ("a.jsonl", FIRST + '{"tokens": "b", "label": 1, "target": "a"}', "either 'label' or"),
    ("a.jsonl", FIRST + '{"tokens": "b", "label": 0, "split": "test"}', "line 1: no 'split'; "),
    (
        "a.jsonl",
        '{"tokens": "ab", "label": 1, "split": "test"}\n{"tokens": "b", "label": 0}',
        "line 2: no 'split'",
    ),
]
"""Lines that are unlike the first."""

TABLE: dict[str, Content] = {"train.csv": LABELS}
SHARD = "train-00000-of-00002"
AMBIGUOUS: list[tuple[dict[str, Content], str]] = [
    (TABLE | {"train.tsv": LABELS}, "2 files of the split 'train'"),
    ({"a.csv": LABELS}, "a folder of a.csv; expected a file for each split"),
    (TABLE | {"test.csv": "tokens,label,id\nb,1,7\n"}, "train.csv, line 2: no 'id'"),
    (TABLE | {"test.csv": "ab,1\n"}, "test.csv, no rows"),
    (TABLE | {"test.csv": f"{HEAD}ab,1,\n"}, "test.csv, line 2 has 3 cells"),
    ({"train.csv": "tokens,label,split\nab,1,test\n"}, "split is 'test', but the file is of 'tr"),
    ({f"{SHARD}.csv": LABELS, f"{SHARD}.tsv": LABELS}, f"({SHARD}.csv, {SHARD}.tsv)"),
    ({f"{SHARD}.csv": LABELS}, "1 file of the split 'train'"),
    (TABLE | {"dev.csv": HEAD}, "dev.csv, no rows"),
    (PAIRS | {"train_src.txt.gz": ""}, "(train_src.txt, train_src.txt.gz), expected one"),
    (PAIRS | {"train_tgt.txt.xz": ""}, "train_tgt.txt and train_tgt.txt.xz are for the same rows"),
    (
        {f"{x}_{y}.txt": "a\n" for x in ("val", "dev") for y in ("src", "tgt")},
        "2 files of the split 'validation' (dev_src.txt, val_src.txt)",
    ),
    (PAIRS | {"test_tgt.txt": "b\n"}, "no 'test_src.txt', which has"),
    (PAIRS | {"dev_src.txt": "", "dev_tgt.txt": ""}, "dev_src.txt, no rows"),
    (PAIRS | {"test.csv": LABELS}, "test.csv, line 2: no 'target'"),
    (dict(FLARE) | {"main.tok.gz": ""}, "main.tok and main.tok.gz are for the same rows"),
    (dict(FLARE) | {"labels.txt.bz2": ""}, "labels.txt and labels.txt.bz2 are for the same rows"),
    (dict(FLARE) | {"test/main.tok": "", "test/labels.txt": ""}, "test/main.tok, no rows"),
    (
        dict(FLARE) | {f"test/{x}": b"\xff\n" for x, _ in FLARE},
        "test/main.tok, line 1 is not UTF-8 text",
    ),
    (_language("a") | {"a_Dev.txt.gz": ""}, "a_Dev.txt and a_Dev.txt.gz are for the same rows"),
    (_language("a", Test1="b\tTRUE\n"), "a_Test1.txt and a_TestSR.txt are for the same rows"),
    (_language("a", Dev=""), "a_Dev.txt, no rows"),
    (_language("a") | _language("b"), "a folder of 2 languages: name one by "),
    (_language("a", TestLA="aa\tTRUE\t1\n"), "a_TestLA.txt, line 1: label is 'TRUE\\t1'"),
]
"""Ambiguous folders, and the reason for which each is refused."""

REFUSED = [
    *((x, {x: y}, z) for x, y, z in MALFORMED + LATER),
    *(("", x, y) for x, y in AMBIGUOUS),
    ("a_Dev.txt", _language("a"), "a part of the language 'a': name its"),
]


@pytest.mark.parametrize(("name", "files", "reason"), REFUSED, ids=lambda x: ascii(x)[:30])
def test_a_malformed_file_or_folder_is_refused_in_one_line(
    name: str, files: dict[str, Content], reason: str, tmp_path: Path
) -> None:
    with pytest.raises(DatasetError) as refused:
        read_dataset(folder_of(tmp_path, files) / name)
    assert reason in str(refused.value)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 700


# Summaries of files.

NOISY = "ab,1\nab,0\nba,0\nab,1\nba,1\nbb,0\n"
NEARLY = "".join(f"{number:b},1\n" for number in range(3_999))
LETTERS = ["caf\u00e9", "cafe\u0301", "fac", "acf"]
FORMS: list[dict[str, Any]] = [{"tokens": x, "label": int(x == LETTERS[0])} for x in LETTERS]
SUMMARIES: dict[str, tuple[Content, Sequence[str]]] = {
    "characters": (LABELS, ["tokens: read as characters, since no text has a space"]),
    "words": (f"{HEAD}a b,1\nb a,0\n", ["tokens: read as words, with spaces between"]),
    "one space": (
        f"{HEAD}abb,1\nba,0\nab ba,0\n",
        ["tokens: read as words, since 1 of 3 texts has a space, first line 4, 'ab ba'; remove it"],
    ),
    "lists": (f'{HEAD}"[0, 1]",1\n[],0\n', ["tokens: read as lists written as text"]),
    "spaced brackets": (f'{HEAD}"[ 0 , 1 ]",1\n[ ],0\n', ["tokens: read as words"]),
    "alike": (f"{HEAD}ab,0\n\u0430b,1\n", ["U+0061 and U+0430 look alike: 'a', '\u0430'"]),
    "micro": (f"{HEAD}\u00b5,0\n\u03bc,1\n", ["tokens U+00B5 and U+03BC look alike"]),
    "a mark": (f"{HEAD}q\u0301,0\nq,1\n", ["token U+0301 is a mark, drawn on the letter before"]),
    "noisy": (
        HEAD + NOISY,
        [
            "3 rows contradict others of the same string, whose label is another: line 3, line 4, ",
            "line 6",
            "could be right on 66.7% of the rows",
        ],
    ),
    "one row in 4,000 is not none": (f"{HEAD}{NEARLY}0,0\n", ["right on 99.98% of the rows"]),
    **{
        f"forms in {kind}": (
            content,
            [
                "1 text has letters in another form, read as NFC has them, first",
                "2 rows contradict others",
            ],
        )
        for kind, content in (
            ("text", HEAD + "".join(f"{x['tokens']},{x['label']}\n" for x in FORMS)),
            ("Parquet", pa.Table.from_pylist(FORMS)),
            ("lists", json.dumps([{**x, "tokens": ["c", x["tokens"][1:]]} for x in FORMS[:2]])),
        )
    },
}
"""Contents of files, and parts of the summary by `seqcls data`."""


@pytest.mark.parametrize("name", SUMMARIES)
def test_the_data_command_describes_how_a_file_is_read(name: str, tmp_path: Path) -> None:
    content, words = SUMMARIES[name]
    ending = "parquet" if isinstance(content, pa.Table) else "csv"
    name = f"a.{'json' if content[:1] == '[' else ending}"
    sentences = " ".join(summary(written(tmp_path, name, content)).sentences)
    for part in words:
        assert part in sentences


TOKENS: dict[str, tuple[str, Sequence[str]]] = {
    "lists.csv": (f'{HEAD}[],0\n"[0, 10]",1\n[10  0],0\n"(10,)",1\n', ("0", "10")),
    "one_item.csv": ('input,target\n"[1, 2]",[3]\n[2],[2]\n"[1, 0]",[]\n', "0123"),
    "quotes.tsv": ('tokens\tlabel\n" a b\t1\nb a "\t0\n', '"ab'),
    "brackets.csv": (HEAD + "([{<>}]),1\n([{<>)]},0\n", "()<>[]{}"),
    "spaces.csv": ('label, tokens\n1, "ab"\n0, "bba"\n', "ab"),
    "forms.csv": (f"{HEAD}caf\u00e9,1\ncafe\u0301,0\n", "acf\u00e9"),
    # A mark that no letter is composed with is a token.
    "marks.csv": (f"{HEAD}\u025b\u0303,1\n\u1ebd,0\n", "\u025b\u0303\u1ebd"),
    "long.csv": (f"{HEAD}{'abcdefghijklmnopqrstuvwxyz0123456789 ' * 9_999}x,1\n", ("x",)),
}


@pytest.mark.parametrize("name", TOKENS)
def test_the_tokens_of_a_file_are_split_as_intended(tmp_path: Path, name: str) -> None:
    content, tokens = TOKENS[name]
    dataset = read_dataset(written(tmp_path, name, content))
    assert {*tokens} <= {*dataset.alphabet}
    assert len(dataset.alphabet) == len(tokens) + (name == "long.csv")
    assert unpack(dataset.packed).digest == dataset.digest


def test_contradicting_rows_are_trained_on_and_tested_by_their_majority(
    store: Store, tmp_path: Path
) -> None:
    train, test = (NOISY.replace("\n", f",{split}\n") for split in ("train", "test"))
    path = written(tmp_path, "noisy.csv", f"tokens,label,split\n{train}{test}b,1,validation\n")
    problem = resolve(configuration({"task": "file", "dataset": remember(read_dataset(path))}))
    tested, trained = (next(iter(x.epochs())) for x in (problem.test, problem.train))
    spelled = [problem.tokenizer.spell(x[x < 2].tolist()) for x in tested.strings.letters]
    assert sorted(zip(spelled, tested.labels.tolist(), strict=True)) == [
        ("ab", True), ("ab", True), ("bb", False),
    ]  # fmt: skip
    assert len(trained.labels) == 6
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


def _even(folder: Path, rows: int = 300) -> Path:
    rng = random.Random(0)
    strings = {"".join(rng.choices("ab", k=rng.randrange(1, 12))) for _ in range(rows)}
    labeled = ((x, int(x.count("a") > x.count("b"))) for x in sorted(strings))
    return written(folder, "even.csv", table("tokens,label", labeled))


SMALL = {"hidden_size": 4, "max_num_epochs": 2, "min_num_epochs": 0, "train_batch_size": 32}


def test_models_of_files_work_without_the_files_and_keep_their_names(
    monkeypatch: pytest.MonkeyPatch, store: Store, tmp_path: Path
) -> None:
    """Rows with labels, languages whose names contain their class, and an automaton."""
    lines = "0 0 b b\n0 1 a a\n1 1 b b\n1 0 a a\n0\n"
    automaton, even = written(tmp_path, "even.att", lines), _even(tmp_path)
    named = ("04.04.SL.2.1.0", "04.04.SL.2.1.1", "04.03.TSL.2.1.0", "04.03.TSL.2.1.1")
    for index, name in enumerate(named):
        folder_of(tmp_path, _language(name, Dev=f"{'ab' * (index + 2)}\tTRUE\n"))
    paths = [tmp_path / f"{name}_Train.txt" for name in named]
    short = {"train_max_length": 6, "validation_max_length": 6, "test_max_length": 9}
    sweeps: dict[str, dict[str, Any]] = {
        "mine": {"task": "file", "path": str(even)},
        "files": {"task": "file", "architecture": "rnn", "readout": "last"},
        "machine": {"task": "automaton", "path": str(automaton), **short},
        "patterns": {"task": "regular", "alphabet": "ab", **short},
    }
    for name, fields in sweeps.items():
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
    monkeypatch.setattr("seqcls.strings.datasets._unpacked", Memory(1))
    work(store, workers=0)
    fit_shortcuts(store, "files")
    assert verify(store).damages == []
    assert rows(store, "SELECT DISTINCT state FROM run") == [("done",)]

    found = populations(store, "files")
    assert found.by == ["language_class"]
    assert found.table[["languages", "seeds"]].to_numpy().tolist() == [[2, 4]] * 2
    assert found.table[["reader_random", "reader_border"]].notna().all(axis=None)
    db = str(store.path)
    listed = printed_json("populations", "--sweep", "files", "--db", db)
    assert [row["language_class"] for row in listed] == ["SL", "TSL"]
    by_class = populations(store, by="language_class").table.set_index("language_class")
    assert by_class["languages"].to_dict() == {"SL": 3, "TSL": 2, "Zp": 2}

    run = api.runs(store, "mine")["id"].tolist()[0]
    assert "not known" in run_main("states", str(run), "a{12}b{5}", "--db", db).stdout

    every = {row[0] for row in rows(store, "SELECT digest FROM dataset")}
    shown = printed("runs", "--wide", "--db", db)
    assert "even.att" in shown
    assert not any(stored_digest[:12] in shown for stored_digest in every)
    for page in ("results", "failures"):
        shown = page_text(open_app(monkeypatch, file_of(store), page))
        assert not any(stored_digest in shown for stored_digest in every), page
    other = open_writer(str(tmp_path / "other.db"))
    merge(other, store)
    assert verify(other).damages == []
    assert set(stored_datasets(other)) == every
    delete(other, api.status(other, "mine")[0].id)
    assert digest not in stored_datasets(other)


def test_the_data_command_summarizes_a_file(tmp_path: Path) -> None:
    lines = "tokens,label,split,note\nab,1,train,x\nab,1,test,x\nb,0,test,x\n"
    path = written(tmp_path, "a.csv", lines)
    found = summary(path)
    assert (found.rows, found.duplicates, found.left_out) == (3, 1, ("note",))
    assert found.overlaps == [("train", "test", 1)]
    assert [(x["split"], x["label"], x["rows"]) for x in found.parts] == [
        *[("train", "1", 1), ("test", "0", 1), ("test", "1", 1)]
    ]
    shown = printed("data", str(path))
    assert "1 string in both train and test" in shown
    assert "1 of the 2 test rows are also trained on" in shown
    written(tmp_path, "a.csv", "tokens,label\nab,1\nb,2\nab,\n")
    completed = run_main("data", str(path))
    assert completed.returncode == 2
    assert "line 3: label is '2'" in completed.stdout + completed.stderr
    assert "line 4: label is ''" in completed.stdout + completed.stderr


def test_splits_are_drawn_alike_by_length_and_label(tmp_path: Path) -> None:
    digest = remember(read_dataset(_even(tmp_path, 2000)))
    fields = {"task": "file", "dataset": digest, **SMALL}
    parts = [resolve(configuration(fields | {"train_seed": seed})) for seed in (1, 1, 2)]
    drawn = [
        {part: next(problem.sampler(part).epochs()) for part in STRING_PARTS} for problem in parts
    ]
    assert sum(map(len, drawn[0].values())) == len(dataset_of(digest))
    shares = {part: len(examples) / len(dataset_of(digest)) for part, examples in drawn[0].items()}
    assert shares == pytest.approx({"train": 0.7, "validation": 0.1, "test": 0.2}, abs=0.005)
    means = [examples.labels.mean() for examples in drawn[0].values()]
    assert max(means) - min(means) < 0.02
    texts = [set(distinct_test_strings(problem.test).texts) for problem in parts]
    assert texts[0] == texts[1] != texts[2]
