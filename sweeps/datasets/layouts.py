"""Rows of strings with their answers: of one table, or of the files of a folder, by split."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from seqcls.errors import DatasetError
from sweeps.datasets.formats import READERS, SPLIT_NAMES, FileTable, table_of
from sweeps.datasets.lines import (
    compression_of,
    ending_of,
    full_row,
    lines_of,
    refused_in,
    separated_lines,
)

COLUMNS = ("tokens", "label", "target", "split", "id")
SPELLED = {
    "tokens": (("tokens",), ("input", "string"), ("sequence", "text", "source", "src")),
    "label": (("label",),),
    "target": (("target",), ("output", "tgt")),
    "split": (("split",),),
    "id": (("id",),),
}
"""What a file may call a column: the first names that it has count, and others mean nothing."""

FLARE = {
    "main.tok": "train",
    "validation-short": "validation",
    "validation-long": "validation",
    "test": "test",
}
"""The parts of a folder as the benchmark FLaRe lays it out, by their split."""

MLREGTEST = {
    "Train": ("train", False),
    "Dev": ("validation", False),
    **{f"Test{which}": ("test", False) for which in ("SR", "LR", "1", "2")},
    **{f"Test{which}": ("test", True) for which in ("SA", "LA", "3", "4")},
}
"""The parts of a language as the benchmark MLRegTest lays it out: the split of each, and whether
its strings are pairs at the language's border. Its tests are named, or numbered as at first."""

_PART = re.compile(rf"(.+)_({'|'.join(MLREGTEST)})\.txt(?:\.gz|\.bz2|\.xz)?")

_SHARD = re.compile(r"-(\d+)-of-(\d+)")
"""In the names of files that hold one split together."""


class RawRow(NamedTuple):
    """One row, nothing of it checked."""

    place: str
    """Such as `line 7`."""
    tokens: Any
    label: Any = None
    target: Any = None
    split: Any = None
    id: Any = None
    border: bool | None = None
    """Whether it is one of a pair at the border of its language; None where nothing says it."""


@dataclass(frozen=True)
class RawRows:
    """What a file says of itself, and its rows."""

    columns: tuple[str, ...]
    """Those of `COLUMNS` that it has, and `border`."""
    rows: Iterator[RawRow]
    left_out: list[str] = field(default_factory=list)
    """Columns that mean nothing here; complete when the rows have been read."""
    spaced: bool | None = None
    """Whether tokens have spaces between; None where the texts have to say it."""
    unread: tuple[str, ...] = ()
    """Files of a folder that belong to no split."""


def raw_rows(path: Path) -> RawRows:
    """The rows of a file or folder.

    Raises:
        DatasetError: it is none that can be read; of a row, when it is reached.
    """
    try:
        if path.is_dir():
            return _folder(path)
        if path.name.endswith("_src.txt") and path.is_file():
            return _read_pairs(path)
        if (part := _PART.fullmatch(path.name)) and _has_no_names(path):
            return _one_language(path, *part.groups())
    except OSError as error:
        raise DatasetError(f"cannot be read: {error.strerror or error}") from None
    return _known_columns(table_of(path))


def _known_columns(table: FileTable) -> RawRows:
    """The columns that mean something here, by what they are called here."""
    sources = _sources(table)
    left_out = [name for name in table.names if name not in sources.values()]

    def rows() -> Iterator[RawRow]:
        given = set(table.names)
        for place, cells in table.rows(list(sources.values())):
            if table.may_vary and cells.keys() != given:
                _check_row(place, cells, sources, table.heading)
                new = [name for name in cells if name not in given]
                given.update(new)
                left_out.extend(new)
            named = {name: cells[source] for name, source in sources.items() if source in cells}
            yield RawRow(place, **named)

    return RawRows(tuple(sources), rows(), left_out)


def _check_row(
    place: str, cells: Mapping[str, Any], sources: Mapping[str, str], heading: str
) -> None:
    """Refuses a line of JSON that has other columns than the first one."""
    if sources["tokens"] not in cells:
        raise DatasetError(f"{place} has no {sources['tokens']!r}")
    for name in COLUMNS:
        if name in cells and sources.get(name) != name:
            raise DatasetError(
                f"{place} has {name!r}, but {heading} has not; give it to every row, or to none"
            )


