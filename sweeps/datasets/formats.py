"""Tables as files hold them, with the place of each row: CSV, TSV, JSON Lines, JSON, Parquet."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from seqcls.errors import DatasetError
from seqcls.imported import PREFIX
from seqcls.text import TwiceError, each_once
from sweeps.datasets.lines import (
    COMPRESSED,
    MAX_BYTES,
    compression_of,
    ending_of,
    full_row,
    lines_of,
    separated_lines,
    whole_content,
)

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq


MAX_GROUP = 1_000_000_000
"""Bytes of one row group, and of the rows that are read at once, when they are unpacked."""

MAX_ITEMS = 400_000_000
"""Cells of one row group, or items of its lists."""

ROWS_AT_ONCE = 10_000

SETTINGS = "config"
"""The column of predictions that has objects: the settings of a model."""


def open_parquet(file: Path | bytes) -> "pq.ParquetFile":
    """A file, or the content of one, whose row groups are small enough to be read.

    Texts are read as dictionaries: a few bytes in the file can stand for a million long texts.

    Raises:
        DatasetError: it is no Parquet file, or a row group is too large.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    def source() -> Any:
        return file if isinstance(file, Path) else pa.BufferReader(file)

    try:
        schema = pq.ParquetFile(source()).metadata.schema
        paths = [schema.column(i).path for i in range(len(schema.names))]
        opened = pq.ParquetFile(source(), read_dictionary=paths)
        groups = [opened.metadata.row_group(i) for i in range(opened.metadata.num_row_groups)]
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DatasetError(f"no Parquet file: {str(error).splitlines()[0][:100]}") from None
    for group in groups:
        items = max((group.column(i).num_values for i in range(group.num_columns)), default=0)
        if group.total_byte_size > MAX_GROUP or items > MAX_ITEMS:
            raise DatasetError(
                f"a row group of {group.total_byte_size:,} bytes and {items:,} items, expected at "
                f"most {MAX_GROUP:,} and {MAX_ITEMS:,}; write smaller row groups"
            )
    return opened


def parquet_rows(file: "pq.ParquetFile", names: Sequence[str]) -> Iterator[tuple[int, list[Any]]]:
    """The number of each row, from 1, and its cells in these columns.

    Raises:
        DatasetError: the file is damaged, a column holds neither texts nor numbers nor lists of
            these, or rows are too large.
    """
    import pyarrow as pa

    number = 0
    try:
        for batch in file.iter_batches(batch_size=ROWS_AT_ONCE, columns=list(names)):
            columns = [batch.column(name) for name in names]
            plain = [_plain(column.type, name) for name, column in zip(names, columns, strict=True)]
            if sum(map(_unpacked_bytes, columns)) > MAX_GROUP:
                raise DatasetError(
                    f"rows {number + 1:,} to {number + len(batch):,} are more than "
                    f"{MAX_GROUP:,} bytes"
                )
            pairs = zip(columns, plain, strict=True)
            cells = [column.cast(kind).to_pylist() for column, kind in pairs]
            for row in zip(*cells, strict=True):
                number += 1
                yield number, list(row)
    except (pa.ArrowException, OSError, ValueError) as error:
        said = str(error).splitlines()[0][:100]
        raise DatasetError(f"row {number + 1} cannot be read: {said}") from None


def _plain(kind: "pa.DataType", name: str) -> "pa.DataType":
    """The type without dictionaries."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return _plain(kind.value_type, name)
    if _is_list(kind):
        return pa.list_(_plain(kind.value_type, name))
    if pa.types.is_struct(kind) and name.strip().lower() == SETTINGS:
        return pa.struct([pa.field(x.name, _plain(x.type, name)) for x in kind])
    if pa.types.is_nested(kind):
        raise DatasetError(
            f"column {name!r:.60} holds {str(kind)!r:.60}, expected texts, "
            "numbers, or lists of these"
        )
    return kind


def _is_list(kind: "pa.DataType") -> bool:
    import pyarrow as pa

    types = pa.types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _unpacked_bytes(column: "pa.Array") -> int:
    """How large texts and lists are when nothing of them is shared."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        lengths = pc.binary_length(column.dictionary)
        return int(pc.sum(lengths.take(column.indices)).as_py() or 0) + int(column.indices.nbytes)
    if _is_list(column.type):
        return _unpacked_bytes(column.flatten())
    if pa.types.is_struct(column.type):
        return sum(map(_unpacked_bytes, column.flatten()))
    return int(column.nbytes)


