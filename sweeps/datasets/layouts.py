"""Rows of strings with their answers: of one table, or of the files of a folder, by split."""

import re
from collections.abc import Iterator, Sequence
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
    full_row,
    kind_of,
    lines_of,
    refused_in,
    separated_lines,
    table_of,
)

SPLIT_NAMES = {
    "train": "train",
    "test": "test",
    **dict.fromkeys(("validation", "valid", "val", "dev"), "validation"),
}
"""What a split may be called in a file, and in the name of one."""

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
            layouts = (_flare, _pairs_by_split, _language_of_folder)
            return next(filter(None, (lay(path) for lay in layouts)), None) or _tables(path)
        if (pairs := _PAIRS.fullmatch(path.name)) and pairs[2] == "src" and path.is_file():
            return RawRows(("tokens", "target"), _pairs(path, _targets_of(path), "target"))
        if (part := _PART.fullmatch(path.name)) and _has_no_names(path):
            return _language(path, *part.groups())
    except OSError as error:
        raise DatasetError(f"cannot be read: {error.strerror or error}") from None
    return _known_columns(table_of(path))


# One table.


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
                if new := [x for x in COLUMNS if x in cells and sources.get(x) != x]:
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
        found = ([x for x in table.names if x.strip().lower() in rank] for rank in ranks)
        there = next(filter(None, found), [])
        if len(there) > 1:
            called = " and ".join(map(repr, there[:3]))
            raise DatasetError(
                f"{table.heading}: two columns are {column!r} ({called}); remove one, or call the "
                f"right one {column!r} and the other otherwise"
            )
        if there:
            sources[column] = there[0]
    # What is called `output` is the answer only where there is no other.
    if "label" in sources and sources.get("target", "target").strip().lower() != "target":
        del sources["target"]
    shown, names = ", ".join(table.names)[:100], [", ".join(chain(*x)) for x in SPELLED.values()]
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
    return sources


# Two texts, line by line, and the folders of the benchmarks.


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


def _targets_of(path: Path) -> Path:
    name = f"{path.name.rpartition('_src.txt')[0]}_tgt.txt"
    if (other := _one_file(path.parent, name)) is None:
        raise DatasetError(f"no {name!r} beside {path.name}, with the targets")
    return other


def _named_lines(path: Path) -> Iterator[str]:
    with refused_in(f"{path.parent.name}/{path.name}, "):
        yield from lines_of(path)


def _pairs(path: Path, other: Path, column: str, **more: Any) -> Iterator[RawRow]:
    for number, pair in enumerate(zip_longest(_named_lines(path), _named_lines(other)), 1):
        if None in pair:
            short = other if pair[1] is None else path
            raise DatasetError(f"{short.name} ends before line {number}, which the other has")
        tokens, answer = (line.rstrip("\r\n") for line in pair)
        place = f"{path.parent.name}/{path.name}, line {number}"
        answers: dict[str, Any] = {column: answer, **more}
        yield RawRow(place, tokens, **answers)


def _none_empty(parts: Sequence[tuple[str, Iterator[RawRow]]]) -> Iterator[RawRow]:
    """The rows of parts, of which each has some; else it is refused by its name."""
    for name, rows in parts:
        if (first := next(rows, None)) is None:
            raise DatasetError(f"{name} has no rows; remove it, or write those of its split")
        yield first
        yield from rows


def _texts_by_split(
    path: Path, column: str, texts: Sequence[tuple[str, Path, Path]], spaced: bool | None = None
) -> RawRows | None:
    """The rows of a text and of its answers for each split; None where there are none."""
    parts = [
        (f"{file.parent.name}/{file.name}", _pairs(file, answers, column, split=split))
        for split, file, answers in texts
    ]
    if not parts:
        return None
    unread = _not_read(path, [file for _, *files in texts for file in files])
    return RawRows(("tokens", column, "split"), _none_empty(parts), spaced=spaced, unread=unread)


