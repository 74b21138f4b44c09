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
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, NamedTuple

from seqcls.errors import DatasetError
from seqcls.imported import PREFIX
from seqcls.text import TwiceError, count, each_once

MAX_BYTES = 4_000_000_000
"""A larger file is refused before it is read."""

MAX_CELL = 10_000_000
"""Characters of a cell between separators at most: 10,000 tokens of 40 characters, escaped."""

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
            what = "a folder" if path.is_dir() else "no file"
            raise DatasetError(f"{str(path)!r:.200} is {what}, expected a file of {EXPECTED}")
        if path.stat().st_size > most:
            raise DatasetError(f"more than {most:,} bytes; take fewer rows")


@lru_cache(1000)
def lower_names(*names: str) -> Sequence[str]:
    """Names of columns in lowercase, but those of settings as they are.

    Raises:
        DatasetError: two are then the same.
    """
    known: dict[str, str] = {}
    lowered = []
    for name in map(str.strip, names):
        lower = name.lower()
        lower = PREFIX + name[len(PREFIX) :] if lower.startswith(PREFIX) else lower
        if lower and (other := known.setdefault(lower, name)) is not name:
            raise DatasetError(f"two columns are {lower!r:.60}: {other!r:.60} and {name!r:.60}")
        lowered.append(lower)
    return lowered


# Texts, packed or not.


@contextmanager
def _refused_reading(path: Path) -> Iterator[None]:
    try:
        yield
    except (EOFError, lzma.LZMAError, zlib.error, OSError) as error:
        # The libraries raise an OSError without a number where bytes are not what they unpack.
        packed = getattr(error, "errno", None) is None and path.suffix.lower()
        hint = f"; it is damaged, or no file that ends in {packed!r}" if packed else ""
        why = getattr(error, "strerror", None) or str(error)[:80]
        raise DatasetError(f"cannot be read: {why}{hint}") from None


@contextmanager
def open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """A file to be read, unpacked where its name says that it is compressed."""
    with _refused_reading(path), COMPRESSED.get(path.suffix.lower(), Path.open)(path, "rb") as file:
        yield file


def lines_of(path: Path) -> Iterator[str]:
    """The lines of a text, each with its end: LF or CRLF or, where the first one has it, CR."""
    no_text = re.compile("[\0\udc80-\udcff]")
    with open_bytes(path) as file:
        end = None if b"\r" in file.readline().rstrip(b"\r\n") else "\n"
        file.seek(0)
        # Bytes that are no UTF-8 become characters that no text has, so that their line is known.
        text = io.TextIOWrapper(file, "utf-8-sig", "surrogateescape", end)
        for number, line in enumerate(text, 1):
            if ("\0" in line or not line.isascii()) and (wrong := no_text.search(line)):
                raise DatasetError(
                    f"line {number} is no text in UTF-8 (character {wrong.start() + 1}); save it "
                    "as such, without zero bytes, and unpack what is packed"
                )
            yield line


def whole_content(path: Path) -> bytes:
    """All bytes of a file, unpacked."""
    with open_bytes(path) as file:
        return file.read()


# CSV and TSV.


def read_separated(separator: str, path: Path, names: Sequence[str] | None = None) -> Table:
    """The table in a CSV or TSV file.

    Args:
        separator: what its ending says. Where it is not in the first line, but another is, that one
            separates; and so does the one of a first line `sep=;`, as Excel reads it.
        path: the file.
        names: those of its columns, where its first line is a row.
    """
    lines, skipped, in_quotes = lines_of(path), 0, re.compile('"(?:[^"]|"")*"').fullmatch
    header = next(lines, "")
    if said := re.fullmatch(r"sep=(.)", header.strip("\r\n"), re.IGNORECASE):
        separator, skipped, header = said[1], 1, next(lines, "")
    elif separator not in header.strip("\r\n"):
        separator = max(f"{separator},;\t|", key=header.strip("\r\n").count)
    # Between tabs quotation marks are not needed, and are tokens, unless the header has them.
    quoted = separator != "\t" or all(map(in_quotes, header.strip("\r\n").split("\t")))
    # The limit is one of the process: whoever raised it may need it so.
    csv.field_size_limit(max(csv.field_size_limit(), MAX_CELL))
    # A space behind a separator is no part of a cell, and a quotation mark behind it opens one.
    how: dict[str, Any] = {"delimiter": separator, "strict": True, "skipinitialspace": quoted}
    quoting: Any = csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
    reader = csv.reader(chain([header], lines), quoting=quoting, **how)

    def cells_of_lines() -> Iterator[tuple[str, list[str]]]:
        start = 1
        try:
            for cells in reader:
                yield f"line {reader.line_num + skipped}", cells
                start = reader.line_num + 1
        except csv.Error as error:
            words = next((said for known, said in _OF_CSV.items() if known in str(error)), error)
            raise DatasetError(f"line {start + skipped}: {words}") from None

    lines_read = cells_of_lines()
    heading, first = ("line 1", names) if names else next(lines_read, ("line 1", []))
    if not any(map(str.strip, first)):
        raise DatasetError(f"{heading} is empty, expected names of columns, such as tokens,label")
    with refused_in(f"{heading}: "):
        known = lower_names(*first)

    def rows() -> Iterator[Row]:
        for place, cells in lines_read:
            if cells and len(cells) != len(known):
                number = count(len(cells), "cell")
                raise DatasetError(f"{place} has {number}, expected {len(known)}, as {heading} has")
            if not quoted and (cell := next(filter(in_quotes, cells), None)):
                raise DatasetError(
                    f"{place}: {cell!r:.60} stands in quotation marks, which between tabs are "
                    "tokens; remove them, or quote the names in line 1 too where they are none, or "
                    "write a token beside them in JSON Lines"
                )
            if cells:
                yield place, dict(zip(known, cells, strict=True))

    return Table(heading, known, lambda _: rows())


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
        why = "a number has too many digits" if "digits" in str(error) else str(error)[:100]
        raise DatasetError(f"{what} is no JSON: {why}") from None