SPLIT_NAMES = {
    "train": "train",
    "val": "validation",
    "valid": "validation",
    "validation": "validation",
    "dev": "validation",
    "test": "test",
}
"""What a split may be called in a file."""

MAX_JSON = 500_000_000
"""Bytes of a JSON array at most, which is read as a whole."""

_ADVICE = {
    **dict.fromkeys((".zip", ".7z", ".rar", ".tar", ".tgz", ".zst"), "unpack it first"),
    **dict.fromkeys((".xlsx", ".xls", ".ods"), "save its sheet as CSV"),
    **dict.fromkeys((".arrow", ".feather", ".pkl", ".npz", ".npy"), "write it as Parquet or CSV"),
    ".fst": "write it as text, by OpenFst's fstprint, and end that name in .att",
}
"""What to do with files that are none of rows, by their ending."""

_INDEX = re.compile(r"|unnamed: \d+|__index_level_\d+__")
"""What pandas calls the index of a frame, where it writes it as a column."""


class FileTable(NamedTuple):
    """The rows of one file by its own names of columns, whatever they are."""

    names: list[str]
    """In the order of the file; of JSON Lines those of the first line."""
    rows: Callable[[Sequence[str]], Iterator[tuple[str, dict[str, Any]]]]
    """The place of each, such as `line 7`, and its cells: of these columns, or of more."""
    heading: str = "line 1"
    """Where the names stand."""
    may_vary: bool = False
    """Whether rows may have other names than the first one."""


def table_of(path: Path) -> FileTable:
    """The rows of one file, read as the ending of its name says.

    Raises:
        DatasetError: it is none that can be read; of a row, when it is reached.
    """
    ending, expected = ending_of(path.name), ", ".join((*READERS, *AUTOMATA))
    try:
        if path.is_dir():
            raise DatasetError(f"{str(path)!r:.200} is a folder, expected a file")
        if not path.is_file():
            raise DatasetError(f"no file {str(path)!r:.200}; expected one of {expected}")
        if path.stat().st_size > MAX_BYTES:
            raise DatasetError(f"more than {MAX_BYTES:,} bytes; take fewer rows")
        reader = READERS.get(ending.removesuffix(compression_of(ending)))
        if reader is None:
            advice = _ADVICE.get(Path(ending).suffix or ending)
            raise DatasetError(
                f"a name that ends in {ending!r}, expected one of {expected}"
                + (f"; {advice}" if advice else ", and .gz, .bz2 or .xz behind it")
            )
        return reader(path)
    except OSError as error:
        raise DatasetError(f"cannot be read: {error.strerror or error}") from None


def is_index(name: str) -> bool:
    """Whether a column is the index of a frame, which pandas writes beside it."""
    return _INDEX.fullmatch(name.strip().lower()) is not None


def _reader_of_separated(separator: str) -> Callable[[Path], FileTable]:
    def read(path: Path) -> FileTable:
        lines = separated_lines(path, separator)
        heading, first = next(lines, ("line 1", []))
        if not any(name.strip() for name in first):
            raise DatasetError(
                f"{heading} is empty, expected names of columns, such as tokens,label"
            )
        names = [name.strip() for name in first]
        rows = (
            (place, dict(zip(names, full_row(place, cells, len(names)), strict=True)))
            for place, cells in lines
            if cells
        )
        return FileTable(names, lambda _: rows, heading)

    return read


