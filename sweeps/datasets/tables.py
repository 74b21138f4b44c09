"""Tables as people and programs write them: CSV, TSV, JSON Lines, JSON and Parquet, packed or not.

Every cell is read as text, or as what JSON and Parquet say it is: nothing is guessed, since `007`,
`1.10` and `true` may be tokens. Files that are called CSV differ in separators, line ends and
quotation marks: what can mean one thing only is read, what can mean two is refused, with its line.
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
"""A larger file is refused before it is read."""

MAX_COLUMNS = 250
"""Names that lines of JSON may have, where not all have the same."""

MAX_CELL = 10_000_000
"""Characters of a cell between separators at most: 10,000 tokens of 40 characters, escaped."""

COMPRESSED: Mapping[str, Callable[[Path, str], Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
}

Row = tuple[str, dict[str, Any]]
"""Where a row stands, such as `line 7`, and its cells by the names of their columns."""


@dataclass(frozen=True)
class Table:
    """Rows by column; nothing of them is checked."""

    places: list[str]
    """Where each row stands, such as `line 7`."""
    columns: dict[str, list[Any]]
    """Cells by the names of their columns; None where a row has no such cell."""
    damage: str
    """What ended the reading before the last row; empty where nothing did."""
    left_out: Sequence[str] = ()
    """Columns that mean nothing here."""
    spaced: bool | None = None
    """Whether tokens have spaces between; None where the texts have to say it."""
    unread: Sequence[str] = ()
    """Files that are beside those that were read, and belong to no split."""

    @classmethod
    def from_rows(cls, rows: Iterable[Row]) -> "Table":
        """The table of these rows, up to one that cannot be read."""
        places, columns, damage = list[str](), dict[str, list[Any]](), ""
        try:
            # One row more than allowed tells that there are too many; the rest is not read.
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
    """What is refused within begins with this, such as `line 7: `."""
    try:
        yield
    except DatasetError as error:
        raise DatasetError(f"{what}{error}") from None


def ending_of(name: str) -> str:
    """What a name ends in, in lowercase; of a compressed file both, such as `.csv.gz`."""
    suffixes = Path(name.lower()).suffixes
    return "".join(suffixes[-2:] if suffixes and suffixes[-1] in COMPRESSED else suffixes[-1:])


def kind_of(path: Path) -> str:
    """What a name ends in before the ending of a compression, such as `.csv`."""
    return re.sub(r"(?<=.)(\.gz|\.bz2|\.xz)$", "", ending_of(path.name))


def rows_of(path: Path) -> Iterator[Row]:
    """The rows of one file, read as the ending of its name says.

    Names of columns are in lowercase, but those of settings; the index of a frame, which pandas
    writes beside it, is no column.

    Raises:
        DatasetError: it is none that can be read; of a row, when it is reached.
    """
    check_file(path)
    if (reader := READERS.get(kind_of(path))) is None:
        raise DatasetError(
            f"can't read {ending_of(path.name) or 'unnamed'} files; expected one of {EXPECTED}, "
            "optionally with .gz, .bz2 or .xz; unpack archives, and save sheets as CSV"
        )
    return reader(path)


def check_file(path: Path, most: int = MAX_BYTES) -> None:
    """Refuses what is no file, or one of more bytes than these."""
    if not path.is_file():
        is_folder = f"is a folder; expected a file of {EXPECTED}"
        what = is_folder if path.is_dir() else "does not exist"
        raise DatasetError(f"{str(path)!r:.200} {what}")
    if path.stat().st_size > most:
        raise DatasetError(f"more than {most:,} bytes; take fewer rows")


@lru_cache(1000)
def columns_of(*names: str) -> Sequence[tuple[int, str]]:
    """The columns of a table, each with its place.

    Raises:
        DatasetError: two are called the same.
    """
    known: dict[str, str] = {}
    columns = []
    # Spreadsheets leave blanks around names, and write them in any case.
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
    """A file to be read, unpacked where its name says that it is compressed."""
    try:
        with COMPRESSED.get(path.suffix.lower(), Path.open)(path, "rb") as file:
            yield file
    except (EOFError, lzma.LZMAError, zlib.error, OSError) as error:
        why = getattr(error, "strerror", None) or str(error)[:80]
        hint = f"; it is damaged, or not a {path.suffix.lower()} file"
        raise DatasetError(f"cannot be read: {why}{hint}") from None


def lines_of(path: Path) -> Iterator[str]:
    """The lines of a text, each with its end: LF or CRLF or, where the first one has it, CR."""
    no_text = re.compile("[\0\udc80-\udcff]")
    with open_bytes(path) as file:
        # A CR within the first line means that lines end with it, as on old Macs.
        end = None if b"\r" in file.readline().rstrip(b"\r\n") else "\n"
        file.seek(0)
        # Bytes that are no UTF-8 become characters that no text has, so that their line is known.
        text = io.TextIOWrapper(file, "utf-8-sig", "surrogateescape", end)
        for number, line in enumerate(text, 1):
            if ("\0" in line or not line.isascii()) and (wrong := no_text.search(line)):
                raise DatasetError(
                    f"line {number} is not UTF-8 text (character {wrong.start() + 1}); save it "
                    "as such, without zero bytes, and unpack what is packed"
                )
            yield line


def numbered_lines(path: Path) -> Iterator[tuple[str, str]]:
    """The lines of a text without their ends, each with its place, such as `line 7`."""
    for number, line in enumerate(lines_of(path), 1):
        yield f"line {number}", line.rstrip("\r\n")


def whole_content(path: Path) -> bytes:
    """All bytes of a file, unpacked."""
    with open_bytes(path) as file:
        return file.read()


# CSV and TSV.


def _read_separated(separator: str, path: Path) -> Iterator[Row]:
    """The rows of a CSV or TSV file.

    Args:
        separator: what its ending says. Where it is not in the first line, but another is, that one
            separates; and so does the one of a first line `sep=;`, as Excel reads it.
        path: the file.
    """
    lines, skipped, in_quotes = lines_of(path), 0, re.compile('"(?:[^"]|"")*"').fullmatch
    header = next(lines, "")
    if declared := re.fullmatch(r"sep=(.)", header.strip("\r\n"), re.IGNORECASE):
        separator, skipped, header = declared[1], 1, next(lines, "")
    elif separator not in header.strip("\r\n"):
        separator = max(f"{separator},;\t|", key=header.strip("\r\n").count)
    # Between tabs quotation marks are not needed, and are tokens, unless the header has them.
    quoted = separator != "\t" or all(map(in_quotes, header.strip("\r\n").split("\t")))
    # The limit is one of the process: whoever raised it may need it so.
    csv.field_size_limit(max(csv.field_size_limit(), MAX_CELL))
    # A space behind a separator is no part of a cell, and a quotation mark behind it opens one.
    # strict refuses a stray quotation mark, of which the default would make something.
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
    """What a text says as JSON.

    Raises:
        DatasetError: it is none, or an object in it has a name twice.
    """
    try:
        text = text.decode("utf-8-sig") if isinstance(text, bytes) else text
        return json.loads(text, object_pairs_hook=refuse_duplicates)
    except TwiceError as error:
        raise DatasetError(f"{what} has {error}") from None
    except (ValueError, RecursionError) as error:
        raise DatasetError(f"{what} is not JSON: {str(error)[:100]}") from None


def _read_json(path: Path) -> Iterator[Row]:
    """Objects, one a line, or, of a file called `.json`, in an array."""
    objects: Iterable[tuple[str, Any]] = (
        (place, load_json(place, line)) for place, line in numbered_lines(path) if line.strip()
    )
    # Many programs call lines of JSON so too.
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
"""By the ending of a name, before that of a compression."""

AUTOMATA = (".att", ".dot", ".gv")
"""What names of automata end in, which `sweeps.datasets.automata` reads; `.json` may be one too."""

EXPECTED = ", ".join((*READERS, *AUTOMATA))

ENDINGS = (*READERS, *AUTOMATA, *COMPRESSED)
"""What names of files may end in."""
