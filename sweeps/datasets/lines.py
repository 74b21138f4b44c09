"""Lines of text files and their cells, as programs and people write them.

Files that are called CSV differ in separators, line ends, quotation marks and compression. What can
mean one thing only is read; what can mean two is refused, with its line.
"""

import bz2
import csv
import gzip
import io
import lzma
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, Any

from seqcls.errors import DatasetError
from seqcls.text import count

MAX_BYTES = 4_000_000_000
"""A larger file is refused before it is read; so is what a compressed one unpacks to."""

MAX_LINE = 10_000_000
"""Bytes of one line at most: 10,000 tokens of 40 characters, each escaped in JSON."""

SEPARATORS = ",;\t|"

COMPRESSED: dict[str, Callable[[Path, str], Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
}

_FIRST_BYTES = {
    b"\x1f\x8b": "compressed by gzip: end its name in .gz",
    b"BZh": "compressed by bzip2: end its name in .bz2",
    b"\xfd7zXZ\0": "compressed by xz: end its name in .xz",
    b"PK\x03\x04": "a zip archive, as .xlsx files are too: unpack it, or save it as CSV",
    b"PAR1": "a Parquet file: end its name in .parquet",
}
"""What a file is that is no text, by how it begins."""


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


def compression_of(ending: str) -> str:
    """How a name says that a file is compressed, such as `.gz`; empty where it is not."""
    return next((suffix for suffix in COMPRESSED if ending.endswith(suffix)), "")


def _open(path: Path) -> IO[bytes]:
    suffix = compression_of(path.name.lower())
    opened: IO[bytes] = COMPRESSED[suffix](path, "rb") if suffix else path.open("rb")
    return opened


def lines_of(path: Path) -> Iterator[str]:
    """The lines of a text, each with its end; a compressed one is unpacked.

    Lines end with LF or CRLF or, where the first one does, with CR alone.
    """
    size = 0
    for number, line in enumerate(_byte_lines(path), 1):
        size += len(line)
        if len(line) > MAX_LINE:
            raise DatasetError(f"line {number} has more than {MAX_LINE:,} bytes")
        if size > MAX_BYTES:
            raise DatasetError(f"more than {MAX_BYTES:,} bytes, unpacked; take fewer rows")
        if b"\0" in line:
            raise DatasetError(f"line {number} has a zero byte: it is no text in UTF-8")
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise DatasetError(
                f"line {number} is no text in UTF-8 (byte {error.start + 1}); save it as UTF-8"
            ) from None


def _byte_lines(path: Path) -> Iterator[bytes]:
    try:
        with _open(path) as file:
            line = file.readline(MAX_LINE + 1)
            for first, what in _FIRST_BYTES.items():
                if line.startswith(first):
                    raise DatasetError(f"no text: it is {what}")
            if b"\r" in line.rstrip(b"\r\n"):
                file.seek(0)
                # Latin-1 has a character for every byte, so that nothing is lost on the way.
                text = io.TextIOWrapper(file, "latin-1")
                while one := text.readline(MAX_LINE + 1):
                    yield one.encode("latin-1")
                return
            while line:
                yield line
                line = file.readline(MAX_LINE + 1)
    except (EOFError, lzma.LZMAError, zlib.error, OSError) as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: Exception) -> DatasetError:
    suffix = compression_of(path.name.lower())
    # The libraries raise an OSError without a number where bytes are not what they unpack.
    if suffix and getattr(error, "errno", None) is None:
        return DatasetError(
            f"cannot be unpacked as its name, which ends in {suffix!r}, says: {str(error)[:80]}; "
            "it is damaged, or called wrongly"
        )
    return DatasetError(f"cannot be read: {getattr(error, 'strerror', None) or error}")


def whole_content(path: Path, most: int) -> bytes:
    """All bytes of a file, unpacked, of which there may be so many."""
    try:
        with _open(path) as file:
            content = file.read(most + 1)
    except (EOFError, lzma.LZMAError, zlib.error, OSError) as error:
        raise _unreadable(path, error) from None
    if len(content) > most:
        raise DatasetError(f"more than {most:,} bytes, which are read as a whole; take fewer rows")
    return content


def first_bytes(path: Path, most: int) -> bytes:
    """The beginning of a file, unpacked; nothing of one that cannot be read."""
    try:
        with _open(path) as file:
            return file.read(most)
    except (EOFError, lzma.LZMAError, zlib.error, OSError):
        return b""


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
    else:
        separator = _separator_of(header, separator)
    # Between tabs quotation marks are not needed, and are tokens, unless the header has them.
    quoted = separator != "\t" or _is_quoted(header)
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
            if not quoted:
                _refuse_quoted(place, cells)
            yield place, cells
            start = reader.line_num + 1
    except csv.Error as error:
        raise DatasetError(f"line {start + skipped}: {_said_of_csv(str(error))}") from None


def _separator_of(first: str, separator: str) -> str:
    """What separates the cells of a first line: where it has none, what it has most of."""
    header = first.strip("\r\n")
    if separator in header:
        return separator
    most = max(SEPARATORS, key=header.count)
    return most if most in header else separator


def _is_quoted(header: str) -> bool:
    cells = header.strip("\r\n").split("\t")
    return all(len(cell) > 1 and cell[0] == cell[-1] == '"' for cell in cells)


def _refuse_quoted(place: str, cells: Sequence[str]) -> None:
    for cell in cells:
        if len(cell) > 1 and re.fullmatch('"(?:[^"]|"")*"', cell):
            raise DatasetError(
                f"{place}: {cell!r:.60} stands in quotation marks, which between tabs are tokens; "
                "remove them, or quote the names in line 1 too where they are none, or write a "
                "token beside them in JSON Lines"
            )


def _said_of_csv(error: str) -> str:
    """What the reader of CSV refuses, in words for those who wrote the file."""
    if "end of data" in error:
        return "a quotation mark opens a cell and none closes it"
    if "expected after" in error:
        return (
            "text follows a quotation mark that closes a cell; "
            "inside of a quoted cell write quotation marks twice"
        )
    if "new-line" in error:
        return "a carriage return (CR) stands inside of a line; end all lines alike, with LF"
    if "field larger" in error:
        return f"a cell of more than {MAX_LINE:,} characters; is a quotation mark not closed?"
    return error


def full_row(place: str, cells: list[str], columns: int) -> list[str]:
    """A line's cells, where it has one for each column."""
    if len(cells) != columns:
        raise DatasetError(
            f"{place} has {count(len(cells), 'cell')}, expected {columns}, as the first line has"
        )
    return cells
