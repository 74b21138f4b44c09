"""Rows as files hold them, with the line of each: CSV, TSV, JSON Lines, Parquet, and folders."""

import csv
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from seqcls.errors import DatasetError
from seqcls.spelling import nearest
from sweeps.datasets.parquet import open_parquet, parquet_rows

MAX_BYTES = 4_000_000_000
"""A larger file is refused before it is read."""

MAX_LINE = 1_000_000
"""Bytes of one line at most."""

COLUMNS = ("tokens", "label", "target", "split", "id")
SPELLED = {"input": "tokens", "string": "tokens"}
"""What other programs call a column."""

FLARE = {
    "main.tok": "train",
    "validation-short": "validation",
    "validation-long": "validation",
    "test": "test",
}
"""The parts of a folder as the benchmark FLaRe lays it out, by their split."""


class RawRow(NamedTuple):
    """One row, nothing of it checked."""

    place: str
    """Such as `line 7`."""
    tokens: Any
    label: Any = None
    target: Any = None
    split: Any = None
    id: Any = None


@dataclass(frozen=True)
class RawRows:
    """What a file says of itself, and its rows."""

    columns: tuple[str, ...]
    """Those of `COLUMNS` that it has."""
    rows: Iterator[RawRow]
    left_out: tuple[str, ...] = ()
    """Columns that mean nothing here."""
    spaced: bool | None = None
    """Whether tokens have spaces between; None where the texts have to say it."""


def raw_rows(path: Path) -> RawRows:
    """The rows of a file or folder.

    Raises:
        DatasetError: it is none that can be read; of a row, when it is reached.
    """
    try:
        if path.is_dir():
            return _folder(path)
        if not path.is_file():
            raise DatasetError(f"no file {str(path)!r}; expected one of {', '.join(READERS)}")
        if path.stat().st_size > MAX_BYTES:
            raise DatasetError(f"more than {MAX_BYTES:,} bytes; take fewer rows")
        if path.name.endswith("_src.txt"):
            return _paired(path)
        reader = READERS.get(path.suffix.lower())
        if reader is None:
            raise DatasetError(
                f"a name that ends in {path.suffix!r}, expected one of {', '.join(READERS)}"
            )
        return reader(path)
    except OSError as error:
        raise DatasetError(f"cannot be read: {error.strerror or error}") from None


def lines_of(path: Path) -> Iterator[str]:
    """The lines of a text, each with its end."""
    with path.open("rb") as file:
        number = 0
        while line := file.readline(MAX_LINE + 1):
            number += 1
            if len(line) > MAX_LINE:
                raise DatasetError(f"line {number} has more than {MAX_LINE:,} bytes")
            if b"\0" in line:
                raise DatasetError(f"line {number} has a zero byte: it is no text in UTF-8")
            try:
                yield line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise DatasetError(
                    f"line {number} is no text in UTF-8 (byte {error.start + 1}); save it as UTF-8"
                ) from None


def _named(names: Sequence[Any]) -> tuple[list[str | None], tuple[str, ...]]:
    """Each column's name here, None where it has none; and the names that mean nothing."""
    texts = [str(name).strip().lower() for name in names]
    known = [SPELLED.get(text, text) for text in texts]
    known_here = [name if name in COLUMNS else None for name in known]
    there = [name for name in known_here if name]
    if twice := sorted({name for name in there if there.count(name) > 1}):
        raise DatasetError(f"line 1: two columns are {twice[0]!r}; remove one")
    _check_columns(there, [str(name) for name in names])
    left_out = tuple(
        str(name) for name, here in zip(names, known_here, strict=True) if here is None
    )
    return known_here, left_out


def _check_columns(there: Sequence[str], names: Sequence[str]) -> None:
    shown = ", ".join(names)[:100]
    if "tokens" not in there:
        said = nearest("tokens", list(names)[:50])
        raise DatasetError(f"columns {shown!r}: expected one named 'tokens' ({said})")
    if ("label" in there) == ("target" in there):
        raise DatasetError(f"columns {shown!r}: expected either 'label' or 'target' beside tokens")


def _separated(separator: str) -> Callable[[Path], RawRows]:
    def read(path: Path) -> RawRows:
        lines = separated_lines(path, separator)
        _, first = next(lines, ("", []))
        if not first:
            raise DatasetError("line 1 is empty, expected names of columns, such as tokens,label")
        names, left_out = _named(first)

        def rows() -> Iterator[RawRow]:
            for place, cells in lines:
                if cells:
                    pairs = zip(names, full_row(place, cells, len(names)), strict=True)
                    yield RawRow(place, **{name: cell for name, cell in pairs if name})

        return RawRows(tuple(name for name in names if name), rows(), left_out)

    return read


def separated_lines(path: Path, separator: str) -> Iterator[tuple[str, list[str]]]:
    """The cells of each line of a CSV or TSV file; none of an empty line."""
    reader = csv.reader(lines_of(path), delimiter=separator, strict=True)
    try:
        for cells in reader:
            yield f"line {reader.line_num}", cells
    except csv.Error as error:
        raise DatasetError(f"line {reader.line_num}: {error}") from None


