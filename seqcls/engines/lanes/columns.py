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


@cache
def fields_of(kind: Any) -> tuple[Any, ...]:
    """Returns the type of each field of an instruction or a part of it, or the way it is read."""
    hints = get_type_hints(kind, include_extras=True).values()
    return tuple(getattr(hint, "__metadata__", (hint,))[0] for hint in hints)


def leaves(part: Any) -> Iterator[tuple[Any, Any]]:
    """Yields the fields of an instruction, those of its parts in their place; each after its type
    or the way it is read.
    """
    for what, x in zip(fields_of(part.__class__), part, strict=True):
        if isinstance(what, str) or not isinstance(x, tuple):
            yield what, x
        else:
            yield from leaves(x)


def values_in(instruction: Any) -> list[Any]:
    """Returns the values that an instruction names."""
    return [x for what, x in leaves(instruction) if isinstance(what, str) and x is not None]


def columns_of(instruction: Any, address: Callable[[Any], tuple[int, int]]) -> list[int]:
    """Returns an instruction as integers.

    Args:
        address: returns the start of a value, and the distance between its rows.
    """
    columns: list[int] = []
    for what, x in leaves(instruction):
        if isinstance(what, str):
            columns += ((0, 0) if x is None else address(x))[: 1 if what == "place" else 2]
        else:
            columns.append(int(x))
    return columns


def source_of(kind: Any) -> tuple[str, dict[str, Any]]:
    """Returns the Python source of a compiled function that reads an instruction from its row, and
    the tuple types that it names.

    A negative distance of rows means that a value is stored for one token alone, that of the span's
    first rows.
    """
    named: dict[str, Any] = {"Rows": Rows}

    def read(kind: Any, column: int) -> tuple[str, int]:
        named[kind.__name__], parts = kind, []
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

    # The columns before are the instruction's number and its span.
    text, _ = read(kind, 2)
    return f"def read(row, first, group, groups):\n    return {text}\n", named