def _sources(table: FileTable) -> dict[str, str]:
    """What the file calls each column that it has of those that are known here."""
    spelled: dict[str, list[str]] = {}
    for name in table.names:
        spelled.setdefault(name.strip().lower(), []).append(name)
    sources: dict[str, str] = {}
    for column, ranks in SPELLED.items():
        for rank in ranks:
            if there := [name for spelling in rank for name in spelled.get(spelling, ())]:
                if len(there) > 1:
                    called = " and ".join(repr(name) for name in there[:3])
                    raise DatasetError(
                        f"{table.heading}: two columns are {column!r} ({called}); remove one, or "
                        f"call the right one {column!r} and the other otherwise"
                    )
                sources[column] = there[0]
                break
    # What is called `output` is the answer only where there is no other.
    if "label" in sources and sources.get("target", "target").strip().lower() != "target":
        del sources["target"]
    _check_columns(sources, table)
    return sources


def _check_columns(sources: Mapping[str, str], table: FileTable) -> None:
    shown = ", ".join(table.names)[:100]
    names = [", ".join(chain.from_iterable(ranks)) for ranks in SPELLED.values()]
    known = f"tokens ({names[0]}), and label or target ({names[2]}); optionally split and id"
    if not sources:
        raise DatasetError(
            f"{table.heading} is {shown!r}, expected a header with the names of columns, such as "
            f"tokens,label: known are {known}; rename them, or write such a line above"
        )
    if "tokens" not in sources:
        raise DatasetError(f"columns {shown!r}: expected one named 'tokens' (known are {known})")
    if ("label" in sources) == ("target" in sources):
        raise DatasetError(
            f"columns {shown!r}: expected either 'label' or 'target' beside tokens "
            f"(known are {known})"
        )


def _read_pairs(path: Path) -> RawRows:
    """Inputs in `NAME_src.txt`, their targets line by line in `NAME_tgt.txt`."""
    other = path.with_name(path.name.removesuffix("_src.txt") + "_tgt.txt")
    if not other.is_file():
        raise DatasetError(f"no {other.name!r} beside it, with the targets")
    return RawRows(("tokens", "target"), _pairs(path, other, "target"))


def _pairs(path: Path, other: Path, column: str, **more: Any) -> Iterator[RawRow]:
    for number, pair in enumerate(zip_longest(lines_of(path), lines_of(other)), 1):
        if None in pair:
            short = other if pair[1] is None else path
            raise DatasetError(f"{short.name} ends before line {number}, which the other has")
        tokens, answer = (line.rstrip("\r\n") for line in pair)
        place = f"{path.parent.name}/{path.name}, line {number}"
        answers: dict[str, Any] = {column: answer, **more}
        yield RawRow(place, tokens, **answers)


# MLRegTest: for each language a file of each part, lines of a string and TRUE or FALSE.


def _has_no_names(path: Path) -> bool:
    """Whether a table begins with a row, and not with the names of its columns."""
    first = next(lines_of(path), "") if path.is_file() else ""
    return first.rstrip("\r\n").rpartition("\t")[2] in ("TRUE", "FALSE")


def _one_language(path: Path, name: str, part: str) -> RawRows:
    """All parts of the language whose training strings a file has."""
    if part != "Train":
        raise DatasetError(
            f"a part of the language {name!r:.60}: name its training strings, as "
            f"path = '{name}_Train.txt', and the parts beside them are read too"
        )
    named = ((file, _PART.fullmatch(file.name)) for file in sorted(path.parent.iterdir()))
    beside = {found[2]: file for file, found in named if found is not None and found[1] == name}
    return RawRows(("tokens", "label", "split", "border"), _rows_of_parts(beside), spaced=False)


def _rows_of_parts(files: Mapping[str, Path]) -> Iterator[RawRow]:
    for part, file in files.items():
        split, border = MLREGTEST[part]
        for line, cells in separated_lines(file, "\t"):
            if cells:
                place = f"{file.name}, {line}"
                tokens, label = full_row(place, cells, 2)
                yield RawRow(place, tokens, label, split=split, border=border)


def _folder_of_languages(path: Path) -> RawRows | None:
    """The language in a folder of MLRegTest; None of another folder."""
    parts = [(file, _PART.fullmatch(file.name)) for file in sorted(path.iterdir())]
    files = {part[1]: file for file, part in parts if part is not None and part[2] == "Train"}
    languages = {name: file for name, file in files.items() if _has_no_names(file)}
    if len(languages) > 1:
        first = next(iter(languages.values()))
        raise DatasetError(
            f"a folder of {len(languages):,} languages: name one by its training strings, as "
            f"path = {str(first)!r}, or each as a dataset of its own, as "
            f"path = {str(path / '*_Train.txt')!r}"
        )
    return next((_one_language(file, name, "Train") for name, file in languages.items()), None)


