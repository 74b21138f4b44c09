"""Reading tables: CSV, TSV, JSON Lines, JSON and Parquet, packed or not.

Every cell is read as text, or with its type in JSON and Parquet: nothing is guessed, since `007`,
`1.10` and `true` may be tokens. CSV files differ in separators, line ends and quotation marks:
unambiguous files are read, ambiguous ones are refused, with the line.
"""

import bz2
import csv
import gzip
import io
import json
import lzma
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

from seqcls.errors import DatasetError
from seqcls.imported import PREFIX
from seqcls.strings.datasets import MAX_ROWS
from seqcls.text import TwiceError, count, refuse_duplicates

MAX_BYTES = 4_000_000_000
"""The maximum size of a file."""

MAX_COLUMNS = 250
"""The maximum of names in lines of JSON, if not all have the same."""

MAX_CELL = 10_000_000
"""The maximum of characters in a cell: 10,000 tokens of 40 characters, escaped."""

COMPRESSED: Mapping[str, Callable[[Path, str], Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
}

Row = tuple[str, dict[str, Any]]
"""The place of a row, such as `line 7`, and its cells by the names of their columns."""


@dataclass(frozen=True)
class Table:
    """Unchecked rows by column."""

    places: list[str]
    """The place of each row, such as `line 7`."""
    columns: dict[str, list[Any]]
    """Cells by the names of their columns; None where a row has no such cell."""
    damage: str
    """The error that ended the reading before the last row; empty without one."""
    left_out: Sequence[str] = ()
    """Columns that are ignored."""
    spaced: bool | None = None
    """True if tokens are separated by spaces; None if the texts decide it."""
    unread: Sequence[str] = ()
    """Files beside those that were read, which belong to no split."""

    @classmethod
    def from_rows(cls, rows: Iterable[Row]) -> "Table":
        """The table of these rows, up to one that cannot be read."""
        places, columns, damage = list[str](), dict[str, list[Any]](), ""
        try:
            # One row more than allowed shows that there are too many; the rest is not read.
            for place, cells in islice(rows, MAX_ROWS + 1):
                if cells.keys() != columns.keys():
                    columns |= {x: [None] * len(places) for x in cells if x not in columns}
                    if len(columns) > max(len(cells), MAX_COLUMNS):
                        raise DatasetError(f"{place}: more than {MAX_COLUMNS} names of columns")
                for name, column in columns.items():
                    column.append(cells.get(name))
                places.append(place)
            if not 0 < len(places) <= MAX_ROWS:
                more = f"{len(places):,} rows, expected 1 to {MAX_ROWS:,}"
                raise DatasetError(more if places else "no rows")
        except DatasetError as error:
            damage = str(error)
        return cls(places, columns, damage)


@contextmanager
def refused_in(what: str) -> Iterator[None]:
    """Prefixes errors in the block with a text such as `line 7: `."""
    try:
        yield
    except DatasetError as error:
        raise DatasetError(f"{what}{error}") from None


def ending_of(name: str) -> str:
    """The ending of a name in lowercase; for a compressed file both, such as `.csv.gz`."""
    suffixes = Path(name.lower()).suffixes
    return "".join(suffixes[-2:] if suffixes and suffixes[-1] in COMPRESSED else suffixes[-1:])


def kind_of(path: Path) -> str:
    """The ending of a name before that of a compression, such as `.csv`."""
    return re.sub(r"(?<=.)(\.gz|\.bz2|\.xz)$", "", ending_of(path.name))


def rows_of(path: Path) -> Iterator[Row]:
    """Reads the rows of one file, by the ending of its name.

    Names of columns are in lowercase, except those of settings; the index of a frame, which pandas
    writes too, is left out.

    Raises:
        DatasetError: it cannot be read; for a row, when it is reached.
    """
    check_file(path)
    if (reader := READERS.get(kind_of(path))) is None:
        raise DatasetError(
            f"can't read {ending_of(path.name) or 'unnamed'} files; expected one of {EXPECTED}, "
            "optionally with .gz, .bz2 or .xz; unpack archives, and save sheets as CSV"
        )
    return reader(path)


def check_file(path: Path, most: int = MAX_BYTES) -> None:
    """Refuses a path that is no file, or a file of more than so many bytes."""
    if not path.is_file():
        is_folder = f"is a folder; expected a file of {EXPECTED}"
        what = is_folder if path.is_dir() else "does not exist"
        raise DatasetError(f"{str(path)!r:.200} {what}")
    if path.stat().st_size > most:
        raise DatasetError(f"more than {most:,} bytes; take fewer rows")


@lru_cache(1000)
def columns_of(*names: str) -> Sequence[tuple[int, str]]:
    """The columns of a table as (index, normalized name).

    Raises:
        DatasetError: two have the same name.
    """
    known: dict[str, str] = {}
    columns = []
    # Spreadsheets may have blanks around names, and any case.
    for place, name in enumerate(map(str.strip, names)):
        lower = name.lower()
        lower = PREFIX + name[len(PREFIX) :] if lower.startswith(PREFIX) else lower
        if re.fullmatch(r"|unnamed: \d+|__index_level_\d+__", lower):
            continue
        if (other := known.setdefault(lower, name)) is not name:
            raise DatasetError(f"two columns are {lower!r:.60}: {other!r:.60} and {name!r:.60}")
        columns.append((place, lower))
    return columns


# Texts, packed or not.


@contextmanager
def open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """Opens a file for reading, and unpacks it if its name has the ending of a compression."""
    try:
        with COMPRESSED.get(path.suffix.lower(), Path.open)(path, "rb") as file:
            yield file
    except (EOFError, lzma.LZMAError, zlib.error, OSError) as error:
        why = getattr(error, "strerror", None) or str(error)[:80]
        hint = f"; it is damaged, or not a {path.suffix.lower()} file"
        raise DatasetError(f"cannot be read: {why}{hint}") from None


def lines_of(path: Path) -> Iterator[str]:
    """Yields the lines of a text with their ends: LF or CRLF, or CR if the first line has it."""
    no_text = re.compile("[\0\udc80-\udcff]")
    with open_bytes(path) as file:
        # A CR within the first line means that lines end with CR, as on old Macs.
        end = None if b"\r" in file.readline().rstrip(b"\r\n") else "\n"
        file.seek(0)
        # Invalid UTF-8 becomes surrogates, which no text has, so that its line is known.
        text = io.TextIOWrapper(file, "utf-8-sig", "surrogateescape", end)
        for number, line in enumerate(text, 1):
            if ("\0" in line or not line.isascii()) and (wrong := no_text.search(line)):
                raise DatasetError(
                    f"line {number} is not UTF-8 text (character {wrong.start() + 1}); save it "
                    "as such, without zero bytes, and unpack what is packed"
                )
            yield line


def numbered_lines(path: Path) -> Iterator[tuple[str, str]]:
    """Yields the lines of a text without their ends, each with its place, such as `line 7`."""
    for number, line in enumerate(lines_of(path), 1):
        yield f"line {number}", line.rstrip("\r\n")


def whole_content(path: Path) -> bytes:
    """All bytes of a file, unpacked."""
    with open_bytes(path) as file:
        return file.read()


# CSV and TSV.


def _read_separated(separator: str, path: Path) -> Iterator[Row]:
    """Yields the rows of a CSV or TSV file.

    Args:
        separator: the separator by the name's ending. It is replaced by another one that is in the
            first line instead, or is declared by a first line `sep=;`, as in Excel.
        path: the file.
    """
    lines, skipped, in_quotes = lines_of(path), 0, re.compile('"(?:[^"]|"")*"').fullmatch
    header = next(lines, "")
    if declared := re.fullmatch(r"sep=(.)", header.strip("\r\n"), re.IGNORECASE):
        separator, skipped, header = declared[1], 1, next(lines, "")
    elif separator not in header.strip("\r\n"):
        separator = max(f"{separator},;\t|", key=header.strip("\r\n").count)
    # Between tabs, quotation marks are tokens, unless the header is quoted.
    quoted = separator != "\t" or all(map(in_quotes, header.strip("\r\n").split("\t")))
    # The limit is global to the process, and never lowered.
    csv.field_size_limit(max(csv.field_size_limit(), MAX_CELL))
    # A space after a separator is no part of a cell, and may precede a quotation mark.
    # strict refuses a stray quotation mark, which would be read somehow by default.
    how: dict[str, Any] = {"delimiter": separator, "strict": True, "skipinitialspace": quoted}
    how["quoting"] = csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
    reader, start = csv.reader(chain([header], lines), **how), 1
    try:
        names = next(reader, [])
        start = reader.line_num + 1
        with refused_in("line 1: "):
            columns = columns_of(*names)
        for cells in reader:
            place, start = f"line {reader.line_num + skipped}", reader.line_num + 1
            if cells and len(cells) != len(names):
                raise DatasetError(f"{place} has {count(len(cells), 'cell')}, not {len(names)}")
            if not quoted and (cell := next(filter(in_quotes, cells), None)):
                raise DatasetError(
                    f"{place}: {cell!r:.60} stands in quotation marks, which between tabs are "
                    "tokens; remove them, or quote the names in line 1 too where they are none"
                )
            if cells:
                yield place, {name: cells[number] for number, name in columns}
    except csv.Error as error:
        raise DatasetError(
            f"line {start + skipped} is not CSV ({str(error).partition(' - ')[0]}); close "
            "quotation marks, write those inside a quoted cell twice, and end all lines with LF"
        ) from None


# JSON.


def load_json(what: str, text: str | bytes) -> Any:
    """Parses a text as JSON.

    Args:
        what: the name of the text in errors.

    Raises:
        DatasetError: it is not JSON, or an object in it has a name twice.
    """
    try:
        text = text.decode("utf-8-sig") if isinstance(text, bytes) else text
        return json.loads(text, object_pairs_hook=refuse_duplicates)
    except TwiceError as error:
        raise DatasetError(f"{what} has {error}") from None
    except (ValueError, RecursionError) as error:
        raise DatasetError(f"{what} is not JSON: {str(error)[:100]}") from None


def _read_json(path: Path) -> Iterator[Row]:
    """Yields objects, one a line, or from an array in a file with the ending `.json`."""
    objects: Iterable[tuple[str, Any]] = (
        (place, load_json(place, line)) for place, line in numbered_lines(path) if line.strip()
    )
    # Many programs also give lines of JSON this ending.
    first = next(filter(None, map(str.strip, lines_of(path))), "")
    if kind_of(path) == ".json" and first.startswith("["):
        rows = load_json("the file", whole_content(path))
        objects = ((f"object {number}", row) for number, row in enumerate(rows, 1))
    for place, record in objects:
        if not isinstance(record, dict):
            raise DatasetError(
                f'{place} is not a JSON object, such as {{"tokens": "ab"}}, but {record!r:.60}; '
                "end the name of a file that is one array in .json"
            )
        cells = list(record.values())
        with refused_in(f"{place}: "):
            columns = columns_of(*record)
        yield place, {name: cells[number] for number, name in columns}


# Parquet.


def _read_parquet(path: Path) -> Iterator[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    packed = path.suffix.lower() in COMPRESSED
    try:
        file = pq.ParquetFile(pa.py_buffer(whole_content(path)) if packed else str(path))
        columns, start = columns_of(*file.schema_arrow.names), 1
        for batch in file.iter_batches():
            cells = [(name, batch.column(place).to_pylist()) for place, name in columns]
            for number in range(batch.num_rows):
                yield f"row {start + number}", {name: column[number] for name, column in cells}
            start += batch.num_rows
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DatasetError(f"not a Parquet file: {str(error).splitlines()[0][:100]}") from None


READERS: Mapping[str, Callable[[Path], Iterator[Row]]] = {
    ".csv": partial(_read_separated, ","),
    **dict.fromkeys((".tsv", ".txt"), partial(_read_separated, "\t")),
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), _read_json),
    ".parquet": _read_parquet,
}
"""Readers by the ending of a name, before that of a compression."""

AUTOMATA = (".att", ".dot", ".gv")
"""Endings of automata for `sweeps.datasets.automata`; a `.json` file may be one, too."""

EXPECTED = ", ".join((*READERS, *AUTOMATA))

ENDINGS = (*READERS, *AUTOMATA, *COMPRESSED)
"""All known endings of files."""
