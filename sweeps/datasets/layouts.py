"""Rows of strings with their answers: of one table, or of the files of a folder, by split."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from seqcls.errors import DatasetError
from seqcls.text import count
from sweeps.datasets.tables import (
    COMPRESSED,
    READERS,
    Table,
    kind_of,
    lines_of,
    read_separated,
    refused_in,
    table_of,
)

SPLIT_NAMES = {
    "train": "train",
    "test": "test",
    **dict.fromkeys(("validation", "valid", "val", "dev"), "validation"),
}
"""What a split may be called in a file, and in the name of one."""

SPELLED: Mapping[str, Sequence[Sequence[str]]] = {
    "tokens": (("tokens",), ("input", "string"), ("sequence", "text", "source", "src")),
    "label": (("label",),),
    "target": (("target",), ("output", "tgt")),
    "split": (("split",),),
    "id": (("id",),),
}
"""What a file may call a column: the first names that it has count, and others mean nothing."""

FLARE = {
    ".": "train",
    "test": "test",
    "validation-short": "validation",
    "validation-long": "validation",
}
"""The folders in one as the benchmark FLaRe lays it out, by their split."""

MLREGTEST = {
    ("Train",): ("train", False),
    ("Dev",): ("validation", False),
    ("TestSR", "Test1"): ("test", False),
    ("TestLR", "Test2"): ("test", False),
    ("TestSA", "Test3"): ("test", True),
    ("TestLA", "Test4"): ("test", True),
}
"""The parts of a language as the benchmark MLRegTest lays it out: the split of each, and whether
its strings are pairs at the language's border. Its tests are named, or numbered as at first."""

_PACKED = f"(?:{'|'.join(map(re.escape, COMPRESSED))})?"
_PART = re.compile(rf"(.+)_({'|'.join(chain(*MLREGTEST))})\.txt{_PACKED}")
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

    columns: Sequence[str]
    """Those of `SPELLED` that it has."""
    rows: Iterator[RawRow]
    left_out: list[str] = field(default_factory=list)
    """Columns that mean nothing here; complete when the rows have been read."""
    spaced: bool | None = None
    """Whether tokens have spaces between; None where the texts have to say it."""
    unread: Sequence[str] = ()
    """Files that are beside those that were read, and belong to no split."""


class _Part(NamedTuple):
    """The rows of one file of several, which is beside another where that has its answers."""

    files: Sequence[Path]
    raw: RawRows
    split: str
    border: bool | None = None

    @property
    def name(self) -> str:
        """The name of its file."""
        return self.files[0].name


def raw_rows(path: Path) -> RawRows:
    """The rows of a file or folder.

    Raises:
        DatasetError: it is none that can be read; of a row, when it is reached.
    """
    try:
        if path.is_dir():
            return _folder(path)
        if path.is_file():
            if (pairs := _PAIRS.fullmatch(path.name)) and pairs[2] == "src":
                return _texts(path, _beside(path, f"{pairs[1]}_tgt.txt"), "target")
            if (part := _PART.fullmatch(path.name)) and _has_no_names(path):
                beside = [x for x in path.parent.iterdir() if x.name.startswith(f"{part[1]}_")]
                return _join(path.parent, _language(path, *part.groups()), sorted(beside))
    except OSError as error:
        raise DatasetError(f"cannot be read: {error.strerror or error}") from None
    return _known_columns(table_of(path))


def _known_columns(table: Table) -> RawRows:
    """The columns that mean something here, by what they are called here."""
    sources = _sources(table)
    left_out = [name for name in table.names if name not in sources.values()]

    def rows() -> Iterator[RawRow]:
        known = {*table.names}
        for place, cells in table.rows([*sources.values()]):
            # Rows of JSON may have other names than the first one.
            if cells.keys() != known:
                if sources["tokens"] not in cells:
                    raise DatasetError(f"{place} has no {sources['tokens']!r}")
                if new := [x for x in SPELLED if x in cells and sources.get(x) != x]:
                    raise DatasetError(
                        f"{place} has {new[0]!r}, but {table.heading} has not; give it to every "
                        "row, or to none"
                    )
                left_out.extend(name for name in cells if name not in known)
                known.update(cells)
            yield RawRow(place, **{x: cells[y] for x, y in sources.items() if y in cells})

    return RawRows(tuple(sources), rows(), left_out)