def _json_lines(path: Path) -> FileTable:
    lines = ((number, line) for number, line in enumerate(lines_of(path), 1) if line.strip())
    first = next(lines, None)
    if first is None:
        raise DatasetError("no rows")
    rows = ((f"line {number}", json_object(number, line)) for number, line in chain([first], lines))
    return FileTable(list(json_object(*first)), lambda _: rows, f"line {first[0]}", may_vary=True)


def json_object(number: int, line: str) -> dict[str, Any]:
    """The object in a line of JSON Lines; its names in lowercase."""
    record = load_json(f"line {number}", line)
    if not isinstance(record, dict):
        hint = "; end the name of a file that is one array in .json" * isinstance(record, list)
        raise DatasetError(
            f'line {number} is no JSON object, such as {{"tokens": "ab", ...}}{hint}'
        )
    return lower_names(f"line {number}", record)


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


def load_json(what: str, text: str | bytes) -> Any:
    """What a text says as JSON.

    Raises:
        DatasetError: it is none, or an object in it has a name twice.
    """
    try:
        return json.loads(text, object_pairs_hook=each_once)
    except TwiceError as error:
        raise DatasetError(f"{what} has {error}") from None
    except (ValueError, RecursionError) as error:
        said = "a number has too many digits" if "digits" in str(error) else str(error)[:100]
        raise DatasetError(f"{what} is no JSON: {said}") from None


def _json(path: Path) -> FileTable:
    """An array of objects; or JSON Lines, as many programs call `.json` too."""
    lines = (line.strip() for line in lines_of(path) if line.strip())
    first, second = next(lines, ""), next(lines, "")
    if first.startswith("{") and first.endswith("}") and second:
        return _json_lines(path)
    if not first:
        raise DatasetError("no rows")
    try:
        whole = load_json("the file", whole_content(path, MAX_JSON).decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise DatasetError(f"no text in UTF-8 (byte {error.start + 1}); save it as UTF-8") from None
    if not isinstance(whole, list):
        has = f", with {', '.join(map(repr, whole))[:80]}" if isinstance(whole, dict) else ""
        raise DatasetError(
            f"no array{has}; expected objects, one a row, as in "
            '[{"tokens": "ab", "label": 1}, …]: write that array alone, or JSON Lines'
        )
    places = [f"object {number}" for number in range(1, len(whole) + 1)]
    for place, record in zip(places, whole, strict=True):
        if not isinstance(record, dict):
            raise DatasetError(f'{place} is {record!r:.60}, expected {{"tokens": "ab", ...}}')
    if not whole:
        raise DatasetError("no rows")
    rows = ((place, lower_names(place, row)) for place, row in zip(places, whole, strict=True))
    return FileTable(
        list(lower_names(places[0], whole[0])), lambda _: rows, places[0], may_vary=True
    )


def _parquet(path: Path) -> FileTable:
    is_packed = compression_of(path.name.lower())
    file = open_parquet(whole_content(path, MAX_GROUP) if is_packed else path)

    def rows(names: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
        for number, cells in parquet_rows(file, names):
            yield f"row {number}", dict(zip(names, cells, strict=True))

    return FileTable(list(file.schema_arrow.names), rows, "the schema")


READERS: dict[str, Callable[[Path], FileTable]] = {
    ".csv": _reader_of_separated(","),
    ".tsv": _reader_of_separated("\t"),
    ".txt": _reader_of_separated("\t"),
    ".jsonl": _json_lines,
    ".ndjson": _json_lines,
    ".json": _json,
    ".parquet": _parquet,
}
"""By the ending of a name, before that of a compression."""

AUTOMATA = (".att", ".dot", ".gv")
"""What names of automata end in, which `sweeps.datasets.automata` reads; `.json` may be one too."""

ENDINGS = (*READERS, *AUTOMATA, *COMPRESSED)
"""What names of files may end in."""
