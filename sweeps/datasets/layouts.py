"""Rows of strings with their answers: of one table, or of the files of a folder, by split."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, product, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from seqcls.errors import DatasetError
from seqcls.text import count
from sweeps.datasets.tables import (
    COMPRESSED,
    READERS,
    Row,
    kind_of,
    lines_of,
    refused_in,
    rows_of,
)

SPLIT_NAMES = {
    "train": "train",
    "test": "test",
    **dict.fromkeys(("validation", "valid", "val", "dev"), "validation"),
}
"""What a split may be called in a file, and in the name of one."""

SPELLED: Mapping[str, Sequence[str]] = {
    "tokens": ("tokens", "input", "string", "sequence", "text", "source", "src"),
    "label": ("label",),
    "target": ("target", "output", "tgt"),
    "split": ("split",),
    "id": ("id",),
}
"""What a file may call a column: the first that it has counts, and others mean nothing."""

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


def split_of(value: Any) -> str:
    """The split that a cell names.

    Raises:
        DatasetError: it names none.
    """
    known = SPLIT_NAMES.get(value.strip().lower()) if isinstance(value, str) else None
    if known is None:
        raise DatasetError(f"split is {value!r:.60}, expected train, validation or test")
    return known


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
    """One file of several, with its answers, or beside the file that has them."""

    file: Path
    split: str
    border: bool | None = None


def raw_rows(path: Path) -> RawRows:
    """The rows of a file or folder.

    Raises:
        DatasetError: it is none that can be read; of a row, when it is reached.
    """
    try:
        if path.is_dir():
            return _folder(path)
        if part := _part_of_language(path):
            beside = [x for x in path.parent.iterdir() if x.name.startswith(f"{part[0]}_")]
            return _join(path.parent, _language(path), sorted(beside))
        return _file(path)
    except OSError as error:
        raise DatasetError(f"cannot be read: {error.strerror or error}") from None


def _file(path: Path) -> RawRows:
    """The rows of one file, whose answers may be in one beside it."""
    if path.name.startswith("main.tok"):
        return _texts(path, _one_file(path.parent, "labels.txt"), "label")
    if pairs := _PAIRS.fullmatch(path.name):
        source, target = (_one_file(path.parent, f"{pairs[1]}_{x}.txt") for x in ("src", "tgt"))
        return _texts(source, target, "target")
    return _known_columns(rows_of(path))


def _known_columns(table: Iterator[Row]) -> RawRows:
    """The columns that mean something here, by what they are called here: those of the first row,
    and no row of JSON may have others of them.
    """
    first = next(table, None)
    if first is None:
        raise DatasetError("no rows")
    place, cells = first
    sources = _sources(place, cells)
    known, left_out = {*cells}, [x for x in cells if x not in sources.values()]

    def rows() -> Iterator[RawRow]:
        for place, cells in chain([first], table):
            if cells.keys() != known:
                new = [x for x in SPELLED if x in cells and sources.get(x) != x]
                if new or sources["tokens"] not in cells:
                    what = f"{new[0]!r}, but the first row has not" if new else ""
                    raise DatasetError(f"{place} has {what or 'no ' + repr(sources['tokens'])}")
                left_out.extend(name for name in cells if name not in known)
                known.update(cells)
            yield RawRow(place, **{x: cells[y] for x, y in sources.items() if y in cells})

    return RawRows(tuple(sources), rows(), left_out)


def _sources(place: str, names: Mapping[str, Any]) -> dict[str, str]:
    """What the file calls each column that it has of those that are known here."""
    sources = {
        column: next(x for x in spelled if x in names)
        for column, spelled in SPELLED.items()
        if not names.keys().isdisjoint(spelled)
    }
    # What is called `output` is the answer only where there is no other.
    if "label" in sources and sources.get("target") != "target":
        sources.pop("target", None)
    if "tokens" not in sources or ("label" in sources) == ("target" in sources):
        raise DatasetError(
            f"{place}: columns {', '.join(names)[:100]!r}, expected one named 'tokens' "
            f"({', '.join(SPELLED['tokens'])}), and either 'label' or 'target' "
            f"({', '.join(SPELLED['target'])}); optionally split and id"
        )
    return sources


def _texts(path: Path, answers: Path, column: str) -> RawRows:
    """The lines of a text, and the answers in the same lines of another."""

    def read_answers() -> Iterator[tuple[str, str]]:
        with refused_in(f"{answers.name}, "):
            yield from _number_lines(answers)

    def rows() -> Iterator[RawRow]:
        for line, answer in zip_longest(_number_lines(path), read_answers()):
            if line is None or answer is None:
                raise DatasetError(
                    f"{path.name} and {answers.name} differ in their number of lines"
                )
            answered_in: dict[str, Any] = {column: answer[1]}
            yield RawRow(*line, **answered_in)

    return RawRows(("tokens", column), rows(), spaced=True if column == "label" else None)


def _one_file(folder: Path, *names: str) -> Path:
    """The file of one of these names in a folder, packed or not.

    Raises:
        FileNotFoundError: there is none.
        DatasetError: there are several.
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