def _folder(path: Path) -> RawRows:
    """A file for each split: FLaRe's `main.tok` and `labels.txt`, pairs of texts, those of
    MLRegTest, or tables.
    """
    parts = [(path, "train")] if (path / "main.tok").is_file() else []
    parts += [(path / x, FLARE[x]) for x in list(FLARE)[1:] if (path / x / "main.tok").is_file()]
    if parts:
        return RawRows(("tokens", "label", "split"), _flare(parts), spaced=True)
    sources = sorted(path.glob("*_src.txt"))
    by_split = {
        next(split for key, split in SPLIT_NAMES.items() if x.name.startswith(key)): x
        for x in sources
        if x.name.startswith(tuple(SPLIT_NAMES))
    }
    if sources and len(by_split) == len(sources):
        return RawRows(("tokens", "target", "split"), _pairs_by_split(by_split))
    return _folder_of_languages(path) or _tables_by_split(path)


def _pairs_by_split(sources: Mapping[str, Path]) -> Iterator[RawRow]:
    for split, source in sources.items():
        for row in _read_pairs(source).rows:
            yield row._replace(split=split)


def _flare(parts: Sequence[tuple[Path, str]]) -> Iterator[RawRow]:
    for folder, split in parts:
        labels = folder / "labels.txt"
        if not labels.is_file():
            raise DatasetError(f"no labels.txt in {folder.name!r}, beside its main.tok")
        yield from _pairs(folder / "main.tok", labels, "label", split=split)


def _tables_by_split(path: Path) -> RawRows:
    """Tables whose names have the word for a split, such as `train.csv` and `mine_dev.tsv`."""
    tables = [file for file in sorted(path.iterdir()) if _is_table(file)]
    by_split: dict[str, list[Path]] = {}
    unread = []
    for file in tables:
        splits = {
            SPLIT_NAMES[x] for x in re.findall("[a-z]+", file.name.lower()) if x in SPLIT_NAMES
        }
        if len(splits) == 1:
            by_split.setdefault(splits.pop(), []).append(file)
        else:
            unread.append(file.name)
    if not by_split:
        there = ", ".join(sorted(file.name for file in path.iterdir())) or "nothing"
        raise DatasetError(
            f"a folder of {there[:100]}; expected a file for each split, such as train.csv and "
            "test.csv, train_src.txt and train_tgt.txt, or main.tok and labels.txt as FLaRe has"
        )
    for split, files in by_split.items():
        _check_shards(split, files)
    raws = dict[Path, RawRows]()
    for file in chain.from_iterable(by_split.values()):
        with refused_in(f"{file.name}, "):
            raws[file] = _known_columns(table_of(file))
    first, *others = raws
    for other in others:
        if differ := sorted((set(raws[first].columns) ^ set(raws[other].columns)) - {"split"}):
            has, lacks = (first, other) if differ[0] in raws[first].columns else (other, first)
            raise DatasetError(f"{lacks.name} has no {differ[0]!r}, which {has.name} has")
    left_out: list[str] = []

    def rows() -> Iterator[RawRow]:
        for split, files in by_split.items():
            for file in files:
                for row in _rows_of(file, raws[file]):
                    yield _of_split(row, split, file.name)
                left_out.extend(x for x in raws[file].left_out if x not in left_out)

    columns = tuple(name for name in COLUMNS if name in raws[first].columns or name == "split")
    return RawRows(columns, rows(), left_out, unread=tuple(unread))


def _rows_of(file: Path, raw: RawRows) -> Iterator[RawRow]:
    while True:
        with refused_in(f"{file.name}, "):
            row = next(raw.rows, None)
        if row is None:
            return
        yield row


def _is_table(file: Path) -> bool:
    ending = ending_of(file.name)
    is_read = ending.removesuffix(compression_of(ending)) in READERS
    return is_read and not file.name.startswith(".") and file.is_file()


def _check_shards(split: str, files: Sequence[Path]) -> None:
    """Refuses several files of one split that are not all the shards of one table."""
    shards = [_SHARD.search(file.name) for file in files]
    counts = {int(shard[2]) if shard else 1 for shard in shards}
    if counts != {len(files)}:
        raise DatasetError(
            f"{len(files)} {'file' if len(files) == 1 else 'files'} of the split {split!r} "
            f"({', '.join(file.name for file in files)[:100]}), expected one, or all of its "
            "shards, such as train-00000-of-00002.parquet"
        )


def _of_split(row: RawRow, split: str, name: str) -> RawRow:
    """A row of a file that is named after its split, which the row may say too."""
    said = row.split.strip().lower() if isinstance(row.split, str) else row.split
    place = f"{name}, {row.place}"
    if said is not None and SPLIT_NAMES.get(str(said)) != split:
        raise DatasetError(f"{place}: split is {row.split!r:.60}, but the file is of {split!r}")
    return row._replace(place=place, split=split)
