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
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from seqcls.errors import DatasetError
from seqcls.imported import PREFIX
from seqcls.text import TwiceError, count, each_once

if TYPE_CHECKING:
    import pyarrow as pa

MAX_BYTES = 4_000_000_000
"""A larger file is refused before it is read; so is what a compressed one unpacks to."""

MAX_LINE = 10_000_000
"""Characters of one line at most: 10,000 tokens of 40 characters, each escaped in JSON."""

MAX_JSON = 500_000_000
"""Bytes of a JSON array at most, which is read as a whole."""

MAX_GROUP = 1_000_000_000
"""Bytes of one row group of Parquet, and of the rows that are read at once, unpacked."""

MAX_ITEMS = 400_000_000
"""Cells of one row group, or items of its lists."""

ROWS_AT_ONCE = 10_000

COMPRESSED: dict[str, Callable[[Path, str], Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
}

SETTINGS = "config"
"""The column of predictions that has objects: the settings of a model."""

_FIRST_BYTES = {
    b"\x1f\x8b": "compressed by gzip: end its name in .gz",
    b"BZh": "compressed by bzip2: end its name in .bz2",
    b"\xfd7zXZ\0": "compressed by xz: end its name in .xz",
    b"PK\x03\x04": "a zip archive, as .xlsx files are too: unpack it, or save it as CSV",
    b"PAR1": "a Parquet file: end its name in .parquet",
}
"""What a file is that is no text, by how it begins."""

_ADVICE = {
    **dict.fromkeys((".zip", ".7z", ".rar", ".tar", ".tgz", ".zst"), "unpack it first"),
    **dict.fromkeys((".xlsx", ".xls", ".ods"), "save its sheet as CSV"),
    **dict.fromkeys((".arrow", ".feather", ".pkl", ".npz", ".npy"), "write it as Parquet or CSV"),
    ".fst": "write it as text, by OpenFst's fstprint, and end that name in .att",
}
"""What to do with files that are none of rows, by their ending."""

_OF_CSV = {
    "end of data": "a quotation mark opens a cell and none closes it",
    "expected after": "text follows a quotation mark that closes a cell; inside of a quoted cell "
    "write quotation marks twice",
    "new-line": "a carriage return (CR) stands inside of a line; end all lines alike, with LF",
    "field larger": f"a cell of more than {MAX_LINE:,} characters; is a quotation mark not closed?",
}
"""What the reader of CSV refuses, by its words, in words for those who wrote the file."""

Row = tuple[str, dict[str, Any]]
"""Where a row stands, such as `line 7`, and its cells by the names of their columns."""


class Table(NamedTuple):
    """The rows of one file by its own names of columns, whatever they are."""

    heading: str
    """Where the names stand, such as `line 1`."""
    names: Sequence[str]
    """In the order of the file; of JSON those of the first row."""
    rows: Callable[[Sequence[str]], Iterator[Row]]
    """Each with its cells in these columns, or in more; once."""


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


def table_of(path: Path) -> Table:
    """The rows of one file, read as the ending of its name says.

    Raises:
        DatasetError: it is none that can be read; of a row, when it is reached.
    """
    check_file(path, MAX_BYTES, "take fewer rows")
    if (reader := READERS.get(kind_of(path))) is None:
        ending = ending_of(path.name)
        advice = _ADVICE.get(Path(ending).suffix or ending, "only .gz, .bz2 or .xz may follow it")
        raise DatasetError(f"a name that ends in {ending!r}, expected one of {EXPECTED}; {advice}")
    return reader(path)


def check_file(path: Path, most: int, advice: str) -> None:
    """Refuses what is no file, or one of more bytes than these."""
    with _refused_reading(path):
        if path.is_dir():
            raise DatasetError(f"{str(path)!r:.200} is a folder, expected a file")
        if not path.is_file():
            raise DatasetError(f"no file {str(path)!r:.200}; expected one of {EXPECTED}")
        if path.stat().st_size > most:
            raise DatasetError(f"more than {most:,} bytes; {advice}")


def is_index(name: str) -> bool:
    """Whether a column is the index of a frame, which pandas writes beside it."""
    return re.fullmatch(r"|unnamed: \d+|__index_level_\d+__", name.strip().lower()) is not None


# Texts, packed or not.


@contextmanager
def _refused_reading(path: Path) -> Iterator[None]:
    try:
        yield
    except (EOFError, lzma.LZMAError, zlib.error, OSError) as error:
        suffix, number = path.suffix.lower(), getattr(error, "errno", None)
        # The libraries raise an OSError without a number where bytes are not what they unpack.
        if suffix in COMPRESSED and number is None:
            raise DatasetError(
                f"cannot be unpacked as its name, which ends in {suffix!r}, says: "
                f"{str(error)[:80]}; it is damaged, or called wrongly"
            ) from None
        said = getattr(error, "strerror", None) or error
        raise DatasetError(f"cannot be read: {said}") from None


@contextmanager
def open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """A file to be read, unpacked where its name says that it is compressed."""
    with _refused_reading(path), COMPRESSED.get(path.suffix.lower(), Path.open)(path, "rb") as file:
        yield file


def lines_of(path: Path) -> Iterator[str]:
    """The lines of a text, each with its end: LF or CRLF or, where the first one has it, CR."""
    size = 0
    with open_bytes(path) as file:
        first = file.readline(MAX_LINE + 1)
        for start, what in _FIRST_BYTES.items():
            if first.startswith(start):
                raise DatasetError(f"no text: it is {what}")
        file.seek(0)
        end = None if b"\r" in first.rstrip(b"\r\n") else "\n"
        # Bytes that are no UTF-8 become characters that no text has, so that their line is known.
        text = io.TextIOWrapper(file, "utf-8-sig", "surrogateescape", end)
        for number, line in enumerate(iter(lambda: text.readline(MAX_LINE + 1), ""), 1):
            size += len(line)
            if len(line) > MAX_LINE:
                raise DatasetError(f"line {number} has more than {MAX_LINE:,} characters")
            if size > MAX_BYTES:
                raise DatasetError(f"more than {MAX_BYTES:,} characters; take fewer rows")
            if "\0" in line:
                raise DatasetError(f"line {number} has a zero byte: it is no text in UTF-8")
            if not line.isascii() and (wrong := re.search("[\udc80-\udcff]", line)):
                raise DatasetError(
                    f"line {number} is no text in UTF-8 (character {wrong.start() + 1}); save it "
                    "as UTF-8"
                )
            yield line


def whole_content(path: Path, most: int) -> bytes:
    """All bytes of a file, unpacked, of which there may be so many."""
    with open_bytes(path) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise DatasetError(f"more than {most:,} bytes, which are read as a whole; take fewer rows")
    return content


# CSV and TSV.


def separated_lines(path: Path, separator: str) -> Iterator[tuple[str, list[str]]]:
    """The cells of each line of a CSV or TSV file; none of an empty line.

    Args:
        separator: what its ending says. Where it is not in the first line, but another is, that one
            separates; and so does the one of a first line `sep=;`, as Excel reads it.
    """
    lines, skipped = lines_of(path), 0
    header = next(lines, "")
    if said := re.fullmatch(r"sep=(.)", header.strip("\r\n"), re.IGNORECASE):
        separator, skipped, header = said[1], 1, next(lines, "")
    elif separator not in header.strip("\r\n"):
        separator = max(f"{separator},;\t|", key=header.strip("\r\n").count)
    # Between tabs quotation marks are not needed, and are tokens, unless the header has them.
    quoted = separator != "\t" or all(map(_IN_QUOTES, header.strip("\r\n").split("\t")))
    # The limit is one of the process: whoever raised it may need it so.
    csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE))
    quoting: Any = csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
    # A space behind a separator is no part of a cell, and a quotation mark behind it opens one.
    reader = csv.reader(
        chain([header], lines),
        delimiter=separator,
        strict=True,
        quoting=quoting,
        skipinitialspace=quoted,
    )
    start = 1
    try:
        for cells in reader:
            place = f"line {reader.line_num + skipped}"
            if not quoted and (cell := next(filter(_IN_QUOTES, cells), None)):
                raise DatasetError(
                    f"{place}: {cell!r:.60} stands in quotation marks, which between tabs are "
                    "tokens; remove them, or quote the names in line 1 too where they are none, or "
                    "write a token beside them in JSON Lines"
                )
            yield place, cells
            start = reader.line_num + 1
    except csv.Error as error:
        words = next((said for known, said in _OF_CSV.items() if known in str(error)), error)
        raise DatasetError(f"line {start + skipped}: {words}") from None


