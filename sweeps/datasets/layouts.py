"""Rows of strings with their answers: of one table, or of the files of a folder, by split."""

import glob
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from seqcls.errors import DatasetError
from sweeps.datasets.formats import READERS, SPLIT_NAMES, FileTable, table_of
from sweeps.datasets.lines import (
    COMPRESSED,
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

_PACKED = f"(?:{'|'.join(map(re.escape, COMPRESSED))})?"
_PART = re.compile(rf"(.+)_({'|'.join(MLREGTEST)})\.txt{_PACKED}")
_NUMBERED = {"Test1": "TestSR", "Test2": "TestLR", "Test3": "TestSA", "Test4": "TestLA"}
_PAIRS = re.compile(rf"(.+)_(src|tgt)\.txt{_PACKED}")

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
    """Files that are beside those that were read, and belong to no split."""


def raw_rows(path: Path) -> RawRows:
    """The rows of a file or folder.

    Raises:
        DatasetError: it is none that can be read; of a row, when it is reached.
    """
    try:
        if path.is_dir():
            return _folder(path)
        if (pairs := _PAIRS.fullmatch(path.name)) and pairs[2] == "src" and path.is_file():
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


def _one_file(folder: Path, name: str) -> Path | None:
    """The file of a name in a folder, packed or not; None where there is none.

    Raises:
        DatasetError: there are several.
    """
    found = [file for x in ("", *COMPRESSED) if (file := folder / f"{name}{x}").is_file()]
    if len(found) > 1:
        raise _two_files(found)
    return next(iter(found), None)


def _two_files(files: Sequence[Path]) -> DatasetError:
    first, second = (file.name for file in files[:2])
    return DatasetError(f"{first} and {second} are for the same rows; keep one of them")


def _none_empty(name: str, rows: Iterator[RawRow]) -> Iterator[RawRow]:
    """The rows of one part of several.

    Raises:
        DatasetError: there is none.
    """
    row = None
    for row in rows:
        yield row
    if row is None:
        raise DatasetError(f"{name} has no rows; remove it, or write those of its split")


def _read_pairs(path: Path) -> RawRows:
    """Inputs in `NAME_src.txt`, their targets line by line in `NAME_tgt.txt`."""
    return RawRows(("tokens", "target"), _pairs(path, _targets_beside(path), "target"))


def _targets_beside(path: Path) -> Path:
    name = f"{path.name.rpartition('_src.txt')[0]}_tgt.txt"
    if (other := _one_file(path.parent, name)) is None:
        raise DatasetError(f"no {name!r} beside {path.name}, with the targets")
    return other


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
    beside: dict[str, Path] = {}
    unread = []
    for file in sorted(path.parent.glob(f"{glob.escape(name)}_*")):
        if (found := _PART.fullmatch(file.name)) is None or found[1] != name:
            unread.append(file.name)
            continue
        called = _NUMBERED.get(found[2], found[2])
        if called in beside:
            raise _two_files([beside[called], file])
        beside[called] = file
    columns = ("tokens", "label", "split", "border")
    return RawRows(columns, _rows_of_parts(beside), spaced=False, unread=tuple(unread))


def _rows_of_parts(files: Mapping[str, Path]) -> Iterator[RawRow]:
    for part, file in files.items():
        yield from _none_empty(file.name, _rows_of_part(part, file))


def _rows_of_part(part: str, file: Path) -> Iterator[RawRow]:
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
    for name, file in languages.items():
        language = _one_language(file, name, "Train")
        read = [file for file, part in parts if part is not None and part[1] == name]
        unread = dict.fromkeys([*language.unread, *_not_read(path, read)])
        return replace(language, unread=tuple(unread))
    return None


def _folder(path: Path) -> RawRows:
    """A file for each split: FLaRe's `main.tok` and `labels.txt`, pairs of texts, those of
    MLRegTest, or tables.
    """
    places = [(path, "train"), *((path / x, split) for x, split in list(FLARE.items())[1:])]
    parts = [(file, x) for folder, x in places if (file := _one_file(folder, "main.tok"))]
    if parts:
        labels = [_labels_beside(file) for file, _ in parts]
        unread = _not_read(path, {*labels, *(file for file, _ in parts)})
        return RawRows(("tokens", "label", "split"), _flare(parts), spaced=True, unread=unread)
    return _pairs_by_split(path) or _folder_of_languages(path) or _tables_by_split(path)


def _not_read(path: Path, read: Collection[Path]) -> tuple[str, ...]:
    """What else is in a folder and may have been meant for a split.

    Raises:
        DatasetError: it is a table that is called as a split.
    """
    rest = [file for file in sorted(path.iterdir()) if file not in read and _may_be_read(file)]
    for file in rest:
        if _is_table(file) and file.name.lower().split(".")[0] in SPLIT_NAMES:
            other = min(read)
            raise DatasetError(
                f"{file.name} is a table of a split, beside {other.name}, which is none; keep what "
                "is of one form"
            )
    folders = {file.parent for file in read}
    return tuple(file.name for file in rest if file not in folders)


def _may_be_read(file: Path) -> bool:
    return not file.name.startswith(".") and (_is_table(file) or bool(_splits_of(file)))


def _splits_of(file: Path) -> set[str]:
    """The splits that a name has the words of."""
    words = re.findall("[a-z]+", file.name.lower())
    return {SPLIT_NAMES[x] for x in words if x in SPLIT_NAMES}


def _pairs_by_split(path: Path) -> RawRows | None:
    """Pairs of texts whose names begin with the word for a split; None where there are none."""
    by_split: dict[str, Path] = {}
    named = [_PAIRS.fullmatch(file.name) for file in sorted(path.iterdir())]
    for name in dict.fromkeys(found[1] for found in named if found is not None):
        key = next((x for x in SPLIT_NAMES if name.startswith(x)), None)
        if key is None:
            continue
        source = _one_file(path, f"{name}_src.txt")
        if source is None:
            raise DatasetError(f"no '{name}_src.txt' beside {name}_tgt.txt, with the inputs")
        split = SPLIT_NAMES[key]
        if split in by_split:
            raise DatasetError(
                f"{by_split[split].name} and {source.name} are both for the split {split!r}; keep "
                "one of them"
            )
        by_split[split] = source
    if not by_split:
        return None
    read = [*by_split.values(), *map(_targets_beside, by_split.values())]
    unread = _not_read(path, read)
    return RawRows(("tokens", "target", "split"), _rows_by_split(by_split), unread=unread)


def _rows_by_split(sources: Mapping[str, Path]) -> Iterator[RawRow]:
    for split, source in sources.items():
        for row in _none_empty(source.name, _read_pairs(source).rows):
            yield row._replace(split=split)


def _labels_beside(file: Path) -> Path:
    labels = _one_file(file.parent, "labels.txt")
    if labels is None:
        raise DatasetError(f"no labels.txt in {file.parent.name!r}, beside its main.tok")
    return labels


def _flare(parts: Sequence[tuple[Path, str]]) -> Iterator[RawRow]:
    for file, split in parts:
        rows = _pairs(file, _labels_beside(file), "label", split=split)
        yield from _none_empty(f"{file.parent.name}/{file.name}", rows)


def _tables_by_split(path: Path) -> RawRows:
    """Tables whose names have the word for a split, such as `train.csv` and `mine_dev.tsv`."""
    by_split: dict[str, list[Path]] = {}
    unread = []
    for file in filter(_may_be_read, sorted(path.iterdir())):
        if len(splits := _splits_of(file)) == 1 and _is_table(file):
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
            own = chain.from_iterable(_rows_of(file, raws[file], split) for file in files)
            yield from _none_empty(files[0].name, own)
            every = chain.from_iterable(raws[file].left_out for file in files)
            left_out.extend(x for x in dict.fromkeys(every) if x not in left_out)

    columns = tuple(name for name in COLUMNS if name in raws[first].columns or name == "split")
    return RawRows(columns, rows(), left_out, unread=tuple(unread))


def _rows_of(file: Path, raw: RawRows, split: str) -> Iterator[RawRow]:
    while True:
        with refused_in(f"{file.name}, "):
            row = next(raw.rows, None)
        if row is None:
            return
        yield _of_split(row, split, file.name)


def _is_table(file: Path) -> bool:
    ending = ending_of(file.name)
    is_read = ending.removesuffix(compression_of(ending)) in READERS
    return is_read and not file.name.startswith(".") and file.is_file()


def _check_shards(split: str, files: Sequence[Path]) -> None:
    """Refuses several files of one split that are not all the shards of one table."""
    shards = [_SHARD.search(file.name) for file in files]
    counts = {int(shard[2]) if shard else 1 for shard in shards}
    numbers = {int(shard[1]) if shard else 0 for shard in shards}
    if counts != {len(files)} or len(numbers) < len(files):
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