def _flare(path: Path) -> RawRows | None:
    """FLaRe's `main.tok` and `labels.txt`, in a folder for each split."""
    texts = []
    for name, split in FLARE.items():
        if file := _one_file(path / name, "main.tok"):
            if (labels := _one_file(file.parent, "labels.txt")) is None:
                raise DatasetError(f"no labels.txt in {file.parent.name!r}, beside its main.tok")
            texts.append((split, file, labels))
    return _texts_by_split(path, "label", texts, spaced=True)


def _pairs_by_split(path: Path) -> RawRows | None:
    """Pairs of texts whose names begin with the word for a split; None where there are none."""
    sources: dict[str, Path] = {}
    named = [_PAIRS.fullmatch(file.name) for file in sorted(path.iterdir())]
    for name in dict.fromkeys(found[1] for found in named if found is not None):
        split = next((SPLIT_NAMES[x] for x in SPLIT_NAMES if name.startswith(x)), None)
        if split is None:
            continue
        if (source := _one_file(path, f"{name}_src.txt")) is None:
            raise DatasetError(f"no '{name}_src.txt' beside {name}_tgt.txt, with the inputs")
        if (other := sources.setdefault(split, source)) != source:
            raise DatasetError(
                f"{other.name} and {source.name} are both for the split {split!r}; keep one of them"
            )
    texts = [(split, source, _targets_of(source)) for split, source in sources.items()]
    return _texts_by_split(path, "target", texts)


def _has_no_names(path: Path) -> bool:
    """Whether a table begins with a row, and not with the names of its columns."""
    first = next(lines_of(path), "") if path.is_file() else ""
    return first.rstrip("\r\n").rpartition("\t")[2] in ("TRUE", "FALSE")


def _language(path: Path, name: str, part: str) -> RawRows:
    """All parts of the language of MLRegTest whose training strings a file has."""
    if part != "Train":
        raise DatasetError(
            f"a part of the language {name!r:.60}: name its training strings, as "
            f"path = '{name}_Train.txt', and the parts beside them are read too"
        )
    parts = []
    for spelled, (split, border) in MLREGTEST.items():
        if file := _one_file(path.parent, *(f"{name}_{x}.txt" for x in spelled)):
            parts.append((file.name, _labeled_lines(file, split=split, border=border)))
    read = {file for file, _ in parts}
    beside = (x.name for x in sorted(path.parent.iterdir()) if x.name.startswith(f"{name}_"))
    unread = tuple(x for x in beside if x not in read)
    columns = ("tokens", "label", "split", "border")
    return RawRows(columns, _none_empty(parts), spaced=False, unread=unread)


def _labeled_lines(file: Path, **more: Any) -> Iterator[RawRow]:
    """Lines of a string and TRUE or FALSE."""
    with refused_in(f"{file.name}, "):
        for line, cells in separated_lines(file, "\t"):
            if cells:
                tokens, label = full_row(line, cells, 2)
                yield RawRow(f"{file.name}, {line}", tokens, label, **more)


def _language_of_folder(path: Path) -> RawRows | None:
    """The language in a folder of MLRegTest; None of another folder."""
    parts = {
        file: found for file in sorted(path.iterdir()) if (found := _PART.fullmatch(file.name))
    }
    trained = [x for x, part in parts.items() if part[2] == "Train" and _has_no_names(x)]
    if len({parts[file][1] for file in trained}) > 1:
        raise DatasetError(
            f"a folder of {len(trained):,} languages: name one by its training strings, as "
            f"path = {str(trained[0])!r}, or each as a dataset of its own, as "
            f"path = {str(path / '*_Train.txt')!r}"
        )
    if not trained:
        return None
    name = parts[trained[0]][1]
    language = _language(trained[0], name, "Train")
    read = [file for file, part in parts.items() if part[1] == name]
    unread = dict.fromkeys([*language.unread, *_not_read(path, read)])
    return replace(language, unread=tuple(unread))