_IN_QUOTES = re.compile('"(?:[^"]|"")*"').fullmatch


def full_row(place: str, cells: list[str], columns: int) -> list[str]:
    """A line's cells, where it has one for each column."""
    if len(cells) != columns:
        raise DatasetError(
            f"{place} has {count(len(cells), 'cell')}, expected {columns}, as the first line has"
        )
    return cells


def _read_separated(separator: str, path: Path) -> Table:
    lines = separated_lines(path, separator)
    heading, first = next(lines, ("line 1", []))
    names = [name.strip() for name in first]
    if not any(names):
        raise DatasetError(f"{heading} is empty, expected names of columns, such as tokens,label")
    rows = (
        (place, dict(zip(names, full_row(place, cells, len(names)), strict=True)))
        for place, cells in lines
        if cells
    )
    return Table(heading, names, lambda _: rows)


# JSON.


def load_json(what: str, text: str | bytes) -> Any:
    """What a text says as JSON.

    Raises:
        DatasetError: it is none, or an object in it has a name twice.
    """
    try:
        text = text.decode("utf-8-sig") if isinstance(text, bytes) else text
        return json.loads(text, object_pairs_hook=each_once)
    except TwiceError as error:
        raise DatasetError(f"{what} has {error}") from None
    except UnicodeDecodeError as error:
        raise DatasetError(f"no text in UTF-8 (byte {error.start + 1}); save it as UTF-8") from None
    except (ValueError, RecursionError) as error:
        said = "a number has too many digits" if "digits" in str(error) else str(error)[:100]
        raise DatasetError(f"{what} is no JSON: {said}") from None


