"""Reading rows of strings with their answers from one table, or from a folder's files by split."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from seqcls.errors import DatasetError
from seqcls.text import count
from sweeps.datasets.tables import (
    COMPRESSED,
    READERS,
    Row,
    Table,
    kind_of,
    lines_of,
    numbered_lines,
    refused_in,
    rows_of,
)

SPLIT_NAMES = {
    "train": "train",
    "test": "test",
    **dict.fromkeys(("validation", "valid", "val", "dev"), "validation"),
}
"""Splits by their spellings in files and in names of files."""

SPELLED: Mapping[str, Sequence[str]] = {
    "tokens": ("tokens", "input", "string", "sequence", "text", "source", "src"),
    "label": ("label",),
    "target": ("target", "output", "tgt"),
    "split": ("split",),
    "id": ("id",),
}
"""Spellings of columns: the first that a file has is read, and others are ignored."""

FLARE = {
    ".": "train",
    "test": "test",
    "validation-short": "validation",
    "validation-long": "validation",
}
"""The subfolders of a language in the benchmark FLaRe, with their split."""

MLREGTEST = {
    ("Train",): ("train", False),
    ("Dev",): ("validation", False),
    ("TestSR", "Test1"): ("test", False),
    ("TestLR", "Test2"): ("test", False),
    ("TestSA", "Test3"): ("test", True),
    ("TestLA", "Test4"): ("test", True),
}
"""The parts of a language in the benchmark MLRegTest, by their names in its two versions: the split
of each, and True if its strings are pairs at the language's border."""

_PACKED = f"(?:{'|'.join(map(re.escape, COMPRESSED))})?"
_PART = re.compile(rf"(.+)_({'|'.join(chain(*MLREGTEST))})\.txt{_PACKED}")
_PAIRS = re.compile(rf"(.+)_(src|tgt)\.txt{_PACKED}")


def split_of(value: Any) -> str:
    """The split named in a cell.

    Raises:
        DatasetError: it names none.
    """
    known = SPLIT_NAMES.get(value.strip().lower()) if isinstance(value, str) else None
    if known is None:
        raise DatasetError(f"split is {value!r:.60}, expected train, validation or test")
    return known


class _Part(NamedTuple):
    """One file of several, which contains its answers, or has them in a file beside it."""

    file: Path
    split: str
    border: bool | None = None


def read_table(path: Path) -> Table:
    """Reads the rows of a file or folder, in the columns of `SPELLED` that it has.

    Raises:
        DatasetError: it cannot be read.
    """
    try:
        if path.is_dir():
            return _folder(path)
        if part := _part_of_language(path):
            beside = [x for x in path.parent.iterdir() if x.name.startswith(f"{part[0]}_")]
            return _join(path.parent, _language(path), sorted(beside), False)
        return _file(path)
    except OSError as error:
        raise DatasetError(f"cannot be read: {error.strerror or error}") from None


def _file(path: Path) -> Table:
    """The rows of one file, whose answers may be in a file beside it."""
    if path.name.startswith("main.tok"):
        answers = _one_file(path.parent, "labels.txt")
        return replace(Table.from_rows(_lines(path, answers, "label")), spaced=True)
    if pairs := _PAIRS.fullmatch(path.name):
        source, target = (_one_file(path.parent, f"{pairs[1]}_{x}.txt") for x in ("src", "tgt"))
        return Table.from_rows(_lines(source, target, "target"))
    table = Table.from_rows(rows_of(path))
    sources = _sources(table) if table.places else {}
    left_out = tuple(x for x in table.columns if x not in sources.values())
    columns = {x: table.columns[y] for x, y in sources.items()}
    return replace(table, columns=columns, left_out=left_out)


def _sources(table: Table) -> dict[str, str]:
    """The file's spelling of each known column that it has."""
    names = table.columns
    sources = {
        column: next(x for x in spelled if x in names)
        for column, spelled in SPELLED.items()
        if not names.keys().isdisjoint(spelled)
    }
    # A column `output` is the answer only if there is no other.
    if "label" in sources and sources.get("target") != "target":
        sources.pop("target", None)
    if "tokens" not in sources or ("label" in sources) == ("target" in sources):
        raise DatasetError(
            f"columns {', '.join(names)[:100]!r}, expected one named 'tokens' "
            f"({', '.join(SPELLED['tokens'])}), and either 'label' or 'target' "
            f"({', '.join(SPELLED['target'])}); optionally split and id"
        )
    return sources


def _lines(path: Path, answers: Path, column: str) -> Iterator[Row]:
    """Yields the lines of a text, with the answers in the same lines of another."""

    def read_answers() -> Iterator[str]:
        with refused_in(f"{answers.name}, "):
            yield from (answer for _, answer in numbered_lines(answers))

    # Not a strict `zip`, whose error names neither file.
    for line, answer in zip_longest(numbered_lines(path), read_answers()):
        if line is None or answer is None:
            raise DatasetError(f"{path.name} and {answers.name} differ in their number of lines")
        yield line[0], {"tokens": line[1], column: answer}


def _one_file(folder: Path, *names: str) -> Path:
    """The only file with one of these names in a folder, packed or not.

    Raises:
        DatasetError: there is none, or several.
    """
    paths = (folder / f"{name}{packed}" for name in names for packed in ("", *COMPRESSED))
    found = sorted(path for path in paths if path.is_file())
    if len(found) > 1:
        raise DatasetError(
            f"{found[0].name} and {found[1].name} are for the same rows; keep one of them"
        )
    if not found:
        raise DatasetError(f"no {names[0]!r}, which has the other half of its rows")
    return found[0]


# Folders in the layouts of benchmarks and of users.


