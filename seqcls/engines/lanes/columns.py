"""Instructions as rows of integers, which tapes write and the interpreter reads.

Both follow the fields that an instruction declares, so that no column is named by its index. Numba
is not loaded.
"""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Annotated, Any, get_type_hints

from seqcls.engines.lanes.layers import Rows

Here = Annotated[Any, "here"]
"""A value's rows, from the first row of the span on."""
Grouped = Annotated[Any, "grouped"]
"""A value's rows of one group, from its first token."""
Whole = Annotated[Any, "whole"]
"""All rows of a value; their distance is negative if the value is stored for one token alone."""
Place = Annotated[Any, "place"]
"""The start of a value."""

FIRST_COLUMN = 2
"""The columns before it are the instruction's number and its span."""


@cache
def fields_of(kind: Any) -> tuple[Any, ...]:
    """Returns the type of each field of an instruction or a part of it, or the way it is read."""
    hints = get_type_hints(kind, include_extras=True).values()
    return tuple(getattr(hint, "__metadata__", (hint,))[0] for hint in hints)


def width_of(kind: Any) -> int:
    """Returns the number of columns of its fields."""
    widths: dict[Any, int] = {"here": 2, "grouped": 2, "whole": 2, "place": 1, int: 1, bool: 1}
    columns: list[int] = [widths[x] if x in widths else width_of(x) for x in fields_of(kind)]
    return sum(columns)


def write_row(
    number: int, span: int, instruction: Any, width: int, address: Callable[[Any], tuple[int, int]]
) -> list[int]:
    """Returns an instruction as integers, filled up to a width.

    Args:
        number: the number of its kind.
        address: returns the start of a value, and the distance between its rows.
    """

    def flatten(part: Any) -> Iterator[int]:
        for what, x in zip(fields_of(part.__class__), part, strict=True):
            if what in ("here", "grouped", "whole"):
                yield from (0, 0) if x is None else address(x)
            elif what == "place":
                yield 0 if x is None else address(x)[0]
            elif isinstance(x, tuple):
                yield from flatten(x)
            else:
                yield int(x)

    row = [number, span, *flatten(instruction)]
    # All rows have the width of the widest instruction, so that a list is one array.
    return row + [0] * (width - len(row))


def values_in(part: Any) -> Iterator[Any]:
    """Yields the values that an instruction names."""
    for what, x in zip(fields_of(part.__class__), part, strict=True):
        if isinstance(what, str):
            yield from () if x is None else (x,)
        elif isinstance(x, tuple):
            yield from values_in(x)


def source_of(kind: Any) -> str:
    """Returns the Python source of a compiled function that reads an instruction from its row.

    A negative distance of rows means that a value is stored for one token alone, that of the span's
    first rows.
    """

    def read(kind: Any, column: int) -> tuple[str, int]:
        parts = []
        for what in fields_of(kind):
            if isinstance(what, str):
                at = f"row[{column}]" + f", row[{column + 1}]" * (what != "place")
                text = {"place": at, "whole": f"Rows({at})", "here": f"rows_from({at}, first)"}
                parts.append(text.get(what, f"rows_of_group({at}, first, group, groups)"))
                column += 1 + (what != "place")
            elif what in (int, bool):
                parts.append(f"row[{column}]" + " == 1" * (what is bool))
                column += 1
            else:
                text_of_part, column = read(what, column)
                parts.append(text_of_part)
        return f"{kind.__name__}({', '.join(parts)},)", column

    return f"def read(row, first, group, groups):\n    return {read(kind, FIRST_COLUMN)[0]}\n"


def parts_of(kind: Any) -> dict[str, Any]:
    """Returns the tuple types that this source names, by name."""
    within = [x for x in fields_of(kind) if isinstance(x, type) and issubclass(x, tuple)]
    found = {kind.__name__: kind, "Rows": Rows}
    for part in within:
        found |= parts_of(part)
    return found