def lower_names(place: str, record: Mapping[str, Any]) -> dict[str, Any]:
    """A row with the names of its columns in lowercase, but those of settings as they are.

    Raises:
        DatasetError: two are then the same; with `place` named.
    """
    spelled: dict[str, str] = {}
    for name in record:
        plain = name.strip()
        is_setting = plain.lower().startswith(PREFIX)
        lowered = PREFIX + plain[len(PREFIX) :] if is_setting else plain.lower()
        if lowered in spelled:
            raise DatasetError(
                f"{place}: {spelled[lowered]!r:.60} and {name!r:.60} differ in nothing but "
                "capitals and spaces; keep one"
            )
        spelled[lowered] = name
    return {lowered: record[name] for lowered, name in spelled.items()}


def _of_objects(objects: Iterable[tuple[str, Any]]) -> Table:
    def every() -> Iterator[Row]:
        for place, record in objects:
            if not isinstance(record, dict):
                hint = "; end the name of a file that is one array in .json"
                raise DatasetError(
                    f'{place} is no JSON object, such as {{"tokens": "ab"}}, but {record!r:.60}'
                    + hint * (place == "line 1" and isinstance(record, list))
                )
            yield place, lower_names(place, record)

    rows = every()
    if (first := next(rows, None)) is None:
        raise DatasetError("no rows")
    return Table(first[0], list(first[1]), lambda _: chain([first], rows))


def _json_lines(path: Path) -> Table:
    lines = ((f"line {n}", line) for n, line in enumerate(lines_of(path), 1) if line.strip())
    return _of_objects((place, load_json(place, line)) for place, line in lines)


def _json(path: Path) -> Table:
    """An array of objects; or JSON Lines, as many programs call `.json` too."""
    lines = filter(None, map(str.strip, lines_of(path)))
    first, second = next(lines, ""), next(lines, "")
    if first.startswith("{") and first.endswith("}") and second:
        return _json_lines(path)
    whole = load_json("the file", whole_content(path, MAX_JSON)) if first else []
    if not isinstance(whole, list):
        has = f", with {', '.join(map(repr, whole))[:80]}" if isinstance(whole, dict) else ""
        raise DatasetError(
            f"no array{has}; expected objects, one a row, as in "
            '[{"tokens": "ab", "label": 1}, …]: write that array alone, or JSON Lines'
        )
    return _of_objects((f"object {number}", record) for number, record in enumerate(whole, 1))