def _folder(path: Path) -> Table:
    # Sorted, since a system may list a folder in any order, and errors name the first file.
    files = [x for x in sorted(path.iterdir()) if not x.name.startswith(".")]
    if any(x.name.startswith("main.tok") for x in files):
        there = [x for x in FLARE if any((path / x).glob("main.tok*"))]
        parts = [_Part(_one_file(path / x, "main.tok"), FLARE[x]) for x in there]
        return _join(path, parts, files, True)
    trained = [x for x in files if (part := _part_of_language(x)) and part[1] == "Train"]
    if len({x.name.split("_Train")[0] for x in trained}) > 1:
        raise DatasetError(
            f"a folder of {len(trained):,} languages: name one by its training strings, as "
            f"path = {str(trained[0])!r}, or each as a dataset of its own, as "
            f"path = {str(path / '*_Train.txt')!r}"
        )
    if trained:
        return _join(path, _language(trained[0]), files, False)
    return _join(path, _by_split(files), files, None)


def _part_of_language(path: Path) -> tuple[str, str] | None:
    """The language and part of a file of MLRegTest, which has no names of columns; else None."""
    if (part := _PART.fullmatch(path.name)) is None or not path.is_file():
        return None
    # The name does not suffice: the first line must end in a label of MLRegTest.
    last = next(lines_of(path), "").rstrip("\r\n").rpartition("\t")[2]
    return (part[1], part[2]) if last in ("TRUE", "FALSE") else None


def _language(path: Path) -> list[_Part]:
    """All parts of a language of MLRegTest, given the file of its training strings."""
    name, part = _PART.fullmatch(path.name).groups()  # type: ignore[union-attr]
    if part != "Train":
        raise DatasetError(
            f"a part of the language {name!r:.60}: name its training strings, as "
            f"path = '{name}_Train.txt', and the parts beside them are read too"
        )
    parts = []
    for spelled, (split, border) in MLREGTEST.items():
        names = [f"{name}_{x}.txt" for x in spelled]
        if any(any(path.parent.glob(f"{x}*")) for x in names):
            parts.append(_Part(_one_file(path.parent, *names), split, border))
    return parts


def _labeled_lines(path: Path) -> Table:
    lines = ((place, line.partition("\t")) for place, line in numbered_lines(path))
    rows = ((place, {"tokens": x, "label": y}) for place, (x, _, y) in lines)
    return Table.from_rows(rows)


def _splits_of(file: Path) -> set[str]:
    """The splits whose names occur as words in a file's name."""
    words = re.findall("[a-z]+", file.name.lower())
    return {SPLIT_NAMES[x] for x in words if x in SPLIT_NAMES}


def _is_table(file: Path) -> bool:
    return kind_of(file) in READERS and file.is_file()


def _by_split(files: Sequence[Path]) -> list[_Part]:
    """Files whose names contain the word for a split, such as `train.csv` and `mine_dev.tsv`, and
    pairs of texts, such as `train_src.txt` and `train_tgt.txt`.
    """
    by_split: dict[str, list[Path]] = {}
    for file in filter(_is_table, files):
        source = re.sub(r"_tgt\.txt.*", "_src.txt", file.name)
        # A file of targets is read together with its sources.
        is_target = source != file.name and any(file.parent.glob(f"{source}*"))
        if len(splits := _splits_of(file)) == 1 and not is_target:
            by_split.setdefault(splits.pop(), []).append(file)
    if not by_split:
        there = ", ".join(file.name for file in files) or "nothing"
        raise DatasetError(
            f"a folder of {there[:100]}; expected a file for each split, such as train.csv and "
            "test.csv, train_src.txt and train_tgt.txt, or main.tok and labels.txt as FLaRe has"
        )
    for split, some in by_split.items():
        # A missing shard would silently make the split smaller.
        shards = {x.groups() for x in (re.search(r"-(\d+)-of-(\d+)", y.name) for y in some) if x}
        shards = shards or {("0", "1")}
        if len(shards) < len(some) or {int(total) for _, total in shards} != {len(some)}:
            raise DatasetError(
                f"{count(len(some), 'file')} of the split {split!r} "
                f"({', '.join(file.name for file in some)[:100]}), expected one, or all of its "
                "shards, such as train-00000-of-00002.parquet"
            )
    return [_Part(file, split) for split, some in by_split.items() for file in some]


def _join(
    folder: Path, parts: Sequence[_Part], files: Sequence[Path], spaced: bool | None
) -> Table:
    """The rows of all parts in one table.

    Args:
        folder: the folder to which the names of files are relative.
        parts: the files, one or several a split.
        files: all files there; unread ones that may have been intended are listed in the table.
        spaced: as in `Table`.
    """
    left_out: dict[str, None] = {}
    read = {path for part in parts for path in (part.file, part.file.parent)}

    def rows() -> Iterator[Row]:
        for file, split, border in parts:
            more = {"split": split} if border is None else {"split": split, "border": border}
            with refused_in(f"{(name := str(file.relative_to(folder)))}, "):
                table = _file(file) if border is None else _labeled_lines(file)
                left_out.update(dict.fromkeys(table.left_out))
                for place, *cells in zip(table.places, *table.columns.values(), strict=True):
                    row = dict(zip(table.columns, cells, strict=True))
                    if (own := row.get("split")) is not None and split_of(own) != split:
                        raise DatasetError(
                            f"{place}: split is {own!r:.60}, but the file is of {split!r}"
                        )
                    yield f"{name}, {place}", {**row, **more}
                if table.damage:
                    raise DatasetError(table.damage)

    rest = [x for x in files if x not in read and (_is_table(x) or _splits_of(x))]
    unread = [x.name for x in rest if not re.search(r"_tgt\.txt|^labels\.txt", x.name)]
    return replace(Table.from_rows(rows()), left_out=tuple(left_out), spaced=spaced, unread=unread)
