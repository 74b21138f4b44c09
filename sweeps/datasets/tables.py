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
from functools import lru_cache, partial
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

MAX_AT_ONCE = 1_000_000_000
"""Bytes that are read as a whole: a JSON array, a row group of Parquet, and its rows unpacked."""

ROWS_AT_ONCE = 10_000

COMPRESSED: Mapping[str, Callable[[Path, str], Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
}

_OF_CSV = {
    **dict.fromkeys(
        ("end of data", "field larger"), "a quotation mark opens a cell and none closes it"
    ),
    "expected after": "text follows a quotation mark that closes a cell; inside of a quoted cell "
    "write quotation marks twice",
    "new-line": "a carriage return (CR) stands inside of a line; end all lines alike, with LF",
}
"""What the reader of CSV refuses, by its words, in words for those who wrote the file."""

Row = tuple[str, dict[str, Any]]
"""Where a row stands, such as `line 7`, and its cells by the names of their columns."""


class Table(NamedTuple):
    """The rows of one file; names of columns are in lowercase, but those of settings."""

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
    check_file(path)
    if (reader := READERS.get(kind_of(path))) is None:
        raise DatasetError(
            f"a name that ends in {ending_of(path.name)!r}, expected one of {EXPECTED}, and .gz, "
            ".bz2 or .xz behind it; unpack archives, and save sheets as CSV"
        )
    return reader(path)


def check_file(path: Path, most: int = MAX_BYTES) -> None:
    """Refuses what is no file, or one of more bytes than these."""
    with _refused_reading(path):
        if not path.is_file():
            what = "is a folder, expected a file" if path.is_dir() else "is no file; expected one"
            raise DatasetError(f"{str(path)!r:.200} {what} of {EXPECTED}")
        if path.stat().st_size > most:
            raise DatasetError(f"more than {most:,} bytes; take fewer rows")


@lru_cache(1000)
def lower_names(*names: str) -> Sequence[str]:
    """Names of columns in lowercase, but those of settings as they are.

    Raises:
        DatasetError: two are then the same.
    """
    plain = [name.strip() for name in names]
    is_setting = [name.lower().startswith(PREFIX) for name in plain]
    lowered = [
        PREFIX + name[len(PREFIX) :] if setting else name.lower()
        for name, setting in zip(plain, is_setting, strict=True)
    ]
    for place, name in enumerate(lowered):
        if name and (first := lowered.index(name)) < place:
            differ = f"{names[first]!r:.60} and {names[place]!r:.60} differ in nothing but capitals"
            raise DatasetError(
                f"two columns are {name!r:.60}; keep one"
                if names[first] == names[place]
                else f"{differ} and spaces; keep one"
            )
    return lowered


# Texts, packed or not.


@contextmanager
def _refused_reading(path: Path) -> Iterator[None]:
    try:
        yield
    except (EOFError, lzma.LZMAError, zlib.error, OSError) as error:
        # The libraries raise an OSError without a number where bytes are not what they unpack.
        if getattr(error, "errno", None) is None and path.suffix.lower() in COMPRESSED:
            raise DatasetError(
                f"cannot be unpacked as its name, which ends in {path.suffix.lower()!r}, says: "
                f"{str(error)[:80]}; it is damaged, or called wrongly"
            ) from None
        raise DatasetError(f"cannot be read: {getattr(error, 'strerror', None) or error}") from None


@contextmanager
def open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """A file to be read, unpacked where its name says that it is compressed."""
    with _refused_reading(path), COMPRESSED.get(path.suffix.lower(), Path.open)(path, "rb") as file:
        yield file


_NO_TEXT = re.compile("[\0\udc80-\udcff]")


def lines_of(path: Path) -> Iterator[str]:
    """The lines of a text, each with its end: LF or CRLF or, where the first one has it, CR."""
    size = 0
    with open_bytes(path) as file:
        end = None if b"\r" in file.readline(MAX_LINE).rstrip(b"\r\n") else "\n"
        file.seek(0)
        # Bytes that are no UTF-8 become characters that no text has, so that their line is known.
        text = io.TextIOWrapper(file, "utf-8-sig", "surrogateescape", end)
        for number, line in enumerate(iter(partial(text.readline, MAX_LINE + 1), ""), 1):
            size += len(line)
            if len(line) > MAX_LINE or size > MAX_BYTES:
                most, what = (MAX_LINE, "") if len(line) > MAX_LINE else (MAX_BYTES, "s up to it")
                raise DatasetError(f"line {number}{what} has more than {most:,} characters")
            if ("\0" in line or not line.isascii()) and (wrong := _NO_TEXT.search(line)):
                what = "has a zero byte, and " if wrong[0] == "\0" else ""
                raise DatasetError(
                    f"line {number} {what}is no text in UTF-8 (character {wrong.start() + 1}); "
                    "save it as such, and unpack what is packed"
                )
            yield line


def whole_content(path: Path, most: int = MAX_AT_ONCE) -> bytes:
    """All bytes of a file, unpacked, of which there may be so many."""
    with open_bytes(path) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise DatasetError(f"more than {most:,} bytes, which are read as a whole; take fewer rows")
    return content


# CSV and TSV.

_IN_QUOTES = re.compile('"(?:[^"]|"")*"').fullmatch


def read_separated(separator: str, path: Path, names: Sequence[str] | None = None) -> Table:
    """The table in a CSV or TSV file.

    Args:
        separator: what its ending says. Where it is not in the first line, but another is, that one
            separates; and so does the one of a first line `sep=;`, as Excel reads it.
        path: the file.
        names: those of its columns, where its first line is a row.
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
    # A space behind a separator is no part of a cell, and a quotation mark behind it opens one.
    how: dict[str, Any] = {"delimiter": separator, "strict": True, "skipinitialspace": quoted}
    quoting: Any = csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
    reader = csv.reader(chain([header], lines), quoting=quoting, **how)

    def every() -> Iterator[tuple[str, list[str]]]:
        start = 1
        try:
            for cells in reader:
                yield f"line {reader.line_num + skipped}", cells
                start = reader.line_num + 1
        except csv.Error as error:
            words = next((said for known, said in _OF_CSV.items() if known in str(error)), error)
            raise DatasetError(f"line {start + skipped}: {words}") from None

    rows = every()
    heading, first = ("line 1", names) if names else next(rows, ("line 1", []))
    if not any(map(str.strip, first)):
        raise DatasetError(f"{heading} is empty, expected names of columns, such as tokens,label")
    with refused_in(f"{heading}: "):
        known = lower_names(*first)

    def full() -> Iterator[Row]:
        for place, cells in filter(lambda row: row[1], rows):
            if len(cells) != len(known):
                raise DatasetError(
                    f"{place} has {count(len(cells), 'cell')}, expected {len(known)}, as the "
                    "first line has"
                )
            if not quoted and (cell := next(filter(_IN_QUOTES, cells), None)):
                raise DatasetError(
                    f"{place}: {cell!r:.60} stands in quotation marks, which between tabs are "
                    "tokens; remove them, or quote the names in line 1 too where they are none, or "
                    "write a token beside them in JSON Lines"
                )
            yield place, dict(zip(known, cells, strict=True))

    return Table(heading, known, lambda _: full())


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
    except (ValueError, RecursionError) as error:
        said = "a number has too many digits" if "digits" in str(error) else str(error)[:100]
        raise DatasetError(f"{what} is no JSON: {said}") from None


def _of_objects(objects: Iterable[tuple[str, Any]]) -> Table:
    def every() -> Iterator[Row]:
        for place, record in objects:
            if not isinstance(record, dict):
                hint = "; end the name of a file that is one array in .json"
                raise DatasetError(
                    f'{place} is no JSON object, such as {{"tokens": "ab"}}, but {record!r:.60}'
                    + hint * isinstance(record, list)
                )
            with refused_in(f"{place}: "):
                yield place, dict(zip(lower_names(*record), record.values(), strict=True))

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
    whole = load_json("the file", whole_content(path)) if first else []
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
    content = pa.py_buffer(whole_content(path)) if packed else str(path)
    with _refused_in_parquet("no Parquet file"):
        plain = pq.ParquetFile(content)
        columns = [plain.metadata.schema.column(x).path for x in range(plain.metadata.num_columns)]
        file = pq.ParquetFile(content, read_dictionary=columns)
        groups = map(file.metadata.row_group, range(file.metadata.num_row_groups))
        sizes = [
            (x.total_byte_size, *(x.column(i).num_values for i in range(x.num_columns)))
            for x in groups
        ]
    if (most := max(chain(*sizes), default=0)) > MAX_AT_ONCE:
        raise DatasetError(
            f"a row group of {most:,} bytes or items, expected at most {MAX_AT_ONCE:,}; write "
            "smaller row groups"
        )
    own = plain.schema_arrow.names
    with refused_in("the schema: "):
        known = lower_names(*own)

    def rows(names: Sequence[str]) -> Iterator[Row]:
        read = [own[known.index(name)] for name in names]
        schema = pa.schema([plain.schema_arrow.field(name) for name in read])
        batches = file.iter_batches(batch_size=ROWS_AT_ONCE, columns=read)
        number = 0
        while True:
            with _refused_in_parquet(f"row {number + 1} cannot be read"):
                if (batch := next(batches, None)) is None:
                    return
                if sum(map(_unpacked_bytes, batch.columns)) > MAX_AT_ONCE:
                    raise DatasetError(
                        f"rows {number + 1:,} to {number + len(batch):,} are more than "
                        f"{MAX_AT_ONCE:,} bytes"
                    )
                cells = [x.to_pylist() for x in batch.select(read).cast(schema).columns]
            for row in zip(*cells, strict=True):
                number += 1
                yield f"row {number}", dict(zip(names, row, strict=True))

    return Table("the schema", known, rows)


def _unpacked_bytes(column: "pa.Array") -> int:
    """How large texts and lists are when nothing of them is shared."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        lengths = pc.binary_length(column.dictionary)
        return int(pc.sum(lengths.take(column.indices)).as_py() or 0) + int(column.indices.nbytes)
    inner = column.flatten() if hasattr(column, "flatten") else None
    if isinstance(inner, list):
        return sum(map(_unpacked_bytes, inner))
    return int(column.nbytes) if inner is None else _unpacked_bytes(inner)


READERS: Mapping[str, Callable[[Path], Table]] = {
    ".csv": partial(read_separated, ","),
    **dict.fromkeys((".tsv", ".txt"), partial(read_separated, "\t")),
    **dict.fromkeys((".jsonl", ".ndjson"), _json_lines),
    ".json": _json,
    ".parquet": _parquet,
}
"""By the ending of a name, before that of a compression."""

AUTOMATA = (".att", ".dot", ".gv")
"""What names of automata end in, which `sweeps.datasets.automata` reads; `.json` may be one too."""

EXPECTED = ", ".join((*READERS, *AUTOMATA))

ENDINGS = (*READERS, *AUTOMATA, *COMPRESSED)
"""What names of files may end in."""