def _json(path: Path) -> Table:
    """Objects, one a line, or, of a file called `.json`, in an array."""
    lines: Iterable[tuple[str, Any]] = (
        (f"line {number}", line) for number, line in enumerate(lines_of(path), 1) if line.strip()
    )
    objects = ((place, load_json(place, line)) for place, line in lines)
    if kind_of(path) == ".json":
        # Many programs call lines of JSON so too.
        first, second, *_ = *islice(filter(None, map(str.strip, lines_of(path))), 2), "", ""
        if not (first.startswith("{") and first.endswith("}") and second):
            whole = load_json("the file", whole_content(path)) if first else []
            if not isinstance(whole, list):
                raise DatasetError(
                    f"no array, but {whole!r:.60}; expected objects, one a row, as in "
                    '[{"tokens": "ab", "label": 1}, …]: write that array alone, or JSON Lines'
                )
            objects = ((f"object {number}", row) for number, row in enumerate(whole, 1))

    def rows() -> Iterator[Row]:
        for place, record in objects:
            if not isinstance(record, dict):
                raise DatasetError(
                    f'{place} is no JSON object, such as {{"tokens": "ab"}}, but {record!r:.60}; '
                    "end the name of a file that is one array in .json"
                )
            with refused_in(f"{place}: "):
                yield place, dict(zip(lower_names(*record), record.values(), strict=True))

    found = rows()
    if (first_row := next(found, None)) is None:
        raise DatasetError("no rows")
    return Table(first_row[0], list(first_row[1]), lambda _: chain([first_row], found))


# Parquet.


def _parquet(path: Path) -> Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    @contextmanager
    def refusing(what: str) -> Iterator[None]:
        try:
            yield
        except (pa.ArrowException, OSError, ValueError) as error:
            raise DatasetError(f"{what}: {str(error).splitlines()[0][:100]}") from None

    packed = path.suffix.lower() in COMPRESSED
    content = pa.py_buffer(whole_content(path)) if packed else str(path)
    with refusing("no Parquet file"):
        file = pq.ParquetFile(content)
    with refused_in("the schema: "):
        known = lower_names(*file.schema_arrow.names)

    def rows(names: Sequence[str]) -> Iterator[Row]:
        read = [file.schema_arrow.names[known.index(name)] for name in names]
        with refusing("rows cannot be read"):
            batches = (x.select(read) for x in file.iter_batches(ROWS_AT_ONCE, columns=read))
            columns = ([column.to_pylist() for column in batch.columns] for batch in batches)
            every = chain.from_iterable(zip(*some, strict=True) for some in columns)
            for number, row in enumerate(every, 1):
                yield f"row {number}", dict(zip(names, row, strict=True))

    return Table("the schema", known, rows)


READERS: Mapping[str, Callable[[Path], Table]] = {
    ".csv": partial(read_separated, ","),
    **dict.fromkeys((".tsv", ".txt"), partial(read_separated, "\t")),
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), _json),
    ".parquet": _parquet,
}
"""By the ending of a name, before that of a compression."""

AUTOMATA = (".att", ".dot", ".gv")
"""What names of automata end in, which `sweeps.datasets.automata` reads; `.json` may be one too."""

EXPECTED = ", ".join((*READERS, *AUTOMATA))

ENDINGS = (*READERS, *AUTOMATA, *COMPRESSED)
"""What names of files may end in."""
