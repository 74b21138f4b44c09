"""Tables as files hold them, with the place of each row: CSV, TSV, JSON Lines, JSON, Parquet."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from seqcls.errors import DatasetError
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
from sweeps.datasets.parquet import MAX_GROUP, open_parquet, parquet_rows

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
}
"""What to do with files that are none of rows, by their ending."""

_INDEX = re.compile(r"|unnamed: \d+|__index_level_\d+__")
"""What pandas calls the index of a frame, where it writes it as a column."""


class Table(NamedTuple):
    """The rows of one file by its own names of columns, whatever they are."""

    names: list[str]
    """In the order of the file; of JSON Lines those of the first line."""
    rows: Callable[[Sequence[str]], Iterator[tuple[str, dict[str, Any]]]]
    """The place of each, such as `line 7`, and its cells: of these columns, or of more."""
    heading: str = "line 1"
    """Where the names stand."""
    may_vary: bool = False
    """Whether rows may have other names than the first one."""


def table_of(path: Path) -> Table:
    """The rows of one file, read as the ending of its name says.

    Raises:
        DatasetError: it is none that can be read; of a row, when it is reached.
    """
    ending = ending_of(path.name)
    try:
        if path.is_dir():
            raise DatasetError(f"{str(path)!r:.200} is a folder, expected a file")
        if not path.is_file():
            raise DatasetError(f"no file {str(path)!r:.200}; expected one of {', '.join(READERS)}")
        if path.stat().st_size > MAX_BYTES:
            raise DatasetError(f"more than {MAX_BYTES:,} bytes; take fewer rows")
        reader = READERS.get(ending.removesuffix(compression_of(ending)))
        if reader is None:
            advice = _ADVICE.get(Path(ending).suffix or ending)
            raise DatasetError(
                f"a name that ends in {ending!r}, expected one of {', '.join(READERS)}"
                + (f"; {advice}" if advice else ", and .gz, .bz2 or .xz behind it")
            )
        return reader(path)
    except OSError as error:
        raise DatasetError(f"cannot be read: {error.strerror or error}") from None


def is_index(name: str) -> bool:
    """Whether a column is the index of a frame, which pandas writes beside it."""
    return _INDEX.fullmatch(name.strip().lower()) is not None


def _separated(separator: str) -> Callable[[Path], Table]:
    def read(path: Path) -> Table:
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
        return Table(names, lambda _: rows, heading)

    return read


def _json_lines(path: Path) -> Table:
    lines = ((number, line) for number, line in enumerate(lines_of(path), 1) if line.strip())
    first = next(lines, None)
    if first is None:
        raise DatasetError("no rows")
    rows = ((f"line {number}", json_object(number, line)) for number, line in chain([first], lines))
    return Table(list(json_object(*first)), lambda _: rows, f"line {first[0]}", may_vary=True)


def json_object(number: int, line: str) -> dict[str, Any]:
    """The object in a line of JSON Lines; its names in lowercase."""
    record = _loaded(f"line {number}", line)
    if not isinstance(record, dict):
        hint = "; end the name of a file that is one array in .json" * isinstance(record, list)
        raise DatasetError(
            f'line {number} is no JSON object, such as {{"tokens": "ab", ...}}{hint}'
        )
    return _lowered(f"line {number}", record)


def _lowered(place: str, record: Mapping[str, Any]) -> dict[str, Any]:
    lowered = {key.strip().lower(): value for key, value in record.items()}
    if len(lowered) < len(record):
        raise DatasetError(f"{place}: two names differ in nothing but capitals and spaces")
    return lowered


def _loaded(what: str, text: str | bytes) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        said = "a number has too many digits" if "digits" in str(error) else str(error)[:100]
        raise DatasetError(f"{what} is no JSON: {said}") from None
    except _TwiceError as error:
        raise DatasetError(f"{what} has {error.args[0]!r:.60} twice; keep one") from None


class _TwiceError(Exception):
    """An object has a name twice, of which JSON would take the last without a word."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        names = [name for name, _ in pairs]
        raise _TwiceError(next(name for name in names if names.count(name) > 1))
    return record


def _json(path: Path) -> Table:
    """An array of objects; or JSON Lines, as many programs call `.json` too."""
    lines = (line.strip() for line in lines_of(path) if line.strip())
    first, second = next(lines, ""), next(lines, "")
    if first.startswith("{") and first.endswith("}") and second:
        return _json_lines(path)
    if not first:
        raise DatasetError("no rows")
    try:
        whole = _loaded("the file", whole_content(path, MAX_JSON).decode("utf-8-sig"))
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
    rows = ((place, _lowered(place, row)) for place, row in zip(places, whole, strict=True))
    return Table(list(_lowered(places[0], whole[0])), lambda _: rows, places[0], may_vary=True)


def _parquet(path: Path) -> Table:
    is_packed = compression_of(path.name.lower())
    file = open_parquet(whole_content(path, MAX_GROUP) if is_packed else path)

    def rows(names: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
        for number, cells in parquet_rows(file, names):
            yield f"row {number}", dict(zip(names, cells, strict=True))

    return Table(list(file.schema_arrow.names), rows, "the schema")


READERS: dict[str, Callable[[Path], Table]] = {
    ".csv": _separated(","),
    ".tsv": _separated("\t"),
    ".txt": _separated("\t"),
    ".jsonl": _json_lines,
    ".ndjson": _json_lines,
    ".json": _json,
    ".parquet": _parquet,
}
"""By the ending of a name, before that of a compression."""

ENDINGS = (*READERS, *COMPRESSED)
"""What names of files may end in."""
