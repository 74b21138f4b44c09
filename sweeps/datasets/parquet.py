"""Rows of Parquet files, never unpacked before their size is known."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seqcls.errors import DatasetError

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

MAX_GROUP = 1_000_000_000
"""Bytes of one row group, and of the rows that are read at once, when they are unpacked."""

MAX_ITEMS = 400_000_000
"""Cells of one row group, or items of its lists."""

ROWS_AT_ONCE = 10_000


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
    return int(column.nbytes)