# Parquet.


@contextmanager
def _refused_in_parquet(what: str) -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DatasetError(f"{what}: {str(error).splitlines()[0][:100]}") from None


def _parquet(path: Path) -> Table:
    """A table whose texts are dictionaries: few bytes can stand for a million long texts."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    packed = path.suffix.lower() in COMPRESSED
    content = pa.py_buffer(whole_content(path, MAX_GROUP)) if packed else str(path)
    with _refused_in_parquet("no Parquet file"):
        schema = pq.ParquetFile(content).metadata.schema
        paths = [schema.column(place).path for place in range(len(schema.names))]
        file = pq.ParquetFile(content, read_dictionary=paths)
        groups = [file.metadata.row_group(place) for place in range(file.metadata.num_row_groups)]
    for group in groups:
        items = max((group.column(i).num_values for i in range(group.num_columns)), default=0)
        if group.total_byte_size > MAX_GROUP or items > MAX_ITEMS:
            raise DatasetError(
                f"a row group of {group.total_byte_size:,} bytes and {items:,} items, expected at "
                f"most {MAX_GROUP:,} and {MAX_ITEMS:,}; write smaller row groups"
            )

    def rows(names: Sequence[str]) -> Iterator[Row]:
        for name in names:
            _check_type(name, file.schema_arrow.field(name).type)
        batches = file.iter_batches(batch_size=ROWS_AT_ONCE, columns=list(names))
        number = 0
        while True:
            with _refused_in_parquet(f"row {number + 1} cannot be read"):
                if (batch := next(batches, None)) is None:
                    return
                if sum(map(_unpacked_bytes, batch.columns)) > MAX_GROUP:
                    raise DatasetError(
                        f"rows {number + 1:,} to {number + len(batch):,} are more than "
                        f"{MAX_GROUP:,} bytes"
                    )
                records = batch.select(list(names)).to_pylist()
            for record in records:
                number += 1
                yield f"row {number}", record

    return Table("the schema", file.schema_arrow.names, rows)


def _check_type(name: str, kind: "pa.DataType") -> None:
    """Refuses a column that holds neither texts nor numbers nor lists of these."""
    import pyarrow as pa

    inner = kind
    while (item := getattr(inner, "value_type", None)) is not None:
        inner = item
    if pa.types.is_struct(inner) and name.strip().lower() == SETTINGS:
        for place in range(inner.num_fields):
            _check_type(SETTINGS, inner.field(place).type)
    elif pa.types.is_nested(inner):
        raise DatasetError(
            f"column {name!r:.60} holds {str(kind)!r:.60}, expected texts, numbers, or lists of "
            "these"
        )


def _unpacked_bytes(column: "pa.Array") -> int:
    """How large texts and lists are when nothing of them is shared."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        lengths = pc.binary_length(column.dictionary)
        return int(pc.sum(lengths.take(column.indices)).as_py() or 0) + int(column.indices.nbytes)
    if pa.types.is_struct(column.type):
        return sum(map(_unpacked_bytes, column.flatten()))
    return (
        int(column.nbytes) if not hasattr(column, "flatten") else _unpacked_bytes(column.flatten())
    )


READERS: dict[str, Callable[[Path], Table]] = {
    ".csv": partial(_read_separated, ","),
    ".tsv": partial(_read_separated, "\t"),
    ".txt": partial(_read_separated, "\t"),
    ".jsonl": _json_lines,
    ".ndjson": _json_lines,
    ".json": _json,
    ".parquet": _parquet,
}
"""By the ending of a name, before that of a compression."""

AUTOMATA = (".att", ".dot", ".gv")
"""What names of automata end in, which `sweeps.datasets.automata` reads; `.json` may be one too."""

EXPECTED = ", ".join((*READERS, *AUTOMATA))

ENDINGS = (*READERS, *AUTOMATA, *COMPRESSED)
"""What names of files may end in."""