# Folders, as benchmarks and people lay them out.


def _folder(path: Path) -> RawRows:
    files = [x for x in sorted(path.iterdir()) if not x.name.startswith(".")]
    if any(x.name.startswith("main.tok") for x in files):
        there = [x for x in FLARE if any((path / x).glob("main.tok*"))]
        parts = [_Part(_one_file(path / x, "main.tok"), FLARE[x]) for x in there]
        return _join(path, parts, files)
    trained = [x for x in files if (part := _part_of_language(x)) and part[1] == "Train"]
    if len({x.name.split("_Train")[0] for x in trained}) > 1:
        raise DatasetError(
            f"a folder of {len(trained):,} languages: name one by its training strings, as "
            f"path = {str(trained[0])!r}, or each as a dataset of its own, as "
            f"path = {str(path / '*_Train.txt')!r}"
        )
    return _join(path, _language(trained[0]) if trained else _by_split(files), files)


def _part_of_language(path: Path) -> tuple[str, str] | None:
    """The language and the part of it that a file is in MLRegTest: a table without names."""
    if (part := _PART.fullmatch(path.name)) is None or not path.is_file():
        return None
    # The name alone does not tell: the first line must end in a label of MLRegTest.
    last = next(lines_of(path), "").rstrip("\r\n").rpartition("\t")[2]
    return (part[1], part[2]) if last in ("TRUE", "FALSE") else None


def _language(path: Path) -> list[_Part]:
    """All parts of the language of MLRegTest whose training strings a file has."""
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


def _labeled_lines(path: Path) -> RawRows:
    cells = ((place, line.partition("\t")) for place, line in _number_lines(path))
    rows = (RawRow(place, tokens, label) for place, (tokens, _, label) in cells)
    return RawRows(("tokens", "label"), rows, spaced=False)


def _number_lines(path: Path) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(lines_of(path), 1):
        yield f"line {number}", line.rstrip("\r\n")


def _splits_of(file: Path) -> set[str]:
    """The splits that a name has the words of."""
    words = re.findall("[a-z]+", file.name.lower())
    return {SPLIT_NAMES[x] for x in words if x in SPLIT_NAMES}


def _is_table(file: Path) -> bool:
    return kind_of(file) in READERS and file.is_file()


def _by_split(files: Sequence[Path]) -> list[_Part]:
    """Tables whose names have the word for a split, such as `train.csv` and `mine_dev.tsv`, and
    pairs of texts, such as `train_src.txt` and `train_tgt.txt`.
    """
    by_split: dict[str, list[Path]] = {}
    for file in filter(_is_table, files):
        source = re.sub(r"_tgt\.txt.*", "_src.txt", file.name)
        # A target's file is read along with its source.
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


def _join(folder: Path, parts: Sequence[_Part], files: Sequence[Path]) -> RawRows:
    """The rows of all parts, which have the same columns.

    Args:
        folder: from which their files are named.
        parts: the files, one a split or several.
        files: what is beside them; of what is not read, that which may have been meant is told.
    """
    raws: list[RawRows] = []
    for part in parts:
        with refused_in(f"{part.file.relative_to(folder)}, "):
            raws.append(_file(part.file) if part.border is None else _labeled_lines(part.file))
    for (one, has), (other, lacks) in product(zip(parts, raws, strict=True), repeat=2):
        if more := sorted({*has.columns} - {*lacks.columns} - {"split"}):
            raise DatasetError(f"{one.file.name} has {more[0]!r}, but {other.file.name} does not")
    left_out = list[str]()

    def rows() -> Iterator[RawRow]:
        for (file, split, border), raw in zip(parts, raws, strict=True):
            name, is_empty = str(file.relative_to(folder)), True
            with refused_in(f"{name}, "):
                for row in raw.rows:
                    is_empty = False
                    with refused_in(f"{row.place}: "):
                        if row.split is not None and split_of(row.split) != split:
                            raise DatasetError(
                                f"split is {row.split!r:.60}, but the file is of {split!r}"
                            )
                    place = f"{name}, {row.place}"
                    yield row._replace(place=place, split=split, border=border)
                if is_empty:
                    raise DatasetError("no rows")
            left_out.extend(x for x in raw.left_out if x not in left_out)

    read = {path for part in parts for path in (part.file, part.file.parent)}
    rest = [x for x in files if x not in read and (_is_table(x) or _splits_of(x))]
    unread = [x.name for x in rest if not re.search(r"_tgt\.txt|^labels\.txt", x.name)]
    columns = tuple(dict.fromkeys((*raws[0].columns, "split")))
    return RawRows(columns, rows(), left_out, raws[0].spaced, unread)