def _sources(table: Table) -> dict[str, str]:
    """What the file calls each column that it has of those that are known here."""
    sources: dict[str, str] = {}
    for column, ranks in SPELLED.items():
        found = ([x for x in table.names if x in rank] for rank in ranks)
        there = next(filter(None, found), [])
        if len(there) > 1:
            raise DatasetError(
                f"{table.heading}: two columns are {column!r} ({' and '.join(map(repr, there))}); "
                f"remove one, or call the right one {column!r} and the other otherwise"
            )
        sources.update(dict.fromkeys([column] * len(there), *there))
    # What is called `output` is the answer only where there is no other.
    if "label" in sources and sources.get("target") != "target":
        sources.pop("target", None)
    shown, names = ", ".join(table.names)[:100], [", ".join(chain(*x)) for x in SPELLED.values()]
    known = f"tokens ({names[0]}), and label or target ({names[2]}); optionally split and id"
    if not sources:
        raise DatasetError(
            f"{table.heading} is {shown!r}, expected a header with the names of columns, such as "
            f"tokens,label: known are {known}; rename them, or write such a line above"
        )
    if "tokens" not in sources or ("label" in sources) == ("target" in sources):
        raise DatasetError(
            f"columns {shown!r}: expected one named 'tokens', and either 'label' or 'target' "
            f"(known are {known})"
        )
    return sources


def _texts(path: Path, answers: Path, column: str) -> RawRows:
    """The lines of a text, and the answers in the same lines of another."""

    def rows() -> Iterator[RawRow]:
        for number, pair in enumerate(zip_longest(lines_of(path), _named_lines(answers)), 1):
            if None in pair:
                short = answers if pair[1] is None else path
                raise DatasetError(f"{short.name} ends before line {number}, which the other has")
            tokens, answer = (line.rstrip("\r\n") for line in pair)
            answered: dict[str, Any] = {column: answer}
            yield RawRow(f"line {number}", tokens, **answered)

    return RawRows(("tokens", column), rows(), spaced=True if column == "label" else None)


def _named_lines(path: Path) -> Iterator[str]:
    with refused_in(f"{path.name}, "):
        yield from lines_of(path)


def _one_file(folder: Path, *names: str) -> Path | None:
    """The file of one of these names in a folder, packed or not; None where there is none.

    Raises:
        DatasetError: there are several.
    """
    paths = (folder / f"{name}{packed}" for name in names for packed in ("", *COMPRESSED))
    found = sorted(path for path in paths if path.is_file())
    if len(found) > 1:
        raise DatasetError(
            f"{found[0].name} and {found[1].name} are for the same rows; keep one of them"
        )
    return found[0] if found else None


def _beside(path: Path, name: str) -> Path:
    if (other := _one_file(path.parent, name)) is None:
        raise DatasetError(f"no {name!r} beside {path.name}, with the other half of its rows")
    return other


# Folders, as benchmarks and people lay them out.


def _folder(path: Path) -> RawRows:
    files = [x for x in sorted(path.iterdir()) if not x.name.startswith(".")]
    texts = [
        (file, _beside(file, "labels.txt"), split)
        for folder, split in FLARE.items()
        if (file := _one_file(path / folder, "main.tok"))
    ]
    parts = [_Part((x, y), _texts(x, y, "label"), split) for x, y, split in texts]
    return _join(path, parts or _pairs(path, files) or _language_of(path, files), files)


def _pairs(path: Path, files: Sequence[Path]) -> list[_Part]:
    """Pairs of texts whose names begin with the word for a split."""
    parts: dict[str, _Part] = {}
    for name in dict.fromkeys(x[1] for file in files if (x := _PAIRS.fullmatch(file.name))):
        if split := next((SPLIT_NAMES[x] for x in SPLIT_NAMES if name.startswith(x)), None):
            source = _beside(path / f"{name}_tgt.txt", f"{name}_src.txt")
            target = _beside(source, f"{name}_tgt.txt")
            if split in parts:
                raise DatasetError(
                    f"{parts[split].name} and {source.name} are both for the split {split!r}; "
                    "keep one of them"
                )
            parts[split] = _Part((source, target), _texts(source, target, "target"), split)
    return [*parts.values()]


def _has_no_names(path: Path) -> bool:
    """Whether a table begins with a row, and not with the names of its columns."""
    return next(lines_of(path), "").rstrip("\r\n").rpartition("\t")[2] in ("TRUE", "FALSE")


def _language(path: Path, name: str, part: str) -> list[_Part]:
    """All parts of the language of MLRegTest whose training strings a file has."""
    if part != "Train":
        raise DatasetError(
            f"a part of the language {name!r:.60}: name its training strings, as "
            f"path = '{name}_Train.txt', and the parts beside them are read too"
        )
    parts = []
    for spelled, (split, border) in MLREGTEST.items():
        if file := _one_file(path.parent, *(f"{name}_{x}.txt" for x in spelled)):
            raw = _known_columns(read_separated("\t", file, ("tokens", "label")))
            parts.append(_Part([file], replace(raw, spaced=False), split, border))
    return parts