# A table for each split.


def _splits_of(file: Path) -> set[str]:
    """The splits that a name has the words of."""
    words = re.findall("[a-z]+", file.name.lower())
    return {SPLIT_NAMES[x] for x in words if x in SPLIT_NAMES}


def _is_table(file: Path) -> bool:
    return kind_of(file) in READERS and file.is_file()


def _not_read(path: Path, read: Sequence[Path]) -> tuple[str, ...]:
    """What else is in a folder and may have been meant for a split.

    Raises:
        DatasetError: it is a table that is called as a split.
    """
    beside = [x for x in sorted(path.iterdir()) if x not in read and not x.name.startswith(".")]
    for file in filter(_is_table, beside):
        if file.name.lower().split(".")[0] in SPLIT_NAMES:
            raise DatasetError(
                f"{file.name} is a table of a split, beside {min(read).name}, which is none; keep "
                "what is of one form"
            )
    folders = {file.parent for file in read}
    rest = [
        file for file in beside if file not in folders and (_is_table(file) or _splits_of(file))
    ]
    return tuple(file.name for file in rest)


def _tables(path: Path) -> RawRows:
    """Tables whose names have the word for a split, such as `train.csv` and `mine_dev.tsv`."""
    by_split: dict[str, list[Path]] = {}
    for file in sorted(path.iterdir()):
        is_one = _is_table(file) and not file.name.startswith(".")
        if is_one and len(splits := _splits_of(file)) == 1:
            by_split.setdefault(splits.pop(), []).append(file)
    if not by_split:
        there = ", ".join(sorted(file.name for file in path.iterdir())) or "nothing"
        raise DatasetError(
            f"a folder of {there[:100]}; expected a file for each split, such as train.csv and "
            "test.csv, train_src.txt and train_tgt.txt, or main.tok and labels.txt as FLaRe has"
        )
    raws: dict[Path, RawRows] = {}
    for split, files in by_split.items():
        shards = {x.groups() for file in files if (x := _SHARD.search(file.name))} or {("0", "1")}
        if len(shards) < len(files) or {int(of) for _, of in shards} != {len(files)}:
            raise DatasetError(
                f"{count(len(files), 'file')} of the split {split!r} "
                f"({', '.join(file.name for file in files)[:100]}), expected one, or all of its "
                "shards, such as train-00000-of-00002.parquet"
            )
        for file in files:
            with refused_in(f"{file.name}, "):
                raws[file] = _known_columns(table_of(file))
    first = next(iter(raws))
    for file, raw in raws.items():
        if differ := sorted(({*raw.columns} ^ {*raws[first].columns}) - {"split"}):
            has, lacks = (file, first) if differ[0] in raw.columns else (first, file)
            raise DatasetError(f"{lacks.name} has no {differ[0]!r}, which {has.name} has")
    left_out: list[str] = []

    def rows() -> Iterator[RawRow]:
        yield from _none_empty(
            [
                (files[0].name, chain(*(_rows_of(file, raws[file], split) for file in files)))
                for split, files in by_split.items()
            ]
        )
        left_out.extend(dict.fromkeys(chain(*(raw.left_out for raw in raws.values()))))

    columns = tuple(x for x in COLUMNS if x in raws[first].columns or x == "split")
    return RawRows(columns, rows(), left_out, unread=_not_read(path, [*raws]))


def _rows_of(file: Path, raw: RawRows, split: str) -> Iterator[RawRow]:
    """The rows of a file that is named after its split, which they may say too."""
    with refused_in(f"{file.name}, "):
        for row in raw.rows:
            said = str(row.split).strip().lower()
            if row.split is not None and SPLIT_NAMES.get(said) != split:
                raise DatasetError(
                    f"{row.place}: split is {row.split!r:.60}, but the file is of {split!r}"
                )
            yield row._replace(place=f"{file.name}, {row.place}", split=split)
