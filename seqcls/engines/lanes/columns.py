"""How instructions stand in rows of numbers: written by tapes, read by the interpreter.

Both go by the fields that an instruction declares, so that no column is known by its number. Numba
is not loaded.
"""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Annotated, Any, get_type_hints

from seqcls.engines.lanes.layers import Rows

Here = Annotated[Any, "here"]
"""A value's rows, from the first that the list is played on."""
Grouped = Annotated[Any, "grouped"]
"""A value's rows of one group, from its first token."""
Whole = Annotated[Any, "whole"]
"""A value's rows, from the first; their distance is negative where there is room for one token."""
Place = Annotated[Any, "place"]
"""Where a value begins."""

FIRST_COLUMN = 2
"""Before it stand the instruction's number and its span."""


@cache
def fields_of(kind: Any) -> tuple[Any, ...]:
    """What fields of an instruction, or of a part of it, are: a type, or how a value is read."""
    hints = get_type_hints(kind, include_extras=True).values()
    return tuple(getattr(hint, "__metadata__", (hint,))[0] for hint in hints)


def width_of(kind: Any) -> int:
    """How many columns its fields fill."""
    widths: dict[Any, int] = {"here": 2, "grouped": 2, "whole": 2, "place": 1, int: 1, bool: 1}
    columns: list[int] = [widths[x] if x in widths else width_of(x) for x in fields_of(kind)]
    return sum(columns)


def write_row(
    number: int, span: int, instruction: Any, width: int, address: Callable[[Any], tuple[int, int]]
) -> list[int]:
    """An instruction as numbers, filled up to a width.

    Args:
        number: that of its kind.
        address: where a value begins, and how far its rows are from each other.
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
    # All rows of a list are as wide as the widest instruction, so that it is one array.
    return row + [0] * (width - len(row))


def values_in(part: Any) -> Iterator[Any]:
    """The values that an instruction names."""
    for what, x in zip(fields_of(part.__class__), part, strict=True):
        if isinstance(what, str):
            yield from () if x is None else (x,)
        elif isinstance(x, tuple):
            yield from values_in(x)


def source_of(kind: Any) -> str:
    """A function that reads an instruction from its row, as Python text; it is compiled.

    A negative distance of rows says that there is room for those of one token alone: those of the
    span's first rows.
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
    """The names that this text mentions: the tuple itself, and those within it."""
    within = [x for x in fields_of(kind) if isinstance(x, type) and issubclass(x, tuple)]
    found = {kind.__name__: kind, "Rows": Rows}
    for part in within:
        found |= parts_of(part)
    return found