def _language_of(path: Path, files: Sequence[Path]) -> list[_Part]:
    """The parts of the one language of MLRegTest in a folder."""
    named = {file: part.groups() for file in files if (part := _PART.fullmatch(file.name))}
    trained = [x for x, (_, part) in named.items() if part == "Train" and _has_no_names(x)]
    if len({named[file][0] for file in trained}) > 1:
        raise DatasetError(
            f"a folder of {len(trained):,} languages: name one by its training strings, as "
            f"path = {str(trained[0])!r}, or each as a dataset of its own, as "
            f"path = {str(path / '*_Train.txt')!r}"
        )
    return _language(trained[0], *named[trained[0]]) if trained else _tables(files)


def _splits_of(file: Path) -> set[str]:
    """The splits that a name has the words of."""
    words = re.findall("[a-z]+", file.name.lower())
    return {SPLIT_NAMES[x] for x in words if x in SPLIT_NAMES}


def _is_table(file: Path) -> bool:
    return kind_of(file) in READERS and file.is_file()


def _tables(files: Sequence[Path]) -> list[_Part]:
    """Tables whose names have the word for a split, such as `train.csv` and `mine_dev.tsv`."""
    by_split: dict[str, list[Path]] = {}
    for file in filter(_is_table, files):
        if len(splits := _splits_of(file)) == 1:
            by_split.setdefault(splits.pop(), []).append(file)
    if not by_split:
        there = ", ".join(file.name for file in files) or "nothing"
        raise DatasetError(
            f"a folder of {there[:100]}; expected a file for each split, such as train.csv and "
            "test.csv, train_src.txt and train_tgt.txt, or main.tok and labels.txt as FLaRe has"
        )
    parts = []
    for split, some in by_split.items():
        shards = {x.groups() for file in some if (x := _SHARD.search(file.name))} or {("0", "1")}
        if len(shards) < len(some) or {int(of) for _, of in shards} != {len(some)}:
            raise DatasetError(
                f"{count(len(some), 'file')} of the split {split!r} "
                f"({', '.join(file.name for file in some)[:100]}), expected one, or all of its "
                "shards, such as train-00000-of-00002.parquet"
            )
        for file in some:
            with refused_in(f"{file.name}, "):
                parts.append(_Part([file], _known_columns(table_of(file)), split))
    return parts


def _join(folder: Path, parts: Sequence[_Part], files: Sequence[Path]) -> RawRows:
    """The rows of all parts, which have the same columns.

    Args:
        folder: from which their files are named.
        parts: the files, one a split or several.
        files: what is beside them; of what is not read, that which may have been meant is told.
    """
    first, read = parts[0], {file for part in parts for file in (*part.files, part.files[0].parent)}
    for part in parts:
        if differ := sorted(({*part.raw.columns} ^ {*first.raw.columns}) - {"split"}):
            pair = (part, first) if differ[0] in part.raw.columns else (first, part)
            has, lacks = (x.name for x in pair)
            raise DatasetError(f"{lacks} has no {differ[0]!r}, which {has} has")
    rest = [x for x in files if x not in read and (_is_table(x) or _splits_of(x))]
    for file in filter(_is_table, rest):
        if file.name.lower().split(".")[0] in SPLIT_NAMES:
            raise DatasetError(
                f"{file.name} is a table of a split, beside {first.name}, which is none; keep "
                "what is of one form"
            )
    left_out: list[str] = []

    def rows() -> Iterator[RawRow]:
        for (file, *_), raw, split, border in parts:
            name, is_empty = str(file.relative_to(folder)), True
            with refused_in(f"{name}, "):
                for row in raw.rows:
                    said, is_empty = row.split, False
                    if said is not None and SPLIT_NAMES.get(str(said).strip().lower()) != split:
                        raise DatasetError(
                            f"{row.place}: split is {said!r:.60}, but the file is of {split!r}"
                        )
                    place = f"{name}, {row.place}"
                    yield row._replace(place=place, split=split, border=border)
            if is_empty:
                raise DatasetError(f"{name} has no rows; remove it, or write those of its split")
            left_out.extend(x for x in raw.left_out if x not in left_out)

    columns = tuple(dict.fromkeys((*first.raw.columns, "split")))
    unread = tuple(file.name for file in rest)
    return RawRows(columns, rows(), left_out, first.raw.spaced, unread)