def full_row(place: str, cells: list[str], columns: int) -> list[str]:
    """A line's cells, where it has one for each column."""
    if len(cells) != columns:
        raise DatasetError(f"{place} has {len(cells):,} cells, expected {columns}")
    return cells


def _json_lines(path: Path) -> RawRows:
    lines = ((number, line) for number, line in enumerate(lines_of(path), 1) if line.strip())
    first = next(lines, None)
    if first is None:
        raise DatasetError("no rows")
    columns, left_out = _named(list(json_object(*first)))
    here = tuple(name for name in columns if name)

    def rows() -> Iterator[RawRow]:
        for number, line in chain([first], lines):
            given = {SPELLED.get(k, k): v for k, v in json_object(number, line).items()}
            fields = {name: given[name] for name in here if name in given}
            if "tokens" not in fields:
                raise DatasetError(f"line {number} has no 'tokens'")
            other = "target" if "label" in here else "label"
            if other in given:
                raise DatasetError(f"line {number} has {other!r}, but line {first[0]} has not")
            yield RawRow(f"line {number}", **fields)

    return RawRows(here, rows(), left_out)


def json_object(number: int, line: str) -> Mapping[str, Any]:
    """The object in a line of JSON Lines; its names in lowercase."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DatasetError(f"line {number} is no JSON: {str(error)[:100]}") from None
    if not isinstance(record, dict):
        raise DatasetError(f'line {number} is no JSON object, such as {{"tokens": "ab", ...}}')
    return {key.strip().lower(): value for key, value in record.items()}


def _parquet(path: Path) -> RawRows:
    file = open_parquet(path)
    columns, left_out = _named(file.schema_arrow.names)
    pairs = zip(file.schema_arrow.names, columns, strict=True)
    wanted = {source: name for source, name in pairs if name}
    rows = (
        RawRow(f"row {number}", **dict(zip(wanted.values(), cells, strict=True)))
        for number, cells in parquet_rows(file, list(wanted))
    )
    return RawRows(tuple(wanted.values()), rows, left_out)


def _paired(path: Path) -> RawRows:
    """Inputs in `NAME_src.txt`, their targets line by line in `NAME_tgt.txt`."""
    other = path.with_name(path.name.removesuffix("_src.txt") + "_tgt.txt")
    if not other.is_file():
        raise DatasetError(f"no {other.name!r} beside it, with the targets")
    return RawRows(("tokens", "target"), _pairs(path, other, "target"))


def _pairs(path: Path, other: Path, column: str, **more: str) -> Iterator[RawRow]:
    for number, pair in enumerate(zip_longest(lines_of(path), lines_of(other)), 1):
        if None in pair:
            short = other if pair[1] is None else path
            raise DatasetError(f"{short.name} ends before line {number}, which the other has")
        tokens, answer = (line.rstrip("\r\n") for line in pair)
        place = f"{path.parent.name}/{path.name}, line {number}"
        yield RawRow(place, tokens, **{column: answer}, **more)


def _folder(path: Path) -> RawRows:
    """FLaRe's: `main.tok` and `labels.txt`, and folders of these for the other splits; or pairs."""
    parts = [(path, "train")] if (path / "main.tok").is_file() else []
    parts += [(path / x, FLARE[x]) for x in list(FLARE)[1:] if (path / x / "main.tok").is_file()]
    if parts:
        return RawRows(("tokens", "label", "split"), _flare(parts), spaced=True)
    sources = sorted(path.glob("*_src.txt"))
    by_split = {split: x for x in sources for split in _split_names(x.name)}
    if not sources or len(by_split) != len(sources):
        raise DatasetError(
            "a folder without main.tok (as FLaRe's have), and without train_src.txt and "
            "train_tgt.txt, expected one of these"
        )

    def rows() -> Iterator[RawRow]:
        for split, source in by_split.items():
            for row in _paired(source).rows:
                yield row._replace(split=split)

    return RawRows(("tokens", "target", "split"), rows())


def _split_names(name: str) -> Iterator[str]:
    splits = [split for key, split in SPLIT_NAMES.items() if name.startswith(key)]
    yield from splits[:1]


SPLIT_NAMES = {
    "train": "train",
    "val": "validation",
    "valid": "validation",
    "validation": "validation",
    "dev": "validation",
    "test": "test",
}
"""What a split may be called in a file."""


def _flare(parts: Sequence[tuple[Path, str]]) -> Iterator[RawRow]:
    for folder, split in parts:
        labels = folder / "labels.txt"
        if not labels.is_file():
            raise DatasetError(f"no labels.txt in {folder.name!r}, beside its main.tok")
        yield from _pairs(folder / "main.tok", labels, "label", split=split)


READERS: dict[str, Callable[[Path], RawRows]] = {
    ".csv": _separated(","),
    ".tsv": _separated("\t"),
    ".jsonl": _json_lines,
    ".parquet": _parquet,
}
